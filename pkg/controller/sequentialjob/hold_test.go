// Copyright The jobset-apiserver Authors.
// SPDX-License-Identifier: Apache-2.0

package sequentialjob

import (
	"context"
	"errors"
	"slices"
	"strings"
	"testing"
	"testing/synctest"
	"time"

	corev1 "k8s.io/api/core/v1"
	apierrors "k8s.io/apimachinery/pkg/api/errors"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"
	"k8s.io/apimachinery/pkg/runtime"
	"k8s.io/apimachinery/pkg/runtime/schema"
	dynamicfake "k8s.io/client-go/dynamic/fake"
	clienttesting "k8s.io/client-go/testing"
	"k8s.io/utils/ptr"

	batchv1alpha1 "github.com/jobset-apiserver/jobset-apiserver/pkg/apis/batch/v1alpha1"
	"github.com/jobset-apiserver/jobset-apiserver/pkg/controller/kueue"
	kueueplan "github.com/jobset-apiserver/jobset-apiserver/pkg/controller/kueue/plan"
	"github.com/jobset-apiserver/jobset-apiserver/pkg/controller/sequentialjob/plan"
	"github.com/jobset-apiserver/jobset-apiserver/pkg/unreadable"
)

// queued is a sequence that holds quota.
func queued(sj *batchv1alpha1.SequentialJob) {
	sj.Labels = map[string]string{kueueplan.QueueKey: "q"}
}

// admitted returns the Workload of a sequence, with quota of one flavor.
func admitted(t *testing.T, sj *batchv1alpha1.SequentialJob) *unstructured.Unstructured {
	t.Helper()
	w := kueueplan.NewWorkload(sj, 0)
	w.UID, w.ResourceVersion = "uid-w", "7"
	for _, c := range []string{kueueplan.ConditionQuotaReserved, kueueplan.ConditionAdmitted} {
		w.Status.Conditions = append(w.Status.Conditions, metav1.Condition{Type: c, Status: metav1.ConditionTrue, Reason: c})
	}
	w.Status.Admission = &kueueplan.Admission{ClusterQueue: "cq", PodSetAssignments: []kueueplan.PodSetAssignment{{Name: "main", Flavors: map[corev1.ResourceName]string{"cpu": "spot"}}}}
	object, err := runtime.DefaultUnstructuredConverter.ToUnstructured(w)
	if err != nil {
		t.Fatal(err)
	}
	return &unstructured.Unstructured{Object: object}
}

// newQueueRig returns a controller to which Kueue is served, and a Workload for the sequence.
func newQueueRig(t *testing.T, sj *batchv1alpha1.SequentialJob, children ...runtime.Object) (*rig, *dynamicfake.FakeDynamicClient) {
	t.Helper()
	r := newRig(t, sj, children...)
	r.HoldQuota, r.queues.hold = true, true
	r.kube.Resources = []*metav1.APIResourceList{{GroupVersion: kueue.GroupVersion.String(), APIResources: []metav1.APIResource{{Name: "workloads"}}}}
	client := dynamicfake.NewSimpleDynamicClientWithCustomListKinds(runtime.NewScheme(), map[schema.GroupVersionResource]string{
		kueue.GroupVersion.WithResource("workloads"): "WorkloadList", kueue.GroupVersion.WithResource("resourceflavors"): "ResourceFlavorList",
	}, admitted(t, sj))
	r.queues.Config.Dynamic = client
	client.PrependReactor("patch", "workloads", func(action clienttesting.Action) (bool, runtime.Object, error) {
		_, _, _ = r.record(action)
		return true, admitted(t, sj), nil // the tracker cannot apply patches to objects without a type
	})
	return r, client
}

// A sequence may have gone while no controller ran. Its Workload is seen before all are known, and nothing else happens to it.
func TestQuotaOfWhatWentBeforeTheControllerBegan(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		sj := newSequence(queued)
		r, _ := newQueueRig(t, sj)
		if err := r.client.Tracker().Delete(batchv1alpha1.SchemeGroupVersion.WithResource(resourceSequentialJobs), "ns", "etl"); err != nil {
			t.Fatal(err)
		}
		r.run(t)
		eventually(t, "the Workload is marked as finished", func() bool {
			return slices.ContainsFunc(r.written(), func(w string) bool { return strings.HasPrefix(w, "patch workloads/status") })
		})
	})
}

// newHoldRig returns a controller that knows the Workload of a sequence, and has the sequence in its cache.
func newHoldRig(t *testing.T, sj *batchv1alpha1.SequentialJob, children ...runtime.Object) (*rig, *dynamicfake.FakeDynamicClient) {
	t.Helper()
	r, client := newQueueRig(t, sj, children...)
	t.Cleanup(func() { // the queue ends, and its goroutines with it
		ended, end := context.WithCancel(context.Background())
		end()
		r.queue.Run(ended, 0, nil)
	})
	go r.queues.Run(t.Context())
	eventually(t, "the Workload is known", func() bool {
		found, _ := r.queues.Holding(key)
		return len(found) == 1
	})
	r.cached(t)
	return r, client
}

// TestQuotaOfWhatIsNotGone makes sure that only a sequence that is really gone gives its quota back: one that the cache
// does not show may run.
func TestQuotaOfWhatIsNotGone(t *testing.T) {
	for name, tc := range map[string]struct {
		// happens is what happens to the sequence after its Workload was made.
		happens func(t *testing.T, r *rig, sj *batchv1alpha1.SequentialJob)
		ends    bool
	}{
		"a sequence that cannot be read": {happens: func(t *testing.T, r *rig, sj *batchv1alpha1.SequentialJob) {
			sj.Annotations = map[string]string{unreadable.Annotation: "damaged"}
			if err := r.caches.sequentialJobs.GetIndexer().Replace([]any{sj}, "2"); err != nil {
				t.Fatal(err)
			}
		}},
		"a sequence that the cache does not show yet": {happens: func(t *testing.T, r *rig, _ *batchv1alpha1.SequentialJob) {
			if err := r.caches.sequentialJobs.GetIndexer().Replace(nil, "2"); err != nil {
				t.Fatal(err)
			}
		}},
		"a sequence of which the cache shows the one before": {happens: func(t *testing.T, r *rig, sj *batchv1alpha1.SequentialJob) {
			sj.UID = "uid-before"
			if err := r.caches.sequentialJobs.GetIndexer().Replace([]any{sj}, "2"); err != nil {
				t.Fatal(err)
			}
		}},
		"an API that does not serve sequences": {happens: func(t *testing.T, r *rig, _ *batchv1alpha1.SequentialJob) {
			refuse(r.client, "get", "sequentialjobs", apierrors.NewGenericServerResponse(404, "get", schema.GroupResource{}, "etl", "404 page not found", 0, true))
			if err := r.caches.sequentialJobs.GetIndexer().Replace(nil, "2"); err != nil {
				t.Fatal(err)
			}
		}},
		"a sequence that is gone": {ends: true, happens: func(t *testing.T, r *rig, _ *batchv1alpha1.SequentialJob) {
			if err := r.client.Tracker().Delete(batchv1alpha1.SchemeGroupVersion.WithResource(resourceSequentialJobs), "ns", "etl"); err != nil {
				t.Fatal(err)
			}
			if err := r.caches.sequentialJobs.GetIndexer().Replace(nil, "2"); err != nil {
				t.Fatal(err)
			}
		}},
	} {
		t.Run(name, func(t *testing.T) {
			synctest.Test(t, func(t *testing.T) {
				sj := newSequence(queued, started)
				r, _ := newHoldRig(t, sj, jobOf(sj))
				tc.happens(t, r, sj.DeepCopy())
				r.written()
				_, _ = r.Sync(t.Context(), key)
				ended := slices.ContainsFunc(r.written(), func(w string) bool {
					return strings.HasPrefix(w, "patch workloads/status") && strings.Contains(w, `"Finished"`)
				})
				if ended != tc.ends {
					t.Errorf("the Workload is marked as finished: %t, want %t", ended, tc.ends)
				}
			})
		})
	}
}

// TestStepRunsOnWhileFlavorsCannotBeRead: what the admission adds to pods matters to those that begin.
func TestStepRunsOnWhileFlavorsCannotBeRead(t *testing.T) {
	flavors := schema.GroupResource{Group: kueueplan.Group, Resource: "resourceflavors"}
	for name, refusal := range map[string]error{
		"no such flavor":   apierrors.NewNotFound(flavors, "spot"),
		"an API that goes": apierrors.NewGenericServerResponse(404, "get", flavors, "spot", "404 page not found", 0, true),
		"no permission":    apierrors.NewForbidden(flavors, "spot", nil),
		"a server in need": apierrors.NewInternalError(errRefused),
	} {
		t.Run(name, func(t *testing.T) {
			synctest.Test(t, func(t *testing.T) {
				sj := newSequence(queued, started)
				r, client := newHoldRig(t, sj, jobOf(sj))
				refuse(client, "get", "resourceflavors", refusal)
				known, err := r.queues.Queue(t.Context(), sj, plan.ChildRef{})
				if err != nil {
					t.Fatalf("nothing else of the sequence is followed: %v", err)
				}
				if known.Hold.Admission.IsKnown() || known.Hold.RetryAfter == 0 || known.Hold.Message == "" {
					t.Errorf("hold %+v", known.Hold)
				}
				r.written()
				due, err := r.Sync(t.Context(), key)
				if err != nil {
					t.Error(err)
				}
				for _, w := range r.written() {
					if strings.HasPrefix(w, "patch jobs") {
						t.Errorf("the step that runs is stopped: %s", w)
					}
				}
				if due.Deadline == 0 {
					t.Error("nobody tries again")
				}
			})
		})
	}
}

// TestDeniedHoldCostsNothing has a webhook that denies each change of a Workload that holds quota, while something happens each second.
func TestDeniedHoldCostsNothing(t *testing.T) {
	for name, gone := range map[string]bool{"of a sequence that has finished": false, "of a sequence that is gone": true} {
		t.Run(name, func(t *testing.T) {
			synctest.Test(t, func(t *testing.T) {
				sj := newSequence(queued)
				sj.Status.Conditions = []metav1.Condition{{Type: batchv1alpha1.ConditionComplete, Status: metav1.ConditionTrue, Reason: "Completed"}}
				r, client := newHoldRig(t, sj)
				if gone {
					if err := r.client.Tracker().Delete(batchv1alpha1.SchemeGroupVersion.WithResource(resourceSequentialJobs), "ns", "etl"); err != nil {
						t.Fatal(err)
					}
					if err := r.caches.sequentialJobs.GetIndexer().Replace(nil, "2"); err != nil {
						t.Fatal(err)
					}
				}
				asked, denial := 0, apierrors.NewForbidden(schema.GroupResource{Resource: "workloads"}, "w", errors.New(`admission webhook "w" denied the request: no`))
				client.PrependReactor("patch", "workloads", func(clienttesting.Action) (bool, runtime.Object, error) {
					asked++
					return true, nil, denial
				})
				for second := range 600 {
					if _, err := r.Sync(t.Context(), key); err == nil {
						t.Fatal("the denial is no error")
					}
					if time.Sleep(time.Second); second == 59 && asked > 2 {
						t.Errorf("asked %d times in the first minute, want 2 at most", asked)
					}
				}
				if asked < 5 || asked > 7 {
					t.Errorf("asked %d times in ten minutes, want 5 to 7", asked)
				}
			})
		})
	}
}

// TestWorkloadChangedByOthers has another party change the Workload of a sequence back whenever the controller has changed it.
func TestWorkloadChangedByOthers(t *testing.T) {
	suspended := func(sj *batchv1alpha1.SequentialJob) { sj.Spec.Suspend = ptr.To(true) }
	finished := func(sj *batchv1alpha1.SequentialJob) {
		sj.Status.Conditions = []metav1.Condition{{Type: batchv1alpha1.ConditionComplete, Status: metav1.ConditionTrue, Reason: "Completed"}}
	}
	for name, tc := range map[string]struct {
		change func(*batchv1alpha1.SequentialJob)
		what   string
	}{
		"its activation": {suspended, "spec.active"},
		"its conditions": {finished, "the condition Finished"},
	} {
		t.Run(name, func(t *testing.T) {
			synctest.Test(t, func(t *testing.T) {
				r, _ := newHoldRig(t, newSequence(queued, tc.change))
				patched, failure := 0, error(nil)
				for range 300 {
					r.cached(t)
					_, failure = r.Sync(t.Context(), key) // the cache keeps the Workload as it was
					time.Sleep(time.Second)
				}
				for _, w := range r.written() {
					if strings.HasPrefix(w, "patch workloads") {
						patched++
					}
				}
				diff(t, "how often the Workload is changed in five minutes", 5, patched)
				message := "another party removed or changed " + tc.what + " of Workload " + kueueplan.WorkloadName(r.sequence(t)) + " 3 times within a minute"
				if failure == nil || !strings.Contains(failure.Error(), message) {
					t.Errorf("the error does not say %q: %v", message, failure)
				}
				reported := slices.ContainsFunc(r.events.all(), func(e string) bool {
					return strings.HasPrefix(e, "Warning ReconciliationFailed Failed to reconcile: ") && strings.Contains(e, message)
				})
				diff(t, "whether an event says so", true, reported)
			})
		})
	}
}
