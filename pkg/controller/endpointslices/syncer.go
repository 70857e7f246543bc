// Copyright The jobset-apiserver Authors.
// SPDX-License-Identifier: Apache-2.0

package endpoints

import (
	"sync/atomic"

	discoveryv1 "k8s.io/api/discovery/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/client-go/tools/cache"

	jobsetv1alpha2 "github.com/jobset-apiserver/jobset-apiserver/pkg/apis/jobset/v1alpha2"
	"github.com/jobset-apiserver/jobset-apiserver/pkg/controller/host/children"
	"github.com/jobset-apiserver/jobset-apiserver/pkg/controller/host/consistency"
	"github.com/jobset-apiserver/jobset-apiserver/pkg/controller/host/informers"
)

// Cache is what a Syncer sees of an informer.
type Cache interface {
	AddEventHandler(handler cache.ResourceEventHandler)
	// HasSynced returns whether the cache is filled, and Refused whether it is not because the controller has no
	// permission. Nothing is known if neither holds.
	HasSynced() bool
	Refused() bool
	LastStoreSyncResourceVersion() string
	GetByKey(key string) (any, error)
	ByIndex(index, value string) ([]any, error)
	List() []any
}

// Queue is where a Syncer asks for syncs of sets.
type Queue interface {
	Add(set cache.ObjectName)
	AddSoon(set cache.ObjectName)
}

// demand is where the Syncer asks for what is watched while a set needs it.
type demand interface {
	// View returns nil before the caches are filled. Asking is what begins the watches.
	View() *view
	// Current returns the view without asking for one.
	Current() *view
}

// Syncer decides and writes. A Controller has it do so while it runs; a simulation has caches and a queue of its own.
type Syncer struct {
	Config
	queue       Queue
	sets        Cache
	slices      Cache
	switched    Cache
	demand      demand
	consistency *consistency.ConsistencyStore
	memory      *memory
	limiter     *switchLimiter
	rights      *rights
	// services and slicesOf guard selectors of Services, and slices of sets. lost are sets of which another party has deleted slices.
	services, slicesOf *children.Guard
	lost               *children.Notes[bool]
	// accepted is whether slices with addresses are stored, as far as is known.
	accepted atomic.Bool
}

func newSyncer(config Config, q Queue, declare func(informers.Need) Cache) *Syncer {
	registerMetrics()
	c := &Syncer{
		Config: config, queue: q, memory: newMemory(), limiter: newSwitchLimiter(), rights: newRights(), lost: children.NewNotes[bool](),
		services: children.NewGuard("service", config.Clock), slicesOf: children.NewGuard("EndpointSlice of JobSet", config.Clock),
	}
	gv := jobsetv1alpha2.SchemeGroupVersion
	sets := informers.NewResource(c.Informers.Aggregated(gv), gv.WithResource("jobsets"), &jobsetv1alpha2.JobSet{}, c.JobSets,
		c.JobSets.JobsetV1alpha2().JobSets(metav1.NamespaceAll))
	c.sets = declare(informers.Need{
		Resource: sets, Transform: informers.Transformed(c.newSet), Indexers: cache.Indexers{indexService: serviceOf},
	})
	// Clusters whose administrators do not give us this right are served by their own controllers.
	c.slices = declare(informers.Need{
		Resource: c.Informers.EndpointSlices(), Label: jobsetv1alpha2.JobSetNameKey, Transform: transformSlice,
		Indexers: cache.Indexers{indexSet: setOfSlice}, Optional: true,
	})
	c.switched = declare(informers.Need{
		Resource: c.Informers.Services(), Only: isSwitched, Transform: transformService, Indexers: cache.Indexers{indexSet: takenOf},
	})
	c.consistency = consistency.NewConsistencyStore(c.Clock, map[string]consistency.Versioned{resourceSlices: c.slices,
		resourceServices: viewedServices{c}})
	c.handleEvents()
	return c
}

func isMode(mode string) bool {
	switch mode {
	case jobsetv1alpha2.ServiceEndpointsCluster, jobsetv1alpha2.ServiceEndpointsController, jobsetv1alpha2.ServiceEndpointsAuto:
		return true
	}
	return false
}

// modeOf returns the mode of a set.
func (c *Syncer) modeOf(s *set) string {
	if isMode(s.mode) {
		return s.mode
	}
	return c.Mode
}

// newSet returns what is kept of a JobSet. What its pods do matters only to one mode.
func (c *Syncer) newSet(js *jobsetv1alpha2.JobSet) *set {
	s := newSet(js)
	if c.modeOf(s) == jobsetv1alpha2.ServiceEndpointsAuto && !s.unknown {
		s.activity = activityOf(js, s.pods)
	}
	return s
}

// asks returns whether we are to write the slices of a set. In the mode auto, a Service that is taken stays so until all pods are at rest.
func (c *Syncer) asks(s *set) bool {
	if s.service == "" {
		return false
	}
	switch c.modeOf(s) {
	case jobsetv1alpha2.ServiceEndpointsController:
		return true
	case jobsetv1alpha2.ServiceEndpointsAuto:
		return s.activity == manyMove || s.activity == fewMove && len(c.taken(s.key())) > 0
	}
	return false
}

// set returns the cached set; nil if there is none.
func (c *Syncer) set(key cache.ObjectName) *set {
	obj, err := c.sets.GetByKey(key.String())
	s, ok := obj.(*set)
	if err != nil || !ok {
		return nil
	}
	return s
}

// managed returns our slices of a set.
func (c *Syncer) managed(key cache.ObjectName) (managed []*discoveryv1.EndpointSlice) {
	objs, err := c.slices.ByIndex(indexSet, key.String())
	if err != nil {
		return nil // the index exists
	}
	for _, obj := range objs {
		if slice, ok := obj.(*discoveryv1.EndpointSlice); ok {
			managed = append(managed, slice)
		}
	}
	return managed
}

// taken returns the names of the Services of a set that are taken.
func (c *Syncer) taken(key cache.ObjectName) (names []string) {
	objs, err := c.switched.ByIndex(indexSet, key.String())
	if err != nil {
		return nil // the index exists
	}
	for _, obj := range objs {
		if s, ok := obj.(*service); ok {
			names = append(names, s.name)
		}
	}
	return names
}

// Needed returns whether pods must be watched. Where every set asks us, they are watched before there is one.
func (c *Syncer) Needed() bool {
	if c.Mode == jobsetv1alpha2.ServiceEndpointsController || len(c.switched.List()) > 0 {
		return true
	}
	for _, obj := range c.slices.List() {
		if _, ok := ownerOfSlice(obj); ok {
			return true
		}
	}
	for _, obj := range c.sets.List() {
		if s, ok := obj.(*set); ok && (s.mayAsk() || c.asks(s)) {
			return true
		}
	}
	return false
}

// LookAtAll looks at all sets that we have, or are to have, to do with.
func (c *Syncer) LookAtAll() {
	for _, obj := range c.sets.List() {
		if s, ok := obj.(*set); ok && c.asks(s) {
			c.lookAt(s.key())
		}
	}
	for _, obj := range c.slices.List() {
		if key, ok := ownerOfSlice(obj); ok {
			c.lookAt(key)
		}
	}
	for _, obj := range c.switched.List() {
		if s, ok := obj.(*service); ok {
			if key, ok := setOfService(s); ok {
				c.lookAt(key)
			}
		}
	}
}

// lookAt looks at a set at once.
func (c *Syncer) lookAt(key cache.ObjectName) {
	if view := c.demand.Current(); view != nil {
		view.paces.again(key)
	}
	c.queue.Add(key)
}

// shares returns whether other sets use the Service of the set.
func (c *Syncer) shares(s *set) bool {
	users, _ := c.sets.ByIndex(indexService, cache.NewObjectName(s.namespace, s.service).String()) // the index exists
	for _, obj := range users {
		if user, ok := obj.(*set); ok && user.name != s.name {
			return true
		}
	}
	return false
}
