// Copyright The jobset-apiserver Authors.
// SPDX-License-Identifier: Apache-2.0

package logs

import (
	"errors"
	"fmt"
	"strconv"
	"time"

	batchv1 "k8s.io/api/batch/v1"
	corev1 "k8s.io/api/core/v1"
	apierrors "k8s.io/apimachinery/pkg/api/errors"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/types"
	"k8s.io/utils/ptr"

	jobsetv1alpha2 "github.com/jobset-apiserver/jobset-apiserver/pkg/apis/jobset/v1alpha2"
	"github.com/jobset-apiserver/jobset-apiserver/pkg/kubectl/snapshot"
)

// noon is when the set of the tests is created.
var noon = time.Date(2026, 3, 9, 12, 0, 0, 0, time.UTC)

func after(seconds int) metav1.Time {
	return metav1.NewTime(noon.Add(time.Duration(seconds) * time.Second))
}

func at(seconds int) *metav1.MicroTime {
	return ptr.To(metav1.NewMicroTime(noon.Add(time.Duration(seconds) * time.Second)))
}

// train has one leader and two Jobs of workers.
func train(change ...func(*jobsetv1alpha2.JobSet)) *jobsetv1alpha2.JobSet {
	js := &jobsetv1alpha2.JobSet{ObjectMeta: metav1.ObjectMeta{Name: "train", Namespace: "team-a", UID: "set", CreationTimestamp: after(0)}}
	js.Spec.ReplicatedJobs = []jobsetv1alpha2.ReplicatedJob{{Name: "leader", Replicas: ptr.To[int32](1)}, {Name: "workers", Replicas: ptr.To[int32](2)}}
	js.Status.ReplicatedJobsStatus = []jobsetv1alpha2.ReplicatedJobStatus{{Name: "leader", Ready: 1}, {Name: "workers", Ready: 2}}
	for _, c := range change {
		c(js)
	}
	return js
}

// newPod is one that runs. Its name ends with the suffix.
func newPod(replicatedJob string, job, index int, suffix string, change ...func(*corev1.Pod)) *corev1.Pod {
	name := fmt.Sprintf("train-%s-%d-%d-%s", replicatedJob, job, index, suffix)
	pod := &corev1.Pod{
		ObjectMeta: metav1.ObjectMeta{
			Name: name, Namespace: "team-a", UID: types.UID(name), CreationTimestamp: after(0),
			Labels: map[string]string{
				jobsetv1alpha2.JobSetNameKey: "train", jobsetv1alpha2.JobSetUIDKey: "set", jobsetv1alpha2.ReplicatedJobNameKey: replicatedJob,
				jobsetv1alpha2.JobIndexKey: strconv.Itoa(job), jobsetv1alpha2.RestartsKey: "0",
			},
			Annotations: map[string]string{batchv1.JobCompletionIndexAnnotation: strconv.Itoa(index)},
		},
		Spec:   corev1.PodSpec{NodeName: "node-001", Containers: []corev1.Container{{Name: "main"}}},
		Status: corev1.PodStatus{Phase: corev1.PodRunning, ContainerStatuses: []corev1.ContainerStatus{running("main", 0)}},
	}
	for _, c := range change {
		c(pod)
	}
	return pod
}

func running(name string, restarts int32) corev1.ContainerStatus {
	return corev1.ContainerStatus{Name: name, RestartCount: restarts, State: corev1.ContainerState{Running: &corev1.ContainerStateRunning{}}}
}

func exited(name string, code int32, seconds int) corev1.ContainerStatus {
	return corev1.ContainerStatus{Name: name, State: corev1.ContainerState{Terminated: &corev1.ContainerStateTerminated{ExitCode: code, FinishedAt: after(seconds)}}}
}

func waiting(name string) corev1.ContainerStatus {
	return corev1.ContainerStatus{Name: name, State: corev1.ContainerState{Waiting: &corev1.ContainerStateWaiting{Reason: "ContainerCreating"}}}
}

// with gives the pod these states of containers, and containers of these names.
func with(phase corev1.PodPhase, statuses ...corev1.ContainerStatus) func(*corev1.Pod) {
	return func(pod *corev1.Pod) {
		pod.Status.Phase, pod.Status.ContainerStatuses, pod.Spec.Containers = phase, statuses, nil
		for _, s := range statuses {
			pod.Spec.Containers = append(pod.Spec.Containers, corev1.Container{Name: s.Name})
		}
	}
}

func ofRestart(n int, seconds int) func(*corev1.Pod) {
	return func(pod *corev1.Pod) {
		pod.Labels[jobsetv1alpha2.RestartsKey], pod.CreationTimestamp = strconv.Itoa(n), after(seconds)
	}
}

func setOf(js *jobsetv1alpha2.JobSet, pods ...*corev1.Pod) *snapshot.Set {
	return &snapshot.Set{JobSet: js, Pods: pods, Now: after(1000).Time}
}

// shown are streams in short: what lines begin with, and where they come from.
func shown(streams []stream) []string {
	var out []string
	for _, s := range streams {
		out = append(out, fmt.Sprintf("[%s] %s/%s", s.rank, s.pod.Name, s.container))
	}
	return out
}

var forbidden = apierrors.NewForbidden(corev1.Resource("pods"), "", errors.New("not allowed"))
