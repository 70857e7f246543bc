// Copyright The jobset-apiserver Authors.
// SPDX-License-Identifier: Apache-2.0

package validation

import (
	"fmt"
	"strings"

	batchv1 "k8s.io/api/batch/v1"
	"k8s.io/apimachinery/pkg/util/validation"
	"k8s.io/apimachinery/pkg/util/validation/field"
	"k8s.io/utils/ptr"

	"github.com/jobset-apiserver/jobset-apiserver/pkg/apis/jobset"
)

// MaxNameLength is the limit of every name that is generated for a set: of Jobs, pods and claims, and of the label that
// names the coordinator.
const MaxNameLength = validation.DNS1035LabelMaxLength

// podSuffix stands for the random end of a pod's name.
const podSuffix = "-xxxxx"

// LongestJobName is the name of the Job with the highest index, or of the first one when there are no Jobs.
func LongestJobName(set string, rj *jobset.ReplicatedJob) string {
	return fmt.Sprintf("%s-%s-%d", set, rj.Name, lastIndex(replicas(rj)))
}

// LongestPodName is the name of the pod with the highest index in that Job. Only pods of Indexed Jobs with completions
// have names that are known before they exist.
func LongestPodName(set string, rj *jobset.ReplicatedJob) (string, bool) {
	if !hasPodIndexes(rj) {
		return "", false
	}
	return fmt.Sprintf("%s-%d%s", LongestJobName(set, rj), lastIndex(*rj.Template.Spec.Completions), podSuffix), true
}

// CoordinatorName is the stable DNS name of the coordinator pod, which becomes the value of a label.
func CoordinatorName(js *jobset.JobSet) string {
	c := js.Spec.Coordinator
	subdomain := js.Name
	if js.Spec.Network != nil && js.Spec.Network.Subdomain != "" {
		subdomain = js.Spec.Network.Subdomain
	}
	return fmt.Sprintf("%s-%s-%d-%d.%s", js.Name, c.ReplicatedJob, c.JobIndex, c.PodIndex, subdomain)
}

// ClaimName is the name of the claim made from a template.
func ClaimName(set, template string) string { return template + "-" + set }

func replicas(rj *jobset.ReplicatedJob) int32 { return ptr.Deref(rj.Replicas, 1) }

func hasPodIndexes(rj *jobset.ReplicatedJob) bool {
	return isIndexed(rj) && rj.Template.Spec.Completions != nil
}

func isIndexed(rj *jobset.ReplicatedJob) bool {
	return ptr.Deref(rj.Template.Spec.CompletionMode, "") == batchv1.IndexedCompletion
}

func lastIndex(count int32) int32 { return max(count-1, 0) }

// validateGeneratedNames checks the names of the Jobs of a replicatedJob and of their pods. The name of the pod is
// checked only if that of the Job is valid.
func validateGeneratedNames(js *jobset.JobSet, rj *jobset.ReplicatedJob, path *field.Path) field.ErrorList {
	if len(validation.IsDNS1123Subdomain(js.Name)) > 0 {
		return nil // reported for metadata.name
	}
	job := LongestJobName(js.Name, rj)
	if errs := label1035(path, job, job, "the name of the Job with the highest index is %q, %d characters: shorten metadata.name or the name of the replicatedJob"); len(errs) > 0 {
		return errs
	}
	pod, known := LongestPodName(js.Name, rj)
	if !known {
		return nil
	}
	return label1035(path, pod, job, "the name of the pod with the highest index is like %q, %d characters: shorten metadata.name or the name of the replicatedJob")
}

// label1035 checks that a generated name is a DNS-1035 label. The error carries the given value; tooLong explains a name
// that is too long, and is formatted with the name and its length.
func label1035(path *field.Path, name, value, tooLong string) field.ErrorList {
	var errs field.ErrorList
	if len(name) > MaxNameLength {
		errs = append(errs, field.Invalid(path, value, fmt.Sprintf("must result in names of no more than %d characters; "+tooLong, MaxNameLength, name, len(name))))
		name = strings.TrimRight(name[:MaxNameLength], "-")
	}
	for _, msg := range validation.IsDNS1035Label(name) {
		errs = append(errs, field.Invalid(path, value, "must result in names that are DNS-1035 labels: "+msg))
	}
	return errs
}
