// Copyright The jobset-apiserver Authors.
// SPDX-License-Identifier: Apache-2.0

// Package endpoints writes the EndpointSlices of the headless Services of JobSets, for those sets that ask for it.
//
// The controllers of the cluster write all addresses of a Service once more whenever some of its pods have changed, which is quadratic in the number of pods, and
// they write them twice: as EndpointSlices and as Endpoints. Here the addresses of a set gather: package slices plans the writes, and pace decides when.
//
// The selector of a Service in our hands has one more label, which no pod carries, so that the controllers of the cluster empty what they have written. Slices
// of ours are written before the label is, and stay after it has gone until the cluster has written its own.
//
// Only what shows whether there is anything to do is always watched: JobSets, slices of ours and Services in our hands. Pods, all other Services and nodes are
// watched while a set needs it.
//
// The Service of a new set is created in our hands if Offer says so, so that the controllers of the cluster never write its addresses.
package endpoints

import (
	"context"
	"errors"
	"sync"
	"sync/atomic"
	"time"

	discoveryv1 "k8s.io/api/discovery/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/client-go/kubernetes"
	"k8s.io/client-go/tools/cache"
	"k8s.io/client-go/tools/events"
	"k8s.io/klog/v2"
	"k8s.io/utils/clock"

	jobsetv1alpha2 "github.com/jobset-apiserver/jobset-apiserver/pkg/apis/jobset/v1alpha2"
	"github.com/jobset-apiserver/jobset-apiserver/pkg/controller/consistency"
	"github.com/jobset-apiserver/jobset-apiserver/pkg/controller/informers"
	"github.com/jobset-apiserver/jobset-apiserver/pkg/controller/queue"
	"github.com/jobset-apiserver/jobset-apiserver/pkg/generated/clientset/versioned"
)

const (
	// Name is the name of the controller in flags, metrics and events.
	Name = "endpoints"
	// lagRetry is when to look again while an informer lags behind our own writes. Its event usually comes first.
	lagRetry = time.Second
)

// Resources that are written.
const (
	resourceSlices   = "endpointslices"
	resourceServices = "services"
)

// indexSet is the index of slices and of pods by their set, and indexService that of sets by their Service.
const (
	indexSet     = "set"
	indexService = "service"
)

// Config is what a Controller needs.
type Config struct {
	// JobSets is a client of the API that serves JobSets.
	JobSets versioned.Interface
	// Kube is a client of the main API.
	Kube kubernetes.Interface
	// Informers are those of endpoints. Their watches are built after the controller.
	Informers *informers.Kind
	// Recorder sends events about JobSets.
	Recorder events.EventRecorder
	// Clock provides the time.
	Clock clock.PassiveClock
	// Workers is the number of sets that are worked on at a time.
	Workers int
	// Mode is that of sets without the annotation: jobsetv1alpha2.ServiceEndpointsCluster or jobsetv1alpha2.ServiceEndpointsController.
	Mode string
	// Canary finds out whether the cluster resolves names from slices of ours; nil for no check.
	Canary *Canary
	// Offer is filled in while the controller runs; nil if nobody asks.
	Offer *Offer
}

// Controller writes the slices of sets.
type Controller struct {
	Config
	queue       *queue.Queue
	sets        *informers.Informer
	slices      *informers.Informer
	switched    *informers.Informer
	demand      *informers.OnDemand[view]
	consistency *consistency.ConsistencyStore
	memory      *memory
	hands       *hands
	// accepted is whether slices with addresses are stored, as far as is known.
	accepted atomic.Bool
}

// New returns a controller, its informers not built yet.
func New(config Config) (*Controller, error) {
	switch {
	case config.Workers < 1:
		return nil, errors.New("the number of workers must be 1 or more")
	case config.Mode != jobsetv1alpha2.ServiceEndpointsCluster && config.Mode != jobsetv1alpha2.ServiceEndpointsController:
		return nil, errors.New("the mode must be cluster or controller")
	}
	registerMetrics()
	c := &Controller{Config: config, queue: queue.New(Name), memory: newMemory(), hands: newHands()}
	gv := jobsetv1alpha2.SchemeGroupVersion
	sets := informers.NewResource(c.Informers.Aggregated(gv), gv.WithResource("jobsets"), &jobsetv1alpha2.JobSet{}, c.JobSets,
		c.JobSets.JobsetV1alpha2().JobSets(metav1.NamespaceAll))
	c.sets = c.Informers.Informer(informers.Need{Resource: sets, Transform: transformSet, Indexers: cache.Indexers{indexService: serviceOf}})
	// Clusters whose administrators do not give us this right are served by their own controllers.
	c.slices = c.Informers.Informer(informers.Need{
		Resource: c.Informers.EndpointSlices(), Label: jobsetv1alpha2.JobSetNameKey, Transform: transformSlice,
		Indexers: cache.Indexers{indexSet: setOfSlice}, Optional: true,
	})
	c.switched = c.Informers.Informer(informers.Need{
		Resource: c.Informers.Services(), Only: isSwitched, Transform: transformService, Indexers: cache.Indexers{indexSet: takenOf},
	})
	c.demand = (&informers.OnDemand[view]{Name: Name, Kube: c.Kube, Declare: c.declareView, Needed: c.needed, Filled: c.lookAtAll}).Prepare()
	c.consistency = consistency.NewConsistencyStore(c.Clock, map[string]consistency.Versioned{resourceSlices: c.slices, resourceServices: viewedServices{c}})
	c.handleEvents()
	return c, nil
}

// Run writes slices until the context ends, and returns when all that was begun has ended. The caches are filled.
func (c *Controller) Run(ctx context.Context) {
	logger := klog.FromContext(ctx)
	logger.Info("Running endpoints", "workers", c.Workers, "mode", c.Mode)
	defer c.prepare()()
	var watching sync.WaitGroup
	watching.Go(func() { c.demand.Run(ctx) })
	if c.Canary != nil {
		watching.Go(func() { c.Canary.Run(ctx, c.lookAtAll) })
	}
	c.queue.Run(ctx, c.Workers, c.sync)
	watching.Wait()
	logger.Info("Stopped running endpoints")
}

// asks returns whether a set asks us to write its slices.
func (c *Controller) asks(s *set) bool {
	mode := s.mode
	if mode != jobsetv1alpha2.ServiceEndpointsCluster && mode != jobsetv1alpha2.ServiceEndpointsController {
		mode = c.Mode
	}
	return mode == jobsetv1alpha2.ServiceEndpointsController && s.service != ""
}

// set returns the cached set; nil if there is none.
func (c *Controller) set(key cache.ObjectName) *set {
	obj, err := c.sets.GetByKey(key.String())
	s, ok := obj.(*set)
	if err != nil || !ok {
		return nil
	}
	return s
}

// ours returns our slices of a set.
func (c *Controller) ours(key cache.ObjectName) (ours []*discoveryv1.EndpointSlice) {
	objs, err := c.slices.ByIndex(indexSet, key.String())
	if err != nil {
		return nil // the index exists
	}
	for _, obj := range objs {
		if slice, ok := obj.(*discoveryv1.EndpointSlice); ok {
			ours = append(ours, slice)
		}
	}
	return ours
}

// taken returns the names of those Services of a set that are in our hands.
func (c *Controller) taken(key cache.ObjectName) (names []string) {
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

// needed returns whether pods must be watched. Where all sets ask us, they are watched before there is one.
func (c *Controller) needed() bool {
	if c.Mode == jobsetv1alpha2.ServiceEndpointsController || len(c.switched.List()) > 0 {
		return true
	}
	for _, obj := range c.slices.List() {
		if _, ok := ownerOfSlice(obj); ok {
			return true
		}
	}
	for _, obj := range c.sets.List() {
		if s, ok := obj.(*set); ok && c.asks(s) {
			return true
		}
	}
	return false
}

// lookAtAll looks at all sets that we have, or are to have, to do with.
func (c *Controller) lookAtAll() {
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
func (c *Controller) lookAt(key cache.ObjectName) {
	if view := c.demand.Current(); view != nil {
		view.paces.again(key)
	}
	c.queue.Add(key)
}
