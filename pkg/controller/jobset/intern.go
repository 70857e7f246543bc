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

// Values that nearly all children have in common are kept once. Nothing here grows with the number of objects, and a look-up
// is cheap, because it runs for every event.
var (
	// noKeys is the map of objects that have one, but nothing of interest in it.
	noKeys = map[string]string{}
	// releasedMaps are the annotations of Jobs with nothing of interest but the generation at which they were released, or the
	// attempt in which they were suspended, by that value. A map of one entry takes as much as one of eight.
	releasedMaps = newReleasedMaps(64)

	internedNumbers = newNumbers(256)
	isTrue, isFalse = true, false

	internedStrings = newStrings(
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

func newStrings(known ...string) map[string]string {
	all := map[string]string{}
	for _, name := range known {
		all[name] = name
	}
	return all
}

func internString[S ~string](name S) S {
	if interned, found := internedStrings[string(name)]; found {
		return S(interned)
	}
	return name
}

func internNumber(number *int32) *int32 {
	if number == nil || *number < 0 || int(*number) >= len(internedNumbers) {
		return number
	}
	return &internedNumbers[*number]
}

func internBool(value *bool) *bool {
	switch {
	case value == nil:
		return nil
	case *value:
		return &isTrue
	}
	return &isFalse
}

// internAnnotations returns the annotations that are used. It distinguishes nil from an empty map.
func internAnnotations(all map[string]string) map[string]string {
	if released, found := all[jobsetv1alpha2.ReleasedKey]; found {
		_, inPlace := all[jobsetv1alpha2.InPlaceRestartAttemptKey]
		_, avoids := all[jobsetv1alpha2.AvoidedNodesKey]
		if _, placed := all[jobsetv1alpha2.PlacementKey]; !inPlace && !placed && !avoids && releasedMaps[released] != nil {
			return releasedMaps[released]
		}
	}
	return usedOf(all, annotationsInUse)
}

func internConditions(conditions []batchv1.JobCondition) {
	for i := range conditions {
		c := &conditions[i]
		c.Type, c.Status, c.Reason, c.Message = internString(c.Type), internString(c.Status), internString(c.Reason), internString(c.Message)
	}
}

func internOwners(owners []metav1.OwnerReference) {
	for i := range owners {
		o := &owners[i]
		o.APIVersion, o.Kind = internString(o.APIVersion), internString(o.Kind)
		o.Controller, o.BlockOwnerDeletion = internBool(o.Controller), internBool(o.BlockOwnerDeletion)
	}
}

// internResources keeps one list for the requests and limits of a container if both are equal, which is usual for
// accelerators.
func internResources(containers []corev1.Container) {
	for i := range containers {
		r := &containers[i].Resources
		if len(r.Limits) > 0 && maps.EqualFunc(r.Requests, r.Limits, sameQuantity) {
			r.Requests = r.Limits
		}
	}
}

// sameQuantity returns whether two quantities have the same value and format.
func sameQuantity(a, b resource.Quantity) bool { return a.Format == b.Format && a.Equal(b) }
