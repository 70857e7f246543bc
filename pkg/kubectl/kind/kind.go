// Copyright The jobset-apiserver Authors.
// SPDX-License-Identifier: Apache-2.0

// Package kind describes the kinds of objects that the plugin knows. A kind is a value: the words for it, and what each
// command does for it.
package kind

import (
	"slices"

	"github.com/jobset-apiserver/jobset-apiserver/pkg/kubectl/action"
	"github.com/jobset-apiserver/jobset-apiserver/pkg/kubectl/cli"
	"github.com/jobset-apiserver/jobset-apiserver/pkg/kubectl/complete"
	"github.com/jobset-apiserver/jobset-apiserver/pkg/kubectl/events"
	"github.com/jobset-apiserver/jobset-apiserver/pkg/kubectl/logs"
	"github.com/jobset-apiserver/jobset-apiserver/pkg/kubectl/preview"
	"github.com/jobset-apiserver/jobset-apiserver/pkg/kubectl/timeline"
	"github.com/jobset-apiserver/jobset-apiserver/pkg/kubectl/top"
	"github.com/jobset-apiserver/jobset-apiserver/pkg/kubectl/tree"
	"github.com/jobset-apiserver/jobset-apiserver/pkg/kubectl/why"
)

// Kind is a kind and what the commands do for it. A command does not take the kinds that have nothing for it.
type Kind struct {
	cli.Kind
	// Preview asks about an object of a manifest.
	Preview preview.Previewer
	// Tree, Top, Timeline, Logs and Why read an object for the commands of these names.
	Tree     tree.Loader
	Top      top.Loader
	Timeline timeline.Reader
	Logs     logs.Loader
	Why      why.Diagnoser
	// Events reads an object and says what belongs to it.
	Events events.Loader
	// Actions carries out restart, suspend, resume, cancel and retry.
	Actions action.Target
	// Flags completes flags with values that fit an object.
	Flags complete.Values
}

// JobSet is the kind JobSet.
var JobSet = Kind{
	Kind: cli.JobSet,
	Tree: tree.JobSet, Top: top.JobSet, Timeline: timeline.JobSet, Logs: logs.JobSet, Why: why.JobSet, Actions: action.JobSet{},
	Preview: preview.JobSet, Flags: complete.JobSet, Events: events.JobSet,
}

// SequentialJob is the kind SequentialJob.
var SequentialJob = Kind{
	Kind: cli.SequentialJob,
	Tree: tree.SequentialJob, Timeline: timeline.SequentialJob, Logs: logs.SequentialJob, Why: why.SequentialJob,
	Actions: action.SequentialJob{}, Preview: preview.SequentialJob, Flags: complete.SequentialJob, Events: events.SequentialJob,
}

// LeaderWorkerSet is the kind LeaderWorkerSet.
var LeaderWorkerSet = Kind{
	Kind: cli.LeaderWorkerSet,
	Tree: tree.LeaderWorkerSet, Top: top.LeaderWorkerSet, Timeline: timeline.LeaderWorkerSet, Why: why.LeaderWorkerSet,
	Logs: logs.LeaderWorkerSet, Events: events.LeaderWorkerSet,
	Actions: action.LeaderWorkerSet{}, Preview: preview.LeaderWorkerSet, Flags: complete.LeaderWorkerSet,
}

// DisaggregatedSet is the kind DisaggregatedSet. Commands that do not take it take its LeaderWorkerSets.
var DisaggregatedSet = Kind{
	Kind: cli.DisaggregatedSet, Tree: tree.DisaggregatedSet, Timeline: timeline.DisaggregatedSet, Events: events.DisaggregatedSet,
	Why: why.DisaggregatedSet,
}

// Run is the kind Run: the records of the archive.
var Run = Kind{Kind: cli.Run, Tree: tree.Run, Timeline: timeline.Run, Why: why.Run}

// Trees returns the kinds that tree takes.
func Trees(kinds []Kind) []cli.For[tree.Loader] {
	return choose(kinds, func(k Kind) (tree.Loader, bool) { return k.Tree, k.Tree != nil })
}

// Tops returns the kinds that top takes.
func Tops(kinds []Kind) []cli.For[top.Loader] {
	return choose(kinds, func(k Kind) (top.Loader, bool) { return k.Top, k.Top != nil })
}

// Timelines returns the kinds that timeline takes.
func Timelines(kinds []Kind) []cli.For[timeline.Reader] {
	return choose(kinds, func(k Kind) (timeline.Reader, bool) { return k.Timeline, k.Timeline != nil })
}

// Logs returns the kinds that logs takes.
func Logs(kinds []Kind) []cli.For[logs.Loader] {
	return choose(kinds, func(k Kind) (logs.Loader, bool) { return k.Logs, k.Logs != nil })
}

// Whys returns the kinds that why takes.
func Whys(kinds []Kind) []cli.For[why.Diagnoser] {
	return choose(kinds, func(k Kind) (why.Diagnoser, bool) { return k.Why, k.Why != nil })
}

// Events returns the kinds that events takes.
func Events(kinds []Kind) []cli.For[events.Loader] {
	return choose(kinds, func(k Kind) (events.Loader, bool) { return k.Events, k.Events != nil })
}

// Actions returns the kinds that actions take.
func Actions(kinds []Kind) []cli.For[action.Target] {
	return choose(kinds, func(k Kind) (action.Target, bool) { return k.Actions, k.Actions != nil })
}

// Previews returns the kinds that preview takes.
func Previews(kinds []Kind) []cli.For[preview.Previewer] {
	return choose(kinds, func(k Kind) (preview.Previewer, bool) { return k.Preview, k.Preview != nil })
}

// Flags returns the kinds with values of flags.
func Flags(kinds []Kind) []cli.For[complete.Values] {
	return choose(kinds, func(k Kind) (complete.Values, bool) { return k.Flags, k.Flags != nil })
}

// Of returns the kinds that a command of the name takes, if it is an action; all of them if it is not.
func Of(command string, kinds []Kind) []Kind {
	has := func(k Kind) bool { return k.Actions != nil && k.Actions.Has(command) }
	if !slices.ContainsFunc(kinds, has) {
		return kinds
	}
	return slices.DeleteFunc(slices.Clone(kinds), func(k Kind) bool { return !has(k) })
}

func choose[T any](kinds []Kind, of func(Kind) (T, bool)) []cli.For[T] {
	var out []cli.For[T]
	for _, k := range kinds {
		if do, found := of(k); found {
			out = append(out, cli.For[T]{Kind: k.Kind, Do: do})
		}
	}
	return out
}
