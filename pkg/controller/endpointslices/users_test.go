// Copyright The jobset-apiserver Authors.
// SPDX-License-Identifier: Apache-2.0

package endpoints_test

import (
	"fmt"
	"time"

	corev1 "k8s.io/api/core/v1"
	discoveryv1 "k8s.io/api/discovery/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/utils/ptr"

	jobsetv1alpha2 "github.com/jobset-apiserver/jobset-apiserver/pkg/apis/jobset/v1alpha2"
	"github.com/jobset-apiserver/jobset-apiserver/test/simulation"
)

// happenings returns what may happen, the doings of the controller last.
func (e *env) happenings() []simulation.Happening {
	statusWeight := 0
	if e.auto {
		statusWeight = 6
	}
	return []simulation.Happening{
		{Weight: 20, Do: e.livePods},
		{Weight: 15, Do: func() { e.ShowSome(e.process.follows()) }},
		{Weight: statusWeight, Do: func() { e.liveStatus() }},
		{Weight: 8, Do: func() { e.writeAsCluster() }},
		{Weight: 4, Do: func() { e.createService() }},
		{Weight: 2, Do: e.userActs},
		{Weight: 2, Do: e.meddle},
		{Weight: 2, Do: e.refuse},
		{Weight: 3, Do: e.PassTime},
		{Weight: 3, Do: func() { e.deliverLate() }},
		{Weight: 3, Do: func() { e.CollectGarbage() }},
		{Weight: 2, Do: func() { e.dns = simulation.OneOf(e.Dice, nil, nil, errNoRecord, errNoAnswer) }},
		{Weight: 1, Do: func() { e.process.sender.Dead = true }},
		{Weight: 4, Do: func() { e.fill() }},
		{Weight: 4, Do: func() { e.watch() }},
		{Weight: 4, Do: func() { e.lookUp() }},
		{Weight: 15, Do: func() { e.sync() }},
	}
}

// controllers is the number of happenings in which the controller itself acts, or ends.
const controllers = 5

// step lets something happen in a storm.
func (e *env) step() {
	e.Happen(e.happenings())
	e.LimitLag(e.process.follows())
	e.rules.check()
}

// interlude lets something happen while the controller is busy.
func (e *env) interlude() {
	if e.calm {
		return
	}
	all := e.happenings()
	e.Happen(all[:len(all)-controllers])
	e.rules.note()
}

func (e *env) deliverLate() bool {
	e.late = true
	defer func() { e.late = false }()
	return e.DeliverLate()
}

// createSet creates a set that has the Service.
func (e *env) createSet(set string) {
	js := &jobsetv1alpha2.JobSet{ObjectMeta: metav1.ObjectMeta{Namespace: namespace, Name: set}}
	js.Spec.Network = &jobsetv1alpha2.Network{EnableDNSHostnames: ptr.To(true), Subdomain: name}
	js.Spec.ReplicatedJobs = []jobsetv1alpha2.ReplicatedJob{{Name: "w", Replicas: ptr.To[int32](maxPods)}}
	e.enlarge(js)
	e.annotate(js)
	e.Note("user creates set %s: asks %t", set, e.asks(js))
	e.sets.Create(js)
}

func (e *env) annotate(js *jobsetv1alpha2.JobSet) {
	mode := e.randomMode("", jobsetv1alpha2.ServiceEndpointsController, jobsetv1alpha2.ServiceEndpointsController, jobsetv1alpha2.ServiceEndpointsCluster)
	js.Annotations = map[string]string{jobsetv1alpha2.ServiceEndpointsKey: mode}
}

// userActs is what users do to sets.
func (e *env) userActs() {
	js := e.set(name)
	switch n := e.Dice.IntN(100); {
	case n < 10:
		if other := e.set(sharer); other == nil {
			e.createSet(sharer)
			e.Seen["Services shared"]++
		} else {
			e.sets.Delete(other, metav1.DeletePropagationBackground)
		}
	case js == nil:
		e.createSet(name)
	case js.DeletionTimestamp != nil:
	case n < 75:
		e.sets.Change(js, e.annotate)
		e.Note("user annotates the set: asks %t", e.asks(e.set(name)))
	default:
		how := simulation.OneOf(e.Dice, metav1.DeletePropagationBackground, metav1.DeletePropagationForeground, metav1.DeletePropagationOrphan)
		e.Note("user deletes the set, %s", how)
		e.Seen["sets deleted: "+string(how)]++
		e.sets.Delete(js, how)
	}
}

// meddle is what a user may do to the Service and to slices.
func (e *env) meddle() {
	svc := e.service()
	n := e.Dice.IntN(100)
	switch {
	case n < 10 && svc != nil:
		e.Note("somebody deletes the Service")
		e.services.Delete(svc, metav1.DeletePropagationBackground)
	case n < 45 && svc != nil:
		e.Seen["Services changed by others"]++
		e.services.Change(svc, e.changeService)
		e.Note("somebody changes the Service: %v", e.service().Spec.Selector)
	case n < 85:
		e.meddleWithSlices()
	case svc != nil:
		e.slices.Create(&discoveryv1.EndpointSlice{
			ObjectMeta: metav1.ObjectMeta{Namespace: namespace, Name: fmt.Sprint(name, "-foreign-", e.main.Last), Labels: map[string]string{
				discoveryv1.LabelServiceName: name, discoveryv1.LabelManagedBy: "somebody", jobsetv1alpha2.JobSetNameKey: name,
			}, OwnerReferences: []metav1.OwnerReference{*metav1.NewControllerRef(svc, corev1.SchemeGroupVersion.WithKind("Service"))}},
			Endpoints: []discoveryv1.Endpoint{{Addresses: []string{"192.0.2.1"}}},
		})
	}
}

// meddleWithSlices is what a user may do to one of our slices.
func (e *env) meddleWithSlices() {
	managed := e.managed()
	e.rules.meddledAt = e.Now()
	switch {
	case len(managed) == 0:
	case e.Dice.Percent(50):
		e.Note("somebody deletes slice %s", managed[0].Name)
		e.process.undone(e.Now())
		e.Seen["slices deleted by others"]++
		e.slices.Delete(managed[0], metav1.DeletePropagationBackground)
	default:
		e.Note("somebody empties slice %s", managed[0].Name)
		e.process.undone(e.Now())
		e.slices.Change(managed[0], func(s *discoveryv1.EndpointSlice) { s.Endpoints = nil })
	}
}

// changeService changes what others may change.
func (e *env) changeService(svc *corev1.Service) {
	js := e.set(name)
	switch e.Dice.IntN(5) {
	case 0:
		svc.Spec.Selector["role"] = "leader"
	case 1:
		delete(svc.Spec.Selector, "role")
		svc.Spec.Ports = nil
	case 2:
		delete(svc.Spec.Selector, jobsetv1alpha2.EndpointsKey)
	case 3:
		svc.OwnerReferences = nil
	case 4:
		if js != nil && js.DeletionTimestamp == nil {
			svc.OwnerReferences = []metav1.OwnerReference{*metav1.NewControllerRef(js, jobsetv1alpha2.SchemeGroupVersion.WithKind("JobSet"))}
		}
	}
}

// refuse has the main API refuse some requests for good, or none any more.
func (e *env) refuse() {
	clear(e.main.Refusals)
	e.rules.untold = time.Time{}
	if e.Dice.Percent(40) {
		return
	}
	refusal := e.randomRefusal()
	for _, request := range []string{"create endpointslice", "update endpointslice", "delete endpointslice", "patch service"} {
		if e.Dice.Percent(35) {
			e.main.Refusals[request] = refusal
			e.Note("refused from here on: %s: %v", request, refusal)
		}
	}
}
