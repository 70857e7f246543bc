// Copyright The jobset-apiserver Authors.
// SPDX-License-Identifier: Apache-2.0

package validation

import (
	"fmt"

	"k8s.io/apimachinery/pkg/util/validation"
	"k8s.io/apimachinery/pkg/util/validation/field"
	"k8s.io/utils/ptr"

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
			"the DNS name of the coordinator must have at most %d characters, because it is the value of a label; it has %d: shorten "+
				"metadata.name, the name of the replicatedJob or spec.network.subdomain",
			MaxNameLength, len(name))))
	}
	if len(errs) == 0 && len(validation.IsValidLabelValue(name)) > 0 {
		errs = append(errs, field.Invalid(path, name, "the DNS name of the coordinator must consist of "+subdomainCharacters+
			", because it is the value of a label"))
	}
	return errs
}

// coordinatorPod returns the first reason why the pod does not exist.
func coordinatorPod(spec *jobset.JobSetSpec, path *field.Path) *field.Error {
	c := spec.Coordinator
	byName := jobNames(spec)
	rj, ok := byName[c.ReplicatedJob]
	if !ok {
		return field.Invalid(path.Child("replicatedJob"), c.ReplicatedJob, existing(byName))
	}
	if count := replicas(rj); c.JobIndex < 0 || c.JobIndex >= count {
		return field.Invalid(path.Child("jobIndex"), c.JobIndex, outside("replicas", rj.Name, count))
	}
	if !isIndexed(rj) {
		return field.Invalid(path.Child("replicatedJob"), c.ReplicatedJob,
			"must be a replicatedJob with completionMode Indexed, because only its pods have a stable DNS name")
	}
	if !hasPodIndexes(rj) {
		return field.Invalid(path.Child("replicatedJob"), c.ReplicatedJob, fmt.Sprintf(
			"must be a replicatedJob whose number of pods is known: set completions in the template of %q, for example to %d", rj.Name,
			max(ptr.Deref(rj.Template.Spec.Parallelism, 1), 1)))
	}
	if count := *rj.Template.Spec.Completions; c.PodIndex < 0 || c.PodIndex >= count {
		return field.Invalid(path.Child("podIndex"), c.PodIndex, outside("completions", rj.Name, count))
	}
	return nil
}

// outside says which indexes there are.
func outside(what, name string, count int32) string {
	if count <= 0 {
		return fmt.Sprintf("must be the index of a pod, but %q has %s: %d", name, what, count)
	}
	if count == 1 {
		return fmt.Sprintf("must be 0, because %q has %s: 1", name, what)
	}
	return fmt.Sprintf("must be from 0 to %d, because %q has %s: %d", count-1, name, what, count)
}
