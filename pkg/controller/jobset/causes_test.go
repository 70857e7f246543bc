// Copyright The jobset-apiserver Authors.
// SPDX-License-Identifier: Apache-2.0

package jobset

import (
	"net/http"
	"strings"
	"testing"
	"testing/synctest"
	"time"

	batchv1 "k8s.io/api/batch/v1"
	corev1 "k8s.io/api/core/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/runtime"
	"k8s.io/client-go/kubernetes"
	"k8s.io/client-go/rest"
	clientgotesting "k8s.io/client-go/testing"
	"k8s.io/client-go/tools/cache"
	"k8s.io/utils/ptr"

	jobsetv1alpha2 "github.com/jobset-apiserver/jobset-apiserver/pkg/apis/jobset/v1alpha2"
	"github.com/jobset-apiserver/jobset-apiserver/pkg/controller/host/informers"
	"github.com/jobset-apiserver/jobset-apiserver/pkg/controller/jobset/plan"
	"github.com/jobset-apiserver/jobset-apiserver/test/simulation/memory"
)

// failedPod returns a pod of the Job with the UID, whose container has exited.
func failedPod(name string, uid string, code int32) *corev1.Pod {
	return &corev1.Pod{
		ObjectMeta: metav1.ObjectMeta{Name: name, Namespace: "ns", Labels: map[string]string{batchv1.ControllerUidLabel: uid}},
		Spec:       corev1.PodSpec{NodeName: "n1"},
		Status: corev1.PodStatus{Phase: corev1.PodFailed, ContainerStatuses: []corev1.ContainerStatus{{
			Name: "main", State: corev1.ContainerState{Terminated: &corev1.ContainerStateTerminated{ExitCode: code, Reason: "OOMKilled"}},
		}}},
	}
}

func setInAttempt() *jobsetv1alpha2.JobSet {
	js := newSet()
	js.Status.Attempts = []jobsetv1alpha2.Attempt{{Number: 1, Trigger: jobsetv1alpha2.TriggerStart}}
	return js
}

func TestFirstCauseIsReadFromPods(t *testing.T) {
	failure := batchv1.JobCondition{Reason: "BackoffLimitExceeded", Message: "too often"}
	ofPod := "js-w-0 js-w-0-0-abcde n1 OOMKilled"
	const ofJob = "js-w-0   BackoffLimitExceeded"
	podGone := func(r *rig) { r.refuse("list", "pods", "", errRefused) }
	notOnce := func(r *rig) { // failed pods are there, but none is found by its phase
		r.kube.PrependReactor("list", "pods", func(action clientgotesting.Action) (bool, runtime.Object, error) {
			byPhase := !action.(clientgotesting.ListAction).GetListRestrictions().Fields.Empty()
			return byPhase, &corev1.PodList{}, nil
		})
	}
	for name, tc := range map[string]struct {
		decided, inContainers bool
		prepare               func(*rig)
		want                  string
		wantLists             []string
	}{
		"of failed pods":                                {decided: true, want: ofPod, wantLists: []string{"status.phase=Failed"}},
		"of all pods if containers restart":             {decided: true, inContainers: true, want: ofPod, wantLists: []string{""}},
		"of all pods if none has failed":                {decided: true, prepare: notOnce, want: ofPod, wantLists: []string{"status.phase=Failed", ""}},
		"of the Job if pods cannot be read":             {decided: true, prepare: podGone, want: ofJob, wantLists: []string{"status.phase=Failed"}},
		"later if pods cannot be read and nothing ends": {inContainers: true, prepare: podGone, wantLists: []string{""}},
	} {
		t.Run(name, func(t *testing.T) {
			set := setInAttempt()
			r := newRig(t, set, failedPod("js-w-0-0-abcde", "uid-0", 137), failedPod("js-w-1-0-abcde", "uid-1", 1))
			if tc.prepare != nil {
				tc.prepare(r)
			}
			var got string
			job := plan.FailedJob{JobRef: plan.JobRef{Name: "js-w-0", UID: "uid-0"}, Decided: tc.decided, InContainers: tc.inContainers, Failure: failure}
			if cause := r.firstCause(t.Context(), "ns", job); cause != nil {
				got = cause.Job + " " + cause.Pod + " " + cause.Node + " " + cause.Reason
			}
			diff(t, "cause", tc.want, got)
			diff(t, "lists", tc.wantLists, r.podLists())
		})
	}
}

// podLists returns the field selectors of the requests for pods of the Job.
func (r *rig) podLists() (selectors []string) {
	for _, action := range r.kube.Actions() {
		if list, ok := action.(clientgotesting.ListAction); ok && list.GetResource().Resource == "pods" &&
			list.GetListRestrictions().Labels.String() == "batch.kubernetes.io/controller-uid=uid-0" {
			selectors = append(selectors, list.GetListRestrictions().Fields.String())
		}
	}
	return selectors
}

// TestFirstCauseOutlivesRefusedStatusWrites observes a failure whose pod is gone before the cause is stored.
func TestFirstCauseOutlivesRefusedStatusWrites(t *testing.T) {
	set := setInAttempt()
	job := newJob("js-w-0", set)
	job.UID, job.Labels[jobsetv1alpha2.RestartsKey] = "uid-0", "0"
	job.Labels[jobsetv1alpha2.ReplicatedJobNameKey], job.Labels[jobsetv1alpha2.JobIndexKey] = "w", "0"
	job.Status.Conditions = []batchv1.JobCondition{{Type: batchv1.JobFailed, Status: corev1.ConditionTrue}}
	r := newRig(t, set, failedPod("js-w-0-0-abcde", "uid-0", 137))
	for informer, object := range map[*informers.Informer]any{r.caches.jobSets: set, r.caches.jobs: job} {
		if err := informer.GetIndexer().Add(object); err != nil {
			t.Fatal(err)
		}
	}
	refused := true
	r.jobSets.PrependReactor("update", "jobsets", func(clientgotesting.Action) (bool, runtime.Object, error) {
		defer func() { refused = false }()
		return refused, nil, errRefused
	})
	if _, err := r.Sync(t.Context(), cache.MetaObjectToName(set)); err == nil {
		t.Fatal("the write was not refused")
	}
	if err := r.kube.CoreV1().Pods("ns").Delete(t.Context(), "js-w-0-0-abcde", metav1.DeleteOptions{}); err != nil {
		t.Fatal(err)
	}
	if _, err := r.Sync(t.Context(), cache.MetaObjectToName(set)); err != nil {
		t.Fatal(err)
	}
	diff(t, "node", "n1", r.set(t).Status.Attempts[0].FirstCause.Node)
	diff(t, "events", 1, strings.Count(strings.Join(r.events.all(), "\n"), "Warning FirstFailure "))
}

// TestFailedJobIsSyncedImmediately has a set that has just been synced, whose Jobs are looked at soon and not at once.
func TestFailedJobIsSyncedImmediately(t *testing.T) {
	set := setInAttempt()
	active := newJob("js-w-0", set)
	active.Labels[jobsetv1alpha2.RestartsKey] = "0"
	failureTarget, ready, old := active.DeepCopy(), active.DeepCopy(), active.DeepCopy()
	failureTarget.Status.Conditions = []batchv1.JobCondition{{Type: batchv1.JobFailureTarget, Status: corev1.ConditionTrue}}
	ready.Status.Ready = ptr.To[int32](1)
	old.Status.Conditions = failureTarget.Status.Conditions
	old.Labels[jobsetv1alpha2.RestartsKey] = "-1"
	known := setInAttempt()
	known.Status.Attempts[0].FirstCause = &jobsetv1alpha2.FailureCause{}
	for name, tc := range map[string]struct {
		set           *jobsetv1alpha2.JobSet
		before, after *batchv1.Job
		want          bool
	}{
		"a Job that is bound to fail":                 {set, active, failureTarget, true},
		"a Job that became ready":                     {set, active, ready, false},
		"a Job that fails still":                      {set, failureTarget, failureTarget, false},
		"a Job of an earlier attempt":                 {set, active, old, false},
		"a Job that fails after another one did":      {known, active, failureTarget, false},
		"a Job that fails in a set without a history": {newSet(), active, failureTarget, false},
	} {
		t.Run(name, func(t *testing.T) {
			synctest.Test(t, func(t *testing.T) {
				r := newRig(t, tc.set)
				defer r.end()
				if err := r.caches.jobSets.GetIndexer().Add(tc.set); err != nil {
					t.Fatal(err)
				}
				got := fails(tc.after) && !fails(tc.before) && r.causeWanted(cache.MetaObjectToName(tc.set), tc.after)
				diff(t, "at once", tc.want, got)
				r.onJobs().UpdateFunc(tc.before, tc.after)
				eventually(t, "the set is to be looked at", func() bool { return r.queue.Len() == 1 })
			})
		})
	}
}

func TestUnavailableAPIDoesNotDelayRestart(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		silent := memory.RoundTripper(func(request *http.Request) (*http.Response, error) {
			<-request.Context().Done()
			return nil, request.Context().Err()
		})
		client, err := kubernetes.NewForConfig(&rest.Config{Host: "http://silent", Transport: silent})
		if err != nil {
			t.Fatal(err)
		}
		set := setInAttempt()
		r := newRig(t, set)
		defer r.end()
		r.causes.Kube = client
		begun := time.Now()
		cause := r.firstCause(t.Context(), "ns", plan.FailedJob{JobRef: plan.JobRef{Name: "js-w-0"}, Decided: true})
		diff(t, "cause", &jobsetv1alpha2.FailureCause{Job: "js-w-0"}, cause)
		diff(t, "how long the restart waits for it", 2*time.Second, time.Since(begun))
	})
}
