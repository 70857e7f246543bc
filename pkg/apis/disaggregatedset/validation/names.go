// Copyright The jobset-apiserver Authors.
// SPDX-License-Identifier: Apache-2.0

package validation

import (
	"fmt"
	"strconv"
	"strings"

	"k8s.io/apimachinery/pkg/util/validation"
	"k8s.io/apimachinery/pkg/util/validation/field"
	"k8s.io/utils/ptr"

	"github.com/jobset-apiserver/jobset-apiserver/pkg/apis/disaggregatedset"
	"github.com/jobset-apiserver/jobset-apiserver/pkg/apis/leaderworkerset"
	lwsvalidation "github.com/jobset-apiserver/jobset-apiserver/pkg/apis/leaderworkerset/validation"
)

// childName returns a name as long as the longest one of the LeaderWorkerSets of a role: that of the last slice.
func childName(ds *disaggregatedset.DisaggregatedSet, role *disaggregatedset.DisaggregatedRoleSpec) string {
	slice := min(max(ptr.Deref(ds.Spec.Slices, 1), 1), maxSlices) - 1
	return strings.Join([]string{ds.Name, strconv.Itoa(int(slice)), strings.Repeat("0", revisionLength), role.Name}, "-")
}

// validateName checks that all names that contain the name of the role are short enough.
func validateName(ds *disaggregatedset.DisaggregatedSet, role *disaggregatedset.DisaggregatedRoleSpec, path *field.Path) field.ErrorList {
	if !roleNames.MatchString(role.Name) || len(role.Name) > maxRoleName {
		return field.ErrorList{field.Invalid(path, role.Name,
			fmt.Sprintf("must have from 1 to %d lower-case letters, digits and '-', and begin and end with a letter or digit", maxRoleName))}
	}
	var errs field.ErrorList
	if n := len(childName(ds, role)) + len("-prv"); n > validation.DNS1035LabelMaxLength {
		errs = append(errs, field.Invalid(path, role.Name, fmt.Sprintf(
			"must be shorter: with the name of the set, the names of Services would have %d characters, and may have %d; "+
				"both names together may have %d", n, validation.DNS1035LabelMaxLength,
			validation.DNS1035LabelMaxLength-(n-len(ds.Name)-len(role.Name)))))
	}
	if n := len(ds.Name) + 1 + len(role.Name); external(role) && n > validation.DNS1123SubdomainMaxLength {
		errs = append(errs, field.Invalid(path, role.Name, fmt.Sprintf(
			"must be shorter: the name of the scaler would have %d characters, and may have %d",
			n, validation.DNS1123SubdomainMaxLength)))
	}
	return errs
}

// budget returns how long the names of LeaderWorkerSets of a role can be, and by how many characters they exceed the
// limit, and what is safe.
func budget(ds *disaggregatedset.DisaggregatedSet,
	role *disaggregatedset.DisaggregatedRoleSpec) (b lwsvalidation.NameBudget, beyondLimit, beyondSafe int) {
	child := &leaderworkerset.LeaderWorkerSet{Spec: role.Spec}
	child.Name = childName(ds, role)
	if external(role) {
		child.Spec.Replicas = ptr.To[int32](1) // its scaler decides
	}
	b = lwsvalidation.Budget(child)
	return b, len(child.Name) - b.Limit, len(child.Name) - b.Safe
}

// validateChildNames refuses roles whose LeaderWorkerSets would be refused, because their pods could not be created.
// Other errors about names come first.
func validateChildNames(ds *disaggregatedset.DisaggregatedSet, others field.ErrorList) (errs field.ErrorList) {
	named := map[string]bool{}
	for _, err := range others {
		named[err.Field] = true
	}
	for i := range ds.Spec.Roles {
		role, path := &ds.Spec.Roles[i], field.NewPath("spec", "roles").Index(i).Child("name")
		b, beyond, _ := budget(ds, role)
		if beyond <= 0 || named[path.String()] {
			continue
		}
		errs = append(errs, field.Invalid(path, role.Name, fmt.Sprintf(
			"must be shorter: the names of the set and of the role may have %d characters together, and have %d. "+
				"LeaderWorkerSets of the role would have names of %d characters, and may have %d. %s",
			len(ds.Name)+len(role.Name)-beyond, len(ds.Name)+len(role.Name), b.Limit+beyond, b.Limit, b.Reason())))
	}
	return errs
}

// childNameWarnings warns of a role whose LeaderWorkerSets have names with which pods can be created only sometimes, or not at all.
func childNameWarnings(ds *disaggregatedset.DisaggregatedSet, index int) []string {
	role := &ds.Spec.Roles[index]
	_, _, beyond := budget(ds, role)
	if beyond <= 0 {
		return nil
	}
	return []string{fmt.Sprintf("spec.roles[%d].name: has, with the name of the set, %d characters; use at most %d. Longer names of "+
		"LeaderWorkerSets leave no room for the hash in the label "+
		"controller-revision-hash of their pods, so that most pods cannot be created", index, len(ds.Name)+len(role.Name),
		len(ds.Name)+len(role.Name)-beyond)}
}

// stopped returns the set without groups.
func stopped(ds *disaggregatedset.DisaggregatedSet) *disaggregatedset.DisaggregatedSet {
	out := *ds
	out.Spec.Roles = append([]disaggregatedset.DisaggregatedRoleSpec(nil), ds.Spec.Roles...)
	for i := range out.Spec.Roles {
		out.Spec.Roles[i].Spec.Replicas = ptr.To[int32](0)
	}
	return &out
}
