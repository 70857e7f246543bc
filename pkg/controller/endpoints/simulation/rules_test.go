// Copyright The jobset-apiserver Authors.
// SPDX-License-Identifier: Apache-2.0

package simulation

import (
	"time"

	corev1 "k8s.io/api/core/v1"
	discoveryv1 "k8s.io/api/discovery/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/types"
	"k8s.io/apimachinery/pkg/util/sets"
	"k8s.io/utils/ptr"

	jobsetv1alpha2 "github.com/jobset-apiserver/jobset-apiserver/pkg/apis/jobset/v1alpha2"
	"github.com/jobset-apiserver/jobset-apiserver/pkg/controller/endpoints"
)

// Rules, by the names under which they are broken.
const (
	ruleStale    = "no name resolves to an address that its pod has not had for 40 seconds"
	ruleMissing  = "no pod that runs is without a name for 40 seconds"
	ruleGap      = "names resolve all the time while a Service changes hands"
	ruleOnce     = "nothing is created twice"
	ruleSelector = "nothing of a selector changes but the label of the controller"
	ruleOwned    = "only the Service of a set is taken"
	ruleDNS      = "what is in our hands is given back only if somebody wants it, or after three answers without the record"
	ruleVisible  = "a refusal is visible within a minute"
	ruleRate     = "once backed off, at most two requests a minute are refused"
)

const (
	// inTime is how long names may be wrong.
	inTime = 40 * time.Second
	// visibleAfter is how long a refusal may be unknown to users.
	visibleAfter = time.Minute
	// leaving is how long the cluster has for its slices, and settled for what caches show at the latest.
	leaving, settled = 30 * time.Second, 25 * time.Second
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
	runs    map[types.UID]time.Time
	// untold is since when a refusal is unknown to users; zero if none is. known means that users were told of what is refused at present.
	untold time.Time
	known  bool
	// wantedAt is when there was last a reason to give the Service back, and leftAt when it was given back.
	wantedAt, leftAt time.Time
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

// barred returns whether a request is refused for good.
func (e *env) barred(request string) bool { return e.main.Refusals[request] != nil }

// check checks what is true at every moment.
func (r *rules) check() {
	r.note()
	if r.service() == nil {
		clear(r.stale)
		clear(r.missing)
		return
	}
	stuck := r.barred("patch service")
	excusedStale := r.barred("update endpointslice") && (stuck || r.barred("delete endpointslice"))
	excusedMissing := stuck && (r.barred("update endpointslice") || r.barred("create endpointslice")) || len(unlabeled(r.service().Spec.Selector)) != 1
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
}

// note notes since when what is true.
func (r *rules) note() {
	running := sets.New[types.UID]()
	for _, pod := range r.pods.Objects {
		if r.resolves(pod) {
			running.Insert(pod.UID)
			if r.runs[pod.UID].IsZero() {
				r.runs[pod.UID] = r.Now()
			}
		}
	}
	for uid := range r.runs {
		if !running.Has(uid) {
			delete(r.runs, uid)
		}
	}
	if len(r.missing) > 0 {
		for uid := range r.missing {
			if !running.Has(uid) {
				delete(r.missing, uid)
			}
		}
	}
	if !r.ownable() || r.process.refusedAt.After(r.Now().Add(-remembered)) {
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
	if r.refusals = nil; !r.untold.IsZero() {
		r.untold = r.Now()
	}
}

// refused notes that a request was refused for good.
func (r *rules) refused() {
	r.wantedAt = r.Now()
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
	if recent > 4 && r.Since(r.refusals[0]) > time.Minute {
		r.Fail(ruleRate, "%d in two minutes", recent)
	}
}

// told notes that users were told.
func (r *rules) told() { r.untold, r.known = time.Time{}, true }

func (r *rules) checkTold() {
	js := r.set(name)
	if js == nil || js.DeletionTimestamp != nil || r.service() == nil || !metav1.IsControlledBy(r.service(), js) {
		r.untold = time.Time{} // nobody can be told
	} else if reason, _, _ := r.process.offer.Refusal(js); !r.mutant.silent && (reason == endpoints.ReasonSlicesRefused || reason == endpoints.ReasonServiceRefused) {
		r.told() // the condition says so
	}
	if r.calm && !r.untold.IsZero() && r.Since(r.untold) > visibleAfter {
		r.Fail(ruleVisible, "nobody was told since %s", r.untold.Sub(r.Now()))
	}
}

// created checks a slice that was just stored.
func (r *rules) created(slice *discoveryv1.EndpointSlice) {
	r.Seen["slices created"]++
	for _, other := range r.ours() {
		if other.Name != slice.Name && r.process.created[other.Name] && metav1.GetControllerOf(other).UID == metav1.GetControllerOf(slice).UID && !r.late {
			r.Fail(ruleOnce, "%s is created beside %s", slice.Name, other.Name)
		}
	}
}

// deleted checks the deletion of a slice right before it.
func (r *rules) deleted(slice *discoveryv1.EndpointSlice, _ metav1.DeletionPropagation) {
	r.Seen["slices deleted"]++
	svc := r.service()
	if r.late || svc == nil || svc.UID != metav1.GetControllerOf(slice).UID || r.Since(r.leftAt) >= leaving || r.set(name) == nil {
		return
	}
	others := r.names(func(s *discoveryv1.EndpointSlice) bool { return s.Name != slice.Name })
	for _, ep := range slice.Endpoints {
		if ep.TargetRef == nil {
			continue
		}
		is := resolved{ep.TargetRef.UID, ep.Addresses[0]}
		if since, runs := r.runs[is.pod]; runs && !others.Has(is) && r.Since(since) > settled && r.addressOf(is.pod) == is.address {
			r.Fail(ruleGap, "%s is deleted, and nothing else has %s", slice.Name, is.address)
		}
	}
}

func (e *env) addressOf(uid types.UID) string {
	for _, pod := range e.pods.Objects {
		if pod.UID == uid {
			return pod.Status.PodIP
		}
	}
	return ""
}

// patched checks another selector right before it is stored.
func (r *rules) patched(p *process, before *corev1.Service, selector map[string]string, known bool) {
	if !sameMap(unlabeled(before.Spec.Selector), unlabeled(selector)) {
		r.Fail(ruleSelector, "%v becomes %v", before.Spec.Selector, selector)
	}
	r.note()
	take := selector[jobsetv1alpha2.EndpointsKey] != ""
	if !take {
		r.Seen["Services given back"]++
		if r.leftAt = r.Now(); known && p.failures < 3 && r.Since(r.wantedAt) > settled {
			r.Fail(ruleDNS, "it is given back after %d answers without the record", p.failures)
		}
		return
	}
	r.Seen["Services taken"]++
	if !known {
		return
	}
	js := r.set(name)
	if js != nil && !metav1.IsControlledBy(before, js) && r.Since(js.CreationTimestamp.Time) > 2*time.Minute {
		r.Fail(ruleOwned, "%s of another owner", before.UID)
	}
	ours := r.names(isOurs)
	for _, pod := range r.pods.Objects {
		if r.resolves(pod) && r.Since(r.runs[pod.UID]) > settled && !ours.Has(resolved{pod.UID, pod.Status.PodIP}) {
			r.Fail(ruleGap, "the Service is taken, and our slices do not have %s", pod.Name)
		}
	}
}

func sameMap(a, b map[string]string) bool {
	if len(a) != len(b) {
		return false
	}
	for k, v := range a {
		if b[k] != v {
			return false
		}
	}
	return true
}
