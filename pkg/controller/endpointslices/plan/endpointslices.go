// Copyright The jobset-apiserver Authors.
// SPDX-License-Identifier: Apache-2.0

package endpointslices

import (
	"cmp"
	"maps"
	"slices"

	corev1 "k8s.io/api/core/v1"
	discoveryv1 "k8s.io/api/discovery/v1"
	"k8s.io/apimachinery/pkg/api/equality"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/utils/ptr"

	jobsetv1alpha2 "github.com/jobset-apiserver/jobset-apiserver/pkg/apis/jobset/v1alpha2"
)

const (
	// ManagedBy is the value of the label endpointslice.kubernetes.io/managed-by on our slices. The controllers of the
	// cluster leave them alone.
	ManagedBy = "controller.jobset-apiserver.io"
	// Most is how many endpoints a slice has at most, which is the limit of the API.
	Most = 1000
)

// Writes change the existing slices into the wanted ones. Creations and updates come first, so that no address that stays is missing in
// between.
type Writes struct {
	Create, Update, Delete []*discoveryv1.EndpointSlice
}

// Empty reports that everything is as it must be.
func (w *Writes) Empty() bool { return len(w.Create)+len(w.Update)+len(w.Delete) == 0 }

// Plan returns the writes for the pods of the Service of a JobSet. The existing slices have the controller as their manager, and are not
// changed. An endpoint stays in its slice, so that one pod costs one write whatever the number of pods. There is always a slice of each
// address type, if only an empty one: it shows that the Service is taken. Slices of an earlier Service of the name are deleted.
func Plan(set string, service *corev1.Service, pods []Pod, existing []*discoveryv1.EndpointSlice) (writes Writes) {
	shape := shapeOf(set, service)
	wanted := map[discoveryv1.AddressType]map[key]discoveryv1.Endpoint{}
	for _, ipFamily := range service.Spec.IPFamilies {
		wanted[discoveryv1.AddressType(ipFamily)] = map[key]discoveryv1.Endpoint{}
	}
	for i := range pods {
		for _, address := range pods[i].Addresses {
			if endpoints, ok := wanted[AddressTypeOf(address)]; ok {
				e := pods[i].endpoint(address, service.Spec.PublishNotReadyAddresses)
				endpoints[keyOf(&e)] = e
			}
		}
	}
	byType := map[discoveryv1.AddressType][]*discoveryv1.EndpointSlice{}
	for _, slice := range existing {
		if _, ok := wanted[slice.AddressType]; !ok || !metav1.IsControlledBy(slice, service) {
			writes.Delete = append(writes.Delete, slice)
			continue
		}
		byType[slice.AddressType] = append(byType[slice.AddressType], slice)
	}
	for _, addressType := range slices.Sorted(maps.Keys(wanted)) {
		shape.AddressType = addressType
		writes.add(shape, wanted[addressType], byType[addressType])
	}
	return writes
}

// shapeOf returns what all slices of a Service have in common.
func shapeOf(set string, service *corev1.Service) *discoveryv1.EndpointSlice {
	shape := &discoveryv1.EndpointSlice{ObjectMeta: metav1.ObjectMeta{
		GenerateName: service.Name + "-", Namespace: service.Namespace,
		OwnerReferences: []metav1.OwnerReference{*metav1.NewControllerRef(service, corev1.SchemeGroupVersion.WithKind("Service"))},
		Labels: map[string]string{
			discoveryv1.LabelServiceName: service.Name, discoveryv1.LabelManagedBy: ManagedBy,
			corev1.IsHeadlessService:     "",  // kube-proxy does not watch slices with this label
			jobsetv1alpha2.JobSetNameKey: set, // this is by what we watch them
		},
	}}
	for _, port := range service.Spec.Ports {
		shape.Ports = append(shape.Ports, discoveryv1.EndpointPort{
			Name: ptr.To(port.Name), Protocol: ptr.To(port.Protocol), Port: ptr.To(port.TargetPort.IntVal), AppProtocol: port.AppProtocol,
		})
	}
	return shape
}

// draft is a slice as it will be.
type draft struct {
	was, next *discoveryv1.EndpointSlice
	changed   bool
}

// add plans the slices of one address type. It takes the endpoints out of wanted that it finds in their places.
func (w *Writes) add(shape *discoveryv1.EndpointSlice, wanted map[key]discoveryv1.Endpoint, existing []*discoveryv1.EndpointSlice) {
	existing = slices.Clone(existing)
	slices.SortFunc(existing, func(a, b *discoveryv1.EndpointSlice) int { return cmp.Compare(a.Name, b.Name) })
	var drafts []*draft
	for _, slice := range existing {
		drafts = append(drafts, keep(shape, wanted, slice))
	}
	rest := slices.SortedFunc(maps.Values(wanted), func(a, b discoveryv1.Endpoint) int {
		return cmp.Or(cmp.Compare(name(&a), name(&b)), cmp.Compare(a.Addresses[0], b.Addresses[0]))
	})
	// What is written anyway is filled first, then what is fullest: slices that run empty are given up, but for the first.
	slices.SortStableFunc(drafts, func(a, b *draft) int {
		if a.changed != b.changed {
			return cmp.Compare(toInt(b.changed), toInt(a.changed))
		}
		return cmp.Compare(len(b.next.Endpoints), len(a.next.Endpoints))
	})
	for i, d := range drafts {
		n := min(Most-len(d.next.Endpoints), len(rest))
		d.next.Endpoints, d.changed = append(d.next.Endpoints, rest[:n]...), d.changed || n > 0
		rest = rest[n:]
		switch first := i == 0; {
		case len(d.next.Endpoints) == 0 && !first:
			w.Delete = append(w.Delete, d.was)
		case d.changed:
			w.Update = append(w.Update, d.next)
		}
	}
	w.create(shape, rest, len(drafts) == 0)
}

// create plans new slices, and at least one if there is none.
func (w *Writes) create(shape *discoveryv1.EndpointSlice, endpoints []discoveryv1.Endpoint, none bool) {
	for none || len(endpoints) > 0 {
		n := min(Most, len(endpoints))
		slice := shape.DeepCopy()
		slice.Endpoints = endpoints[:n:n]
		w.Create, endpoints, none = append(w.Create, slice), endpoints[n:], false
	}
}

// keep returns a slice with those of its endpoints that are wanted, as they are wanted, and takes them out of wanted.
func keep(shape *discoveryv1.EndpointSlice, wanted map[key]discoveryv1.Endpoint, was *discoveryv1.EndpointSlice) *draft {
	next := *was
	next.Endpoints = make([]discoveryv1.Endpoint, 0, len(was.Endpoints))
	d := &draft{was: was, next: &next}
	for i := range was.Endpoints {
		k := keyOf(&was.Endpoints[i])
		e, ok := wanted[k]
		d.changed = d.changed || !ok || !same(&e, &was.Endpoints[i])
		if ok {
			next.Endpoints = append(next.Endpoints, e)
			delete(wanted, k)
		}
	}
	if !equality.Semantic.DeepEqual(shape.Ports, was.Ports) || !carries(was.Labels, shape.Labels) {
		d.changed, next.Ports, next.Labels = true, shape.Ports, maps.Clone(was.Labels)
		if next.Labels == nil {
			next.Labels = map[string]string{}
		}
		maps.Copy(next.Labels, shape.Labels)
	}
	return d
}

// same compares endpoints without reflection, since it looks at every pod of a set whenever one changes.
func same(a, b *discoveryv1.Endpoint) bool {
	return slices.Equal(a.Addresses, b.Addresses) && ptr.Equal(a.TargetRef, b.TargetRef) && ptr.Equal(a.Hostname, b.Hostname) &&
		ptr.Equal(a.NodeName, b.NodeName) &&
		ptr.Equal(a.Zone, b.Zone) && ptr.Equal(a.Conditions.Ready, b.Conditions.Ready) && ptr.Equal(a.Conditions.Serving, b.Conditions.Serving) &&
		ptr.Equal(a.Conditions.Terminating, b.Conditions.Terminating) && len(b.DeprecatedTopology) == 0 && b.Hints == nil
}

func carries(labels, want map[string]string) bool {
	for k, v := range want {
		if got, ok := labels[k]; !ok || got != v {
			return false
		}
	}
	return true
}

func name(e *discoveryv1.Endpoint) string {
	if e.TargetRef == nil {
		return ""
	}
	return e.TargetRef.Name
}

func toInt(b bool) int {
	if b {
		return 1
	}
	return 0
}
