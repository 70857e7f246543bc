// Copyright The jobset-apiserver Authors.
// SPDX-License-Identifier: Apache-2.0

package endpoints

import (
	"context"
	"errors"
	"time"

	corev1 "k8s.io/api/core/v1"
	discoveryv1 "k8s.io/api/discovery/v1"
	"k8s.io/client-go/tools/cache"

	endpointslices "github.com/jobset-apiserver/jobset-apiserver/pkg/controller/endpointslices/plan"
	"github.com/jobset-apiserver/jobset-apiserver/pkg/controller/host/children"
	"github.com/jobset-apiserver/jobset-apiserver/pkg/controller/host/consistency"
	"github.com/jobset-apiserver/jobset-apiserver/pkg/controller/host/queue"
)

// leavingPoll is how often the controller checks whether the cluster has written the addresses of a Service that it gave
// back, and leavingTimeout how long.
const leavingPoll, leavingTimeout = time.Second, 30 * time.Second

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
	set     *set
	managed []*discoveryv1.EndpointSlice
	// service is nil if there is none of the name, or none that is headless.
	serviceName string
	service     *corev1.Service
	pods        []endpointslices.Pod
	verdict     verdict
	// cause is why the cluster writes the addresses although the set asks us to.
	cause cause
	// denial is what the API refuses, and turn the time until the Service may be switched.
	denial denial
	turn   time.Duration
	// written is our slice that was written last.
	written *discoveryv1.EndpointSlice
	// pace is what waited.
	pace pace
	now  time.Time
}

// situation returns what decides about when to write.
func (o *observed) situation() situation {
	in := situation{ends: o.set.ends(), force: o.verdict == byCluster && o.turn == 0 || o.service == nil}
	if o.set != nil {
		in.pods = o.set.pods
	}
	return in
}

// triesAgain returns whether it is time to try again what was refused.
func (o *observed) triesAgain() bool {
	return o.verdict == byUs && len(o.denial.operations) > 0
}

// bare returns whether there is no address yet, and never was, as in a set that is suspended. Then there is nothing to write.
func (o *observed) bare() bool {
	return o.verdict == byUs && o.service != nil && len(o.managed) == 0 && len(o.pods) == 0
}

// Sync looks at a set, and writes what is due.
func (c *Syncer) Sync(ctx context.Context, key cache.ObjectName) (queue.Due, error) {
	if !c.concerns(key) {
		c.forget(key)
		return queue.Due{}, nil
	}
	view := c.demand.View()
	if view == nil {
		return queue.Due{}, nil // all are looked at when there is one
	}
	if !c.slices.HasSynced() && !c.slices.Refused() {
		return queue.Caches(queue.LagRetry), nil // an earlier process may have stored some
	}
	// What was read before the question could be older than the answer.
	if !c.consistency.VersionsShown(key) {
		return queue.Caches(queue.LagRetry), nil
	}
	obs := &observed{key: key, set: c.set(key), managed: c.managed(key), now: c.Clock.Now()}
	if !c.consistency.DeletionsShown(key, consistency.ChildrenOf(obs.managed)) {
		return queue.Caches(queue.LagRetry), nil
	}
	c.chooseWriter(obs, view)
	c.report(obs)
	after, err := c.act(ctx, obs, view)
	d := c.memory.denialOf(key, obs.set.id())
	return queue.After(soonest(after, d.until.Sub(c.Clock.Now()))), err
}

// act does what is to be done now, and returns when to look again.
func (c *Syncer) act(ctx context.Context, obs *observed, view *view) (time.Duration, error) {
	obs.turn = c.turn(obs, view)
	if obs.turn > 0 && (obs.verdict == byUs || len(obs.managed) == 0) {
		return obs.turn, nil
	}
	if obs.verdict == byCluster && len(obs.managed) == 0 {
		// The label is there if another client has deleted the slices.
		if err := c.leaveOnly(ctx, obs); err != nil || !c.abandoned(obs, view) {
			return 0, err
		}
	}
	if obs.triesAgain() {
		view.paces.again(obs.key)
	}
	was, wait := view.paces.begin(obs.key, obs.now, obs.situation())
	if wait > 0 {
		return soonest(wait, obs.turn), nil
	}
	// What comes after this is noted for the next look.
	obs.pace, obs.pods = was, view.podsOf(obs.key, obs.serviceName)
	after, err := c.reconcile(ctx, obs, view)
	if err != nil {
		view.paces.again(obs.key)
	}
	return after, err
}

// abandoned returns whether neither the cluster nor this controller writes the addresses of a Service, because we must
// not give it to the cluster.
func (c *Syncer) abandoned(obs *observed, view *view) bool {
	return obs.service != nil && switched(obs.service) && c.bars(obs, operationLeave) && len(view.podsOf(obs.key, obs.serviceName)) > 0
}

// forget drops what is known of a set that is none of our business any more.
func (c *Syncer) forget(key cache.ObjectName) {
	c.memory.forget(key, c.set(key).mayAsk())
	c.lost.Forget(key)
	if view := c.demand.Current(); view != nil {
		view.paces.again(key)
	}
}

// reconcile brings slices and Service to where they should be, and returns when to look again.
func (c *Syncer) reconcile(ctx context.Context, obs *observed, view *view) (time.Duration, error) {
	c.memory.saw(obs.key, obs.managed)
	end := c.memory.writing(obs.key)
	defer func() { end(c.managed(obs.key), func() { c.lookAt(obs.key) }) }()
	switch {
	case obs.service == nil:
		return c.withoutService(ctx, obs)
	case obs.bare():
		return c.withoutAddresses(ctx, obs)
	}
	return c.writeAll(ctx, obs, view)
}

// writeAll writes the slices, and then the Service if it is to be switched. If slices are refused, the cluster must write the addresses.
func (c *Syncer) writeAll(ctx context.Context, obs *observed, view *view) (time.Duration, error) {
	wrote, err := c.write(ctx, obs)
	if wrote {
		view.paces.wrote(obs.key, c.Clock.Now())
	}
	switch {
	case errors.Is(err, errNamespaceEnds):
		return 0, nil
	case refused(err) && obs.ends():
		return 0, nil // the garbage collector is about to delete all of it
	case refused(err):
		return c.giveUp(ctx, obs)
	case err != nil:
		return 0, err
	case obs.verdict == byCluster:
		return c.back(ctx, obs)
	}
	c.memory.leaving.Forget(obs.key)
	if obs.verdict == byUs && !switched(obs.service) {
		return c.takeOrNot(ctx, obs)
	}
	return resync, nil
}

// giveUp gives the Service back because slices are refused.
func (c *Syncer) giveUp(ctx context.Context, obs *observed) (time.Duration, error) {
	obs.verdict, obs.turn, obs.denial = byCluster, 0, c.memory.denialOf(obs.key, obs.set.id())
	if obs.cause.Reason == "" {
		obs.cause = obs.denial.why
	}
	after, err := c.back(ctx, obs)
	c.report(obs)
	return after, err
}

// takeOrNot takes the Service. If that is refused, our slices are deleted soon.
func (c *Syncer) takeOrNot(ctx context.Context, obs *observed) (time.Duration, error) {
	if err := c.take(ctx, obs); refused(err) {
		return leavingPoll, nil
	} else if err != nil {
		return 0, err
	}
	return 0, nil
}

// leaveOnly gives back a Service that has none of our slices.
func (c *Syncer) leaveOnly(ctx context.Context, obs *observed) error {
	return ignoreRefused(c.leave(ctx, obs))
}

// withoutAddresses takes the Service before the cluster has anything to write, if our slices are known to be
// stored. The first address brings us back.
func (c *Syncer) withoutAddresses(ctx context.Context, obs *observed) (time.Duration, error) {
	if switched(obs.service) || !c.accepted.Load() {
		return resync, nil
	}
	return c.takeOrNot(ctx, obs)
}

// withoutService deletes slices that are no longer needed.
func (c *Syncer) withoutService(ctx context.Context, obs *observed) (time.Duration, error) {
	if obs.set.ends() {
		if left := leavingTimeout - c.Clock.Since(children.Since(c.memory.leaving, obs.key, true, obs.now)); left > 0 {
			return left, nil // the garbage collector does it
		}
	}
	return 0, ignoreRefused(c.deleteSlices(ctx, obs, obs.managed))
}

// ends returns whether the garbage collector is about to delete the Service with its set.
func (o *observed) ends() bool { return o.set.ends() && ownedBySet(o.service) }

// chooseWriter finds the Service of a set, and decides who is to write its addresses.
func (c *Syncer) chooseWriter(obs *observed, view *view) {
	obs.serviceName = c.serviceNameOf(obs)
	obs.service = view.service(obs.key.Namespace, obs.serviceName)
	obs.verdict, obs.cause = c.asked(obs)
	switch {
	case obs.service == nil:
		return
	case obs.ends() || obs.set.isUnknown():
		obs.verdict = undecided
		return
	}
	obs.denial = c.memory.denialOf(obs.key, obs.set.id())
	if obs.verdict != byCluster {
		if why := obs.set.cause(obs.service); why.Reason != "" {
			obs.verdict, obs.cause = byCluster, why
		} else if obs.denial.holds(obs.now) {
			obs.verdict = byCluster
		}
	}
	if obs.verdict == byCluster && obs.cause.Reason == "" {
		obs.cause = obs.denial.why
	}
}

// asked decides who is to write the addresses by what the set asks for, and by what is known of the record.
func (c *Syncer) asked(obs *observed) (verdict, cause) {
	s := obs.set
	if s.isUnknown() {
		return undecided, cause{}
	}
	if s == nil || !c.asks(s) {
		return byCluster, cause{}
	}
	if c.shares(s) {
		return byCluster, serviceShared(s.service)
	}
	if c.slices.Refused() {
		return byCluster, notPermitted()
	}
	if c.Canary == nil {
		return byUs, cause{}
	}
	resolves, why, lasting := c.Canary.answer()
	// One cache of Services may show before the other one that the Service was taken.
	began := len(obs.managed)+len(c.taken(obs.key)) > 0 || obs.service != nil && switched(obs.service)
	switch {
	case resolves:
		return byUs, cause{}
	case began && !lasting:
		return undecided, cause{} // a controller has just started, and an earlier one, for which the record resolved, has taken the Service
	}
	return byCluster, why
}
