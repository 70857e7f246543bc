// Copyright The jobset-apiserver Authors.
// SPDX-License-Identifier: Apache-2.0

package validation

import (
	"fmt"

	"k8s.io/apimachinery/pkg/util/validation"
	"k8s.io/apimachinery/pkg/util/validation/field"

	"github.com/jobset-apiserver/jobset-apiserver/pkg/apis/jobset"
)

// validateCoordinator checks that the coordinator is a pod of the set and that its DNS name fits into a label.
func validateCoordinator(js *jobset.JobSet, path *field.Path) field.ErrorList {
	coordinator := js.Spec.Coordinator
	if coordinator == nil {
		return nil
	}
	if coordinator.ReplicatedJob == "" {
		return field.ErrorList{field.Required(path.Child("replicatedJob"), "must be the name of a replicatedJob of this JobSet")}
	}
	var errs field.ErrorList
	if err := coordinatorPod(&js.Spec, path); err != nil {
		errs = append(errs, err)
	}
	name := CoordinatorName(js)
	if len(name) > MaxNameLength {
		return append(errs, field.Invalid(path, name, fmt.Sprintf(
			"must result in a DNS name of no more than %d characters, because it is the value of a label; it has %d: shorten metadata.name, the name of the replicatedJob or spec.network.subdomain",
			MaxNameLength, len(name))))
	}
	for _, msg := range validation.IsValidLabelValue(name) {
		errs = append(errs, field.Invalid(path, name, "must result in a DNS name that is the value of a label: "+msg))
	}
	return errs
}

// coordinatorPod returns the first reason why the pod does not exist.
func coordinatorPod(spec *jobset.JobSetSpec, path *field.Path) *field.Error {
	c := spec.Coordinator
	rj, ok := jobNames(spec)[c.ReplicatedJob]
	if !ok {
		return field.Invalid(path.Child("replicatedJob"), c.ReplicatedJob, "must be the name of a replicatedJob of this JobSet")
	}
	if count := replicas(rj); c.JobIndex < 0 || c.JobIndex >= count {
		return field.Invalid(path.Child("jobIndex"), c.JobIndex, fmt.Sprintf("must be 0 or more and less than the replicas of %q, %d", rj.Name, count))
	}
	if !hasPodIndexes(rj) {
		return field.Invalid(path.Child("replicatedJob"), c.ReplicatedJob, "must be a replicatedJob with completionMode Indexed and with completions set")
	}
	if count := *rj.Template.Spec.Completions; c.PodIndex < 0 || c.PodIndex >= count {
		return field.Invalid(path.Child("podIndex"), c.PodIndex, fmt.Sprintf("must be 0 or more and less than the completions of %q, %d", rj.Name, count))
	}
	return nil
}
