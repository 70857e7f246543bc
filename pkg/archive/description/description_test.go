// Copyright The jobset-apiserver Authors.
// SPDX-License-Identifier: Apache-2.0

package description_test

import (
	"fmt"
	"math"
	"strings"
	"testing"
	"time"

	"github.com/google/go-cmp/cmp"
	batchv1 "k8s.io/api/batch/v1"
	corev1 "k8s.io/api/core/v1"
	"k8s.io/apimachinery/pkg/api/resource"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/runtime/schema"
	"k8s.io/utils/ptr"

	"github.com/jobset-apiserver/jobset-apiserver/pkg/apis/archive"
	"github.com/jobset-apiserver/jobset-apiserver/pkg/archive/description"
)

func list(pairs ...string) corev1.ResourceList {
	l := corev1.ResourceList{}
	for i := 0; i < len(pairs); i += 2 {
		l[corev1.ResourceName(pairs[i])] = resource.MustParse(pairs[i+1])
	}
	return l
}

func requests(pairs ...string) corev1.Container {
	return corev1.Container{Resources: corev1.ResourceRequirements{Requests: list(pairs...)}}
}

func TestUsage(t *testing.T) {
	sidecar := requests("cpu", "500m")
	sidecar.RestartPolicy = ptr.To(corev1.ContainerRestartPolicyAlways)
	limited := requests("cpu", "1")
	limited.Resources.Limits = list("cpu", "4", "nvidia.com/gpu", "8")
	for name, tc := range map[string]struct {
		spec  corev1.PodSpec
		pods  int64
		ready time.Duration
		want  []archive.ResourceTime
	}{
		"cores, MiB and units": {
			spec: corev1.PodSpec{Containers: []corev1.Container{requests("cpu", "250m", "memory", "1Gi", "hugepages-2Mi", "4Mi", "nvidia.com/gpu", "2")}},
			pods: 4, ready: 90 * time.Second,
			want: []archive.ResourceTime{{Name: "cpu", AmountSeconds: 90}, {Name: "hugepages-2Mi", AmountSeconds: 1440},
				{Name: "memory", AmountSeconds: 368640}, {Name: "nvidia.com/gpu", AmountSeconds: 720}},
		},
		"sidecars and overhead count, and the largest init container": {
			spec: corev1.PodSpec{
				InitContainers: []corev1.Container{sidecar, requests("cpu", "3")}, Containers: []corev1.Container{requests("cpu", "1")},
				Overhead: list("cpu", "500m"),
			},
			pods: 1, ready: time.Second, want: []archive.ResourceTime{{Name: "cpu", AmountSeconds: 4}},
		},
		"limits count where nothing is requested": {
			spec: corev1.PodSpec{Containers: []corev1.Container{limited}}, pods: 1, ready: time.Second,
			want: []archive.ResourceTime{{Name: "cpu", AmountSeconds: 1}, {Name: "nvidia.com/gpu", AmountSeconds: 8}},
		},
		"sums that are too large": {
			spec: corev1.PodSpec{Containers: []corev1.Container{requests("cpu", "9P", "example.com/x", "9E")}}, pods: math.MaxInt32, ready: math.MaxInt64,
			want: []archive.ResourceTime{{Name: "cpu", AmountSeconds: math.MaxInt64}, {Name: "example.com/x", AmountSeconds: math.MaxInt64}},
		},
		"pods that were never ready": {spec: corev1.PodSpec{Containers: []corev1.Container{requests("cpu", "1")}}, pods: 1},
		"negative amounts":           {spec: corev1.PodSpec{Containers: []corev1.Container{requests("cpu", "-1")}}, pods: 1, ready: time.Second},
	} {
		t.Run(name, func(t *testing.T) {
			var u description.Usage
			u.Add(&tc.spec, tc.pods, tc.ready)
			if diff := cmp.Diff(tc.want, u.Times()); diff != "" {
				t.Errorf("times (-want +got):\n%s", diff)
			}
		})
	}
}

func TestUsageAddsUp(t *testing.T) {
	var u description.Usage
	for range 3 { // 0.4 seconds each
		u.Add(&corev1.PodSpec{Containers: []corev1.Container{requests("cpu", "1")}}, 1, 400*time.Millisecond)
	}
	if diff := cmp.Diff([]archive.ResourceTime{{Name: "cpu", AmountSeconds: 1}}, u.Times()); diff != "" {
		t.Errorf("times (-want +got):\n%s", diff)
	}
}

func TestUsageIsBounded(t *testing.T) {
	pairs := []string{"cpu", "1", "memory", "1Mi"}
	for i := range 40 {
		pairs = append(pairs, fmt.Sprintf("example.com/a%02d", i), "1")
	}
	var u description.Usage
	u.Add(&corev1.PodSpec{Containers: []corev1.Container{requests(pairs...)}}, 1, time.Second)
	times := u.Times()
	if len(times) != 32 || times[0].Name != "cpu" || times[1].Name != "memory" || times[31].Name != "example.com/a29" {
		t.Errorf("times %v", times)
	}
}

func TestRun(t *testing.T) {
	kind := description.Kind{
		Served: schema.GroupVersionKind{Group: "g", Version: "v1", Kind: "K"}, Owners: []schema.GroupKind{{Group: "o", Kind: "Owner"}},
		Annotations: []string{"kept", "long"},
	}
	owner := metav1.OwnerReference{APIVersion: "o/v1", Kind: "Owner", Name: "a", UID: "b", Controller: ptr.To(true)}
	created := metav1.NewTime(time.Date(2026, 1, 2, 3, 4, 5, 0, time.UTC))
	object := &metav1.ObjectMeta{
		Namespace: "team", Name: "train", UID: "1-2-3", CreationTimestamp: created, OwnerReferences: []metav1.OwnerReference{owner},
		Labels: map[string]string{"kueue.x-k8s.io/queue-name": "gpu", "kueue.x-k8s.io/priority-class": "high", "x": "y"},
		Annotations: map[string]string{
			"jobset-apiserver.io/created-by": "ada", "jobset-apiserver.io/namespace-uid": "4-5", "kept": "1", "other": "2", "long": strings.Repeat("x", 1025),
		},
	}
	run := kind.Run(object, 7)
	description.PriorityClass(run, "of pods")
	want := &archive.Run{
		ObjectMeta: metav1.ObjectMeta{
			Namespace: "team", Name: run.Name, UID: run.UID, Annotations: map[string]string{"kept": "1"},
			Labels: map[string]string{"kueue.x-k8s.io/queue-name": "gpu", "kueue.x-k8s.io/priority-class": "high", "x": "y"},
		},
		Object: archive.RunObject{
			APIVersion: "g/v1", Kind: "K", Name: "train", UID: "1-2-3", NamespaceUID: "4-5", Execution: 7, CreationTime: created,
			Owner: &archive.RunOwner{APIVersion: "o/v1", Kind: "Owner", Name: "a", UID: "b"},
		},
		User: "ada", Queue: "gpu", PriorityClass: "high",
	}
	if diff := cmp.Diff(want, run); diff != "" {
		t.Errorf("run (-want +got):\n%s", diff)
	}
	if !strings.HasPrefix(run.Name, "train-") || run.UID == "" || run.Name == kind.Run(object, 8).Name {
		t.Errorf("name %q, UID %q: want those of the execution", run.Name, run.UID)
	}
	owner.Kind = "Workload"
	object.OwnerReferences = []metav1.OwnerReference{owner}
	if got := kind.Run(object, 7).Object.Owner; got != nil {
		t.Errorf("the owner is %v: want none of another kind", got)
	}
}

func TestPriorityClassOfPods(t *testing.T) {
	run := &archive.Run{}
	description.PriorityClass(run, "", "low", "high")
	if run.PriorityClass != "low" {
		t.Errorf("the priority class is %q, want the first", run.PriorityClass)
	}
}

func TestPodsOfJob(t *testing.T) {
	for name, tc := range map[string]struct {
		parallelism, completions *int32
		want                     int64
	}{
		"one by default":                {want: 1},
		"as many as run at once":        {parallelism: ptr.To[int32](4), completions: ptr.To[int32](9), want: 4},
		"no more than there are to run": {parallelism: ptr.To[int32](4), completions: ptr.To[int32](3), want: 3},
	} {
		t.Run(name, func(t *testing.T) {
			if got := description.PodsOfJob(&batchv1.JobSpec{Parallelism: tc.parallelism, Completions: tc.completions}); got != tc.want {
				t.Errorf("%d pods, want %d", got, tc.want)
			}
		})
	}
}

func TestEndIsNotBeforeBegin(t *testing.T) {
	run, begin := &archive.Run{}, time.Date(2026, 1, 2, 3, 4, 5, 6789, time.UTC)
	description.Times(run, begin, begin.Add(-time.Hour))
	if want := begin.Truncate(time.Microsecond); !run.BeginTime.Time.Equal(want) || !run.EndTime.Time.Equal(want) {
		t.Errorf("from %v to %v, want %v", run.BeginTime, run.EndTime, want)
	}
}
