// Copyright The jobset-apiserver Authors.
// SPDX-License-Identifier: Apache-2.0

// Package endpointslices says what the EndpointSlices of a headless Service must look like, and which writes lead
// there. Nothing of it reads or writes the API.
package endpointslices

import (
	"net/netip"

	corev1 "k8s.io/api/core/v1"
	discoveryv1 "k8s.io/api/discovery/v1"
	"k8s.io/apimachinery/pkg/types"
	"k8s.io/utils/ptr"
)

// Pod is what a slice says about a pod.
type Pod struct {
	Name, Namespace string
	UID             types.UID
	// Hostname is empty for a pod that has no name of its own below the Service.
	Hostname string
	// Node is the node that the pod runs on, and Zone the zone of the node; empty if it is not known.
	Node, Zone string
	Addresses  []netip.Addr
	// Ready means that the pod is ready and is not being deleted.
	Ready bool
	// Serving means that the pod is ready, also if it is being deleted.
	Serving bool
	// Terminating means that the pod is being deleted.
	Terminating bool
}

// key says whose address an endpoint is. An address that goes from one pod to another is another endpoint.
type key struct {
	address string
	pod     types.UID
}

func keyOf(endpoint *discoveryv1.Endpoint) (k key) {
	if len(endpoint.Addresses) > 0 {
		k.address = endpoint.Addresses[0]
	}
	if endpoint.TargetRef != nil {
		k.pod = endpoint.TargetRef.UID
	}
	return k
}

// endpoint returns what the cluster says about a pod in a slice, for one of its addresses. With addresses that are
// published before pods are ready, it says nothing that changes with readiness, so that readiness costs no write.
func (p *Pod) endpoint(address netip.Addr, publishNotReady bool) discoveryv1.Endpoint {
	e := discoveryv1.Endpoint{
		Addresses: []string{address.String()},
		TargetRef: &corev1.ObjectReference{Kind: "Pod", Namespace: p.Namespace, Name: p.Name, UID: p.UID},
	}
	if publishNotReady {
		e.Conditions.Ready = ptr.To(true)
	} else {
		e.Conditions = discoveryv1.EndpointConditions{Ready: ptr.To(p.Ready), Serving: ptr.To(p.Serving), Terminating: ptr.To(p.Terminating)}
	}
	e.Hostname, e.NodeName, e.Zone = known(p.Hostname), known(p.Node), known(p.Zone)
	return e
}

func known(s string) *string {
	if s == "" {
		return nil
	}
	return &s
}

// AddressTypeOf returns the type of slice that has the address.
func AddressTypeOf(address netip.Addr) discoveryv1.AddressType {
	if address.Is4() || address.Is4In6() {
		return discoveryv1.AddressTypeIPv4
	}
	return discoveryv1.AddressTypeIPv6
}
