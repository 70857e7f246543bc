// Copyright The jobset-apiserver Authors.
// SPDX-License-Identifier: Apache-2.0

package validation

import (
	"fmt"
	"regexp"

	batchv1 "k8s.io/api/batch/v1"
	"k8s.io/apimachinery/pkg/util/validation"
	"k8s.io/apimachinery/pkg/util/validation/field"
	"k8s.io/utils/ptr"

	"github.com/jobset-apiserver/jobset-apiserver/pkg/apis/batch"
	jobsetvalidation "github.com/jobset-apiserver/jobset-apiserver/pkg/apis/jobset/validation"
)

// MaxNameLength is the limit of the names of Jobs, and of pods that have a host name: they become values of labels.
const MaxNameLength = validation.DNS1123LabelMaxLength

// What names must be that are the beginning of labels.
var (
	labelName      = regexp.MustCompile(`^[-a-z0-9]+$`)
	alphabeticName = regexp.MustCompile(`^[a-z][-a-z0-9]*$`)
)

// GeneratedName is a name that begins with that of the sequence.
type GeneratedName struct {
	// What has the name, in the plural.
	What string
	// Name is the longest one of its kind.
	Name string
	// label is whether it must be a label, without dots; alphabetic whether it must begin with a letter.
	label, alphabetic bool
}

// LongestName returns the longest name that the name of the sequence leads to, of a Job or a pod.
func LongestName(sj *batch.SequentialJob) GeneratedName {
	return longestName(sj, stepsOf(&sj.Spec, nil))
}

func longestName(sj *batch.SequentialJob, steps []step) GeneratedName {
	var longest GeneratedName
	for i := range steps {
		for _, name := range generatedNames(sj.Name, &steps[i]) {
			if len(name.Name) > len(longest.Name) {
				longest.What, longest.Name = name.What, name.Name
			}
			longest.label = longest.label || name.label
			longest.alphabetic = longest.alphabetic || name.alphabetic
		}
	}
	return longest
}

// generatedNames are the names of the child of a step, and of its Jobs and pods as far as they are known.
func generatedNames(sequence string, s *step) []GeneratedName {
	child := childName(sequence, s.index)
	switch {
	case s.jobSet != nil:
		names := []GeneratedName{{What: "JobSets", Name: child, label: true, alphabetic: true}}
		for i := range s.jobSet.Spec.ReplicatedJobs {
			rj := s.jobSet.Spec.ReplicatedJobs[i] // a copy
			if rj.Template.Spec.CompletionMode == nil {
				rj.Template.Spec.CompletionMode = ptr.To(batchv1.IndexedCompletion) // the default of a JobSet
			}
			if pod, known := jobsetvalidation.LongestPodName(child, &rj); known {
				names = append(names, GeneratedName{What: "pods", Name: pod})
			} else {
				names = append(names, GeneratedName{What: "Jobs", Name: jobsetvalidation.LongestJobName(child, &rj)})
			}
		}
		return names
	case s.job != nil && ptr.Deref(s.job.Spec.CompletionMode, "") == batchv1.IndexedCompletion:
		last := max(ptr.Deref(s.job.Spec.Completions, 1)-1, 0)
		return []GeneratedName{{What: "pods", Name: fmt.Sprintf("%s-%d", child, last), label: true}}
	}
	return []GeneratedName{{What: "Jobs", Name: child}}
}

// validateChildNames checks that the name of the sequence leads to valid names (docs/reference/batch.md#names). One error says
// how long it may be.
func validateChildNames(sj *batch.SequentialJob, steps []step) field.ErrorList {
	if len(validation.IsDNS1123Subdomain(sj.Name)) > 0 {
		return nil // reported for the metadata
	}
	path := field.NewPath("metadata", "name")
	longest := longestName(sj, steps)
	switch {
	case longest.alphabetic && !alphabeticName.MatchString(sj.Name):
		return field.ErrorList{field.Invalid(path, sj.Name,
			"must consist of lower-case letters, digits and '-', beginning with a letter, because the Jobs and pods of JobSets are named after it")}
	case longest.label && !labelName.MatchString(sj.Name):
		return field.ErrorList{field.Invalid(path, sj.Name, "must consist of lower-case letters, digits and '-', because pods with an index "+
			"are named after it")}
	}
	if by := len(longest.Name) - MaxNameLength; by > 0 {
		allowed := len(sj.Name) - by
		if allowed < 1 {
			return field.ErrorList{field.Invalid(path, sj.Name, fmt.Sprintf("must be shorter, %s; shorten the names in the steps, too",
				longest.why()))}
		}
		return field.ErrorList{field.Invalid(path, sj.Name, fmt.Sprintf("must have at most %d characters, %s", allowed, longest.why()))}
	}
	return nil
}

func (n GeneratedName) why() string {
	return fmt.Sprintf("because names of %s have at most %d: %q would have %d", n.What, MaxNameLength, n.Name, len(n.Name))
}
