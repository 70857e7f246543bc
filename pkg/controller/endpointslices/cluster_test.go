// Copyright The jobset-apiserver Authors.
// SPDX-License-Identifier: Apache-2.0

package endpoints_test

import (
	"fmt"

	corev1 "k8s.io/api/core/v1"
	discoveryv1 "k8s.io/api/discovery/v1"
	"k8s.io/apimachinery/pkg/api/equality"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/utils/ptr"

	jobsetv1alpha2 "github.com/jobset-apiserver/jobset-apiserver/pkg/apis/jobset/v1alpha2"
	"github.com/jobset-apiserver/jobset-apiserver/test/simulation"
)

// This file holds what others do as they ought to: the controller of EndpointSlices of the cluster, that of JobSets, and kubelets.

// writeAsCluster lets the controller of the cluster write its slice of the Service. It reports whether there was anything to do.
func (e *env) writeAsCluster() bool {
	svc := e.service()
	if svc == nil || svc.DeletionTimestamp != nil {
		return false
	}
	wanted := &discoveryv1.EndpointSlice{
		ObjectMeta: metav1.ObjectMeta{
			Namespace: namespace, Name: name + "-cluster", Labels: map[string]string{
				discoveryv1.LabelServiceName: name, discoveryv1.LabelManagedBy: "endpointslice-controller.k8s.io", corev1.IsHeadlessService: "",
			},
			OwnerReferences: []metav1.OwnerReference{*metav1.NewControllerRef(svc, corev1.SchemeGroupVersion.WithKind("Service"))},
		},
		AddressType: discoveryv1.AddressTypeIPv4,
	}
	for k, v := range svc.Labels {
		wanted.Labels[k] = v
	}
	for _, pod := range e.pods.Objects {
		if !selects(svc, pod) || pod.Status.PodIP == "" || hasEnded(pod) {
			continue
		}
		wanted.Endpoints = append(wanted.Endpoints, discoveryv1.Endpoint{
			Addresses: []string{pod.Status.PodIP}, TargetRef: &corev1.ObjectReference{Kind: "Pod", UID: pod.UID},
			Conditions: discoveryv1.EndpointConditions{Ready: ptr.To(e.resolves(pod))},
		})
	}
	is, found := e.slices.Get(wanted.Name)
	switch {
	case !found:
		e.slices.Create(wanted)
	case is.OwnerReferences[0].UID != svc.UID:
		return false // the garbage collector is about to delete it
	case equality.Semantic.DeepEqual(is.Endpoints, wanted.Endpoints):
		return false
	default:
		e.slices.Change(is, func(s *discoveryv1.EndpointSlice) { s.Endpoints = wanted.Endpoints })
	}
	e.Note("the cluster writes %d addresses", len(wanted.Endpoints))
	return true
}

func selects(svc *corev1.Service, pod *corev1.Pod) bool {
	for k, v := range svc.Spec.Selector {
		if pod.Labels[k] != v {
			return false
		}
	}
	return len(svc.Spec.Selector) > 0
}

// createService creates the Service of the set as the controller of JobSets does. It reports whether there was none.
func (e *env) createService() bool {
	js := e.set(name)
	if js == nil || js.DeletionTimestamp != nil || e.service() != nil {
		return false
	}
	svc := &corev1.Service{
		ObjectMeta: metav1.ObjectMeta{Namespace: namespace, Name: name, OwnerReferences: []metav1.OwnerReference{
			*metav1.NewControllerRef(js, jobsetv1alpha2.SchemeGroupVersion.WithKind("JobSet")),
		}},
		Spec: corev1.ServiceSpec{
			ClusterIP: corev1.ClusterIPNone, PublishNotReadyAddresses: e.publish, IPFamilies: []corev1.IPFamily{corev1.IPv4Protocol},
			Selector: map[string]string{jobsetv1alpha2.JobSetNameKey: name},
		},
	}
	if e.labeled {
		svc.Labels = map[string]string{jobsetv1alpha2.JobSetNameKey: name}
	}
	if !e.process.sender.Dead && e.process.handle.Serves(js) {
		svc.Spec.Selector[jobsetv1alpha2.EndpointsKey] = jobsetv1alpha2.ServiceEndpointsController
		e.Seen["Services created with the label"]++
	}
	e.Note("the Service is created: %v", svc.Spec.Selector)
	e.services.Create(svc)
	return true
}

// maxPods is how many pods there are at most, of which two can have the same address one after the other.
const maxPods, addresses = 4, 5

// livePods lets something happen to a pod.
func (e *env) livePods() {
	js := e.set(name)
	if js != nil && js.DeletionTimestamp == nil && len(e.pods.Objects) < maxPods && e.Dice.Percent(40) {
		n := e.Dice.IntN(maxPods)
		host := fmt.Sprintf("%s-w-%d-0", name, n)
		e.pods.Create(&corev1.Pod{
			ObjectMeta: metav1.ObjectMeta{
				Namespace: namespace, Name: fmt.Sprint(host, "-", e.main.Last), Labels: map[string]string{jobsetv1alpha2.JobSetNameKey: name},
				OwnerReferences: []metav1.OwnerReference{*metav1.NewControllerRef(js, jobsetv1alpha2.SchemeGroupVersion.WithKind("JobSet"))},
			},
			Spec: corev1.PodSpec{Hostname: host, Subdomain: name}, Status: corev1.PodStatus{Phase: corev1.PodPending},
		})
		return
	}
	if len(e.pods.Objects) == 0 {
		return
	}
	e.live(simulation.OneOf(e.Dice, e.pods.Objects...))
}

func (e *env) live(pod *corev1.Pod) {
	n := e.Dice.IntN(100)
	switch {
	case hasEnded(pod) || pod.DeletionTimestamp != nil && n < 40:
		e.Note("pod %s is gone", pod.Name)
		e.pods.Remove(pod.Name)
	case pod.Status.PodIP == "" || n < 5:
		e.pods.Change(pod, func(p *corev1.Pod) { p.Status.Phase, p.Status.PodIP = corev1.PodRunning, e.freeAddress() })
		e.Note("pod %s gets an address", pod.Name)
	case n < 45:
		ready := !isReady(pod)
		e.Note("pod %s is ready: %t", pod.Name, ready)
		e.pods.Change(pod, func(p *corev1.Pod) {
			p.Status.Conditions = []corev1.PodCondition{{Type: corev1.PodReady, Status: corev1.ConditionFalse}}
			if ready {
				p.Status.Conditions[0].Status = corev1.ConditionTrue
			}
		})
	case n < 65:
		e.Note("pod %s ends", pod.Name)
		e.Seen["pods that ended"]++
		e.pods.Change(pod, func(p *corev1.Pod) { p.Status.Phase = simulation.OneOf(e.Dice, corev1.PodFailed, corev1.PodSucceeded) })
	case n < 75 && pod.DeletionTimestamp == nil:
		e.Note("pod %s is being deleted", pod.Name)
		e.pods.Change(pod, func(p *corev1.Pod) { p.DeletionTimestamp = ptr.To(metav1.NewTime(e.Now())) })
	case n < 85:
		e.Note("pod %s vanishes", pod.Name)
		e.pods.Remove(pod.Name)
	}
}

// freeAddress returns one that no pod has which runs. Others may have had it.
func (e *env) freeAddress() string {
	taken := map[string]bool{}
	for _, pod := range e.pods.Objects {
		taken[pod.Status.PodIP] = taken[pod.Status.PodIP] || !hasEnded(pod)
	}
	first := e.Dice.IntN(addresses)
	for i := range addresses {
		if ip := fmt.Sprintf("10.0.0.%d", (first+i)%addresses); !taken[ip] {
			return ip
		}
	}
	return "10.0.1.1"
}

func hasEnded(pod *corev1.Pod) bool {
	return pod.Status.Phase == corev1.PodFailed || pod.Status.Phase == corev1.PodSucceeded
}

func isReady(pod *corev1.Pod) bool {
	return len(pod.Status.Conditions) > 0 && pod.Status.Conditions[0].Status == corev1.ConditionTrue
}
