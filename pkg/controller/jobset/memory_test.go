// Copyright The jobset-apiserver Authors.
// SPDX-License-Identifier: Apache-2.0

package jobset

import (
	"fmt"
	"maps"
	"runtime"
	"strings"
	"testing"
	"time"

	batchv1 "k8s.io/api/batch/v1"
	corev1 "k8s.io/api/core/v1"
	"k8s.io/apimachinery/pkg/api/resource"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/util/uuid"
	"k8s.io/client-go/tools/cache"
	"k8s.io/utils/ptr"

	"github.com/jobset-apiserver/jobset-apiserver/pkg/apis/jobset/gates"
	jobsetv1alpha2 "github.com/jobset-apiserver/jobset-apiserver/pkg/apis/jobset/v1alpha2"
	"github.com/jobset-apiserver/jobset-apiserver/pkg/controller/jobset/plan"
	"github.com/jobset-apiserver/jobset-apiserver/test/builders"
)

const (
	cachedSets = 5000
	jobsPerSet = 4
)

var indexersOfJobs = cache.Indexers{indexOwner: ownerUID}

// TestCachedJobIsSmall looks at memory that is in use, which depends on no machine. With what the garbage collector
// lets lie, a program takes about twice of that.
func TestCachedJobIsSmall(t *testing.T) {
	const sets, limit = 1000, 3 << 10
	for name, live := range map[string]func(*batchv1.Job){"suspended": suspendedLive, "running": runningLive} {
		t.Run(name, func(t *testing.T) {
			transform, indexer := newTransform(gates.Gates{}), cache.NewIndexer(cache.DeletionHandlingMetaNamespaceKeyFunc, indexersOfJobs)
			before := heap()
			receiveJobs(t, sets, live, func(object any) {
				kept, err := transform(object)
				if err == nil {
					err = indexer.Add(kept)
				}
				if err != nil {
					t.Fatal(err)
				}
			})
			bytes := (int64(heap()) - int64(before)) / (sets * jobsPerSet)
			diff(t, "Jobs", sets*jobsPerSet, len(indexer.ListKeys()))
			if bytes > limit {
				t.Errorf("%d bytes for each Job, more than %d", bytes, limit)
			}
		})
	}
}

// BenchmarkCachedJob reports the live memory that the cache takes for a Job of one of many sets, and the time to transform it.
func BenchmarkCachedJob(b *testing.B) {
	for name, live := range map[string]func(*batchv1.Job){"suspended": suspendedLive, "running": runningLive} {
		b.Run(name, func(b *testing.B) {
			benchmarkCache(b, "job", indexersOfJobs, func(add func(any)) { receiveJobs(b, cachedSets, live, add) })
		})
	}
}

// BenchmarkCachedSet reports the live memory that the cache takes for a set, and the time to transform it.
func BenchmarkCachedSet(b *testing.B) {
	indexers := cache.Indexers{indexService: serviceOf}
	for name, build := range map[string]func(string) *jobsetv1alpha2.JobSet{"at rest": restingSet, "of usual size": usualSet} {
		b.Run(name, func(b *testing.B) {
			benchmarkCache(b, "set", indexers, func(add func(any)) {
				for i := range cachedSets {
					add(decoded(b, asStored(build(fmt.Sprintf("rest-%05d", i))), &jobsetv1alpha2.JobSet{}))
				}
			})
		})
	}
}

// BenchmarkCachedService reports the live memory that the cache takes for the Service of a set, and the time to transform it.
func BenchmarkCachedService(b *testing.B) {
	benchmarkCache(b, "service", nil, func(add func(any)) {
		for i := range cachedSets {
			js := asStored(restingSet(fmt.Sprintf("rest-%05d", i)))
			service := plan.Decide(plan.Observed{JobSet: js, Now: metav1.Now()}).CreateService
			service.UID, service.ResourceVersion, service.ManagedFields = uuid.NewUUID(), "123456", managed()
			add(decoded(b, service, &corev1.Service{}))
		}
	})
}

// benchmarkCache fills a cache with what the API sends.
func benchmarkCache(b *testing.B, what string, indexers cache.Indexers, receive func(add func(any))) {
	transform := newTransform(gates.Gates{})
	var spent time.Duration
	var bytes, number uint64
	for b.Loop() {
		before := heap()
		indexer := cache.NewIndexer(cache.DeletionHandlingMetaNamespaceKeyFunc, indexers)
		receive(func(object any) {
			start := time.Now()
			kept, err := transform(object)
			spent += time.Since(start)
			if err == nil {
				err = indexer.Add(kept)
			}
			if err != nil {
				b.Fatal(err)
			}
			number++
		})
		bytes += heap() - before
		runtime.KeepAlive(indexer)
	}
	b.ReportMetric(float64(bytes)/float64(number), "B/"+what)
	b.ReportMetric(float64(spent.Nanoseconds())/float64(number), "ns/"+what)
}

// receiveJobs adds the Jobs of so many sets, as they come from the main API.
func receiveJobs(tb testing.TB, sets int, live func(*batchv1.Job), add func(any)) {
	tb.Helper()
	for i := range sets {
		js := asStored(restingSet(fmt.Sprintf("rest-%05d", i)))
		for n, job := range plan.Decide(plan.Observed{JobSet: js, Now: metav1.Now()}).CreateJobs {
			job.UID = uuid.NewUUID()
			own := map[string]string{
				batchv1.ControllerUidLabel: string(job.UID), "controller-uid": string(job.UID), batchv1.JobNameLabel: job.Name, "job-name": job.Name,
			}
			maps.Copy(job.Labels, own)
			maps.Copy(job.Spec.Template.Labels, own)
			job.Spec.Selector = &metav1.LabelSelector{MatchLabels: map[string]string{batchv1.ControllerUidLabel: string(job.UID)}}
			job.ResourceVersion, job.Generation = fmt.Sprint(1000000+i*jobsPerSet+n), 1
			job.CreationTimestamp, job.ManagedFields = metav1.Now(), managed()
			live(job)
			add(decoded(tb, job, &batchv1.Job{}))
		}
	}
}

func suspendedLive(job *batchv1.Job) {
	job.Status.UncountedTerminatedPods, job.Status.Ready = &batchv1.UncountedTerminatedPods{}, ptr.To[int32](0)
	job.Status.Conditions = []batchv1.JobCondition{{
		Type: batchv1.JobSuspended, Status: corev1.ConditionTrue, Reason: "JobSuspended", Message: "Job suspended",
		LastProbeTime: metav1.Now(), LastTransitionTime: metav1.Now(),
	}}
}

func runningLive(job *batchv1.Job) {
	job.Spec.Suspend = ptr.To(false)
	job.Annotations[jobsetv1alpha2.ReleasedKey] = "1"
	job.Status = batchv1.JobStatus{Active: 1, Ready: ptr.To[int32](1), StartTime: ptr.To(metav1.Now()), UncountedTerminatedPods: &batchv1.UncountedTerminatedPods{}}
}

// restingSet is a suspended set of four Jobs of one pod.
func restingSet(name string) *jobsetv1alpha2.JobSet {
	return builders.JobSet(name, builders.WithJobs("workers", jobsPerSet, 1, func(rj *jobsetv1alpha2.ReplicatedJob) {
		rj.Template.Spec.Template.Spec.Containers = []corev1.Container{usualContainer(0)}
		rj.Template.Spec.Template.Spec.Volumes = []corev1.Volume{
			{Name: "code", VolumeSource: corev1.VolumeSource{EmptyDir: &corev1.EmptyDirVolumeSource{}}},
			{Name: "shared-memory", VolumeSource: corev1.VolumeSource{EmptyDir: &corev1.EmptyDirVolumeSource{}}},
		}
	}), func(js *jobsetv1alpha2.JobSet) {
		js.Spec.Suspend = ptr.To(true)
		js.Status.Conditions = []metav1.Condition{{
			Type: jobsetv1alpha2.JobSetSuspended, Status: metav1.ConditionTrue, Reason: "SuspendedJobs", Message: "jobset is suspended",
			LastTransitionTime: metav1.Now(),
		}}
		js.Status.ReplicatedJobsStatus = []jobsetv1alpha2.ReplicatedJobStatus{{Name: "workers", Suspended: jobsPerSet}}
	})
}

// usualSet has a launcher and workers of two containers.
func usualSet(name string) *jobsetv1alpha2.JobSet {
	shaped := func(containers int) func(*jobsetv1alpha2.ReplicatedJob) {
		return func(rj *jobsetv1alpha2.ReplicatedJob) {
			pod := &rj.Template.Spec.Template.Spec
			pod.Containers = nil
			for i := range containers {
				pod.Containers = append(pod.Containers, usualContainer(i))
			}
			pod.Volumes = []corev1.Volume{{Name: "code"}, {Name: "shared-memory"}}
		}
	}
	return builders.JobSet(name, builders.WithJobs("launcher", 1, 1, shaped(1)), builders.WithJobs("workers", 2, 4, shaped(2)),
		func(js *jobsetv1alpha2.JobSet) {
			js.Labels = map[string]string{"app.kubernetes.io/name": "training", "team": "research"}
			js.Spec.FailurePolicy = &jobsetv1alpha2.FailurePolicy{MaxRestarts: 3}
		})
}

func usualContainer(i int) corev1.Container {
	sizes := corev1.ResourceList{"cpu": resource.MustParse("8"), "memory": resource.MustParse("64Gi"), "nvidia.com/gpu": resource.MustParse("8")}
	container := corev1.Container{
		Name: fmt.Sprint("container-", i), Image: "registry.example.com/research/training:v1.2.3",
		Command:      []string{"torchrun", "--nnodes=8", "--nproc-per-node=8", "--rdzv-backend=c10d", "/workspace/train.py"},
		Resources:    corev1.ResourceRequirements{Requests: sizes, Limits: sizes},
		VolumeMounts: []corev1.VolumeMount{{Name: "code", MountPath: "/workspace"}, {Name: "shared-memory", MountPath: "/dev/shm"}},
	}
	for n := range 5 {
		container.Env = append(container.Env, corev1.EnvVar{Name: fmt.Sprint("VARIABLE_", n), Value: "a value of usual length"})
	}
	return container
}

// asStored gives a set what the API adds.
func asStored(js *jobsetv1alpha2.JobSet) *jobsetv1alpha2.JobSet {
	js.Namespace, js.UID, js.ResourceVersion, js.Generation = "bench-rest", uuid.NewUUID(), "123456", 1
	js.CreationTimestamp, js.ManagedFields = metav1.Now(), managed()
	js.Spec.Network = &jobsetv1alpha2.Network{EnableDNSHostnames: ptr.To(true), PublishNotReadyAddresses: ptr.To(true)}
	js.Spec.SuccessPolicy = &jobsetv1alpha2.SuccessPolicy{Operator: jobsetv1alpha2.OperatorAll}
	js.Spec.StartupPolicy = &jobsetv1alpha2.StartupPolicy{StartupPolicyOrder: jobsetv1alpha2.AnyOrder}
	return js
}

func managed() []metav1.ManagedFieldsEntry {
	return []metav1.ManagedFieldsEntry{{Manager: "jobset-controller", FieldsV1: metav1.NewFieldsV1(strings.Repeat("x", 2000))}}
}

// decoded is the object as it comes over the wire. It shares no memory with the original.
func decoded[T interface{ Unmarshal([]byte) error }](tb testing.TB, object interface{ Marshal() ([]byte, error) }, into T) T {
	tb.Helper()
	data, err := object.Marshal()
	if err != nil {
		tb.Fatal(err)
	}
	if err := into.Unmarshal(data); err != nil {
		tb.Fatal(err)
	}
	return into
}
