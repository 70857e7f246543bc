// Copyright The jobset-apiserver Authors.
// SPDX-License-Identifier: Apache-2.0

package endpoints

import (
	"net/netip"
	"strconv"
	"strings"
	"unique"

	corev1 "k8s.io/api/core/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/types"
	"k8s.io/client-go/tools/cache"

	jobsetv1alpha2 "github.com/jobset-apiserver/jobset-apiserver/pkg/apis/jobset/v1alpha2"
	"github.com/jobset-apiserver/jobset-apiserver/pkg/controller/endpointslices/plan"
)

// pod is what the cache keeps of a pod of a set. A cluster has many pods: what those of a set or a node have in common is kept once.
type pod struct {
	name    string
	uid     types.UID
	version uint64
	facts
	// more are the addresses of a pod that has several, beside the first one.
	more []netip.Addr
}

// facts are what a slice says about a pod, as far as it can be compared.
type facts struct {
	namespace, subdomain, node unique.Handle[string]
	// set and hostname are as a rule parts of the memory of the name.
	set, hostname string
	address       netip.Addr
	// ended pods run no more: another pod may have their address.
	ended, ready, deleted bool
}

var _ metav1.ObjectMetaAccessor = &pod{}

// GetObjectMeta returns what the cache needs to know of an object.
func (p *pod) GetObjectMeta() metav1.Object {
	return &metav1.ObjectMeta{Namespace: p.namespace.Value(), Name: p.name, UID: p.uid, ResourceVersion: strconv.FormatUint(p.version, 10)}
}

func (p *pod) key() cache.ObjectName { return cache.NewObjectName(p.namespace.Value(), p.set) }

// listed returns whether the address of the pod is in slices, as the cluster decides it; false without a pod.
func (p *pod) listed() bool { return p != nil && !p.ended && p.address.IsValid() }

// isNews returns whether others wait for what has changed of a listed pod.
func (p *pod) isNews(was *pod) bool { return p.address != was.address || p.ready && !was.ready }

// isFirst returns whether others look for the pod before all.
func (p *pod) isFirst(of *set) bool { return of != nil && p.hostname == of.first }

// endpoint returns what a slice says about the pod. A host name counts only below the Service that the pod names.
func (p *pod) endpoint(service string, zone func(node string) string) endpointslices.Pod {
	e := endpointslices.Pod{
		Name: p.name, Namespace: p.namespace.Value(), UID: p.uid, Node: p.node.Value(), Zone: zone(p.node.Value()),
		Addresses: append([]netip.Addr{p.address}, p.more...),
		Ready:     p.ready && !p.deleted, Serving: p.ready, Terminating: p.deleted,
	}
	if p.subdomain.Value() == service {
		e.Hostname = p.hostname
	}
	return e
}

// newPod returns what is kept of a pod.
func newPod(from *corev1.Pod) *pod {
	p := &pod{name: from.Name, uid: from.UID, facts: facts{
		namespace: unique.Make(from.Namespace), subdomain: unique.Make(from.Spec.Subdomain), node: unique.Make(from.Spec.NodeName),
		set: within(from.Name, from.Labels[jobsetv1alpha2.JobSetNameKey]), hostname: within(from.Name, from.Spec.Hostname),
		ended:   from.Status.Phase == corev1.PodSucceeded || from.Status.Phase == corev1.PodFailed,
		deleted: from.DeletionTimestamp != nil,
	}}
	p.version, _ = strconv.ParseUint(from.ResourceVersion, 10, 64) // a version that is not well-formed counts as absent
	for i := range from.Status.Conditions {
		if c := &from.Status.Conditions[i]; c.Type == corev1.PodReady {
			p.ready = c.Status == corev1.ConditionTrue
		}
	}
	// An address that is not well-formed is as good as absent.
	p.address, _ = netip.ParseAddr(from.Status.PodIP)
	for _, ip := range from.Status.PodIPs {
		if a, err := netip.ParseAddr(ip.IP); err == nil && a != p.address {
			p.more = append(p.more, a)
		}
	}
	return p
}

// within returns a text that begins a longer one as a part of its memory.
func within(whole, part string) string {
	if strings.HasPrefix(whole, part) {
		return whole[:len(part)]
	}
	return part
}

// setOf indexes a pod by the set whose name is on it.
func setOf(obj any) ([]string, error) {
	if p, ok := obj.(*pod); ok {
		return []string{p.key().String()}, nil
	}
	return nil, nil
}
