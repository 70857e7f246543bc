// Copyright The jobset-apiserver Authors.
// SPDX-License-Identifier: Apache-2.0

package jobset

import (
	batchv1 "k8s.io/api/batch/v1"
	corev1 "k8s.io/api/core/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/client-go/tools/cache"

	"github.com/jobset-apiserver/jobset-apiserver/pkg/apis/jobset/gates"
	jobsetv1alpha2 "github.com/jobset-apiserver/jobset-apiserver/pkg/apis/jobset/v1alpha2"
	"github.com/jobset-apiserver/jobset-apiserver/pkg/controller/jobset/plan"
)

// newTransform returns a transform that drops what no decision uses, so that the caches of a large cluster stay small. It
// accepts its own results. What it returns shares memory with other objects and must not be changed.
func newTransform(gates gates.Gates) cache.TransformFunc {
	return func(obj any) (any, error) {
		switch o := obj.(type) {
		case *jobsetv1alpha2.JobSet:
			transformSet(o)
		case *batchv1.Job:
			transformJob(o, gates)
		case *corev1.Service:
			service := &metav1.PartialObjectMetadata{ObjectMeta: bareMeta(o)}
			service.DeletionTimestamp = o.DeletionTimestamp
			return service, nil
		case *corev1.PersistentVolumeClaim:
			claim := &metav1.PartialObjectMetadata{ObjectMeta: bareMeta(o)}
			claim.DeletionTimestamp = o.DeletionTimestamp
			claim.Labels = usedOf(o.Labels, labelsInUse)
			return claim, nil
		case *corev1.Pod:
			return newWatchedPod(o), nil
		}
		return obj, nil
	}
}

// transformSet keeps nearly everything: Jobs are built from the set.
func transformSet(js *jobsetv1alpha2.JobSet) {
	js.ManagedFields = nil
	// A copy of the whole manifest. A status write does not touch it.
	delete(js.Annotations, corev1.LastAppliedConfigAnnotation)
	for i := range js.Spec.ReplicatedJobs {
		pod := &js.Spec.ReplicatedJobs[i].Template.Spec.Template.Spec
		internResources(pod.InitContainers)
		internResources(pod.Containers)
	}
}

func transformJob(job *batchv1.Job, gates gates.Gates) {
	meta := bareMeta(job)
	meta.Labels, meta.Annotations = usedOf(job.Labels, labelsInUse), internAnnotations(job.Annotations)
	meta.CreationTimestamp, meta.DeletionTimestamp = job.CreationTimestamp, job.DeletionTimestamp
	spec := batchv1.JobSpec{
		Parallelism: internNumber(job.Spec.Parallelism), Completions: internNumber(job.Spec.Completions), Suspend: internBool(job.Spec.Suspend),
	}
	// The pod template is compared when a Job is resumed. Of one that runs, only its domain matters.
	spec.Template.Spec.NodeSelector = domainOf(job)
	if job.Spec.Suspend != nil && *job.Spec.Suspend {
		spec.Template = corev1.PodTemplateSpec{
			ObjectMeta: metav1.ObjectMeta{
				Labels: comparedOf(job.Spec.Template.Labels), Annotations: comparedOf(job.Spec.Template.Annotations),
			},
			Spec: corev1.PodSpec{
				NodeSelector:    job.Spec.Template.Spec.NodeSelector,
				Tolerations:     job.Spec.Template.Spec.Tolerations,
				SchedulingGates: job.Spec.Template.Spec.SchedulingGates,
				SchedulingGroup: job.Spec.Template.Spec.SchedulingGroup,
			},
		}
		if gates.MutablePodResourcesForSuspendedJobSets {
			spec.Template.Spec.InitContainers = onlyResources(job.Spec.Template.Spec.InitContainers)
			spec.Template.Spec.Containers = onlyResources(job.Spec.Template.Spec.Containers)
		}
	}
	status := batchv1.JobStatus{
		Conditions: job.Status.Conditions, StartTime: job.Status.StartTime,
		Active: job.Status.Active, Ready: internNumber(job.Status.Ready), Succeeded: job.Status.Succeeded,
		Terminating: internNumber(job.Status.Terminating),
	}
	internConditions(status.Conditions)
	*job = batchv1.Job{ObjectMeta: meta, Spec: spec, Status: status}
}

// domainOf returns what keeps the pods of an exclusive Job in their domain; nil for other Jobs.
func domainOf(job *batchv1.Job) map[string]string {
	pod := &job.Spec.Template.Spec
	if len(pod.Containers) == 0 {
		return pod.NodeSelector // it was transformed before
	}
	topology := job.Annotations[jobsetv1alpha2.ExclusiveKey]
	if domain, found := pod.NodeSelector[topology]; found {
		return map[string]string{topology: domain}
	}
	return nil
}

func onlyResources(containers []corev1.Container) []corev1.Container {
	var kept []corev1.Container
	for _, container := range containers {
		kept = append(kept, corev1.Container{Name: container.Name, Resources: container.Resources})
	}
	internResources(kept)
	return kept
}

// The labels and annotations that decisions and handlers read. A child has many more.
var (
	labelsInUse = []string{
		jobsetv1alpha2.JobSetNameKey, jobsetv1alpha2.ReplicatedJobNameKey, jobsetv1alpha2.JobIndexKey,
		jobsetv1alpha2.RestartsKey, jobsetv1alpha2.JobRestartAttemptKey,
	}
	annotationsInUse = []string{jobsetv1alpha2.ReleasedKey, jobsetv1alpha2.InPlaceRestartAttemptKey, jobsetv1alpha2.PlacementKey,
		jobsetv1alpha2.AvoidedNodesKey}
)

// usedOf copies the entries that are used, under keys that all objects share. It distinguishes nil from an empty map.
func usedOf(all map[string]string, inUse []string) map[string]string {
	if all == nil {
		return nil
	}
	used := noKeys
	for _, key := range inUse {
		if value, found := all[key]; found {
			used = added(used, key, value)
		}
	}
	return used
}

// comparedOf copies those labels or annotations of a pod template that resuming the Job depends on. It distinguishes nil
// from an empty map.
func comparedOf(all map[string]string) map[string]string {
	if all == nil {
		return nil
	}
	compared := noKeys
	for key, value := range all {
		if plan.ComparedOnResume(key) {
			compared = added(compared, key, value)
		}
	}
	return compared
}

// added adds to a map that no object has yet, or makes one.
func added(to map[string]string, key, value string) map[string]string {
	if len(to) == 0 {
		to = map[string]string{}
	}
	to[key] = value
	return to
}

func bareMeta(obj metav1.Object) metav1.ObjectMeta {
	internOwners(obj.GetOwnerReferences())
	return metav1.ObjectMeta{
		Name: obj.GetName(), Namespace: obj.GetNamespace(), UID: obj.GetUID(),
		ResourceVersion: obj.GetResourceVersion(), OwnerReferences: obj.GetOwnerReferences(),
	}
}
