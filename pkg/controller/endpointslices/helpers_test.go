// Copyright The jobset-apiserver Authors.
// SPDX-License-Identifier: Apache-2.0

package endpoints

import (
	"fmt"
	"sync/atomic"
	"testing"
	"testing/synctest"
	"time"

	corev1 "k8s.io/api/core/v1"
	discoveryv1 "k8s.io/api/discovery/v1"
	"k8s.io/apimachinery/pkg/api/meta"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/runtime"
	"k8s.io/apimachinery/pkg/types"
	"k8s.io/client-go/kubernetes/fake"
	clientgotesting "k8s.io/client-go/testing"
	"k8s.io/client-go/tools/events"
	"k8s.io/utils/clock"
	"k8s.io/utils/ptr"

	jobsetv1alpha2 "github.com/jobset-apiserver/jobset-apiserver/pkg/apis/jobset/v1alpha2"
	"github.com/jobset-apiserver/jobset-apiserver/pkg/controller/host/informers"
	"github.com/jobset-apiserver/jobset-apiserver/pkg/controller/host/informers/informerstest"
	setsfake "github.com/jobset-apiserver/jobset-apiserver/pkg/generated/clientset/versioned/fake"
)

// rig is a controller that runs, with clients that keep what they are given.
type rig struct {
	*testing.T
	kube    *fake.Clientset
	sets    *setsfake.Clientset
	events  *events.FakeRecorder
	version atomic.Int64
	c       *Controller
}

// newRig starts a controller in the bubble of the test. The objects are there before it starts.
func newRig(t *testing.T, change func(*Config), sets []*jobsetv1alpha2.JobSet, objects ...runtime.Object) *rig {
	t.Helper()
	r := &rig{T: t, kube: fake.NewClientset(objects...), events: events.NewFakeRecorder(100)}
	var all []runtime.Object
	for _, js := range sets {
		all = append(all, js)
	}
	r.sets = setsfake.NewClientset(all...)
	r.version.Store(100)
	r.countVersions()
	factory := informers.NewFactory(r.kube)
	kind := factory.For(Name)
	config := Config{JobSets: r.sets, Kube: r.kube, Informers: kind, Recorder: r.events, Clock: clock.RealClock{}, Workers: 2, Mode: "cluster"}
	if change != nil {
		change(&config)
	}
	if config.Canary != nil {
		config.Canary.Kube = r.kube
	}
	c, err := New(config)
	if err != nil {
		t.Fatal(err)
	}
	r.c = c
	informerstest.Run(t, factory, kind, c.Run)
	r.pass(time.Second)
	return r
}

// countVersions gives each object that is written a new resource version, and a name if it has none, as an API server does.
func (r *rig) countVersions() {
	for _, resource := range []string{"endpointslices", "pods"} {
		stamp := func(action clientgotesting.Action) (bool, runtime.Object, error) {
			version := fmt.Sprint(r.version.Add(1))
			obj, _ := meta.Accessor(action.(interface{ GetObject() runtime.Object }).GetObject())
			obj.SetResourceVersion(version)
			if obj.GetName() == "" {
				obj.SetName(obj.GetGenerateName() + version)
				obj.SetUID(types.UID(obj.GetName()))
			}
			return false, nil, nil
		}
		r.kube.PrependReactor("create", resource, stamp)
		r.kube.PrependReactor("update", resource, stamp)
	}
	store := clientgotesting.ObjectReaction(r.kube.Tracker())
	r.kube.PrependReactor("patch", "services", func(action clientgotesting.Action) (bool, runtime.Object, error) {
		handled, obj, err := store(action)
		if svc, ok := obj.(*corev1.Service); ok && err == nil {
			svc.ResourceVersion = fmt.Sprint(r.version.Add(1))
			err = r.kube.Tracker().Update(action.GetResource(), svc, svc.Namespace)
		}
		return handled, obj, err
	})
}

// pass lets time pass until all that follows from it is done.
func (r *rig) pass(d time.Duration) {
	time.Sleep(d)
	synctest.Wait()
}

func newJobSet(name, mode string, pods int32, change ...func(*jobsetv1alpha2.JobSet)) *jobsetv1alpha2.JobSet {
	js := &jobsetv1alpha2.JobSet{
		ObjectMeta: metav1.ObjectMeta{Namespace: "ns", Name: name, UID: types.UID("uid-" + name), ResourceVersion: "1"},
		Spec: jobsetv1alpha2.JobSetSpec{
			Network:        &jobsetv1alpha2.Network{EnableDNSHostnames: ptr.To(true)},
			ReplicatedJobs: []jobsetv1alpha2.ReplicatedJob{{Name: "w", Replicas: ptr.To(pods)}},
		},
	}
	if mode != "" {
		js.Annotations = map[string]string{"jobset-apiserver.io/service-endpoints": mode}
	}
	for _, c := range change {
		c(js)
	}
	return js
}

func newService(set string, change ...func(*corev1.Service)) *corev1.Service {
	svc := &corev1.Service{
		ObjectMeta: metav1.ObjectMeta{Namespace: "ns", Name: set, UID: types.UID("uid-service-" + set), ResourceVersion: "1", OwnerReferences: []metav1.OwnerReference{
			{APIVersion: "jobset.x-k8s.io/v1alpha2", Kind: "JobSet", Name: set, UID: types.UID("uid-" + set), Controller: ptr.To(true)},
		}},
		Spec: corev1.ServiceSpec{
			ClusterIP: "None", PublishNotReadyAddresses: true, IPFamilies: []corev1.IPFamily{corev1.IPv4Protocol},
			Selector: map[string]string{"jobset.sigs.k8s.io/jobset-name": set},
		},
	}
	for _, c := range change {
		c(svc)
	}
	return svc
}

func taken(svc *corev1.Service) { svc.Spec.Selector["jobset-apiserver.io/endpoints"] = "controller" }

// podOf returns a pod of a set; with an address if it has started.
func podOf(set string, n int, started bool) *corev1.Pod {
	name := fmt.Sprintf("%s-w-%d-0", set, n)
	p := &corev1.Pod{
		ObjectMeta: metav1.ObjectMeta{
			Namespace: "ns", Name: name + "-abcde", UID: types.UID("uid-" + name), ResourceVersion: "1", Labels: map[string]string{"jobset.sigs.k8s.io/jobset-name": set},
		},
		Spec:   corev1.PodSpec{Hostname: name, Subdomain: set, NodeName: "node"},
		Status: corev1.PodStatus{Phase: corev1.PodPending},
	}
	if started {
		start(n)(p)
	}
	return p
}

func start(n int) func(*corev1.Pod) {
	return func(p *corev1.Pod) {
		p.Status.Phase, p.Status.PodIP = corev1.PodRunning, fmt.Sprintf("10.0.%d.%d", n>>8, n&255)
		p.Status.PodIPs = []corev1.PodIP{{IP: p.Status.PodIP}}
	}
}

func (r *rig) create(p *corev1.Pod) {
	r.Helper()
	if _, err := r.kube.CoreV1().Pods("ns").Create(r.Context(), p, metav1.CreateOptions{}); err != nil {
		r.Fatal(err)
	}
}

func (r *rig) change(name string, change func(*corev1.Pod)) {
	r.Helper()
	p, err := r.kube.CoreV1().Pods("ns").Get(r.Context(), name, metav1.GetOptions{})
	if err != nil {
		r.Fatal(err)
	}
	change(p)
	if _, err := r.kube.CoreV1().Pods("ns").Update(r.Context(), p, metav1.UpdateOptions{}); err != nil {
		r.Fatal(err)
	}
}

// listed returns the addresses in our slices, by host name.
func (r *rig) listed() map[string]string {
	r.Helper()
	list, err := r.kube.DiscoveryV1().EndpointSlices("ns").List(r.Context(), metav1.ListOptions{LabelSelector: "endpointslice.kubernetes.io/managed-by=controller.jobset-apiserver.io"})
	if err != nil {
		r.Fatal(err)
	}
	all := map[string]string{}
	for i := range list.Items {
		for _, e := range list.Items[i].Endpoints {
			all[ptr.Deref(e.Hostname, "")] = e.Addresses[0]
		}
	}
	return all
}

// writes returns what was written to slices and Services since the last call, in order, as the verb and the number of addresses.
func (r *rig) writes() (all []string) {
	for _, a := range r.kube.Actions() {
		switch {
		case a.GetVerb() == "patch" && a.GetResource().Resource == "services":
			all = append(all, string(a.(clientgotesting.PatchAction).GetPatch()))
		case a.GetResource().Resource != "endpointslices", a.GetVerb() == "list", a.GetVerb() == "watch":
		case a.GetVerb() == "delete":
			all = append(all, "delete")
		default:
			slice := a.(clientgotesting.UpdateAction).GetObject().(*discoveryv1.EndpointSlice)
			all = append(all, fmt.Sprintf("%s %d", a.GetVerb(), len(slice.Endpoints)))
		}
	}
	r.kube.ClearActions()
	return all
}

// event returns the next event.
func (r *rig) event() string {
	select {
	case event := <-r.events.Events:
		return event
	default:
		return ""
	}
}
