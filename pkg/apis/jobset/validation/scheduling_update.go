// Copyright The jobset-apiserver Authors.
// SPDX-License-Identifier: Apache-2.0

package validation

import (
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/util/validation/field"
	"k8s.io/utils/ptr"

	generic "github.com/jobset-apiserver/jobset-apiserver/pkg/apis/generic/validation"
	"github.com/jobset-apiserver/jobset-apiserver/pkg/apis/jobset"
	"github.com/jobset-apiserver/jobset-apiserver/pkg/apis/jobset/gates"
	"github.com/jobset-apiserver/jobset-apiserver/pkg/apis/jobset/podgroups"
)

const (
	whenSuspended = fieldIsImmutable + " unless the JobSet is suspended: set spec.suspend to true, and wait until the condition Suspended " +
		"is True"
	sizeOfGang = "parallelism and completions cannot be changed while spec.scheduling makes a gang of the pods; delete and recreate the " +
		"JobSet"
)

// validateSchedulingUpdate checks that groups change only while there are no pods.
func validateSchedulingUpdate(next, prev *jobset.JobSet, path *field.Path) field.ErrorList {
	if ptr.Deref(next.Spec.Suspend, false) && ptr.Deref(prev.Spec.Suspend, false) && isSuspended(&prev.Status) {
		return nil
	}
	return generic.Changed(next.Spec.Scheduling, prev.Spec.Scheduling, path, func(string) string { return whenSuspended })
}

func isSuspended(status *jobset.JobSetStatus) bool {
	for i := range status.Conditions {
		if c := &status.Conditions[i]; c.Type == jobset.ConditionSuspended {
			return c.Status == metav1.ConditionTrue
		}
	}
	return false
}

// validateGangSizes refuses other sizes of Jobs whose pods are a gang: the size of a gang is fixed once its PodGroup exists.
func validateGangSizes(next, prev *jobset.JobSet, opts gates.Gates, path *field.Path) field.ErrorList {
	if !opts.ElasticJobSet || prev.Spec.Scheduling == nil {
		return nil // without the gate, sizes of Jobs never change
	}
	set := podGroups(prev)
	gang := make(map[string]bool, len(set.Jobs))
	for i := range set.Entries {
		for _, name := range set.Entries[i].Targets {
			gang[name] = set.Entries[i].Gang
		}
	}
	stored := jobNames(&prev.Spec)
	var errs field.ErrorList
	for i := range next.Spec.ReplicatedJobs {
		rj := &next.Spec.ReplicatedJobs[i]
		if was := stored[rj.Name]; was != nil && gang[rj.Name] &&
			podgroups.PodsAtOnce(&rj.Template.Spec) != podgroups.PodsAtOnce(&was.Template.Spec) {
			errs = append(errs, field.Forbidden(path.Index(i).Child("template", "spec"), sizeOfGang))
		}
	}
	return errs
}
