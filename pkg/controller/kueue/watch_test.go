// Copyright The jobset-apiserver Authors.
// SPDX-License-Identifier: Apache-2.0

package kueue

import (
	"context"
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
	clocktesting "k8s.io/utils/clock/testing"

	"github.com/jobset-apiserver/jobset-apiserver/pkg/controller/kueue/plan"
)

// fixture is a cluster whose API of Kueue comes and goes.
type fixture struct {
	*Watch
	clock *clocktesting.FakePassiveClock
	// answer is what discovery answers; nil while the API is served.
	answer atomic.Pointer[error]
	asked  atomic.Int32

	mu sync.Mutex
	// changes are the names of Workloads that changed, and turns is how often the availability did.
	changes []string
	turns   int
}

var (
	absent error = apierrors.NewNotFound(schema.GroupResource{}, "")
	away   error = apierrors.NewServiceUnavailable("no endpoints")
)

func newFixture(objects ...runtime.Object) *fixture {
	f := &fixture{clock: clocktesting.NewFakePassiveClock(time.Now())}
	kube := kubefake.NewClientset()
	kube.Resources = []*metav1.APIResourceList{{GroupVersion: GroupVersion.String(), APIResources: []metav1.APIResource{{Name: workloads.Resource}}}}
	kube.PrependReactor("get", "resource", func(clienttesting.Action) (bool, runtime.Object, error) {
		f.asked.Add(1)
		if answer := f.answer.Load(); answer != nil {
			return true, nil, *answer
		}
		return false, nil, nil
	})
	f.Watch = NewWatch(Config{
		Kube: kube, Clock: f.clock,
		Dynamic: dynamicfake.NewSimpleDynamicClientWithCustomListKinds(runtime.NewScheme(),
			map[schema.GroupVersionResource]string{workloads: "WorkloadList"}, objects...),
		Changed: func(w *plan.Workload) {
			f.mu.Lock()
			defer f.mu.Unlock()
			f.changes = append(f.changes, w.Name)
		},
		AvailabilityChanged: func() {
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

func (f *fixture) watches() (n int) {
	for _, action := range f.Dynamic.(*dynamicfake.FakeDynamicClient).Actions() {
		if action.GetVerb() == "watch" {
			n++
		}
	}
	return n
}

func (f *fixture) expect(t *testing.T, what string, want Availability) {
	t.Helper()
	if got, _ := f.Availability(); got != want {
		t.Errorf("%s: availability %d, want %d", what, got, want)
	}
}

func inBubble(t *testing.T, f *fixture, test func(t *testing.T)) {
	t.Helper()
	ctx, cancel := context.WithCancel(t.Context())
	ended := make(chan struct{})
	go func() { defer close(ended); f.Run(ctx) }()
	synctest.Wait()
	test(t)
	cancel()
	<-ended
	synctest.Wait()
}

// workload returns one as Kueue writes it.
func workload(name, owner string, change ...func(map[string]any)) *unstructured.Unstructured {
	object := map[string]any{
		"apiVersion": GroupVersion.String(), "kind": "Workload",
		"metadata": map[string]any{
			"namespace": "default", "name": name, "uid": "uid-" + name, "resourceVersion": "7",
			"labels":          map[string]any{plan.JobUIDKey: owner},
			"ownerReferences": []any{map[string]any{"apiVersion": "batch/v1", "kind": "Job", "name": "etl-0", "uid": owner, "controller": true}},
		},
		"spec": map[string]any{
			"active": true, "queueName": "team",
			"podSets": []any{map[string]any{"name": "main", "count": int64(1), "template": map[string]any{"spec": map[string]any{"containers": []any{}}}}},
		},
	}
	for _, c := range change {
		c(object)
	}
	return &unstructured.Unstructured{Object: object}
}

func TestNothingIsAskedBeforeSomebodyWantsToKnow(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		f := newFixture()
		inBubble(t, f, func(t *testing.T) {
			f.run(time.Hour)
			if asked := f.asked.Load(); asked != 0 || f.watches() != 0 {
				t.Errorf("%d questions and %d watches", asked, f.watches())
			}
			f.Of("child")
			f.run(time.Second)
			f.expect(t, "once wanted", Served)
		})
	})
}

// TestOtherKindsOfTheGroupAreNotKueue serves the group of Kueue without Workloads, as while its
// CustomResourceDefinitions are deleted one after another.
func TestOtherKindsOfTheGroupAreNotKueue(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		f := newFixture()
		served := f.Kube.(*kubefake.Clientset)
		served.Resources[0].APIResources[0].Name = "localqueues"
		inBubble(t, f, func(t *testing.T) {
			f.Want()
			f.run(absences * groupPoll)
			f.expect(t, "without Workloads", Absent)
			if n := f.watches(); n != 0 {
				t.Errorf("%d watches of what is not served", n)
			}
			served.Resources[0].APIResources[0].Name = workloads.Resource
			f.run(2 * groupPoll)
			f.expect(t, "with Workloads", Served)
			served.Resources[0].APIResources[0].Name = "localqueues"
			f.run((absences + 1) * groupPoll)
			f.expect(t, "once the Workloads are gone", Absent)
		})
	})
}

func TestAbsentAPICostsOneQuestionInTenSeconds(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		f := newFixture(workload("job-etl-0", "child"))
		f.answer.Store(&absent)
		inBubble(t, f, func(t *testing.T) {
			f.Want()
			f.run(10*time.Minute + time.Second)
			f.expect(t, "without Kueue", Absent)
			if asked := f.asked.Load(); asked != 61 || f.watches() != 0 {
				t.Errorf("%d questions and %d watches in 10 minutes", asked, f.watches())
			}
			if w, _ := f.Of("child"); w != nil {
				t.Error("a Workload is known")
			}
			f.answer.Store(nil)
			f.run(groupPoll + time.Second)
			f.expect(t, "Kueue is installed", Served)
			if w, _ := f.Of("child"); w == nil || w.Name != "job-etl-0" {
				t.Errorf("the Workload of the child is %v", w)
			}
			if f.watches() != 1 {
				t.Errorf("%d watches", f.watches())
			}
		})
	})
}

func TestAPIThatGoesEndsTheWatch(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		f := newFixture(workload("job-etl-0", "child"))
		inBubble(t, f, func(t *testing.T) {
			f.Want()
			f.run(time.Second)
			f.answer.Store(&away)
			f.run(time.Minute)
			f.expect(t, "discovery fails", Served)
			f.answer.Store(&absent)
			f.run(groupPoll)
			f.expect(t, "absent once", Served)
			f.run(groupPoll)
			f.expect(t, "absent twice", Absent)
			if w, _ := f.Of("child"); w != nil {
				t.Error("a Workload of a Kueue that is gone is known")
			}
			create(t, f, workload("job-etl-1", "next"))
			f.run(time.Second)
			diff(t, "changes", []string{"job-etl-0"}, f.changes)
			f.answer.Store(nil)
			f.run(groupPoll + time.Second)
			f.expect(t, "Kueue is back", Served)
			if w, _ := f.Of("next"); w == nil {
				t.Error("the new Workload is not known")
			}
			// Served, Absent, Unknown while the cache is filled again, and Served.
			diff(t, "turns", 4, f.turns)
		})
	})
}

func TestChangesAreReported(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		f := newFixture()
		inBubble(t, f, func(t *testing.T) {
			f.Want()
			f.run(time.Second)
			create(t, f, workload("job-etl-0", "child"))
			f.run(time.Second)
			if err := f.Dynamic.Resource(workloads).Namespace("default").Delete(t.Context(), "job-etl-0", metav1.DeleteOptions{}); err != nil {
				t.Fatal(err)
			}
			f.run(time.Second)
			diff(t, "changes", []string{"job-etl-0", "job-etl-0"}, f.changes)
		})
	})
}

// A Workload may be replaced by one of the same name while the watch is interrupted. Then both owners hear of it.
func TestReplacedWorkloadIsReportedToItsFormerOwner(t *testing.T) {
	f, owners := newFixture(), []types.UID{}
	f.Config.Changed = func(w *plan.Workload) { owners = append(owners, w.OwnerUID()) }
	before, err := transform(workload("job-etl-0", "former"))
	after, err2 := transform(workload("job-etl-0", "next"))
	if err != nil || err2 != nil {
		t.Fatal(err, err2)
	}
	f.handler().OnUpdate(before, after)
	f.handler().OnUpdate(after, after)
	diff(t, "owners", []types.UID{"former", "next", "next"}, owners)
}

func TestOldestWorkloadThatStaysCounts(t *testing.T) {
	at := func(second string, deleted bool) func(map[string]any) {
		return func(object map[string]any) {
			metadata := object["metadata"].(map[string]any)
			metadata["creationTimestamp"] = "2026-01-01T00:00:" + second + "Z"
			if deleted {
				metadata["deletionTimestamp"] = "2026-01-01T00:01:00Z"
			}
		}
	}
	synctest.Test(t, func(t *testing.T) {
		f := newFixture(workload("a", "child", at("03", false)), workload("b", "child", at("02", false)), workload("c", "child", at("01", true)))
		inBubble(t, f, func(t *testing.T) {
			f.Want()
			f.run(time.Second)
			if w, _ := f.Of("child"); w == nil || w.Name != "b" {
				t.Errorf("found %v, want b", w)
			}
		})
	})
}

func create(t *testing.T, f *fixture, w *unstructured.Unstructured) {
	t.Helper()
	if _, err := f.Dynamic.Resource(workloads).Namespace("default").Create(t.Context(), w, metav1.CreateOptions{}); err != nil {
		t.Fatal(err)
	}
}

func diff(t *testing.T, what string, want, got any) {
	t.Helper()
	if d := cmp.Diff(want, got); d != "" {
		t.Errorf("%s (-want +got):\n%s", what, d)
	}
}
