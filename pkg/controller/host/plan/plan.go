// Copyright The jobset-apiserver Authors.
// SPDX-License-Identifier: Apache-2.0

// Package plan holds the values that the plans of several kinds share.
package plan

import (
	"fmt"
	"maps"
	"strings"
	"time"

	"k8s.io/apimachinery/pkg/types"
)

// Event is an event about an owner.
type Event struct {
	// Type is Normal or Warning.
	Type string
	// Reason is in PascalCase.
	Reason string
	// Action is what was done, like Create, Update or Delete; empty for the usual action.
	Action string
	// Note is a sentence for humans.
	Note string
	// Related is the name of another object that the event is about too; empty for none. Events about different ones do
	// not belong to one series.
	Related string
}

// Ref names one incarnation of an object in the namespace of its owner.
type Ref struct {
	// Name of the object.
	Name string
	// UID of the object.
	UID types.UID
}

// maxNamedAdoptions is how many children an event about adoptions names.
const maxNamedAdoptions = 10

// NoteAdopted returns the note of the event about the n adoptions of one pass. If each had an event of its own, all would
// be folded into the first of them.
func NoteAdopted(n int, name func(i int) string) string {
	var names []string
	for i := range min(n, maxNamedAdoptions) {
		names = append(names, name(i))
	}
	note := "Adopted " + strings.Join(names, ", ")
	if more := n - len(names); more > 0 {
		note += fmt.Sprintf(" and %d more", more)
	}
	return note + ", which had no controller"
}

// PassesAfter is how long refusals and failures that may pass are not reported. While the API server restarts, every
// object would get a condition, and lose it a moment later.
const PassesAfter = 15 * time.Second

// RefusedSince returns since when each pass was refused something. since is the answer of the last pass, and interrupted
// means that the present one was over before all was tried.
func RefusedSince(since, now time.Time, refused, interrupted bool) time.Time {
	switch {
	case !refused && !interrupted:
		return time.Time{}
	case refused && since.IsZero():
		return now
	}
	return since
}

// Refusal is why children were not created, or pods of children.
type Refusal struct {
	// Reason is a reason of a condition.
	Reason string
	// Message is the answer of the API, or why there was none.
	Message string
	// MayPass means that the API has not decided against the children: the next try may succeed without any change.
	MayPass bool
	// At is when pods were refused last; zero for children that the controller creates.
	At time.Time
}

// Restored is what is known of an object in a store that was restored from a backup, if no controller has written its status since.
type Restored struct {
	// Edited means that the rest of the object was written since the restore, and Acted that a user has acted on it.
	Edited, Acted bool
}

// Merged returns a new map with the entries of all maps. Later maps win.
func Merged(all ...map[string]string) map[string]string {
	out := map[string]string{}
	for _, m := range all {
		maps.Copy(out, m)
	}
	return out
}

// Sooner returns the shortest of several times; 0 is never.
func Sooner(times ...time.Duration) (soonest time.Duration) {
	for _, after := range times {
		if soonest == 0 || after != 0 && after < soonest {
			soonest = after
		}
	}
	return soonest
}
