// Copyright The jobset-apiserver Authors.
// SPDX-License-Identifier: Apache-2.0

package migrate

import (
	"context"
	"errors"
	"fmt"
	"io"
	"strings"
	"testing"
	"time"

	"github.com/google/go-cmp/cmp"
	batchv1 "k8s.io/api/batch/v1"
	corev1 "k8s.io/api/core/v1"
	apierrors "k8s.io/apimachinery/pkg/api/errors"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/runtime"
	"k8s.io/apimachinery/pkg/types"
	clienttesting "k8s.io/client-go/testing"
	"k8s.io/utils/ptr"
)

const following = "Following Job jobset-system/jobset-apiserver-migration, which goes on if this command is interrupted\n"

// jobPod returns a pod of the Job "new", which was created at a second.
func jobPod(name string, second int, state corev1.ContainerState, conditions ...corev1.PodCondition) *corev1.Pod {
	return &corev1.Pod{
		ObjectMeta: metav1.ObjectMeta{
			Namespace: systemNamespace, Name: name, UID: types.UID(name), Labels: map[string]string{"batch.kubernetes.io/controller-uid": "new"},
			CreationTimestamp: metav1.NewTime(start.Add(time.Duration(second) * time.Second)),
		},
		Spec: corev1.PodSpec{NodeName: "n1", Containers: []corev1.Container{{Name: "migrate", Image: "r/x:v1"}}},
		Status: corev1.PodStatus{
			Phase: corev1.PodRunning, Conditions: conditions, ContainerStatuses: []corev1.ContainerStatus{{Name: "migrate", State: state}},
		},
	}
}

func waits(reason, message string) corev1.ContainerState {
	return corev1.ContainerState{Waiting: &corev1.ContainerStateWaiting{Reason: reason, Message: message}}
}

func exited(code int32, reason string) corev1.ContainerState {
	return corev1.ContainerState{Terminated: &corev1.ContainerStateTerminated{ExitCode: code, Reason: reason}}
}

// update changes objects of the cluster, as its controllers do.
func (f *fixture) update(objects ...runtime.Object) {
	f.Helper()
	for _, o := range objects {
		var err error
		switch o := o.(type) {
		case *corev1.Pod:
			err = f.kube.Tracker().Update(corev1.SchemeGroupVersion.WithResource("pods"), o, systemNamespace)
		case *batchv1.Job:
			err = f.kube.Tracker().Update(batchv1.SchemeGroupVersion.WithResource("jobs"), o, systemNamespace)
		}
		if err != nil {
			f.Error(err)
		}
	}
}

// TestFollow follows a Job whose first connection to a log breaks, and whose first pod dies.
func TestFollow(t *testing.T) {
	f := newFixture(t)
	running := corev1.ContainerState{Running: &corev1.ContainerStateRunning{}}
	f.add(job("new", ToServer), jobPod("a", 1, running))
	if _, err := giveAccess(t.Context(), f.kube); err != nil {
		t.Fatal(err)
	}
	const first, second = "2026-11-28T06:00:00.1Z one\n", "2026-11-28T06:00:00.2Z two\n"
	contents := map[string][]string{"a": {first, first + second, second}, "b": {"2026-11-28T06:01:00Z three\n", ""}}
	opened := map[string]int{}
	r := f.remote()
	r.logs = func(_ context.Context, pod string, options *corev1.PodLogOptions) (io.ReadCloser, error) {
		at := opened[pod]
		opened[pod]++
		if (options.SinceTime != nil) != (at > 0) || !options.Follow || options.Container != "migrate" {
			t.Errorf("log %d of %s was opened with %v", at, pod, options)
		}
		switch {
		case pod == "a" && at == 1:
			f.update(jobPod("a", 1, exited(137, "OOMKilled")))
		case pod == "a" && at == 2:
			f.add(jobPod("b", 2, running))
		case pod == "b" && at == 0:
			f.update(jobPod("b", 2, exited(0, "Completed")), job("new", ToServer, condition(batchv1.JobComplete, "", "")))
		}
		return io.NopCloser(strings.NewReader(contents[pod][at])), nil
	}
	expectError(t, r.run(t.Context()), "")
	want := "Job jobset-system/jobset-apiserver-migration runs already, with the flags that it was created with\n" + following +
		"Log of pod a on node n1:\none\ntwo\nLog of pod b on node n1:\nthree\nJob jobset-system/jobset-apiserver-migration has succeeded\n"
	if diff := cmp.Diff(want, f.out.String()); diff != "" {
		t.Errorf("printed (-want +got):\n%s", diff)
	}
	if f.access() != "" {
		t.Errorf("%s is left", f.access())
	}
}

// TestFollowEnds checks with which errors following ends, and whether the permissions are deleted then.
func TestFollowEnds(t *testing.T) {
	for name, tc := range map[string]struct {
		change   func(f *fixture)
		want     string
		wantLeft string
	}{
		"the Job fails": {
			func(f *fixture) {
				f.update(job("new", ToServer, condition(batchv1.JobFailed, "BackoffLimitExceeded", "Job has reached the specified backoff limit")))
			},
			"Job jobset-system/jobset-apiserver-migration failed: BackoffLimitExceeded: Job has reached the specified backoff limit; " +
				"run the command again when the cause is repaired: it goes on with the migration", "",
		},
		"the Job is deleted": {
			func(f *fixture) {
				if err := f.kube.Tracker().Delete(batchv1.SchemeGroupVersion.WithResource("jobs"), systemNamespace, jobName); err != nil {
					f.Error(err)
				}
			},
			"Job jobset-system/jobset-apiserver-migration was deleted: run kubectl jobset migrate status to see how far the migration is", "",
		},
		"another user replaces the Job": {
			func(f *fixture) { f.update(job("newer", ToCRD)) },
			"Job jobset-system/jobset-apiserver-migration was deleted: run kubectl jobset migrate status to see how far the migration is", "account and binding",
		},
		"the user may not read pods": {
			func(f *fixture) {
				f.kube.PrependReactor("list", "pods", func(action clienttesting.Action) (bool, runtime.Object, error) {
					return true, nil, apierrors.NewForbidden(action.GetResource().GroupResource(), "", errors.New("no"))
				})
			},
			"following Job jobset-system/jobset-apiserver-migration, which goes on: pods is forbidden: no", "account and binding",
		},
	} {
		t.Run(name, func(t *testing.T) {
			f := newFixture(t)
			f.add(job("new", ToServer))
			if _, err := giveAccess(t.Context(), f.kube); err != nil {
				t.Fatal(err)
			}
			// The Job changes after it was found.
			looks := 0
			f.kube.PrependReactor("get", "jobs", func(clienttesting.Action) (bool, runtime.Object, error) {
				if looks++; looks == 2 {
					tc.change(f)
				}
				return false, nil, nil
			})
			expectError(t, f.remote().run(t.Context()), tc.want)
			if f.access() != tc.wantLeft {
				t.Errorf("%q is left, want %q", f.access(), tc.wantLeft)
			}
		})
	}
}

// TestFollowInterrupted checks that a connection that breaks is waited for, and what an interruption says.
func TestFollowInterrupted(t *testing.T) {
	f := newFixture(t)
	f.add(job("new", ToServer))
	ctx, interrupt := context.WithCancel(t.Context())
	looks := 0
	f.kube.PrependReactor("list", "pods", func(clienttesting.Action) (bool, runtime.Object, error) {
		if looks++; looks == 3 {
			interrupt()
		}
		return true, nil, errors.New("no route to host")
	})
	expectError(t, f.remote().run(ctx), "failed")
	want := "Job jobset-system/jobset-apiserver-migration runs already, with the flags that it was created with\n" + following +
		"The Job cannot be read now: no route to host\n" +
		"Interrupted. Job jobset-system/jobset-apiserver-migration goes on: run kubectl jobset migrate to-server --in-cluster again to follow it, or kubectl jobset migrate status\n"
	if diff := cmp.Diff(want, f.out.String()); diff != "" {
		t.Errorf("printed (-want +got):\n%s", diff)
	}
}

func TestWaiting(t *testing.T) {
	suspended, hopeless := job("new", ToServer), job("new", ToServer)
	suspended.Spec.Suspend, hopeless.Spec.BackoffLimit = ptr.To(true), ptr.To[int32](0)
	evicted := jobPod("a", 1, corev1.ContainerState{})
	evicted.Status.Phase, evicted.Status.Reason, evicted.Status.Message = corev1.PodFailed, "Evicted", "low on memory"
	for name, tc := range map[string]struct {
		job    *batchv1.Job
		pods   []*corev1.Pod
		events []string
		want   string
	}{
		"no pod yet":   {want: "Waiting until the Job has a pod"},
		"pods refused": {events: []string{"other quota", "exceeded quota"}, want: "Waiting: the Job has no pod: FailedCreate: exceeded quota"},
		"suspended":    {job: suspended, want: "Waiting: the Job is suspended; exclude the namespace from what suspends Jobs, such as Kueue with manageJobsWithoutQueueName"},
		"not scheduled": {pods: []*corev1.Pod{jobPod("a", 1, corev1.ContainerState{}, corev1.PodCondition{
			Type: corev1.PodScheduled, Status: corev1.ConditionFalse, Reason: "Unschedulable", Message: "0/3 nodes are available",
		})}, want: "Waiting: pod a is not scheduled: Unschedulable: 0/3 nodes are available"},
		"creating": {pods: []*corev1.Pod{jobPod("a", 1, waits("ContainerCreating", ""))}, want: "Waiting for pod a: ContainerCreating"},
		"new":      {pods: []*corev1.Pod{jobPod("a", 1, corev1.ContainerState{})}, want: "Waiting for pod a"},
		"no image": {pods: []*corev1.Pod{jobPod("a", 1, waits("ErrImagePull", "not found"))}, want: "Waiting for pod a: ErrImagePull: not found; " +
			"if image r/x:v1 is not the right one, run kubectl -n jobset-system delete job jobset-apiserver-migration, and this command again with --image"},
		"crashed": {pods: []*corev1.Pod{jobPod("a", 1, exited(1, "Error"))},
			want: "Pod a has ended with exit code 1 (Error). Another one replaces it and goes on, unless 7 have failed"},
		"evicted":   {pods: []*corev1.Pod{evicted}, want: "Pod a has ended with Evicted: low on memory. Another one replaces it and goes on, unless 7 have failed"},
		"succeeded": {pods: []*corev1.Pod{jobPod("a", 1, exited(0, "Completed"))}},
		"failed":    {job: hopeless, pods: []*corev1.Pod{jobPod("a", 1, exited(1, "Error"))}},
	} {
		t.Run(name, func(t *testing.T) {
			f := newFixture(t)
			for i, message := range tc.events {
				f.add(&corev1.Event{
					ObjectMeta: metav1.ObjectMeta{Namespace: systemNamespace, Name: fmt.Sprint(i)}, Reason: "FailedCreate", Message: message,
					LastTimestamp: metav1.NewTime(start.Add(time.Duration(i) * time.Second)),
				})
			}
			of := tc.job
			if of == nil {
				of = job("new", ToServer)
			}
			var pods []corev1.Pod
			for _, pod := range tc.pods {
				pods = append(pods, *pod)
			}
			got := (&follower{remote: f.remote(), job: of}).waiting(t.Context(), of, pods)
			if diff := cmp.Diff(tc.want, got); diff != "" {
				t.Errorf("(-want +got):\n%s", diff)
			}
		})
	}
}
