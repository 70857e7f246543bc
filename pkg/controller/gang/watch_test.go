// Copyright The jobset-apiserver Authors.
// SPDX-License-Identifier: Apache-2.0

package gang

import (
	"context"
	"strings"
	"sync"
	"sync/atomic"
	"testing"
	"testing/synctest"
	"time"

	"github.com/google/go-cmp/cmp"
	apierrors "k8s.io/apimachinery/pkg/api/errors"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"
	"k8s.io/apimachinery/pkg/runtime"
	"k8s.io/apimachinery/pkg/runtime/schema"
	"k8s.io/apimachinery/pkg/types"
	dynamicfake "k8s.io/client-go/dynamic/fake"
	kubefake "k8s.io/client-go/kubernetes/fake"
	clienttesting "k8s.io/client-go/testing"
)

var newest, oldest = schema.GroupVersion{Group: "example.com", Version: "v2"}, schema.GroupVersion{Group: "example.com", Version: "v1"}

// fixture is a cluster that serves some versions of an API.
type fixture struct {
	*Watch
	client *dynamicfake.FakeDynamicClient
	// served are the versions, or the error of discovery.
	served atomic.Value
	asked  atomic.Int32
	needed atomic.Bool

	mu      sync.Mutex
	changes []string
	turns   int
}

func newFixture(served string, objects ...runtime.Object) *fixture {
	f := &fixture{}
	f.served.Store(served)
	f.needed.Store(true)
	kube := kubefake.NewClientset()
	kinds := []metav1.APIResource{{Name: "podgroups"}, {Name: "workloads"}, {Name: "podgroups/status"}}
	kube.Resources = []*metav1.APIResourceList{{GroupVersion: "example.com/v2", APIResources: kinds}, {GroupVersion: "example.com/v1", APIResources: kinds}}
	kube.PrependReactor("get", "resource", func(clienttesting.Action) (bool, runtime.Object, error) {
		f.asked.Add(1)
		served := f.served.Load().(string)
		if served == "away" {
			return true, nil, apierrors.NewServiceUnavailable("no endpoints")
		}
		kube.Resources[0].APIResources, kube.Resources[1].APIResources = nil, nil
		if strings.Contains(served, "v2") {
			kube.Resources[0].APIResources = kinds
		}
		if strings.Contains(served, "v1") {
			kube.Resources[1].APIResources = kinds
		}
		return false, nil, nil
	})
	lists := map[schema.GroupVersionResource]string{}
	for _, version := range []schema.GroupVersion{newest, oldest} {
		lists[version.WithResource("podgroups")], lists[version.WithResource("workloads")] = "PodGroupList", "WorkloadList"
	}
	f.client = dynamicfake.NewSimpleDynamicClientWithCustomListKinds(runtime.NewScheme(), lists, objects...)
	f.Watch = NewWatch(Config{
		Kube: kube, Dynamic: f.client, Versions: []schema.GroupVersion{newest, oldest}, Kinds: []Kind{Workloads, PodGroups}, Label: "set",
		Needed: f.needed.Load,
		Changed: func(object metav1.Object) {
			f.mu.Lock()
			defer f.mu.Unlock()
			f.changes = append(f.changes, object.GetName())
		},
		Turned: func() {
			f.mu.Lock()
			defer f.mu.Unlock()
			f.turns++
		},
	})
	return f
}

// run lets time pass, of which a test in a bubble spends none.
func (f *fixture) run(d time.Duration) {
	time.Sleep(d)
	synctest.Wait()
}

// watches returns the versions of which objects were watched, one for each watch.
func (f *fixture) watches() (out []string) {
	for _, action := range f.client.Actions() {
		if action.GetVerb() == "watch" && action.GetResource().Resource == "podgroups" {
			out = append(out, action.GetResource().Version)
		}
	}
	return out
}

func inBubble(t *testing.T, served string, test func(t *testing.T, f *fixture), objects ...runtime.Object) {
	t.Helper()
	synctest.Test(t, func(t *testing.T) {
		f := newFixture(served, objects...)
		ctx, cancel := context.WithCancel(t.Context())
		ended := make(chan struct{})
		go func() { defer close(ended); f.Run(ctx) }()
		synctest.Wait()
		test(t, f)
		cancel()
		<-ended
		synctest.Wait()
	})
}

func group(version schema.GroupVersion, kind, name, owner string) *unstructured.Unstructured {
	return &unstructured.Unstructured{Object: map[string]any{
		"apiVersion": version.String(), "kind": kind,
		"metadata": map[string]any{
			"namespace": "default", "name": name, "uid": "uid-" + name, "resourceVersion": "7", "labels": map[string]any{"set": "train"},
			"annotations":     map[string]any{"note": "not kept"},
			"ownerReferences": []any{map[string]any{"apiVersion": "v1", "kind": "Set", "name": "train", "uid": owner, "controller": true}},
		},
		"spec": map[string]any{"schedulingPolicy": map[string]any{}}, "status": map[string]any{"conditions": []any{}},
	}}
}

func TestNothingIsAskedBeforeSomebodyAsks(t *testing.T) {
	inBubble(t, "v2 v1", func(t *testing.T, f *fixture) {
		f.run(time.Hour)
		if f.Of("owner"); f.asked.Load() != 0 || len(f.client.Actions()) != 0 {
			t.Errorf("%d questions, requests %v", f.asked.Load(), f.client.Actions())
		}
	})
}

func TestNewestVersionIsWatched(t *testing.T) {
	for served, want := range map[string]schema.GroupVersion{"v2 v1": newest, "v2": newest, "v1": oldest} {
		inBubble(t, served, func(t *testing.T, f *fixture) {
			f.Ask()
			f.run(time.Second)
			diff(t, "state with "+served, State{Version: want}, f.Ask())
			diff(t, "watches", []string{want.Version}, f.watches())
			var names []string
			for _, object := range f.Of("owner") {
				names = append(names, object.GetKind()+" "+object.GetName())
				diff(t, "status", nil, object.Object["status"])
				diff(t, "annotations", map[string]string(nil), object.GetAnnotations())
			}
			diff(t, "objects of the owner", []string{"Workload w", "PodGroup g"}, names)
			diff(t, "objects of another owner", 0, len(f.Of("other")))
		}, group(newest, "Workload", "w", "owner"), group(newest, "PodGroup", "g", "owner"),
			group(oldest, "Workload", "w", "owner"), group(oldest, "PodGroup", "g", "owner"))
	}
}

func TestAbsentAPIIsAskedForUntilItIsServed(t *testing.T) {
	inBubble(t, "", func(t *testing.T, f *fixture) {
		diff(t, "state at first", State{}, f.Ask())
		f.run(10*time.Minute + time.Second)
		diff(t, "state without the API", State{Absent: true}, f.Ask())
		if asked := f.asked.Load(); asked != 2*61 || len(f.client.Actions()) != 0 {
			t.Errorf("%d questions in 10 minutes, want 122; requests %v", asked, f.client.Actions())
		}
		f.served.Store("v1")
		f.run(absentPoll + time.Second)
		diff(t, "state with the API", State{Version: oldest}, f.Ask())
		diff(t, "turns", 3, f.turns) // absent, served, filled
	})
}

// A version that is in use stays in use, so that kube-apiservers of different versions do not make watches begin all the time.
func TestVersionInUseStays(t *testing.T) {
	inBubble(t, "v1", func(t *testing.T, f *fixture) {
		f.Ask()
		f.run(time.Second)
		f.served.Store("v2 v1")
		f.run(10 * time.Minute)
		diff(t, "a newer version is served", State{Version: oldest}, f.Ask())
		f.served.Store("v2")
		f.run(10 * time.Minute)
		diff(t, "the version in use is gone", State{Version: newest}, f.Ask())
		diff(t, "watches", []string{"v1", "v2"}, f.watches())
		f.served.Store("away")
		f.run(10 * time.Minute)
		diff(t, "discovery fails", State{Version: newest}, f.Ask())
		f.served.Store("")
		f.run(10 * time.Minute)
		diff(t, "the API is gone", State{Absent: true}, f.Ask())
	})
}

func TestNobodyNeedsTheObjects(t *testing.T) {
	inBubble(t, "v2", func(t *testing.T, f *fixture) {
		f.Ask()
		f.run(time.Second)
		f.needed.Store(false)
		f.run(3 * time.Minute)
		asked := f.asked.Load()
		f.run(time.Hour)
		if more := f.asked.Load() - asked; more != 0 || f.objects.Current() != nil {
			t.Errorf("%d more questions, objects are known: %t", more, f.objects.Current() != nil)
		}
		f.needed.Store(true)
		f.Ask()
		f.run(time.Second)
		diff(t, "once more", State{Version: newest}, f.Ask())
	})
}

func TestChangesAreReported(t *testing.T) {
	inBubble(t, "v2", func(t *testing.T, f *fixture) {
		f.Ask()
		f.run(time.Second)
		groups := ObjectsOf(f.client, newest.WithResource("podgroups"), "default")
		if _, err := groups.Create(t.Context(), group(newest, "PodGroup", "g", "owner"), metav1.CreateOptions{}); err != nil {
			t.Fatal(err)
		}
		f.run(time.Second)
		if err := groups.Delete(t.Context(), "g", metav1.DeleteOptions{}); err != nil {
			t.Fatal(err)
		}
		f.run(time.Second)
		diff(t, "changes", []string{"g", "g"}, f.changes)
	})
}

// An object may be replaced by one of the same name while the watch is interrupted. Then both owners hear of it.
func TestReplacedObjectIsReportedToItsFormerOwner(t *testing.T) {
	f, owners := newFixture("v2"), []types.UID{}
	f.Config.Changed = func(object metav1.Object) { owners = append(owners, metav1.GetControllerOfNoCopy(object).UID) }
	former, next := group(newest, "PodGroup", "g", "former"), group(newest, "PodGroup", "g", "next")
	f.updated(former, next)
	f.updated(next, next)
	diff(t, "owners", []types.UID{"former", "next", "next"}, owners)
}

func TestWhyObjectsCannotBeRead(t *testing.T) {
	inBubble(t, "v2", func(t *testing.T, f *fixture) {
		f.client.PrependReactor("list", "podgroups", func(clienttesting.Action) (bool, runtime.Object, error) {
			return true, nil, apierrors.NewForbidden(newest.WithResource("podgroups").GroupResource(), "", nil)
		})
		f.Ask()
		f.run(time.Minute)
		diff(t, "state", State{Problem: "podgroups (podgroups.example.com is forbidden: <nil>)"}, f.Ask())
	})
}

// The version may go while its objects are being read, which then never ends.
func TestVersionGoesWhileItsObjectsAreRead(t *testing.T) {
	inBubble(t, "v2", func(t *testing.T, f *fixture) {
		f.client.PrependReactor("list", "podgroups", func(action clienttesting.Action) (bool, runtime.Object, error) {
			if action.GetResource().Version == "v1" {
				return false, nil, nil
			}
			return true, nil, apierrors.NewNotFound(action.GetResource().GroupResource(), "")
		})
		f.Ask()
		f.run(time.Minute)
		f.served.Store("v1")
		f.run(10 * time.Minute)
		diff(t, "state", State{Version: oldest}, f.Ask())
	})
}

func diff(t *testing.T, what string, want, got any) {
	t.Helper()
	if d := cmp.Diff(want, got); d != "" {
		t.Errorf("%s (-want +got):\n%s", what, d)
	}
}
