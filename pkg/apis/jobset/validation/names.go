// Copyright The jobset-apiserver Authors.
// SPDX-License-Identifier: Apache-2.0

package validation

import (
	"fmt"
	"regexp"

	batchv1 "k8s.io/api/batch/v1"
	apivalidation "k8s.io/apimachinery/pkg/api/validation"
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

// What names must consist of. Kubernetes checks them with regular expressions, which are hard to read.
const (
	labelCharacters     = "lower-case letters, digits and '-', beginning with a letter and ending with a letter or digit"
	subdomainCharacters = "lower-case letters, digits, '-' and '.', beginning and ending with a letter or digit"
)

var (
	labelName = regexp.MustCompile(`^[a-z]([-a-z0-9]*[a-z0-9])?$`)
	labelPart = regexp.MustCompile(`^[-a-z0-9]+$`)
)

// label checks a name that must be a DNS-1035 label.
func label(path *field.Path, name, why string) field.ErrorList {
	if len(name) > MaxNameLength {
		return field.ErrorList{field.Invalid(path, name, fmt.Sprintf("must have at most %d characters%s; it has %d", MaxNameLength, why,
			len(name)))}
	}
	if !labelName.MatchString(name) {
		return field.ErrorList{field.Invalid(path, name, "must consist of "+labelCharacters+why)}
	}
	return nil
}

// setName checks the name of a set for the metadata. A set without replicatedJobs has no Jobs that are named after it.
func setName(name string, prefix bool) []string {
	if len(apivalidation.NameIsDNSSubdomain(name, prefix)) > 0 {
		return []string{"must consist of " + labelCharacters}
	}
	return nil
}

// validateNames checks the names of Jobs and pods. What is wrong with the name of the set is reported there, once.
func validateNames(js *jobset.JobSet, metadata, path *field.Path) field.ErrorList {
	if len(validation.IsDNS1123Subdomain(js.Name)) > 0 || len(js.Spec.ReplicatedJobs) == 0 {
		return nil // reported for metadata.name
	}
	if !labelName.MatchString(js.Name) {
		return field.ErrorList{field.Invalid(metadata.Child("name"), js.Name, "must consist of "+labelCharacters+
			", because Jobs and pods are named after it")}
	}
	var errs field.ErrorList
	worst := tooLong{}
	for i := range js.Spec.ReplicatedJobs {
		rj, p := &js.Spec.ReplicatedJobs[i], path.Index(i).Child("name")
		long := longestName(js, rj)
		switch {
		case rj.Name == "": // reported on its own
		case !labelPart.MatchString(rj.Name):
			errs = append(errs, field.Invalid(p, rj.Name, "must consist of lower-case letters, digits and '-', because Jobs and pods are named "+
				"after it"))
		case long.by >= len(rj.Name) && long.by > worst.by:
			worst = long
		case long.by > 0 && long.by < len(rj.Name):
			errs = append(errs, field.Invalid(p, rj.Name, fmt.Sprintf("must have at most %d characters, %s; or shorten metadata.name",
				len(rj.Name)-long.by, long)))
		}
	}
	if worst.by > 0 {
		errs = append(errs, field.Invalid(metadata.Child("name"), js.Name, fmt.Sprintf("must have at most %d characters, %s",
			max(len(js.Name)-worst.by, 1), worst)))
	}
	return errs
}

// tooLong is a generated name, and by how many characters it is too long.
type tooLong struct {
	what, name string
	by         int
}

func (l tooLong) String() string {
	return fmt.Sprintf("because names of %s have at most %d: %q would have %d", l.what, MaxNameLength, l.name, len(l.name))
}

// longestName is the name of a Job, or that of a pod if it is known.
func longestName(js *jobset.JobSet, rj *jobset.ReplicatedJob) tooLong {
	long := tooLong{what: "Jobs", name: LongestJobName(js.Name, rj)}
	if pod, known := LongestPodName(js.Name, rj); known {
		long.what, long.name = "pods", pod
	}
	long.by = len(long.name) - MaxNameLength
	return long
}
