// Copyright The jobset-apiserver Authors.
// SPDX-License-Identifier: Apache-2.0

package history

import (
	"fmt"
	"slices"
	"time"

	"github.com/anishathalye/porcupine"
)

// checkRegisters decides for each object whether its operations are linearizable. The limit bounds the time for each object.
func (c *checker) checkRegisters(limit time.Duration) {
	seen := c.firstSeen()
	for _, object := range c.Objects() {
		operations := c.operationsOf(object, seen)
		switch porcupine.CheckOperationsTimeout(model, operations, limit) {
		case porcupine.Ok:
		case porcupine.Illegal:
			c.add(NotLinearizable, "%s: %s", object, explain(operations, limit))
		case porcupine.Unknown:
			c.add(Undecided, "%s: whether its %d operations are linearizable is not known after %s", object, len(operations), limit)
		}
	}
}

// operationsOf returns the operations of an object for porcupine. Reads without an answer say nothing. A write without an answer
// happened before its value was seen; if it never was, the write is hidden.
func (c *checker) operationsOf(object string, seen map[string]time.Duration) []porcupine.Operation {
	var operations []porcupine.Operation
	hidden := &hidden{updates: map[int64]time.Duration{}}
	add := func(o *Operation, end time.Duration) {
		in := input{o, end, hidden}
		operations = append(operations, porcupine.Operation{ClientId: o.Client, Input: in, Call: int64(o.Start), Return: int64(end)})
	}
	for i := range c.Operations {
		o := &c.Operations[i]
		at, ok := seen[o.Value]
		switch {
		case o.Kind == List && o.Outcome == Done:
			add(readOf(o, object), o.End)
		case o.Object != object, o.Outcome == Unknown && !o.Kind.writes():
		case o.Outcome != Unknown:
			add(o, o.End)
		case ok && o.Value != "":
			add(o, max(at, o.Start))
		default:
			hidden.add(o)
		}
	}
	return operations
}

// readOf returns what a list says about an object.
func readOf(list *Operation, object string) *Operation {
	read := &Operation{Client: list.Client, Kind: Get, Object: object, Start: list.Start, End: list.End, Outcome: NotFound, Reason: "not in a list"}
	if state, ok := list.Items[object]; ok {
		read.Outcome, read.State, read.Reason = Done, state, ""
	}
	return read
}

// firstSeen returns for each value when the first answer or event that shows it had arrived.
func (c *checker) firstSeen() map[string]time.Duration {
	seen := map[string]time.Duration{}
	note := func(s State, at time.Duration) {
		for _, value := range []string{s.Value, s.Status} {
			if first, ok := seen[value]; value != "" && (!ok || at < first) {
				seen[value] = at
			}
		}
	}
	for i := range c.Operations {
		o := &c.Operations[i]
		if o.Outcome != Done {
			continue
		}
		note(o.State, o.End)
		for _, item := range o.Items {
			note(item, o.End)
		}
	}
	for i := range c.Watchers {
		for _, event := range c.Watchers[i].Events {
			note(event.State, event.At)
			for _, item := range event.Items {
				note(item, event.At)
			}
		}
	}
	return seen
}

// explain names the first answer that fits into no order.
func explain(operations []porcupine.Operation, limit time.Duration) string {
	_, info := porcupine.CheckOperationsVerbose(model, operations, limit)
	var longest []int
	for _, partial := range info.PartialLinearizations()[0] {
		if len(partial) > len(longest) {
			longest = partial
		}
	}
	state := model.Init()
	for _, id := range longest {
		_, state = model.Step(state, operations[id].Input, nil)
	}
	var misfit *porcupine.Operation
	for id := range operations {
		if o := &operations[id]; !slices.Contains(longest, id) && (misfit == nil || o.Return < misfit.Return) {
			misfit = o
		}
	}
	if misfit == nil {
		return "not linearizable"
	}
	return fmt.Sprintf("not linearizable: after %d of %d operations, at best, the object is %s, but the answer is [%s]",
		len(longest), len(operations), model.DescribeState(state), misfit.Input.(input))
}
