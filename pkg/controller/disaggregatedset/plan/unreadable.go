// Copyright The jobset-apiserver Authors.
// SPDX-License-Identifier: Apache-2.0

package plan

import (
	"cmp"
	"fmt"
	"slices"

	"github.com/jobset-apiserver/jobset-apiserver/pkg/apis/disaggregatedset/v1/helper"
)

// AnySlice is the slice of a LeaderWorkerSet whose slice is not known.
const AnySlice int32 = -1

// Unreadable is a LeaderWorkerSet or a scaler that the server cannot read, and that the set controls or may control.
// Which groups it has, and whether it is there at all for the set, is unknown: nothing takes its place, and nothing that
// depends on it is written.
type Unreadable struct {
	// Kind and Name are its kind and name.
	Kind OrphanKind
	Name string
	// Slice and Role are the slice and role of a LeaderWorkerSet; AnySlice and empty if they are not known.
	Slice int32
	Role  string
	// Cause is why it cannot be read.
	Cause string
}

// unreadable returns whether there is an unreadable object for which a function holds.
func (o *Observed) unreadable(is func(Unreadable) bool) bool {
	return slices.ContainsFunc(o.Unreadable, is)
}

// unknown returns whether a slice waits until what belongs to it can be read: a LeaderWorkerSet, or a scaler of which this process does
// not know the size.
func (s *slice) unknown() bool {
	return s.obs.unreadable(func(u Unreadable) bool {
		if u.Kind == OrphanLeaderWorkerSet {
			return u.Slice == AnySlice || u.Slice == s.index
		}
		return slices.ContainsFunc(s.roles, func(r roleState) bool {
			return r.external && r.scaler == nil && u.Name == helper.ScalerName(s.obs.Set.Name, r.Name)
		})
	})
}

// unknownRole returns whether the counts of a role are not known, because one of its LeaderWorkerSets cannot be read.
func (o *Observed) unknownRole(role string) bool {
	return o.unreadable(func(u Unreadable) bool { return u.Kind == OrphanLeaderWorkerSet && (u.Role == "" || u.Role == role) })
}

// waitMessage says what the set waits for; empty if all of its children can be read.
func (o *Observed) waitMessage() string {
	if len(o.Unreadable) == 0 {
		return ""
	}
	first := slices.MinFunc(o.Unreadable, func(a, b Unreadable) int {
		return cmp.Or(cmp.Compare(a.Kind, b.Kind), cmp.Compare(a.Name, b.Name))
	})
	more := ""
	if n := len(o.Unreadable) - 1; n > 0 {
		more = fmt.Sprintf(" (and %d more)", n)
	}
	return fmt.Sprintf("The server cannot read %s %s%s, so what depends on it stays as it is until an administrator repairs or removes it: %s",
		first.Kind, first.Name, more, first.Cause)
}
