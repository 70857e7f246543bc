// Copyright The jobset-apiserver Authors.
// SPDX-License-Identifier: Apache-2.0

// Package plan holds the values that the plans of several kinds share.
package plan

import (
	"fmt"
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

// Rules about pods that the API refuses to the controllers of the cluster.
const (
	// PodsRefusedAfter is how long pods are refused before that is reported. A quota may be free in a moment, when pods have stopped.
	PodsRefusedAfter = 5 * time.Second
	// RefusedLately is how old a refusal may be to begin with. An older one may be about pods that exist since; a process
	// that has just started does not know.
	RefusedLately = 2 * time.Minute
	// PodsRefusedAgain is how long a refusal is taken for true before it is looked at again, without any event: an event
	// does not say when its cause is gone.
	PodsRefusedAgain = 5 * time.Minute
)

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

// CountPods returns a number of pods in words.
func CountPods(n int) string {
	if n == 1 {
		return "1 pod"
	}
	return fmt.Sprintf("%d pods", n)
}
