// Copyright The jobset-apiserver Authors.
// SPDX-License-Identifier: Apache-2.0

package endpointslices

import (
	"fmt"
	"math/rand/v2"
	"net/netip"
	"testing"

	"github.com/google/go-cmp/cmp"
	corev1 "k8s.io/api/core/v1"
	discoveryv1 "k8s.io/api/discovery/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/types"
	"k8s.io/apimachinery/pkg/util/intstr"
	"k8s.io/utils/ptr"
)

func service(change func(*corev1.Service)) *corev1.Service {
	s := &corev1.Service{
		ObjectMeta: metav1.ObjectMeta{Name: "s", Namespace: "ns", UID: "service"},
		Spec: corev1.ServiceSpec{
			ClusterIP: corev1.ClusterIPNone, PublishNotReadyAddresses: true, IPFamilies: []corev1.IPFamily{corev1.IPv4Protocol},
			Ports: []corev1.ServicePort{{Name: "tcp-80", Protocol: corev1.ProtocolTCP, Port: 80, TargetPort: intstr.FromInt32(80)}},
		},
	}
	if change != nil {
		change(s)
	}
	return s
}

func pod(n int, change func(*Pod)) Pod {
	p := Pod{
		Name: fmt.Sprintf("s-w-0-%d-abcde", n), Namespace: "ns", UID: types.UID(fmt.Sprint("uid-", n)), Hostname: fmt.Sprintf("s-w-0-%d", n), Node: "n", Zone: "z",
		Addresses: []netip.Addr{netip.AddrFrom4([4]byte{10, 0, byte(n >> 8), byte(n)}), netip.MustParseAddr(fmt.Sprintf("fd00::%x", n+1))},
	}
	if change != nil {
		change(&p)
	}
	return p
}

func podsFrom(from, to int) (pods []Pod) {
	for n := from; n < to; n++ {
		pods = append(pods, pod(n, nil))
	}
	return pods
}

// store carries writes out as the API does.
type store struct {
	slices map[string]*discoveryv1.EndpointSlice
	names  int
}

func (s *store) list() (out []*discoveryv1.EndpointSlice) {
	for _, slice := range s.slices {
		out = append(out, slice)
	}
	return out
}

func (s *store) write(w Writes) {
	for _, slice := range w.Create {
		s.names++
		slice = slice.DeepCopy()
		slice.Name = fmt.Sprintf("%s%03d", slice.GenerateName, s.names)
		s.slices[slice.Name] = slice
	}
	for _, slice := range w.Update {
		s.slices[slice.Name] = slice
	}
	for _, slice := range w.Delete {
		delete(s.slices, slice.Name)
	}
}

func (s *store) addresses(addressType discoveryv1.AddressType) map[string]types.UID {
	out := map[string]types.UID{}
	for _, slice := range s.slices {
		if slice.AddressType != addressType {
			continue
		}
		for _, e := range slice.Endpoints {
			out[e.Addresses[0]] = e.TargetRef.UID
		}
	}
	return out
}

func TestSliceIsWhatTheClusterWouldWrite(t *testing.T) {
	writes := Plan("js", service(nil), podsFrom(0, 1), nil)
	want := []*discoveryv1.EndpointSlice{{
		ObjectMeta: metav1.ObjectMeta{
			GenerateName: "s-", Namespace: "ns",
			Labels: map[string]string{
				"kubernetes.io/service-name": "s", "endpointslice.kubernetes.io/managed-by": "controller.jobset-apiserver.io", "service.kubernetes.io/headless": "",
				"jobset.sigs.k8s.io/jobset-name": "js",
			},
			OwnerReferences: []metav1.OwnerReference{
				{APIVersion: "v1", Kind: "Service", Name: "s", UID: "service", Controller: ptr.To(true), BlockOwnerDeletion: ptr.To(true)},
			},
		},
		AddressType: discoveryv1.AddressTypeIPv4,
		Ports:       []discoveryv1.EndpointPort{{Name: ptr.To("tcp-80"), Protocol: ptr.To(corev1.ProtocolTCP), Port: ptr.To[int32](80)}},
		Endpoints: []discoveryv1.Endpoint{{
			Addresses: []string{"10.0.0.0"}, Hostname: ptr.To("s-w-0-0"), NodeName: ptr.To("n"), Zone: ptr.To("z"), Conditions: discoveryv1.EndpointConditions{Ready: ptr.To(true)},
			TargetRef: &corev1.ObjectReference{Kind: "Pod", Namespace: "ns", Name: "s-w-0-0-abcde", UID: "uid-0"},
		}},
	}}
	if diff := cmp.Diff(Writes{Create: want}, writes); diff != "" {
		t.Errorf("writes (-want +got):\n%s", diff)
	}
}

func TestReadinessIsShownOnlyWhereItCounts(t *testing.T) {
	hidden := service(nil)
	shown := service(func(s *corev1.Service) { s.Spec.PublishNotReadyAddresses = false })
	ready := []Pod{pod(0, func(p *Pod) { p.Ready, p.Serving = true, true })}
	leaving := []Pod{pod(0, func(p *Pod) { p.Serving, p.Terminating = true, true })}
	for _, c := range []struct {
		service *corev1.Service
		pods    []Pod
		updates int
		want    discoveryv1.EndpointConditions
	}{
		{hidden, ready, 0, discoveryv1.EndpointConditions{Ready: ptr.To(true)}},
		{hidden, leaving, 0, discoveryv1.EndpointConditions{Ready: ptr.To(true)}},
		{shown, ready, 1, discoveryv1.EndpointConditions{Ready: ptr.To(true), Serving: ptr.To(true), Terminating: ptr.To(false)}},
		{shown, leaving, 1, discoveryv1.EndpointConditions{Ready: ptr.To(false), Serving: ptr.To(true), Terminating: ptr.To(true)}},
	} {
		s := store{slices: map[string]*discoveryv1.EndpointSlice{}}
		s.write(Plan("js", c.service, podsFrom(0, 1), nil))
		writes := Plan("js", c.service, c.pods, s.list())
		if len(writes.Update) != c.updates || len(writes.Create)+len(writes.Delete) != 0 {
			t.Errorf("writes are %+v, want %d updates", writes, c.updates)
		}
		s.write(writes)
		if diff := cmp.Diff(c.want, s.list()[0].Endpoints[0].Conditions); diff != "" {
			t.Errorf("conditions (-want +got):\n%s", diff)
		}
	}
}

func TestOnePodCostsOneWrite(t *testing.T) {
	s := store{slices: map[string]*discoveryv1.EndpointSlice{}}
	writes := Plan("js", service(nil), podsFrom(0, 2500), nil)
	if len(writes.Create) != 3 {
		t.Fatalf("%d slices for 2,500 pods, want 3", len(writes.Create))
	}
	s.write(writes)
	for _, pods := range [][]Pod{podsFrom(1, 2500), podsFrom(1, 2501), append(podsFrom(1, 2500), pod(2500, func(p *Pod) { p.Node = "other" }))} {
		writes := Plan("js", service(nil), pods, s.list())
		if len(writes.Create)+len(writes.Delete) != 0 || len(writes.Update) != 1 {
			t.Errorf("%d created, %d updated, %d deleted", len(writes.Create), len(writes.Update), len(writes.Delete))
		}
		s.write(writes)
	}
}

func TestIPFamilies(t *testing.T) {
	s := store{slices: map[string]*discoveryv1.EndpointSlice{}}
	both := service(func(s *corev1.Service) {
		s.Spec.IPFamilies = []corev1.IPFamily{corev1.IPv4Protocol, corev1.IPv6Protocol}
	})
	s.write(Plan("js", both, podsFrom(0, 3), nil))
	if v4, v6 := s.addresses(discoveryv1.AddressTypeIPv4), s.addresses(discoveryv1.AddressTypeIPv6); len(v4) != 3 || len(v6) != 3 {
		t.Errorf("%v and %v, want three addresses each", v4, v6)
	}
	s.write(Plan("js", service(nil), podsFrom(0, 3), s.list()))
	if v4, v6 := s.addresses(discoveryv1.AddressTypeIPv4), s.addresses(discoveryv1.AddressTypeIPv6); len(v4) != 3 || len(v6) != 0 {
		t.Errorf("%v and %v, want three addresses and none", v4, v6)
	}
}

// TestOneSliceStays has one slice of a Service whose pods are all gone, and none of an earlier Service of the name.
func TestOneSliceStays(t *testing.T) {
	s := store{slices: map[string]*discoveryv1.EndpointSlice{}}
	s.write(Plan("js", service(nil), nil, nil))
	if len(s.slices) != 1 {
		t.Errorf("%d slices for no pod, want 1", len(s.slices))
	}
	s.write(Plan("js", service(nil), podsFrom(0, 2500), s.list()))
	s.write(Plan("js", service(nil), nil, s.list()))
	if writes := Plan("js", service(nil), nil, s.list()); len(s.slices) != 1 || !writes.Empty() {
		t.Errorf("%d slices for no pod, want 1; further writes are %+v", len(s.slices), writes)
	}
	writes := Plan("js", service(func(s *corev1.Service) { s.UID = "next" }), nil, s.list())
	if len(writes.Create) != 1 || len(writes.Update) != 0 || len(writes.Delete) != 1 {
		t.Errorf("writes for the next Service are %+v", writes)
	}
}

func TestForeignChangesAreRepaired(t *testing.T) {
	s := store{slices: map[string]*discoveryv1.EndpointSlice{}}
	s.write(Plan("js", service(nil), podsFrom(0, 3), nil))
	good := s.list()[0].DeepCopy()
	for name, change := range map[string]func(*discoveryv1.EndpointSlice){
		"a label is gone":     func(e *discoveryv1.EndpointSlice) { delete(e.Labels, corev1.IsHeadlessService) },
		"all labels are gone": func(e *discoveryv1.EndpointSlice) { e.Labels = nil },
		"another port":        func(e *discoveryv1.EndpointSlice) { e.Ports[0].Port = ptr.To[int32](81) },
		"another name":        func(e *discoveryv1.EndpointSlice) { e.Endpoints[0].Hostname = ptr.To("other") },
		"an address too many": func(e *discoveryv1.EndpointSlice) {
			e.Endpoints = append(e.Endpoints, discoveryv1.Endpoint{Addresses: []string{"192.0.2.1"}})
		},
		"hints":                    func(e *discoveryv1.EndpointSlice) { e.Endpoints[0].Hints = &discoveryv1.EndpointHints{} },
		"another pod":              func(e *discoveryv1.EndpointSlice) { e.Endpoints[0].TargetRef.Name = "other" },
		"an address twice":         func(e *discoveryv1.EndpointSlice) { e.Endpoints = append(e.Endpoints, e.Endpoints[0]) },
		"an endpoint without more": func(e *discoveryv1.EndpointSlice) { e.Endpoints[1] = discoveryv1.Endpoint{} },
	} {
		t.Run(name, func(t *testing.T) {
			bad := good.DeepCopy()
			change(bad)
			s.slices = map[string]*discoveryv1.EndpointSlice{bad.Name: bad}
			s.write(Plan("js", service(nil), podsFrom(0, 3), s.list()))
			got := s.slices[bad.Name]
			if got == nil || len(s.slices) != 1 {
				t.Fatalf("slices are %+v", s.slices)
			}
			if writes := Plan("js", service(nil), podsFrom(0, 3), s.list()); !writes.Empty() || len(got.Endpoints) != 3 || !carries(got.Labels, good.Labels) {
				t.Errorf("slice is %+v, further writes are %+v", got, writes)
			}
		})
	}
}

// TestRandomHistories lets pods come and go, and looks after each step whether the slices have each address once.
func TestRandomHistories(t *testing.T) {
	for seed := range uint64(8) {
		random := rand.New(rand.NewPCG(seed, 0))
		s := store{slices: map[string]*discoveryv1.EndpointSlice{}}
		pods := map[int]Pod{}
		for range 20 {
			for range random.IntN(400) {
				n := random.IntN(2500)
				if _, ok := pods[n]; ok && random.IntN(3) > 0 {
					delete(pods, n)
					continue
				}
				// The address of an earlier pod may go to another one.
				pods[n] = pod(n, func(p *Pod) { p.UID = types.UID(fmt.Sprint("uid-", n, "-", random.IntN(3))) })
			}
			var list []Pod
			want := map[string]types.UID{}
			for _, p := range pods {
				list, want[p.Addresses[0].String()] = append(list, p), p.UID
			}
			s.write(Plan("js", service(nil), list, s.list()))
			if diff := cmp.Diff(want, s.addresses(discoveryv1.AddressTypeIPv4)); diff != "" {
				t.Fatalf("seed %d: addresses (-want +got):\n%s", seed, diff)
			}
			total := 0
			for _, slice := range s.slices {
				if total += len(slice.Endpoints); len(slice.Endpoints) > Most || len(slice.Endpoints) == 0 && len(s.slices) > 1 {
					t.Fatalf("seed %d: a slice of %d endpoints", seed, len(slice.Endpoints))
				}
			}
			if total != len(pods) {
				t.Fatalf("seed %d: %d endpoints for %d pods", seed, total, len(pods))
			}
			if writes := Plan("js", service(nil), list, s.list()); !writes.Empty() {
				t.Fatalf("seed %d: the second plan writes %+v", seed, writes)
			}
		}
	}
}
