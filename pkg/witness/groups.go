// Copyright The jobset-apiserver Authors.
// SPDX-License-Identifier: Apache-2.0

package witness

import (
	"maps"

	"k8s.io/apimachinery/pkg/types"
)

// Groups are API groups that a server has looked at: the store had the owners of all objects in the cluster, and no
// CustomResourceDefinition hid objects from the server. Each has the UID of the APIService that routed it to the server then, which is
// empty if there was none. A group that is not in the list is looked at before it is served.
type Groups map[string]types.UID

// Common returns the groups that both halves of the witness have, under the same APIService. Without a list in the record, a user has
// deleted the record, and the key decides. A key without a list was written by an older version last: that does not follow who answers for
// the groups, and leaves the list in the record as it is, so that the result is nil.
func Common(key, record Groups) Groups {
	switch {
	case key == nil:
		return nil
	case record == nil:
		return maps.Clone(key)
	}
	common := Groups{}
	for group, uid := range key {
		if other, found := record[group]; found && other == uid {
			common[group] = uid
		}
	}
	return common
}

// With returns the groups after changes: a group with a UID is added, and one with nil is removed. The result of no changes is the same
// list.
func (g Groups) With(changes map[string]*types.UID) Groups {
	if len(changes) == 0 {
		return g
	}
	next := Groups{}
	maps.Copy(next, g)
	for group, uid := range changes {
		if uid == nil {
			delete(next, group)
		} else {
			next[group] = *uid
		}
	}
	return next
}

// Equal returns whether two lists are the same. One that does not exist differs from an empty one.
func (g Groups) Equal(other Groups) bool { return (g == nil) == (other == nil) && maps.Equal(g, other) }
