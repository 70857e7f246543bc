// Copyright The jobset-apiserver Authors.
// SPDX-License-Identifier: Apache-2.0

package sequentialjob

import (
	"fmt"
	"runtime"
	"strings"
	"testing"

	batchv1 "k8s.io/api/batch/v1"
	corev1 "k8s.io/api/core/v1"
	"k8s.io/apimachinery/pkg/types"
	"k8s.io/apimachinery/pkg/util/uuid"

	batchv1alpha1 "github.com/jobset-apiserver/jobset-apiserver/pkg/apis/batch/v1alpha1"
	"github.com/jobset-apiserver/jobset-apiserver/pkg/apis/batch/v1alpha1/helper"
	"github.com/jobset-apiserver/jobset-apiserver/pkg/controller/sequentialjob/plan"
)

// TestCachedObjectsAreSmall looks at memory that is in use for the Jobs of 5,000 sequences, and for a pod of each.
func TestCachedObjectsAreSmall(t *testing.T) {
	const objects = 5000
	job := func(n int) any {
		sj := newSequence(func(sj *batchv1alpha1.SequentialJob) {
			sj.Name, sj.UID = fmt.Sprintf("nightly-%05d", n), uuid.NewUUID()
			sj.Spec.Containers[0].Args = []string{strings.Repeat("x", 2000)}
		})
		job, _ := plan.NewChild(sj, helper.Steps(&sj.Spec)[0], 1)
		job.UID, job.ResourceVersion = uuid.NewUUID(), fmt.Sprint(100000+n)
		job.Status.Conditions = []batchv1.JobCondition{{Type: batchv1.JobComplete, Status: corev1.ConditionTrue}}
		return job
	}
	pod := func(n int) any {
		pod := &corev1.Pod{}
		pod.Name, pod.Namespace, pod.UID = fmt.Sprintf("nightly-%05d-0-abcde", n), "ns", types.UID(uuid.NewUUID())
		pod.Labels = map[string]string{batchv1alpha1.SequentialJobNameKey: fmt.Sprintf("nightly-%05d", n)}
		pod.Spec.Containers = []corev1.Container{{Name: "a", Args: []string{strings.Repeat("x", 2000)}}}
		return pod
	}
	for name, tc := range map[string]struct {
		object func(n int) any
		limit  int64
	}{"Jobs": {job, 448}, "pods": {pod, 160}} {
		t.Run(name, func(t *testing.T) {
			kept := make([]any, objects)
			before := heap()
			for n := range kept {
				var err error
				if kept[n], err = transform(tc.object(n)); err != nil {
					t.Fatal(err)
				}
			}
			each := (int64(heap()) - int64(before)) / objects
			t.Logf("%d bytes each", each)
			if each > tc.limit {
				t.Errorf("%d bytes each, more than %d", each, tc.limit)
			}
			runtime.KeepAlive(kept)
		})
	}
}

func heap() uint64 {
	var stats runtime.MemStats
	runtime.GC()
	runtime.GC()
	runtime.ReadMemStats(&stats)
	return stats.HeapAlloc
}
