// Copyright The jobset-apiserver Authors.
// SPDX-License-Identifier: Apache-2.0

package jobset

import (
	"fmt"
	"runtime"
	"strconv"
	"strings"
	"testing"

	batchv1 "k8s.io/api/batch/v1"
	corev1 "k8s.io/api/core/v1"
	"k8s.io/apimachinery/pkg/api/resource"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/types"
	"k8s.io/client-go/tools/cache"
	"k8s.io/utils/ptr"

	"github.com/jobset-apiserver/jobset-apiserver/pkg/apis/jobset/gates"
	jobsetv1alpha2 "github.com/jobset-apiserver/jobset-apiserver/pkg/apis/jobset/v1alpha2"
	"github.com/jobset-apiserver/jobset-apiserver/pkg/controller/host/informers"
	"github.com/jobset-apiserver/jobset-apiserver/pkg/controller/host/queue"
	"github.com/jobset-apiserver/jobset-apiserver/pkg/controller/jobset/plan"
)

// largeSet returns one of many sets. It has all that calls for children of every kind.
func largeSet(name string) *jobsetv1alpha2.JobSet {
	js := newSet()
	js.Name, js.UID, js.Generation = name, types.UID("uid-"+name), 1
	js.Spec.FailurePolicy = &jobsetv1alpha2.FailurePolicy{MaxRestarts: 3}
	js.Spec.VolumeClaimPolicies = []jobsetv1alpha2.VolumeClaimPolicy{{Templates: []corev1.PersistentVolumeClaim{*claim("data")}}}
	template := &js.Spec.ReplicatedJobs[0].Template.Spec
	js.Spec.ReplicatedJobs[0].Replicas = ptr.To[int32](4)
	template.Parallelism, template.Completions = ptr.To[int32](8), ptr.To[int32](8)
	template.Template.Labels = map[string]string{"app.kubernetes.io/name": "training", "team": "research"}
	resources := corev1.ResourceList{"cpu": resource.MustParse("8"), "memory": resource.MustParse("64Gi"), "nvidia.com/gpu": resource.MustParse("8")}
	for i := range 2 {
		container := corev1.Container{
			Name: fmt.Sprint("container-", i), Image: "registry.example.com/research/training:v1.2.3", Command: []string{"torchrun", "--nnodes=8"},
			Resources:    corev1.ResourceRequirements{Requests: resources, Limits: resources},
			VolumeMounts: []corev1.VolumeMount{{Name: "data", MountPath: "/data"}},
		}
		for n := range 20 {
			container.Env = append(container.Env, corev1.EnvVar{Name: fmt.Sprint("VARIABLE_", n), Value: "some value of usual length"})
		}
		template.Template.Spec.Containers = append(template.Template.Spec.Containers, container)
	}
	return js
}

// running makes a Job of a plan what it is once its pods run.
func running(job *batchv1.Job, uid string) *batchv1.Job {
	job.UID, job.ResourceVersion, job.CreationTimestamp = types.UID(uid), "1", metav1.Now()
	job.Status = batchv1.JobStatus{Active: 8, Ready: ptr.To[int32](8), StartTime: ptr.To(metav1.Now()), UncountedTerminatedPods: &batchv1.UncountedTerminatedPods{}}
	job.ManagedFields = []metav1.ManagedFieldsEntry{{Manager: "jobset-controller", FieldsV1: metav1.NewFieldsV1(strings.Repeat("x", 2000))}}
	return job
}

// TestResyncOfUnchangedSetsSendsNoRequest syncs many unchanged sets again, as a resync or a restart of the controller
// does.
func TestResyncOfUnchangedSetsSendsNoRequest(t *testing.T) {
	const number = 5000
	r := newRig(t, newSet())
	add := func(informer *informers.Informer, object any) {
		kept, err := newTransform(r.Gates)(object)
		if err != nil {
			t.Fatal(err)
		}
		if err := informer.GetIndexer().Add(kept); err != nil {
			t.Fatal(err)
		}
	}
	var keys []cache.ObjectName
	for i := range number {
		js := largeSet("js-" + strconv.Itoa(i))
		key := cache.MetaObjectToName(js)
		keys = append(keys, key)
		add(r.caches.jobSets, js)
		obs, _, err := r.Observe(t.Context(), key)
		if err != nil {
			t.Fatal(err)
		}
		first := plan.Decide(*obs)
		add(r.caches.services, first.CreateService)
		for _, claim := range first.CreateClaims {
			add(r.caches.claims, claim)
		}
		for n, job := range first.CreateJobs {
			add(r.caches.jobs, running(job, fmt.Sprintf("uid-%d-%d", i, n)))
		}
		if obs, _, err = r.Observe(t.Context(), key); err != nil {
			t.Fatal(err)
		}
		stable := js.DeepCopy()
		stable.Status = *plan.Decide(*obs).Status
		add(r.caches.jobSets, stable)
	}
	for _, key := range keys {
		if due, err := r.Sync(t.Context(), key); due != (queue.Due{}) || err != nil {
			t.Fatalf("sync of %s: again %+v, error %v", key, due, err)
		}
	}
	diff(t, "requests to the main API", 0, len(r.kube.Actions()))
	diff(t, "requests to the API of JobSets", 0, len(r.jobSets.Actions()))
	diff(t, "events", 0, len(r.events.all()))
}

// BenchmarkMemoryPerJob reports what the cache takes for one child Job with a pod template of usual size, and what it
// would take for the whole Job.
func BenchmarkMemoryPerJob(b *testing.B) {
	const number = 2000
	obs := &plan.Observed{JobSet: largeSet("js")}
	template := plan.Decide(*obs).CreateJobs[0]
	for name, transform := range map[string]cache.TransformFunc{
		"cached": newTransform(gates.Gates{}),
		"whole":  func(obj any) (any, error) { return obj, nil },
	} {
		b.Run(name, func(b *testing.B) {
			for b.Loop() {
				before := heap()
				jobs := make([]any, 0, number)
				for i := range number {
					kept, err := transform(decoded(b, running(template, "uid-"+strconv.Itoa(i)), &batchv1.Job{}))
					if err != nil {
						b.Fatal(err)
					}
					jobs = append(jobs, kept)
				}
				b.ReportMetric(float64(heap()-before)/number, "B/job")
				runtime.KeepAlive(jobs)
			}
		})
	}
}

// heap returns the bytes of all objects that are in use.
func heap() uint64 {
	runtime.GC()
	var stats runtime.MemStats
	runtime.ReadMemStats(&stats)
	return stats.HeapAlloc
}
