// Copyright The jobset-apiserver Authors.
// SPDX-License-Identifier: Apache-2.0

package leaderworkerset

import (
	"testing"

	"github.com/google/go-cmp/cmp"
	appsv1 "k8s.io/api/apps/v1"
	corev1 "k8s.io/api/core/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"
	"k8s.io/apimachinery/pkg/runtime"
	dynamicfake "k8s.io/client-go/dynamic/fake"
	"k8s.io/client-go/kubernetes/fake"
	"k8s.io/client-go/tools/events"
	"k8s.io/utils/clock"
	"k8s.io/utils/ptr"

	leaderworkersetv1 "github.com/jobset-apiserver/jobset-apiserver/pkg/apis/leaderworkerset/v1"
	"github.com/jobset-apiserver/jobset-apiserver/pkg/controller/gang/plan"
	"github.com/jobset-apiserver/jobset-apiserver/pkg/controller/host/informers"
	"github.com/jobset-apiserver/jobset-apiserver/pkg/controller/host/orphans"
	versionedfake "github.com/jobset-apiserver/jobset-apiserver/pkg/generated/clientset/versioned/fake"
)

// TestChildrenOfLostSets: the alarm looks at all that a LeaderWorkerSet owns, which the garbage collector deletes when the API does not know
// the set. What a leader pod or another kind owns, and what is being deleted, does not count. The name of the owner is the one in the
// reference, whatever the label says.
func TestChildrenOfLostSets(t *testing.T) {
	c := controllerWithGangs(t)
	lws := leaderworkersetv1.SchemeGroupVersion.String()
	of := func(apiVersion, kind, name string) []metav1.OwnerReference {
		return []metav1.OwnerReference{{APIVersion: apiVersion, Kind: kind, Name: name, UID: "lost-uid", Controller: ptr.To(true)}}
	}
	podGroup := &unstructured.Unstructured{}
	podGroup.SetGroupVersionKind(c.Gang.Resource().GroupVersion().WithKind("PodGroup"))
	for kind, tc := range map[string]struct {
		informer *informers.Informer
		example  metav1.Object
	}{
		"StatefulSet":        {c.caches.statefulSets, &appsv1.StatefulSet{}},
		"Service":            {c.caches.services, &corev1.Service{}},
		"ControllerRevision": {c.caches.revisions, &appsv1.ControllerRevision{}},
		"PodGroup":           {c.caches.podGroups, podGroup},
	} {
		for name, change := range map[string]func(metav1.Object){
			"owned":     func(o metav1.Object) { o.SetOwnerReferences(of(lws, kindSet, "lost")) },
			"relabeled": func(o metav1.Object) { o.SetOwnerReferences(of(lws, kindSet, "another")) },
			"deleting": func(o metav1.Object) {
				o.SetOwnerReferences(of(lws, kindSet, "lost"))
				o.SetDeletionTimestamp(&metav1.Time{Time: metav1.Now().Time})
			},
			"of-a-leader": func(o metav1.Object) { o.SetOwnerReferences(of("v1", "Pod", "lost-0")) },
			"released":    func(metav1.Object) {},
			"elsewhere":   func(o metav1.Object) { o.SetOwnerReferences(of("example.com/v1", kindSet, "lost")) },
		} {
			object := tc.example.(runtime.Object).DeepCopyObject().(metav1.Object)
			object.SetNamespace("ns")
			object.SetName(name)
			object.SetUID("uid")
			object.SetLabels(map[string]string{leaderworkersetv1.SetNameLabelKey: "lost"})
			change(object)
			kept, err := transform(object)
			if err != nil {
				t.Fatal(err)
			}
			if err := tc.informer.GetIndexer().Add(kept); err != nil {
				t.Fatal(kind, err)
			}
		}
	}
	watcher, got := c.newOrphans(), map[string]map[string]orphans.Child{}
	for _, source := range watcher.Sources {
		children, err := source.Children(t.Context())
		if err != nil {
			t.Fatal(err)
		}
		got[source.Kind.Kind] = map[string]orphans.Child{}
		for child := range children {
			got[source.Kind.Kind][child.Name] = child
		}
	}
	lost := map[string]orphans.Child{
		"owned":     {Name: "owned", UID: "uid", Owner: orphans.Owner{Namespace: "ns", Name: "lost", UID: "lost-uid"}},
		"relabeled": {Name: "relabeled", UID: "uid", Owner: orphans.Owner{Namespace: "ns", Name: "another", UID: "lost-uid"}},
	}
	want := map[string]map[string]orphans.Child{"StatefulSet": lost, "Service": lost, "ControllerRevision": lost, "PodGroup": lost}
	if diff := cmp.Diff(want, got); diff != "" {
		t.Errorf("children (-want +got):\n%s", diff)
	}
	if watcher.Cached(lost["owned"].Owner) {
		t.Error("the owner counts as known")
	}
}

// controllerWithGangs returns a controller whose caches are empty.
func controllerWithGangs(t *testing.T) *Controller {
	t.Helper()
	kube := fake.NewClientset()
	factory := informers.NewFactory(kube)
	kind := factory.For(Name)
	c, err := New(Config{
		Sets: versionedfake.NewClientset(), Kube: kube, Informers: kind, Recorder: events.NewFakeRecorder(10), Clock: clock.RealClock{}, Workers: 1,
		Gang: plan.Volcano, Dynamic: dynamicfake.NewSimpleDynamicClient(runtime.NewScheme()),
	})
	if err == nil {
		_, err = factory.Build(kind)
	}
	if err != nil {
		t.Fatal(err)
	}
	return c
}
