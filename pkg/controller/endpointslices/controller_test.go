// Copyright The jobset-apiserver Authors.
// SPDX-License-Identifier: Apache-2.0

package endpoints

import (
	"slices"
	"strings"
	"testing"
	"testing/synctest"
	"time"

	"github.com/google/go-cmp/cmp"
	corev1 "k8s.io/api/core/v1"
	discoveryv1 "k8s.io/api/discovery/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/runtime"

	jobsetv1alpha2 "github.com/jobset-apiserver/jobset-apiserver/pkg/apis/jobset/v1alpha2"
	"github.com/jobset-apiserver/jobset-apiserver/pkg/controller/endpointslices/plan"
)

const (
	patchTake = `[{"op":"add","path":"/metadata/resourceVersion","value":"1"},{"op":"add","path":"/spec/selector","value":` +
		`{"jobset-apiserver.io/endpoints":"controller","jobset.sigs.k8s.io/jobset-name":"js"}}]`
	patchLeave = `{"op":"add","path":"/spec/selector","value":{"jobset.sigs.k8s.io/jobset-name":"js"}}]`
)

func one(js *jobsetv1alpha2.JobSet) []*jobsetv1alpha2.JobSet { return []*jobsetv1alpha2.JobSet{js} }

// TestWritesOfAStart starts 400 pods one by one over 20 seconds: addresses gather, those of the first pod and of the last one do not wait.
func TestWritesOfAStart(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		const pods = 400
		r := newRig(t, nil, one(newJobSet("js", "controller", pods)), newService("js"))
		for n := range pods {
			r.create(podOf("js", n, false))
		}
		for n := range pods {
			r.pass(50 * time.Millisecond)
			r.change(podOf("js", n, false).Name, start(n))
			if n == 0 {
				r.pass(150 * time.Millisecond)
				if got := r.listed()["js-w-0-0"]; got != "10.0.0.0" {
					t.Errorf("the address of the first pod is %q shortly after it has one", got)
				}
			}
		}
		r.pass(time.Second)
		if got := len(r.listed()); got != pods {
			t.Errorf("%d addresses one second after the last pod has one, want %d", got, pods)
		}
		writes := r.writes()
		if len(writes) > 8+1 || !slices.Contains(writes, patchTake) {
			t.Errorf("%d writes for %d pods, one of them that of the Service: %s", len(writes), pods, strings.Join(writes, ", "))
		}
		r.pass(time.Minute)
		if writes := r.writes(); len(writes) > 0 {
			t.Errorf("writes without a reason: %v", writes)
		}
	})
}

// TestWritesOfASmallStart has one write for the addresses of a set whose pods start together.
func TestWritesOfASmallStart(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		r := newRig(t, nil, one(newJobSet("js", "controller", 4)), newService("js"))
		for n := range 4 {
			r.create(podOf("js", n, false))
		}
		for n := range 4 {
			r.pass(20 * time.Millisecond)
			r.change(podOf("js", n, false).Name, start(n))
		}
		r.pass(time.Second)
		if diff := cmp.Diff([]string{"create 4", patchTake}, r.writes()); diff != "" {
			t.Errorf("writes (-want +got):\n%s", diff)
		}
	})
}

// TestAddressesGoSoon lets pods end, be deleted and change their address.
func TestAddressesGoSoon(t *testing.T) {
	for name, by := range map[string]func(*rig, string){
		"a pod that has ended": func(r *rig, pod string) { r.change(pod, func(p *corev1.Pod) { p.Status.Phase = corev1.PodSucceeded }) },
		"a pod that is gone": func(r *rig, pod string) {
			if err := r.kube.CoreV1().Pods("ns").Delete(r.Context(), pod, metav1.DeleteOptions{}); err != nil {
				r.Fatal(err)
			}
		},
		"a pod with another address": func(r *rig, pod string) { r.change(pod, start(77)) },
	} {
		t.Run(name, func(t *testing.T) {
			synctest.Test(t, func(t *testing.T) {
				objects := []runtime.Object{newService("js")}
				for n := range 20 {
					objects = append(objects, podOf("js", n, true))
				}
				r := newRig(t, nil, one(newJobSet("js", "controller", 20)), objects...)
				r.writes()
				by(r, "js-w-3-0-abcde")
				r.pass(removalDelay + 50*time.Millisecond)
				if got := r.listed(); got["js-w-3-0"] == "10.0.0.3" || len(got) < 19 {
					t.Errorf("addresses are %v", got)
				}
				if writes := r.writes(); len(writes) != 1 {
					t.Errorf("writes are %v, want one", writes)
				}
			})
		})
	}
}

// TestReadinessCostsNothing has no write for a Service that publishes addresses of pods that are not ready, and one for any other.
func TestReadinessCostsNothing(t *testing.T) {
	for publish, want := range map[bool]int{true: 0, false: 1} {
		synctest.Test(t, func(t *testing.T) {
			svc := newService("js", func(s *corev1.Service) { s.Spec.PublishNotReadyAddresses = publish })
			r := newRig(t, nil, one(newJobSet("js", "controller", 1)), svc, podOf("js", 0, true))
			r.writes()
			r.change("js-w-0-0-abcde", func(p *corev1.Pod) {
				p.Status.Conditions = []corev1.PodCondition{{Type: corev1.PodReady, Status: corev1.ConditionTrue}}
			})
			r.pass(10 * time.Second)
			if writes := r.writes(); len(writes) != want {
				t.Errorf("writes with publishNotReadyAddresses %t are %v, want %d", publish, writes, want)
			}
		})
	}
}

// TestSwitch takes a Service while its pods run and gives it back: our slices are written before the selector changes,
// and deleted after it has changed back and the cluster has written its own.
func TestSwitch(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		js := newJobSet("js", "", 2)
		r := newRig(t, nil, one(js), newService("js"), podOf("js", 0, true), podOf("js", 1, true))
		for _, action := range r.kube.Actions() {
			watched := []string{"endpointslices", "services"}
			if !slices.Contains(watched, action.GetResource().Resource) || action.GetVerb() != "list" && action.GetVerb() != "watch" {
				t.Errorf("for a set that does not ask: %s %s", action.GetVerb(), action.GetResource().Resource)
			}
		}
		r.writes()
		set := func(mode, version string) {
			next := newJobSet("js", mode, 2)
			next.ResourceVersion = version
			if _, err := r.sets.JobsetV1alpha2().JobSets("ns").Update(r.Context(), next, metav1.UpdateOptions{}); err != nil {
				t.Fatal(err)
			}
			r.pass(2 * time.Second)
		}
		set("controller", "2")
		if diff := cmp.Diff([]string{"create 2", patchTake}, r.writes()); diff != "" {
			t.Fatalf("writes when the set asks (-want +got):\n%s", diff)
		}
		set("cluster", "3")
		if writes := r.writes(); len(writes) != 1 || !strings.HasSuffix(writes[0], patchLeave) {
			t.Fatalf("writes when the set asks no more: %v", writes)
		}
		r.writeAsCluster("10.0.0.0")
		r.pass(5 * time.Second)
		if got := len(r.listed()); got != 2 {
			t.Errorf("%d addresses while those of the cluster are not complete, want 2", got)
		}
		r.writes()
		r.writeAsCluster("10.0.0.0", "10.0.0.1")
		r.writes()
		r.pass(3 * time.Second)
		if diff := cmp.Diff([]string{"delete"}, r.writes()); diff != "" {
			t.Errorf("writes when the cluster has written all addresses (-want +got):\n%s", diff)
		}
	})
}

// writeAsCluster writes a slice of the cluster.
func (r *rig) writeAsCluster(addresses ...string) {
	r.Helper()
	slice := &discoveryv1.EndpointSlice{
		ObjectMeta: metav1.ObjectMeta{Namespace: "ns", Name: "of-the-cluster", Labels: map[string]string{
			"kubernetes.io/service-name": "js", "endpointslice.kubernetes.io/managed-by": "endpointslice-controller.k8s.io",
		}},
		AddressType: discoveryv1.AddressTypeIPv4,
	}
	for _, a := range addresses {
		slice.Endpoints = append(slice.Endpoints, discoveryv1.Endpoint{Addresses: []string{a}})
	}
	client := r.kube.DiscoveryV1().EndpointSlices("ns")
	_, err := client.Create(r.Context(), slice, metav1.CreateOptions{})
	if err != nil {
		_, err = client.Update(r.Context(), slice, metav1.UpdateOptions{})
	}
	if err != nil {
		r.Fatal(err)
	}
}

// TestClusterThatWritesNothing deletes our slices after a time even so.
func TestClusterThatWritesNothing(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		r := newRig(t, nil, one(newJobSet("js", "controller", 1)), newService("js"), podOf("js", 0, true))
		next := newJobSet("js", "cluster", 1)
		next.ResourceVersion = "2"
		if _, err := r.sets.JobsetV1alpha2().JobSets("ns").Update(r.Context(), next, metav1.UpdateOptions{}); err != nil {
			t.Fatal(err)
		}
		r.pass(leavingTimeout - 2*time.Second)
		if len(r.listed()) != 1 {
			t.Error("slices are deleted before the cluster has written its own")
		}
		r.pass(5 * time.Second)
		if len(r.listed()) != 0 {
			t.Error("slices stay although the cluster has had the time")
		}
	})
}

// TestLeftServices gives Services back that an earlier controller has taken: one that its set has left behind, and one
// whose slices a user has deleted.
func TestLeftServices(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		orphan := newService("orphan", taken, func(s *corev1.Service) { s.OwnerReferences = nil })
		slice := endpointslices.Plan("orphan", orphan, nil, nil).Create[0]
		slice.Name = "orphan-1"
		sets := []*jobsetv1alpha2.JobSet{newJobSet("bare", "cluster", 1), newJobSet("js", "controller", 1)}
		r := newRig(t, nil, sets, orphan, slice, podOf("orphan", 1, true), newService("bare", taken), podOf("bare", 2, true), newService("js"))
		r.pass(2 * leavingTimeout)
		if got := r.listed(); len(got) > 0 {
			t.Errorf("addresses are %v", got)
		}
		for _, name := range []string{"orphan", "bare"} {
			svc, err := r.kube.CoreV1().Services("ns").Get(t.Context(), name, metav1.GetOptions{})
			if err != nil || len(svc.Spec.Selector) != 1 {
				t.Errorf("the selector of %s is %v, %v", name, svc.Spec.Selector, err)
			}
		}
	})
}

// TestDeletedSet leaves the Service of a set that is gone to the garbage collector, and lists its pods until then.
func TestDeletedSet(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		r := newRig(t, nil, one(newJobSet("js", "controller", 1)), newService("js"), podOf("js", 0, true))
		r.writes()
		if err := r.sets.JobsetV1alpha2().JobSets("ns").Delete(t.Context(), "js", metav1.DeleteOptions{}); err != nil {
			t.Fatal(err)
		}
		r.pass(2 * leavingTimeout)
		if writes := r.writes(); len(writes) > 0 {
			t.Errorf("writes are %v, want none", writes)
		}
	})
}

// TestForeignWritesAreRepaired deletes and changes one of our slices behind the back of the controller.
func TestForeignWritesAreRepaired(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		r := newRig(t, nil, one(newJobSet("js", "controller", 1)), newService("js"), podOf("js", 0, true))
		client := r.kube.DiscoveryV1().EndpointSlices("ns")
		only := func() *discoveryv1.EndpointSlice {
			list, err := client.List(t.Context(), metav1.ListOptions{})
			if err != nil || len(list.Items) != 1 || len(list.Items[0].Endpoints) != 1 {
				t.Fatalf("slices are %v, %v", list, err)
			}
			return &list.Items[0]
		}
		slice := only()
		slice.Endpoints = nil
		if _, err := client.Update(t.Context(), slice, metav1.UpdateOptions{}); err != nil {
			t.Fatal(err)
		}
		r.pass(time.Second)
		if err := client.Delete(t.Context(), only().Name, metav1.DeleteOptions{}); err != nil {
			t.Fatal(err)
		}
		r.pass(time.Second)
		only()
	})
}
