// Copyright The jobset-apiserver Authors.
// SPDX-License-Identifier: Apache-2.0

package endpoints

import (
	"context"
	"errors"
	"time"

	corev1 "k8s.io/api/core/v1"
	discoveryv1 "k8s.io/api/discovery/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/client-go/tools/cache"

	"github.com/jobset-apiserver/jobset-apiserver/pkg/controller/endpoints/slices"
)

const (
	// leavingPoll is how often it is looked whether the cluster has written the addresses of a Service that was in our hands, and leavingTimeout how long.
	leavingPoll, leavingTimeout = time.Second, 30 * time.Second
)

// verdict is who is to write the addresses of a set.
type verdict int

const (
	// byCluster means that the controllers of the cluster are to.
	byCluster verdict = iota
	// byUs means that we are to.
	byUs
	// undecided means that everything is to stay as it is.
	undecided
)

// observed is what one look at a set has found.
type observed struct {
	key cache.ObjectName
	// set is nil if there is none.
	set  *set
	ours []*discoveryv1.EndpointSlice
	// service is nil if there is none of the name, or none that is headless.
	serviceName string
	service     *corev1.Service
	pods        []slices.Pod
	verdict     verdict
	// reason is why the cluster writes the addresses although the set asks us to.
	reason string
	// pace is what waited.
	pace pace
	now  time.Time
}

func (c *Controller) sync(ctx context.Context, key cache.ObjectName) (time.Duration, error) {
	if !c.concerns(key) {
		c.forget(key)
		return 0, nil
	}
	view := c.demand.View()
	if view == nil {
		return 0, nil // all are looked at when there is one
	}
	// What was read before the question could be older than the answer.
	if !c.consistency.VersionsShown(key) {
		return lagRetry, nil
	}
	obs := &observed{key: key, set: c.set(key), ours: c.ours(key), now: c.Clock.Now()}
	if !c.consistency.DeletionsShown(key, objects(obs.ours)) {
		return lagRetry, nil
	}
	c.judge(obs, view)
	wanted := 0
	if obs.set != nil {
		wanted = obs.set.pods
	}
	c.report(obs)
	if obs.verdict == byCluster && len(obs.ours) == 0 {
		return 0, c.leave(ctx, obs) // the label is there if somebody else has deleted the slices
	}
	was, wait := view.paces.begin(key, obs.now, wanted, obs.verdict == byCluster)
	if wait > 0 {
		return wait, nil
	}
	// What comes after this is noted for the next look.
	obs.pace, obs.pods = was, view.podsOf(key, obs.serviceName)
	after, err := c.settle(ctx, obs, view)
	if err != nil {
		view.paces.again(key)
	}
	return after, err
}

// forget drops what is known of a set that is none of our business any more.
func (c *Controller) forget(key cache.ObjectName) {
	c.memory.forget(key)
	if view := c.demand.Current(); view != nil {
		view.paces.again(key)
	}
}

// settle brings slices and Service to where they should be, and returns when to look again.
func (c *Controller) settle(ctx context.Context, obs *observed, view *view) (time.Duration, error) {
	c.memory.saw(obs.key, obs.ours)
	end := c.memory.writing(obs.key)
	defer func() { end(c.ours(obs.key), func() { c.lookAt(obs.key) }) }()
	if obs.service == nil {
		return 0, c.deleteSlices(ctx, obs, obs.ours) // the garbage collector would do so too
	}
	wrote, err := c.write(ctx, obs)
	if wrote {
		view.paces.wrote(obs.key, c.Clock.Now())
	}
	switch {
	case errors.Is(err, errNamespaceEnds):
		return 0, nil
	case err != nil:
		return 0, err
	case obs.verdict == byCluster:
		return c.back(ctx, obs)
	}
	c.memory.stayed(obs.key)
	if obs.verdict == byUs && !switched(obs.service) {
		return 0, c.take(ctx, obs)
	}
	return resync, nil
}

// judge finds the Service of a set, and decides who is to write its addresses.
func (c *Controller) judge(obs *observed, view *view) {
	obs.verdict, obs.reason = c.asked(obs)
	obs.serviceName = serviceNameOf(obs, view)
	obs.service = view.service(obs.key.Namespace, obs.serviceName)
	switch {
	case obs.service == nil:
		return
	case obs.set == nil && ownedBySet(obs.service):
		obs.verdict = undecided // the garbage collector is about to delete it
		return
	case obs.verdict == byCluster:
		return
	}
	if reason := obs.set.refusal(obs.service); reason != "" {
		obs.verdict, obs.reason = byCluster, reason
	}
}

// asked decides who is to write the addresses, whatever the Service.
func (c *Controller) asked(obs *observed) (verdict, string) {
	s := obs.set
	if s == nil || !c.asks(s) {
		return byCluster, ""
	}
	users, _ := c.sets.ByIndex(indexService, cache.NewObjectName(s.namespace, s.service).String()) // the index exists
	if len(users) > 1 {
		return byCluster, "other JobSets use the Service " + s.service + " too"
	}
	if c.slices.Refused() {
		return byCluster, "the controller has no permission to watch EndpointSlices"
	}
	if c.Canary == nil {
		return byUs, ""
	}
	switch resolves, reason := c.Canary.Resolves(); {
	case resolves:
		return byUs, ""
	case reason != "":
		return byCluster, reason
	}
	if len(obs.ours) > 0 {
		return undecided, "" // a controller has just started, and an earlier one has taken the Service
	}
	return byCluster, ""
}

// serviceNameOf returns the name of the Service that a set has, or had when it asked us.
func serviceNameOf(obs *observed, view *view) string {
	if obs.set != nil && obs.set.service != "" {
		return obs.set.service
	}
	for _, slice := range obs.ours {
		return slice.Labels[discoveryv1.LabelServiceName]
	}
	for _, name := range view.taken(obs.key) {
		return name
	}
	return ""
}

func objects(ours []*discoveryv1.EndpointSlice) []metav1.Object {
	all := make([]metav1.Object, len(ours))
	for i, slice := range ours {
		all[i] = slice
	}
	return all
}
