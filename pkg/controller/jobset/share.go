// Copyright The jobset-apiserver Authors.
// SPDX-License-Identifier: Apache-2.0

package jobset

import (
	"maps"
	"strconv"

	batchv1 "k8s.io/api/batch/v1"
	corev1 "k8s.io/api/core/v1"
	"k8s.io/apimachinery/pkg/api/resource"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"

	jobsetv1alpha2 "github.com/jobset-apiserver/jobset-apiserver/pkg/apis/jobset/v1alpha2"
	"github.com/jobset-apiserver/jobset-apiserver/pkg/controller/jobset/plan"
)

// What nearly all children have in common is kept once. Nothing here grows with the number of objects, and all is cheap to
// find: this runs for every event.
var (
	// noKeys is the map of objects that have one, but nothing of interest in it.
	noKeys = map[string]string{}
	// releasedMaps are the annotations of Jobs with nothing of interest but the generation at which they were released, or the
	// attempt in which they were suspended, by that value. A map of one entry takes as much as one of eight.
	releasedMaps = newReleasedMaps(64)

	sharedNumbers   = newNumbers(256)
	isTrue, isFalse = true, false

	sharedNames = newNames(
		jobsetv1alpha2.SchemeGroupVersion.String(), "JobSet",
		string(batchv1.JobSuspended), string(batchv1.JobComplete), string(batchv1.JobFailed), string(batchv1.JobFailureTarget),
		string(batchv1.JobSuccessCriteriaMet), string(corev1.ConditionTrue), string(corev1.ConditionFalse), string(corev1.ConditionUnknown),
		"JobSuspended", "Job suspended", "JobResumed", "Job resumed",
		batchv1.JobReasonCompletionsReached, "Reached expected number of succeeded pods",
	)
)

func newReleasedMaps(number int) map[string]map[string]string {
	all := map[string]map[string]string{"": {jobsetv1alpha2.ReleasedKey: ""}}
	for generation := range number {
		value := strconv.Itoa(generation)
		all[value] = map[string]string{jobsetv1alpha2.ReleasedKey: value}
		value = plan.SuspendedInAttempt(int32(generation)) //nolint:gosec // a small number
		all[value] = map[string]string{jobsetv1alpha2.ReleasedKey: value}
	}
	return all
}

func newNumbers(number int32) []int32 {
	var all []int32
	for n := range number {
		all = append(all, n)
	}
	return all
}

func newNames(known ...string) map[string]string {
	all := map[string]string{}
	for _, name := range known {
		all[name] = name
	}
	return all
}

func sharedName[S ~string](name S) S {
	if shared, found := sharedNames[string(name)]; found {
		return S(shared)
	}
	return name
}

func sharedNumber(number *int32) *int32 {
	if number == nil || *number < 0 || int(*number) >= len(sharedNumbers) {
		return number
	}
	return &sharedNumbers[*number]
}

func sharedBool(value *bool) *bool {
	switch {
	case value == nil:
		return nil
	case *value:
		return &isTrue
	}
	return &isFalse
}

// sharedAnnotations returns the annotations that are used. It tells nothing from an empty map.
func sharedAnnotations(all map[string]string) map[string]string {
	if released, found := all[jobsetv1alpha2.ReleasedKey]; found {
		if _, inPlace := all[jobsetv1alpha2.InPlaceRestartAttemptKey]; !inPlace && releasedMaps[released] != nil {
			return releasedMaps[released]
		}
	}
	return usedOf(all, annotationsInUse)
}

func shareConditions(conditions []batchv1.JobCondition) {
	for i := range conditions {
		c := &conditions[i]
		c.Type, c.Status, c.Reason, c.Message = sharedName(c.Type), sharedName(c.Status), sharedName(c.Reason), sharedName(c.Message)
	}
}

func shareOwners(owners []metav1.OwnerReference) {
	for i := range owners {
		o := &owners[i]
		o.APIVersion, o.Kind = sharedName(o.APIVersion), sharedName(o.Kind)
		o.Controller, o.BlockOwnerDeletion = sharedBool(o.Controller), sharedBool(o.BlockOwnerDeletion)
	}
}

// shareResources keeps one list of what a container requests and may use at most, if these are the same, as they mostly
// are for accelerators.
func shareResources(containers []corev1.Container) {
	for i := range containers {
		r := &containers[i].Resources
		if len(r.Limits) > 0 && maps.EqualFunc(r.Requests, r.Limits, sameQuantity) {
			r.Requests = r.Limits
		}
	}
}

// sameQuantity tells whether two quantities are the same in how they are written, too.
func sameQuantity(a, b resource.Quantity) bool { return a.Format == b.Format && a.Equal(b) }
