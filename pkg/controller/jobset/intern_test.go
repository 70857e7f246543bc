// Copyright The jobset-apiserver Authors.
// SPDX-License-Identifier: Apache-2.0

package jobset

import (
	"testing"

	batchv1 "k8s.io/api/batch/v1"
	corev1 "k8s.io/api/core/v1"
	"k8s.io/apimachinery/pkg/api/resource"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/utils/ptr"

	"github.com/jobset-apiserver/jobset-apiserver/pkg/apis/jobset/gates"
	jobsetv1alpha2 "github.com/jobset-apiserver/jobset-apiserver/pkg/apis/jobset/v1alpha2"
)

func TestSharingChangesNoValue(t *testing.T) {
	job := func(change func(*batchv1.Job)) *batchv1.Job {
		job := &batchv1.Job{Spec: batchv1.JobSpec{Suspend: ptr.To(false)}}
		change(job)
		return job
	}
	annotated := func(annotations map[string]string) *batchv1.Job {
		return job(func(job *batchv1.Job) { job.Annotations = annotations })
	}
	sized := func(parallelism, completions, ready int32) *batchv1.Job {
		return job(func(job *batchv1.Job) {
			job.Spec.Parallelism, job.Spec.Completions, job.Status.Ready = &parallelism, &completions, &ready
		})
	}
	for name, original := range map[string]*batchv1.Job{
		"numbers within the interned ones":  sized(0, 1, 255),
		"numbers beyond the interned ones":  sized(-1, 256, 100000),
		"no numbers and not suspended":      job(func(job *batchv1.Job) { job.Spec.Suspend = nil }),
		"a generation that is interned":     annotated(map[string]string{jobsetv1alpha2.ReleasedKey: "63"}),
		"a generation that is not interned": annotated(map[string]string{jobsetv1alpha2.ReleasedKey: "64"}),
		"an attempt that is interned":       annotated(map[string]string{jobsetv1alpha2.ReleasedKey: "suspended-in-attempt-63"}),
		"an attempt that is not interned":   annotated(map[string]string{jobsetv1alpha2.ReleasedKey: "suspended-in-attempt-64"}),
		"no generation":                     annotated(map[string]string{jobsetv1alpha2.ReleasedKey: ""}),
		"no number as generation":           annotated(map[string]string{jobsetv1alpha2.ReleasedKey: "07"}),
		"a generation and an attempt":       annotated(map[string]string{jobsetv1alpha2.ReleasedKey: "1", jobsetv1alpha2.InPlaceRestartAttemptKey: "2"}),
		"conditions and owners, known and not": job(func(job *batchv1.Job) {
			job.Status.Conditions = []batchv1.JobCondition{
				{Type: batchv1.JobSuspended, Status: corev1.ConditionTrue, Reason: "JobSuspended", Message: "Job suspended"},
				{Type: "Other", Status: "Maybe", Reason: "Because", Message: "of it"},
			}
			job.OwnerReferences = []metav1.OwnerReference{
				{APIVersion: jobsetv1alpha2.SchemeGroupVersion.String(), Kind: "JobSet", Name: "js", UID: "u", Controller: ptr.To(true), BlockOwnerDeletion: ptr.To(false)},
				{APIVersion: "v1", Kind: "Other", Name: "o", UID: "v"},
			}
		}),
	} {
		t.Run(name, func(t *testing.T) {
			got, err := newTransform(gates.Gates{})(original.DeepCopy())
			if err != nil {
				t.Fatal(err)
			}
			diff(t, "Job", original, got.(*batchv1.Job))
			diff(t, "whether it distinguishes no annotations from none of interest", original.Annotations == nil, got.(*batchv1.Job).Annotations == nil)
		})
	}
}

// TestTransformDistinguishesMissingFromEmptyKeys matters to a patch, which cannot add to a map that is not there.
func TestTransformDistinguishesMissingFromEmptyKeys(t *testing.T) {
	for name, tc := range map[string]struct {
		keys map[string]string
		want bool
	}{
		"no map":                              {nil, true},
		"a map of keys that are not compared": {map[string]string{jobsetv1alpha2.JobIndexKey: "1"}, false},
	} {
		t.Run(name, func(t *testing.T) {
			job := &batchv1.Job{Spec: batchv1.JobSpec{Suspend: ptr.To(true)}}
			job.Spec.Template.Labels, job.Spec.Template.Annotations = tc.keys, tc.keys
			for range 2 { // it is transformed twice when a list is streamed
				if _, err := newTransform(gates.Gates{})(job); err != nil {
					t.Fatal(err)
				}
				kept := job.Spec.Template.ObjectMeta
				diff(t, "keys that are kept", 0, len(kept.Labels)+len(kept.Annotations))
				diff(t, "no labels and no annotations", []bool{tc.want, tc.want}, []bool{kept.Labels == nil, kept.Annotations == nil})
			}
		})
	}
}

func TestEqualRequestsAndLimitsAreKeptOnce(t *testing.T) {
	list := func(cpu, gpu string) corev1.ResourceList {
		return corev1.ResourceList{"cpu": resource.MustParse(cpu), "nvidia.com/gpu": resource.MustParse(gpu)}
	}
	for name, tc := range map[string]struct {
		requests, limits corev1.ResourceList
		want             bool
	}{
		"equal ones":            {list("1", "8"), list("1", "8"), true},
		"other values":          {list("1", "8"), list("2", "8"), false},
		"other notations":       {list("1024", "8"), list("1Ki", "8"), false},
		"other resources":       {list("1", "8"), corev1.ResourceList{"cpu": resource.MustParse("1")}, false},
		"limits without others": {nil, list("1", "8"), false},
		"requests only":         {list("1", "8"), nil, false},
	} {
		t.Run(name, func(t *testing.T) {
			js := newSet()
			js.Spec.ReplicatedJobs[0].Template.Spec.Template.Spec.Containers = []corev1.Container{{
				Resources: corev1.ResourceRequirements{Requests: tc.requests.DeepCopy(), Limits: tc.limits.DeepCopy()},
			}}
			want := js.DeepCopy()
			if _, err := newTransform(gates.Gates{})(js); err != nil {
				t.Fatal(err)
			}
			diff(t, "set", want, js)
			got := js.Spec.ReplicatedJobs[0].Template.Spec.Template.Spec.Containers[0].Resources
			delete(got.Limits, "cpu")
			diff(t, "interned", tc.want, len(got.Requests) < len(tc.requests))
		})
	}
}
