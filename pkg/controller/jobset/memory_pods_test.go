// Copyright The jobset-apiserver Authors.
// SPDX-License-Identifier: Apache-2.0

package jobset

import (
	"fmt"
	"runtime"
	"strings"
	"testing"

	corev1 "k8s.io/api/core/v1"
	"k8s.io/apimachinery/pkg/util/uuid"
	"k8s.io/client-go/tools/cache"

	"github.com/jobset-apiserver/jobset-apiserver/pkg/apis/jobset/gates"
	jobsetv1alpha2 "github.com/jobset-apiserver/jobset-apiserver/pkg/apis/jobset/v1alpha2"
	"github.com/jobset-apiserver/jobset-apiserver/pkg/controller/host/failures"
)

// usualPod is a pod of a Job of one pod, as it comes from the main API.
func usualPod(set, job int) *corev1.Pod {
	name := fmt.Sprintf("training-run-%05d-workers-%d-0-abcde", set, job)
	pod := podOfJob(name, uuid.NewUUID(), restarts(0, 1))
	pod.Namespace, pod.UID, pod.ResourceVersion, pod.ManagedFields = "team-research", uuid.NewUUID(), "123456789", managed()
	pod.Labels[jobsetv1alpha2.JobSetNameKey] = fmt.Sprintf("training-run-%05d", set)
	pod.Spec.NodeName = fmt.Sprintf("accelerator-node-%04d", set%2500)
	pod.Spec.Containers = []corev1.Container{usualContainer(0), usualContainer(1)}
	return pod
}

// TestCachedPodIsSmall looks at memory that is in use for the pods of 5,000 sets.
func TestCachedPodIsSmall(t *testing.T) {
	const limit = 400
	before := heap()
	indexer := receivePods(t)
	bytes := (int64(heap()) - int64(before)) / (cachedSets * jobsPerSet)
	diff(t, "pods", cachedSets*jobsPerSet, len(indexer.ListKeys()))
	t.Logf("%d bytes for each pod", bytes)
	if bytes > limit {
		t.Errorf("%d bytes for each pod, more than %d", bytes, limit)
	}
}

// BenchmarkCachedPod reports the live memory that the cache takes for a pod of a Job of one pod, and the time to transform it.
func BenchmarkCachedPod(b *testing.B) {
	benchmarkCache(b, "pod", podIndexers(gates.Gates{}), func(add func(any)) {
		for i := range cachedSets * jobsPerSet {
			add(decoded(b, usualPod(i/jobsPerSet, i%jobsPerSet), &corev1.Pod{}))
		}
	})
}

func receivePods(t *testing.T) cache.Indexer {
	indexer := cache.NewIndexer(cache.DeletionHandlingMetaNamespaceKeyFunc, podIndexers(gates.Gates{}))
	for i := range cachedSets * jobsPerSet {
		if err := indexer.Add(watched(t, decoded(t, usualPod(i/jobsPerSet, i%jobsPerSet), &corev1.Pod{}))); err != nil {
			t.Fatal(err)
		}
	}
	return indexer
}

// TestFailuresTakeLittle has more failures than are remembered, each with the longest message that there may be.
func TestFailuresTakeLittle(t *testing.T) {
	const jobs, pods, limit = failures.MaxJobs + failures.MaxJobs/8, failures.PerJob + 1, 64 << 20
	message := strings.Repeat("x", 4096)
	before := heap()
	store := failures.NewStore()
	for job := range jobs {
		uid := uuid.NewUUID()
		for pod := range pods {
			failed := podOfJob(fmt.Sprintf("training-run-workers-%d-%d-abcde", job, pod), uid, exits(1, int64(pod)))
			failed.Status.ContainerStatuses[0].State.Terminated.Message = strings.Clone(message)
			store.Note(&newWatchedPod(failed).Pod)
		}
	}
	bytes := int64(heap()) - int64(before)
	t.Logf("%d MiB", bytes>>20)
	if bytes > limit {
		t.Errorf("%d bytes, more than %d", bytes, limit)
	}
	runtime.KeepAlive(store)
}
