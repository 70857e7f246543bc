// Copyright The jobset-apiserver Authors.
// SPDX-License-Identifier: Apache-2.0

package endpoints_test

import (
	"maps"
	"time"

	corev1 "k8s.io/api/core/v1"
	discoveryv1 "k8s.io/api/discovery/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/types"

	jobsetv1alpha2 "github.com/jobset-apiserver/jobset-apiserver/pkg/apis/jobset/v1alpha2"
)

// This file holds the rules about what the controller writes.

// created checks a slice that was just stored.
func (r *rules) created(slice *discoveryv1.EndpointSlice) {
	if r.Seen["slices created"]++; r.late {
		r.lateSlices++
	}
	for _, other := range r.managed() {
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
		if since, runs := r.runs[is]; runs && !others.Has(is) && r.Since(since) > shownAfter && r.addressOf(is.pod) == is.address {
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
	if !maps.Equal(unlabeled(before.Spec.Selector), unlabeled(selector)) {
		r.Fail(ruleSelector, "%v becomes %v", before.Spec.Selector, selector)
	}
	r.note()
	take := selector[jobsetv1alpha2.EndpointsKey] != ""
	if !take {
		r.Seen["Services given back"]++
		if r.leftAt = r.Now(); known && p.failures < 3 && r.Since(r.wantedAt) > shownAfter {
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
	if !r.restSince.IsZero() && r.Since(r.restSince) > shownAfter {
		r.Fail(ruleAtRest, "it is taken, and the set is at rest since %s", r.Since(r.restSince))
	}
	if r.Since(r.meddledAt) <= shownAfter {
		return // caches may show the slices as they were
	}
	managed := r.names(isManaged)
	for _, pod := range r.pods.Objects {
		is := resolved{pod.UID, pod.Status.PodIP}
		if r.resolves(pod) && r.Since(r.runs[is]) > shownAfter && !managed.Has(is) {
			r.Fail(ruleGap, "the Service is taken, and our slices do not have %s", pod.Name)
		}
	}
}
