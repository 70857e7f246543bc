// Copyright The jobset-apiserver Authors.
// SPDX-License-Identifier: Apache-2.0

package failures

import (
	"slices"
	"testing"

	batchv1 "k8s.io/api/batch/v1"
	corev1 "k8s.io/api/core/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/runtime"
	"k8s.io/apimachinery/pkg/types"
	"k8s.io/client-go/kubernetes/fake"
	clientgotesting "k8s.io/client-go/testing"
	"k8s.io/utils/clock"
	"k8s.io/utils/ptr"

	"github.com/jobset-apiserver/jobset-apiserver/pkg/controller/host/logging"
)

func newReader(cached ...*Pod) (*Reader, *fake.Clientset) {
	kube := fake.NewClientset()
	anyPod := func(match func(*Pod) bool) bool { return slices.ContainsFunc(cached, match) }
	return NewReader(kube, NewStore(), anyPod, logging.NewRepeats(clock.RealClock{})), kube
}

func podOf(job types.UID) *corev1.Pod {
	return &corev1.Pod{
		ObjectMeta: metav1.ObjectMeta{
			Name: "p", Namespace: "ns", ResourceVersion: "5", Labels: map[string]string{batchv1.ControllerUidLabel: string(job)},
			OwnerReferences: []metav1.OwnerReference{{APIVersion: "batch/v1", Kind: "Job", Name: "job", UID: job, Controller: ptr.To(true)}},
		},
		Status: corev1.PodStatus{Phase: corev1.PodRunning},
	}
}

func failed(job types.UID, code int32) *corev1.Pod {
	pod := podOf(job)
	pod.Status = corev1.PodStatus{Phase: corev1.PodFailed, ContainerStatuses: []corev1.ContainerStatus{{
		Name: "main", State: corev1.ContainerState{Terminated: &corev1.ContainerStateTerminated{ExitCode: code, Reason: "Error"}},
	}}}
	return pod
}

func kept(pod *corev1.Pod) *Pod { return ptr.To(NewPod(pod)) }

func TestPodsArePaged(t *testing.T) {
	r, kube := newReader()
	var got []string
	kube.PrependReactor("list", "pods", func(action clientgotesting.Action) (bool, runtime.Object, error) {
		options := action.(clientgotesting.ListActionImpl).ListOptions
		got = append(got, options.Continue)
		if options.Limit != podsPerPage {
			t.Errorf("limit %d", options.Limit)
		}
		next := map[string]string{"": "a", "a": "b"}[options.Continue]
		return true, &corev1.PodList{ListMeta: metav1.ListMeta{Continue: next}, Items: []corev1.Pod{*failed("uid-0", 1)}}, nil
	})
	pods, err := r.podsOfJob(t.Context(), "ns", Job{UID: "uid-0", InContainers: true})
	if err != nil || len(pods) != 3 || !slices.Equal(got, []string{"", "a", "b"}) {
		t.Errorf("%d pods, error %v, pages %q", len(pods), err, got)
	}
}

// TestLaggingWatchIsAwaited has a pod that was gone when the pods of its Job were read, while the watch does not show that yet.
func TestLaggingWatchIsAwaited(t *testing.T) {
	r, _ := newReader(kept(podOf("uid-0")))
	go r.Failures.Note(kept(failed("uid-0", 137)))
	if got := r.awaitWatch(t.Context(), Job{UID: "uid-0"}, nil); got == nil || *got.Cause.ExitCode != 137 {
		t.Errorf("failure %v", got)
	}
	// Nothing is awaited of pods that were read, and of those of other Jobs.
	if got := r.awaitWatch(t.Context(), Job{UID: "uid-1"}, nil); got != nil {
		t.Errorf("failure of another Job: %v", got)
	}
	r.Failures.Forget("uid-0")
	if got := r.awaitWatch(t.Context(), Job{UID: "uid-0"}, []corev1.Pod{*podOf("uid-0")}); got != nil {
		t.Errorf("failure of a pod that runs: %v", got)
	}
}
