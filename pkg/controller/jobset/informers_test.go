// Copyright The jobset-apiserver Authors.
// SPDX-License-Identifier: Apache-2.0

package jobset

import (
	"testing"

	batchv1 "k8s.io/api/batch/v1"
	corev1 "k8s.io/api/core/v1"
	"k8s.io/apimachinery/pkg/api/resource"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/runtime"
	"k8s.io/utils/ptr"

	"github.com/jobset-apiserver/jobset-apiserver/pkg/apis/jobset/gates"
	jobsetv1alpha2 "github.com/jobset-apiserver/jobset-apiserver/pkg/apis/jobset/v1alpha2"
)

func TestTransformKeepsWhatDecisionsUse(t *testing.T) {
	set := newSet()
	owners := newJob("x", set).OwnerReferences
	full := metav1.ObjectMeta{
		Name: "n", Namespace: "ns", UID: "u", ResourceVersion: "5", Generation: 3, OwnerReferences: owners,
		Labels: map[string]string{"l": "1", jobsetv1alpha2.JobSetNameKey: "js"}, Annotations: map[string]string{"a": "1", jobsetv1alpha2.ReleasedKey: "4"}, DeletionTimestamp: &metav1.Time{},
		ManagedFields: []metav1.ManagedFieldsEntry{{Manager: "m"}},
	}
	bare := metav1.ObjectMeta{Name: "n", Namespace: "ns", UID: "u", ResourceVersion: "5", OwnerReferences: owners}
	named := bare
	named.Labels = map[string]string{jobsetv1alpha2.JobSetNameKey: "js"}
	bare.DeletionTimestamp, named.DeletionTimestamp = full.DeletionTimestamp, full.DeletionTimestamp
	jobMeta := named
	template := corev1.PodTemplateSpec{
		ObjectMeta: metav1.ObjectMeta{Labels: map[string]string{"p": "1"}, Annotations: map[string]string{"q": "1"}},
		Spec: corev1.PodSpec{
			Containers: []corev1.Container{{Name: "c"}}, NodeSelector: map[string]string{"n": "1"},
			Tolerations: []corev1.Toleration{{Key: "t"}}, SchedulingGates: []corev1.PodSchedulingGate{{Name: "g"}},
		},
	}
	directives := *template.DeepCopy()
	directives.Spec.Containers = nil
	template.Labels[batchv1.ControllerUidLabel], template.Annotations[jobsetv1alpha2.JobIndexKey] = "u", "0"
	template.Annotations[jobsetv1alpha2.ExecutionAttemptKey], directives.Annotations[jobsetv1alpha2.ExecutionAttemptKey] = "2", "2"
	status := batchv1.JobStatus{
		Conditions: []batchv1.JobCondition{{Type: batchv1.JobComplete}}, StartTime: &metav1.Time{}, Active: 1, Ready: ptr.To[int32](1), Succeeded: 2,
	}
	allOfStatus := *status.DeepCopy()
	allOfStatus.CompletedIndexes, allOfStatus.Failed = "0-9", 4
	job := func(suspend bool) *batchv1.Job {
		return &batchv1.Job{ObjectMeta: *full.DeepCopy(), Spec: batchv1.JobSpec{
			Suspend: ptr.To(suspend), Parallelism: ptr.To[int32](2), Completions: ptr.To[int32](3), BackoffLimit: ptr.To[int32](4), Template: *template.DeepCopy(),
		}, Status: *allOfStatus.DeepCopy()}
	}
	sized := batchv1.JobSpec{Suspend: ptr.To(false), Parallelism: ptr.To[int32](2), Completions: ptr.To[int32](3)}
	suspended := sized
	suspended.Suspend, suspended.Template = ptr.To(true), directives
	jobMeta.Annotations = map[string]string{jobsetv1alpha2.ReleasedKey: "4"}
	unannotated := &batchv1.Job{ObjectMeta: metav1.ObjectMeta{Name: "n"}}
	transformedUnannotated := unannotated.DeepCopy()
	exclusive, transformedExclusive := job(false), &batchv1.Job{ObjectMeta: jobMeta, Spec: sized, Status: status}
	exclusive.Annotations[jobsetv1alpha2.ExclusiveKey], exclusive.Spec.Template.Spec.NodeSelector["rack"] = "rack", "a"
	transformedExclusive.Spec.Template.Spec.NodeSelector = map[string]string{"rack": "a"}
	setMeta := *full.DeepCopy()
	setMeta.ManagedFields = nil
	applied := &jobsetv1alpha2.JobSet{ObjectMeta: *full.DeepCopy(), Spec: set.Spec}
	applied.Annotations[corev1.LastAppliedConfigAnnotation] = "{}"
	for name, tc := range map[string]struct{ object, want runtime.Object }{
		"of a Job that runs, what it is and how far":                                         {job(false), &batchv1.Job{ObjectMeta: jobMeta, Spec: sized, Status: status}},
		"of an exclusive Job, its domain":                                                    {exclusive, transformedExclusive},
		"of a suspended Job, the directives too":                                             {job(true), &batchv1.Job{ObjectMeta: jobMeta, Spec: suspended, Status: status}},
		"of a Job, whether it has annotations":                                               {unannotated, transformedUnannotated},
		"of a Service, that it exists":                                                       {&corev1.Service{ObjectMeta: *full.DeepCopy(), Spec: corev1.ServiceSpec{ClusterIP: "None"}}, &metav1.PartialObjectMetadata{ObjectMeta: bare}},
		"of a claim, that it exists, and for which set":                                      {&corev1.PersistentVolumeClaim{ObjectMeta: *full.DeepCopy()}, &metav1.PartialObjectMetadata{ObjectMeta: named}},
		"of a set, all but the managers of its fields and the manifest that kubectl applied": {applied, &jobsetv1alpha2.JobSet{ObjectMeta: setMeta, Spec: set.Spec}},
	} {
		t.Run(name, func(t *testing.T) {
			got, err := newTransform(gates.Gates{})(tc.object)
			if err != nil {
				t.Fatal(err)
			}
			diff(t, "transformed", tc.want, got)
			again, err := newTransform(gates.Gates{})(got.(runtime.Object).DeepCopyObject())
			if err != nil {
				t.Fatal(err)
			}
			diff(t, "transformed twice", tc.want, again)
		})
	}
}

func TestTransformKeepsResourcesOnlyWithTheGate(t *testing.T) {
	resources := corev1.ResourceRequirements{Requests: corev1.ResourceList{"cpu": resource.MustParse("1")}}
	job := &batchv1.Job{Spec: batchv1.JobSpec{Suspend: ptr.To(true)}}
	job.Spec.Template.Spec.Containers = []corev1.Container{{Name: "c", Image: "i", Resources: resources}}
	for gate, want := range map[bool][]corev1.Container{false: nil, true: {{Name: "c", Resources: resources}}} {
		got, err := newTransform(gates.Gates{MutablePodResourcesForSuspendedJobSets: gate})(job.DeepCopy())
		if err != nil {
			t.Fatal(err)
		}
		diff(t, "containers", want, got.(*batchv1.Job).Spec.Template.Spec.Containers)
	}
}

func TestOwnersAreResolvedByUID(t *testing.T) {
	set := newSet()
	r := newRig(t, set)
	if err := r.caches.jobSets.GetIndexer().Add(set); err != nil {
		t.Fatal(err)
	}
	owned := func(change func(*metav1.OwnerReference)) *batchv1.Job {
		job := newJob("x", set)
		change(&job.OwnerReferences[0])
		return job
	}
	for name, tc := range map[string]struct {
		object metav1.Object
		want   bool
	}{
		"a child of the set":                 {newJob("x", set), true},
		"an object without owner":            {newJob("x", nil), false},
		"a child of a set of another UID":    {owned(func(o *metav1.OwnerReference) { o.UID = "uid-earlier" }), false},
		"a child of a set that is gone":      {owned(func(o *metav1.OwnerReference) { o.Name = "gone" }), false},
		"a child of another kind":            {owned(func(o *metav1.OwnerReference) { o.Kind = "Workflow" }), false},
		"a child of another group":           {owned(func(o *metav1.OwnerReference) { o.APIVersion = "example.com/v1" }), false},
		"an object that the set merely owns": {owned(func(o *metav1.OwnerReference) { o.Controller = nil }), false},
	} {
		t.Run(name, func(t *testing.T) {
			key, got := r.resolveOwner(tc.object)
			diff(t, "found", tc.want, got)
			if got {
				diff(t, "key", "ns/js", key.String())
			}
		})
	}
}
