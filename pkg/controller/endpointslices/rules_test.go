// Copyright The jobset-apiserver Authors.
// SPDX-License-Identifier: Apache-2.0

package endpoints_test

import (
	"time"

	corev1 "k8s.io/api/core/v1"
	discoveryv1 "k8s.io/api/discovery/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/types"
	"k8s.io/apimachinery/pkg/util/sets"
	"k8s.io/utils/ptr"

	jobsetv1alpha2 "github.com/jobset-apiserver/jobset-apiserver/pkg/apis/jobset/v1alpha2"
	"github.com/jobset-apiserver/jobset-apiserver/pkg/controller/endpointslices"
)

// Rules, by the names under which they are broken.
const (
	ruleStale    = "no name resolves to an address that its pod has not had for 40 seconds"
	ruleMissing  = "no pod that runs is without a name for 40 seconds"
	ruleGap      = "names resolve all the time while a Service is taken or given back"
	ruleOnce     = "nothing is created twice"
	ruleSelector = "nothing of a selector changes but the label of the controller"
	ruleOwned    = "only the Service of a set is taken"
	ruleDNS      = "a Service is given back only on request, or after three answers without the record"
	ruleVisible  = "a refusal is visible within a minute"
	ruleRate     = "once backed off, at most two requests a minute are refused"
)

const (
	// inTime is how long names may be wrong.
	inTime = 40 * time.Second
	// visibleAfter is how long a refusal may be unknown to users.
	visibleAfter = time.Minute
	// leaving is how long the cluster has for its slices, and shownAfter for what caches show at the latest.
	leaving, shownAfter = 30 * time.Second, 45 * time.Second
	// remembered is how long a controller goes by a refusal.
	remembered = 15 * time.Minute
)

// resolved is an address to which a name resolves.
type resolved struct {
	pod     types.UID
	address string
}

// rules know what is true about the names of a set.
type rules struct {
	*env
	// stale and missing are since when names are wrong, and runs since when names of pods are to resolve.
	stale   map[resolved]time.Time
	missing map[types.UID]time.Time
	runs    map[resolved]time.Time
	// untold is since when a refusal is unknown to users; zero if none is. known means that users were told of one, and that no request
	// about slices that was refused was accepted since: the controller does not repeat what lasts, in other words either.
	// Both are about the set refusedOf.
	untold    time.Time
	known     bool
	refusedOf types.UID
	// wantedAt is when there was last a reason to give the Service back, and leftAt when it was given back.
	wantedAt, leftAt time.Time
	// restSince is since when the Service is to be the cluster's because the set is at rest, and keptSince since when it is not.
	restSince, keptSince time.Time
	// barredAt is when nothing that helps was last allowed, and meddledAt when others last deleted or emptied a slice.
	barredAt, meddledAt time.Time
	// lateSlices are how many slices were created by requests that arrived late, so that there may be another one.
	lateSlices int
	// refusals are the times of requests that were refused.
	refusals []time.Time
}

// resolves returns whether the name of a pod is to resolve.
func (e *env) resolves(pod *corev1.Pod) bool {
	return pod.Status.PodIP != "" && !hasEnded(pod) && (e.publish || isReady(pod) && pod.DeletionTimestamp == nil)
}

// names returns the addresses to which names resolve by slices.
func (e *env) names(of func(*discoveryv1.EndpointSlice) bool) sets.Set[resolved] {
	all := sets.New[resolved]()
	for _, slice := range e.slices.Objects {
		if slice.Labels[discoveryv1.LabelServiceName] != name || !of(slice) {
			continue
		}
		for _, ep := range slice.Endpoints {
			if ep.TargetRef != nil && ptr.Deref(ep.Conditions.Ready, true) {
				all.Insert(resolved{ep.TargetRef.UID, ep.Addresses[0]})
			}
		}
	}
	return all
}

func every(*discoveryv1.EndpointSlice) bool { return true }

// barred returns whether a request is refused for good, or was lately, so that the controller does not make it yet.
func (e *env) barred(request string) bool {
	return e.main.Refusals[request] != nil || e.process.refusals[request].After(e.Now().Add(-remembered))
}

// check checks what is true at every moment.
func (r *rules) check() {
	r.note()
	if r.service() == nil {
		clear(r.stale)
		clear(r.missing)
		return
	}
	excusedStale, excusedMissing := r.excused()
	names, pods := r.names(every), sets.New[resolved]()
	for _, pod := range r.pods.Objects {
		if !r.resolves(pod) {
			continue
		}
		is := resolved{pod.UID, pod.Status.PodIP}
		pods.Insert(is)
		if names.Has(is) || excusedMissing {
			delete(r.missing, pod.UID)
			continue
		}
		if r.missing[pod.UID].IsZero() {
			r.missing[pod.UID] = r.Now()
		}
		if d := r.Since(r.missing[pod.UID]); r.calm && d > inTime {
			r.Fail(ruleMissing, "%s (%s) has none for %s", pod.Name, pod.Status.PodIP, d)
		}
	}
	for is := range r.stale {
		if !names.Has(is) || pods.Has(is) {
			delete(r.stale, is)
		}
	}
	for is := range names {
		if pods.Has(is) || excusedStale {
			continue
		}
		if r.stale[is].IsZero() {
			r.stale[is] = r.Now()
		}
		if d := r.Since(r.stale[is]); r.calm && d > inTime {
			r.Fail(ruleStale, "%s of %s is wrong for %s", is.address, is.pod, d)
		}
	}
	r.checkTold()
	r.checkRest()
}

// excused returns whether names may be wrong because nothing that helps is allowed, or was not a while ago: what is
// refused is tried again after ten minutes.
func (r *rules) excused() (stale, missing bool) {
	stuck, guarded := r.barred("patch service"), r.process.guardedAt.After(r.Now().Add(-remembered))
	if stuck && (guarded || r.unlisted() || r.barred("update endpointslice") || r.barred("create endpointslice")) || r.barred("update endpointslice") && r.barred("delete endpointslice") {
		r.barredAt = r.Now()
	}
	barred := !r.barredAt.IsZero() && r.Since(r.barredAt) < remembered && !r.process.refusedAt.IsZero()
	return barred, barred || len(unlabeled(r.service().Spec.Selector)) != 1
}

// unlisted returns whether the set is gone or going, and has no slices: another party has deleted them, and the controller creates no others.
func (e *env) unlisted() bool {
	js := e.set(name)
	return (js == nil || js.DeletionTimestamp != nil) && len(e.managed()) == 0
}

// note notes since when what is true.
func (r *rules) note() {
	running, at := sets.New[types.UID](), sets.New[resolved]()
	for _, pod := range r.pods.Objects {
		if r.resolves(pod) {
			is := resolved{pod.UID, pod.Status.PodIP}
			running.Insert(pod.UID)
			at.Insert(is)
			if r.runs[is].IsZero() {
				r.runs[is] = r.Now()
			}
		}
	}
	for is := range r.runs {
		if !at.Has(is) {
			delete(r.runs, is)
		}
	}
	if len(r.missing) > 0 {
		for uid := range r.missing {
			if !running.Has(uid) {
				delete(r.missing, uid)
			}
		}
	}
	r.noteRest()
	lately := r.Now().Add(-remembered)
	if !r.ownable() || r.process.refusedAt.After(lately) || r.process.guardedAt.After(lately) {
		r.wantedAt = r.Now()
	}
}

// ownable returns whether the set asks us, and nothing is in the way but DNS servers and refusals.
func (e *env) ownable() bool {
	js, svc, other := e.set(name), e.service(), e.set(sharer)
	return js != nil && js.DeletionTimestamp == nil && e.asks(js) && svc != nil && metav1.IsControlledBy(svc, js) && len(svc.Spec.Ports) == 0 && other == nil &&
		len(unlabeled(svc.Spec.Selector)) == 1 && svc.Spec.Selector[jobsetv1alpha2.JobSetNameKey] == name
}

// reset begins to measure times anew, since caches and requests are in time from here on.
func (r *rules) reset() {
	clear(r.stale)
	clear(r.missing)
	r.restSince, r.keptSince = time.Time{}, time.Time{}
	if r.refusals = nil; !r.untold.IsZero() {
		r.untold = r.Now()
	}
}

// refused notes that a request about a set was refused for good.
func (r *rules) refused(set types.UID) {
	r.wantedAt = r.Now()
	if set != r.refusedOf {
		r.refusedOf, r.untold, r.known = set, time.Time{}, false
	}
	if r.untold.IsZero() && !r.known {
		r.untold = r.Now()
	}
	if !r.calm {
		return
	}
	r.refusals = append(r.refusals, r.Now())
	recent := 0
	for _, at := range r.refusals {
		if r.Since(at) < 2*time.Minute {
			recent++
		}
	}
	if recent > 4 && r.Since(r.refusals[0]) > 3*time.Minute {
		r.Fail(ruleRate, "%d in two minutes", recent)
	}
}

// told notes that users were told.
func (r *rules) told() { r.untold, r.known = time.Time{}, true }

// accepted notes that a slice was stored. What was refused is over if the controller has the Service.
func (r *rules) accepted(p *process, request string) {
	if p.refusals[request].IsZero() {
		return
	}
	delete(p.refusals, request)
	if svc := r.service(); svc != nil && switched(svc) && r.ownable() {
		r.known = false
	}
}

func (r *rules) checkTold() {
	js := r.set(name)
	if js == nil || js.DeletionTimestamp != nil || r.service() == nil || !metav1.IsControlledBy(r.service(), js) {
		r.untold = time.Time{} // there is no object to report it on
	} else if js.UID != r.refusedOf {
		r.untold = time.Time{} // it was about a set before this one, of the same name
	} else if r.inAuto(js) {
		r.untold = time.Time{} // it has not asked for anything
	} else if !r.asks(js) && len(r.managed()) == 0 && !switched(r.service()) {
		r.untold = time.Time{} // nothing is left to be refused
	} else if reason, _, _ := r.process.handle.Refusal(js); !r.mutant.silent && (reason == endpoints.ReasonSlicesRefused || reason == endpoints.ReasonServiceRefused) {
		r.told() // the condition says so
	}
	if r.calm && !r.untold.IsZero() && r.Since(r.untold) > visibleAfter {
		r.Fail(ruleVisible, "nobody was told since %s", r.untold.Sub(r.Now()))
	}
}
