// Copyright The jobset-apiserver Authors.
// SPDX-License-Identifier: Apache-2.0

package validation

import (
	"fmt"
	"strconv"

	apivalidation "k8s.io/apimachinery/pkg/api/validation"
	"k8s.io/apimachinery/pkg/util/intstr"
	"k8s.io/apimachinery/pkg/util/validation"
	"k8s.io/apimachinery/pkg/util/validation/field"
	"k8s.io/utils/ptr"

	"github.com/jobset-apiserver/jobset-apiserver/pkg/apis/leaderworkerset"
)

const (
	// maxLabel is the limit of the label controller-revision-hash, which the StatefulSet controller puts on each pod. Its value is the
	// name of the StatefulSet, a dash and a hash.
	maxLabel = validation.LabelValueMaxLength
	// longestHash is the length of most hashes. They are 32-bit numbers in decimal digits: 77 of 100 have 10, 21 have 9, and 2 have fewer.
	longestHash = 10
)

// setName checks the name of a set for the metadata: names of pods and Services begin with it.
func setName(name string, prefix bool) []string {
	if !prefix && len(name) > validation.DNS1035LabelMaxLength {
		return []string{fmt.Sprintf("must have at most %d characters; it has %d", validation.DNS1035LabelMaxLength, len(name))}
	}
	if len(apivalidation.NameIsDNS1035Label(name, prefix)) > 0 {
		return []string{"must consist of lower-case letters, digits and '-', beginning with a letter and ending with a letter or digit"}
	}
	return nil
}

// NameBudget is how long the name of a set can be.
type NameBudget struct {
	// Limit is the highest number of characters with which pods can be created at all, but for rare hashes: those of a
	// StatefulSet whose hash has 9 digits. Each StatefulSet has a hash of its own, and another one after each change of
	// its template.
	Limit int
	// Safe is the number of characters up to which pods can be created whatever the hashes are.
	Safe int
	// Label is the longest value of the label that bounds the name, with the name as it is.
	Label string
	// Indexed means that the label holds the index of a group, too.
	Indexed bool
}

// Budget returns how long the name of a set can be. The pods of a worker StatefulSet, which is named after the set and a group, carry
// the longest label; with one pod in each group only the leaders have one.
func Budget(lws *leaderworkerset.LeaderWorkerSet) NameBudget {
	owner := lws.Name
	if ptr.Deref(lws.Spec.LeaderWorkerTemplate.GroupSize, 1) > 1 {
		owner += "-" + strconv.FormatInt(highestGroup(&lws.Spec), 10)
	}
	label := owner + "-" + "0123456789"[:longestHash]
	safe := maxLabel - (len(label) - len(lws.Name))
	return NameBudget{Limit: safe + 1, Safe: safe, Label: label, Indexed: owner != lws.Name}
}

// highestGroup is the highest index of a group, those of a surge included.
func highestGroup(spec *leaderworkerset.LeaderWorkerSetSpec) int64 {
	replicas := ptr.Deref(spec.Replicas, 1)
	groups := int64(max(replicas, 0))
	if rolling := spec.RolloutStrategy.RollingUpdateConfiguration; rolling != nil && rolling.MaxSurge != nil {
		if surge, err := intstr.GetScaledValueFromIntOrPercent(rolling.MaxSurge, int(replicas), true); err == nil {
			groups += min(max(int64(surge), 0), groups)
		}
	}
	return max(groups-1, 0)
}

// validateNameLength refuses a new set whose pods could not be created.
func validateNameLength(lws *leaderworkerset.LeaderWorkerSet) field.ErrorList {
	if len(validation.IsDNS1035Label(lws.Name)) > 0 {
		return nil // reported for the metadata
	}
	budget := Budget(lws)
	if len(lws.Name) <= budget.Limit {
		return nil
	}
	return field.ErrorList{field.Invalid(field.NewPath("metadata", "name"), lws.Name, fmt.Sprintf(
		"must have at most %d characters; it has %d. %s", budget.Limit, len(lws.Name), budget.Reason()))}
}

// Reason explains the limit.
func (b NameBudget) Reason() string {
	label := b.Label[:len(b.Label)-(b.Limit-b.Safe)]
	return fmt.Sprintf("Pods carry it in the label controller-revision-hash, together with %s: %q would have %d of at most %d characters",
		b.parts(), label, len(label), maxLabel)
}

// parts describes what the label holds beside the name.
func (b NameBudget) parts() string {
	if b.Indexed {
		return "the index of the group and a hash"
	}
	return "a hash"
}

// Pods names the pods that carry the label, and share a hash.
func (b NameBudget) Pods() string {
	if b.Indexed {
		return "the workers of each group"
	}
	return "pods"
}
