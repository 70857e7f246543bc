// Copyright The jobset-apiserver Authors.
// SPDX-License-Identifier: Apache-2.0

package history

import (
	"fmt"
	"maps"
	"slices"
	"strings"
	"time"

	"k8s.io/apimachinery/pkg/types"
)

// Kind is what a client asks for.
type Kind string

// Kinds of operations. Update and UpdateStatus name the resourceVersion that they change; Delete may name a UID.
const (
	Create       Kind = "create"
	Update       Kind = "update"
	UpdateStatus Kind = "update status"
	Delete       Kind = "delete"
	Get          Kind = "get"
	List         Kind = "list"
)

func (k Kind) writes() bool { return k != Get && k != List }

// Outcome is how a request was answered.
type Outcome string

// Outcomes of operations. A request whose outcome is Unknown may have happened.
const (
	Done     Outcome = "done"
	NotFound Outcome = "not found"
	Exists   Outcome = "already exists"
	Conflict Outcome = "conflict"
	Unknown  Outcome = "unknown"
)

// State is the content of an object. Value and Status were written by different requests, each unique in a history.
type State struct {
	UID           types.UID
	Version       int64
	Value, Status string
}

func (s State) String() string {
	return fmt.Sprintf("version %d (uid %.8s, value %q, status %q)", s.Version, s.UID, s.Value, s.Status)
}

// Operation is a request and its answer.
type Operation struct {
	Client int
	Kind   Kind
	// Object is the name; empty for lists.
	Object string
	// UID is the precondition of a Delete, if it has one, and Version the one of updates.
	UID     types.UID
	Version int64
	// Value is what a write sets.
	Value string

	// Start and End are times since the begin of the history. End has no meaning if the outcome is Unknown.
	Start, End time.Duration
	Outcome    Outcome
	// Reason is the error, if there was one.
	Reason string
	// State is the object in the answer, if it is Done and no Delete or List.
	State State
	// Items are the objects of a list, and Version is its resourceVersion.
	Items map[string]State
}

func (o *Operation) String() string {
	var b strings.Builder
	fmt.Fprintf(&b, "client %d, %s to %s: %s %s", o.Client, o.Start.Round(time.Millisecond), o.End.Round(time.Millisecond), o.Kind, o.Object)
	switch {
	case o.Kind == List:
		fmt.Fprintf(&b, "at version %d", o.Version)
		for _, name := range slices.Sorted(maps.Keys(o.Items)) {
			fmt.Fprintf(&b, " %s=%d", name, o.Items[name].Version)
		}
	case o.UID != "":
		fmt.Fprintf(&b, " with uid %.8s", o.UID)
	case o.Version != 0:
		fmt.Fprintf(&b, " of version %d", o.Version)
	}
	if o.Value != "" {
		fmt.Fprintf(&b, " to %q", o.Value)
	}
	fmt.Fprintf(&b, ": %s", o.Outcome)
	if o.State.Version != 0 {
		fmt.Fprintf(&b, ", %s", o.State)
	}
	return b.String()
}

// EventType is the type of a watch event. Listed begins what a watcher saw: the objects that it starts from.
type EventType string

// Types of events. After a Listed that is not the first the watcher was refused (410 Gone) and started again.
const (
	Listed   EventType = "LISTED"
	Added    EventType = "ADDED"
	Modified EventType = "MODIFIED"
	Deleted  EventType = "DELETED"
	Bookmark EventType = "BOOKMARK"
)

// Event is what a watcher received.
type Event struct {
	Type   EventType
	Object string
	// State is the object. A deleted object has the version of its deletion. In Listed and Bookmark, the version stands alone.
	State State
	// Items are the objects of Listed.
	Items map[string]State
	// At is the time since the begin of the history, and Connection the number of the connection on which it came.
	At         time.Duration
	Connection int
}

func (e *Event) String() string {
	return fmt.Sprintf("%s %s %s, connection %d, at %s", e.Type, e.Object, e.State, e.Connection, e.At.Round(time.Millisecond))
}

// Watcher is all that a watcher received, in the order of its arrival.
type Watcher struct {
	Events      []Event
	Connections int
}

// History is what clients and watchers recorded.
type History struct {
	Seed       uint64
	Operations []Operation
	Watchers   []Watcher
	// Final is the list at the end, when all clients had stopped. It is also the last of the operations.
	Final *Operation
	// Unfinished are watchers, by their number, that did not reach the end in time.
	Unfinished []int
	// Duration is how long clients worked.
	Duration time.Duration
}

// Objects returns the names of all objects of the history.
func (h *History) Objects() []string {
	names := map[string]bool{}
	for i := range h.Operations {
		if name := h.Operations[i].Object; name != "" {
			names[name] = true
		}
		for name := range h.Operations[i].Items {
			names[name] = true
		}
	}
	return slices.Sorted(maps.Keys(names))
}
