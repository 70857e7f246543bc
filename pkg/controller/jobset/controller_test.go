// Copyright The jobset-apiserver Authors.
// SPDX-License-Identifier: Apache-2.0

package jobset

import (
	"context"
	"sync"
	"sync/atomic"
	"testing"
	"testing/synctest"
	"time"

	batchv1 "k8s.io/api/batch/v1"
	corev1 "k8s.io/api/core/v1"
	apierrors "k8s.io/apimachinery/pkg/api/errors"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/runtime"
	"k8s.io/apimachinery/pkg/runtime/schema"
	clientgotesting "k8s.io/client-go/testing"
	"k8s.io/client-go/tools/cache"

	jobsetv1alpha2 "github.com/jobset-apiserver/jobset-apiserver/pkg/apis/jobset/v1alpha2"
	"github.com/jobset-apiserver/jobset-apiserver/pkg/controller/host/queue"
	"github.com/jobset-apiserver/jobset-apiserver/test/fakestore"
)

// run lets the controller work until the test ends. It is called in the bubble of the test.
func (r *rig) run(t *testing.T) {
	t.Helper()
	fakestore.Install(&r.kube.Fake, r.kube.Tracker())
	fakestore.Install(&r.jobSets.Fake, r.jobSets.Tracker())
	ctx, cancel := context.WithCancel(t.Context())
	var running sync.WaitGroup
	r.watches.Start(ctx)
	running.Go(func() { r.Run(ctx) })
	t.Cleanup(func() {
		cancel()
		running.Wait()
	})
	eventually(t, "the caches are filled", func() bool { return len(r.Informers.Unfilled()) == 0 })
}

// eventually lets the time of the bubble pass until the condition holds and nothing is left to do at that moment.
func eventually(t *testing.T, what string, condition func() bool) {
	t.Helper()
	synctest.Wait()
	for begun := time.Now(); !condition(); synctest.Wait() {
		if time.Since(begun) > time.Minute {
			t.Fatalf("after %v it is still not true that %s", time.Since(begun), what)
		}
		time.Sleep(5 * time.Millisecond)
	}
}

func (r *rig) set(t *testing.T) *jobsetv1alpha2.JobSet {
	t.Helper()
	js, err := r.jobSets.JobsetV1alpha2().JobSets("ns").Get(t.Context(), "js", metav1.GetOptions{})
	if err != nil {
		t.Fatal(err)
	}
	return js
}

func (r *rig) jobExists(t *testing.T, name string) bool {
	t.Helper()
	_, err := r.kube.BatchV1().Jobs("ns").Get(t.Context(), name, metav1.GetOptions{})
	if err != nil && !apierrors.IsNotFound(err) {
		t.Fatal(err)
	}
	return err == nil
}

func (r *rig) finish(t *testing.T, name string) {
	t.Helper()
	job, err := r.kube.BatchV1().Jobs("ns").Get(t.Context(), name, metav1.GetOptions{})
	if err != nil {
		t.Fatal(err)
	}
	job.ResourceVersion = "" // whatever the controller has written
	job.Status.Conditions = []batchv1.JobCondition{{Type: batchv1.JobComplete, Status: corev1.ConditionTrue}}
	if _, err := r.kube.BatchV1().Jobs("ns").UpdateStatus(t.Context(), job, metav1.UpdateOptions{}); err != nil {
		t.Fatal(err)
	}
}

func TestSetRunsToCompletion(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		r := newRig(t, newSet())
		r.run(t)
		eventually(t, "both Jobs exist", func() bool { return r.jobExists(t, "js-w-0") && r.jobExists(t, "js-w-1") })
		r.finish(t, "js-w-0")
		eventually(t, "one success is counted", func() bool {
			counts := r.set(t).Status.ReplicatedJobsStatus
			return len(counts) == 1 && counts[0].Succeeded == 1
		})
		r.finish(t, "js-w-1")
		eventually(t, "the set is completed", func() bool { return r.set(t).Status.TerminalState == jobsetv1alpha2.TerminalStateCompleted })
		eventually(t, "the event is sent", func() bool { return len(r.events.all()) > 0 })
		diff(t, "events", []string{"Normal AllJobsCompleted Reconciling: jobset completed successfully"}, r.events.all())
	})
}

func TestDeletedChildrenAreRecreated(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		r := newRig(t, newSet())
		r.run(t)
		eventually(t, "both Jobs exist", func() bool { return r.jobExists(t, "js-w-0") && r.jobExists(t, "js-w-1") })
		if err := r.kube.BatchV1().Jobs("ns").Delete(t.Context(), "js-w-1", metav1.DeleteOptions{}); err != nil {
			t.Fatal(err)
		}
		eventually(t, "the Job is back", func() bool { return r.jobExists(t, "js-w-1") })
		if err := r.kube.CoreV1().Services("ns").Delete(t.Context(), "js", metav1.DeleteOptions{}); err != nil {
			t.Fatal(err)
		}
		eventually(t, "the Service is back", func() bool {
			_, err := r.kube.CoreV1().Services("ns").Get(t.Context(), "js", metav1.GetOptions{})
			return err == nil
		})
	})
}

func TestTakenNamesAreRetried(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		set := newSet()
		r := newRig(t, set, newJob("js-w-0", nil))
		defer r.end()
		if err := r.caches.jobSets.GetIndexer().Add(set); err != nil {
			t.Fatal(err)
		}
		tries := func() (n int) {
			if after, err := r.Sync(t.Context(), cache.MetaObjectToName(set)); err != nil || after != queue.After(time.Second) {
				t.Errorf("again %+v, error %v", after, err)
			}
			r.deps.Consistency.Forget(cache.MetaObjectToName(set)) // these caches show nothing
			for _, request := range r.requests() {
				if request == "create jobs js-w-0" {
					n++
				}
			}
			return n
		}
		diff(t, "tries of the first sync", 1, tries())
		diff(t, "tries when the set is synced at once again", 1, tries())
		r.jobs.NameFreed(cache.NewObjectName("ns", "js-w-0"))
		diff(t, "tries when the Job of the name is gone", 2, tries())
	})
}

func TestCreationIsRetriedUntilWebhooksKnowTheSet(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		r := newRig(t, newSet())
		var refusals atomic.Int32
		r.kube.PrependReactor("create", "jobs", func(clientgotesting.Action) (bool, runtime.Object, error) {
			// Kueue answers so about a JobSet that it has not seen yet.
			unknown := apierrors.NewNotFound(jobsetv1alpha2.Resource("jobsets"), "js")
			return refusals.Add(1) <= 3, nil, unknown
		})
		r.run(t)
		eventually(t, "both Jobs exist", func() bool { return r.jobExists(t, "js-w-0") && r.jobExists(t, "js-w-1") })
	})
}

func TestNamesOfDeletedPredecessorAreReused(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		earlier := newSet()
		earlier.UID = "uid-earlier"
		r := newRig(t, newSet(), newJob("js-w-0", earlier))
		r.run(t)
		eventually(t, "the name counts as taken", func() bool { return len(r.events.all()) > 0 })
		if err := r.kube.BatchV1().Jobs("ns").Delete(t.Context(), "js-w-0", metav1.DeleteOptions{}); err != nil {
			t.Fatal(err)
		}
		eventually(t, "the set has its Job", func() bool {
			job, err := r.kube.BatchV1().Jobs("ns").Get(t.Context(), "js-w-0", metav1.GetOptions{})
			return err == nil && metav1.IsControlledBy(job, r.set(t))
		})
	})
}

func TestDeletedServiceEnqueuesItsUsers(t *testing.T) {
	claimOf := func(name string) *corev1.PersistentVolumeClaim {
		c := claim("data-js")
		c.Labels = map[string]string{jobsetv1alpha2.JobSetNameKey: name}
		return c
	}
	for name, tc := range map[string]struct {
		handler func(*rig) func(metav1.Object)
		gone    metav1.Object
		want    int
	}{
		"a Job of an earlier set of the name":        {func(r *rig) func(metav1.Object) { return r.enqueueNamed }, newJob("js-w-0", nil), 1},
		"a claim without owner":                      {func(r *rig) func(metav1.Object) { return r.enqueueNamed }, claimOf("js"), 1},
		"a claim of nobody":                          {func(r *rig) func(metav1.Object) { return r.enqueueNamed }, claim("data"), 0},
		"a Service that the set found in place":      {func(r *rig) func(metav1.Object) { return r.enqueueUsers }, service(), 1},
		"a Service that the set does not use":        {func(r *rig) func(metav1.Object) { return r.enqueueUsers }, &corev1.Service{ObjectMeta: metav1.ObjectMeta{Name: "x", Namespace: "ns"}}, 0},
		"a Service of the name in another namespace": {func(r *rig) func(metav1.Object) { return r.enqueueUsers }, &corev1.Service{ObjectMeta: metav1.ObjectMeta{Name: "js", Namespace: "x"}}, 0},
	} {
		t.Run(name, func(t *testing.T) {
			r := newRig(t, newSet())
			if err := r.caches.jobSets.GetIndexer().Add(newSet()); err != nil {
				t.Fatal(err)
			}
			handle := onAny(func(metav1.Object) {}, tc.handler(r))
			handle.OnAdd(tc.gone, false)
			handle.OnUpdate(tc.gone, tc.gone)
			diff(t, "sets to look at before", 0, r.queue.Len())
			handle.OnDelete(tc.gone)
			diff(t, "sets to look at", tc.want, r.queue.Len())
		})
	}
}

func TestUncachedClaimsAreReadOnce(t *testing.T) {
	known := claim("data-js")
	known.Labels = map[string]string{jobsetv1alpha2.JobSetNameKey: "js"}
	for name, tc := range map[string]struct {
		claim *corev1.PersistentVolumeClaim
		want  int
	}{
		"a claim without our label is asked for once":          {claim("data-js"), 1},
		"a claim that the cache shows late is asked for again": {known, 2},
	} {
		t.Run(name, func(t *testing.T) {
			set := newSet()
			set.Spec.VolumeClaimPolicies = []jobsetv1alpha2.VolumeClaimPolicy{{Templates: []corev1.PersistentVolumeClaim{*claim("data")}}}
			r := newRig(t, set, tc.claim)
			if err := r.caches.jobSets.GetIndexer().Add(set); err != nil {
				t.Fatal(err)
			}
			for range 2 {
				if _, err := r.Sync(t.Context(), cache.MetaObjectToName(set)); err != nil {
					t.Fatal(err)
				}
				r.deps.Consistency.Forget(cache.MetaObjectToName(set)) // these caches show nothing
			}
			asked := 0
			for _, request := range r.requests() {
				if request == "create persistentvolumeclaims data-js" {
					asked++
				}
			}
			diff(t, "creations of the claim", tc.want, asked)
		})
	}
}

func TestControllerWaitsUntilJobSetsAreServed(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		r := newRig(t, newSet())
		defer r.end()
		var mu sync.Mutex
		asked, served := 0, false
		r.jobSets.PrependReactor("*", "*", func(clientgotesting.Action) (bool, runtime.Object, error) {
			mu.Lock()
			defer mu.Unlock()
			asked++
			if !served {
				return true, nil, apierrors.NewServiceUnavailable("no endpoints")
			}
			return false, nil, nil
		})
		ctx, cancel := context.WithCancel(t.Context())
		defer cancel()
		r.watches.Start(ctx)
		eventually(t, "it asks again", func() bool {
			mu.Lock()
			defer mu.Unlock()
			return asked > 1
		})
		diff(t, "unfilled", true, len(r.Informers.Unfilled()) > 0)
		eventually(t, "all other caches are filled", func() bool { return len(r.Informers.Unfilled()) == 1 })
		diff(t, "caches that are not filled", []string{"jobsets (no endpoints)"}, r.Informers.Unfilled())
		mu.Lock()
		served = true
		mu.Unlock()
		eventually(t, "the caches are filled", func() bool { return len(r.Informers.Unfilled()) == 0 })
	})
}

func TestSyncRetriesConflicts(t *testing.T) {
	set := newSet()
	r := newRig(t, set)
	if err := r.caches.jobSets.GetIndexer().Add(set); err != nil {
		t.Fatal(err)
	}
	r.jobSets.PrependReactor("update", "jobsets", func(clientgotesting.Action) (bool, runtime.Object, error) {
		return true, nil, apierrors.NewConflict(schema.GroupResource{Resource: "jobsets"}, "js", errRefused)
	})
	if _, err := r.Sync(t.Context(), cache.MetaObjectToName(set)); !apierrors.IsConflict(err) {
		t.Errorf("error %v is no conflict", err)
	}
}
