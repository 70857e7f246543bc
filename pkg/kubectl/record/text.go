// Copyright The jobset-apiserver Authors.
// SPDX-License-Identifier: Apache-2.0

package record

import (
	"fmt"
	"slices"
	"strings"
	"time"

	archivev1alpha1 "github.com/jobset-apiserver/jobset-apiserver/pkg/apis/archive/v1alpha1"
	"github.com/jobset-apiserver/jobset-apiserver/pkg/kubectl/cli"
)

// Sentence says that a run is a record, of what, how and when the run ended, and who had a part in it.
func Sentence(run *archivev1alpha1.Run, now time.Time) string {
	return fmt.Sprintf("record of %s %s/%s, execution %d: %s", cli.Clean(run.Object.Kind), cli.Clean(run.Namespace),
		cli.Clean(run.Object.Name), run.Object.Execution, Ended(run, now))
}

// Ended says how and when a run ended, and which users created and ended it.
func Ended(run *archivev1alpha1.Run, now time.Time) string {
	text := fmt.Sprintf("%s %s (%s)", cli.Clean(string(run.State)), cli.Ago(now, run.EndTime.Time),
		run.EndTime.UTC().Format("2006-01-02 15:04:05 MST"))
	if run.User != "" {
		text += ", created by " + cli.Clean(run.User)
	}
	if run.EndUser != "" {
		text += ", " + endWord(run.State) + " by " + cli.Clean(run.EndUser)
	}
	return text
}

func endWord(state archivev1alpha1.RunState) string {
	switch state {
	case archivev1alpha1.RunCancelled, archivev1alpha1.RunDeleted:
		return strings.ToLower(string(state))
	}
	return "ended"
}

// Object is the object that ran, as commands take it: the shortest word for its kind, and its name.
func Object(run *archivev1alpha1.Run) string {
	return Short(run.Object.Kind) + "/" + cli.Clean(run.Object.Name)
}

// Short is the shortest word for a kind.
func Short(kind string) string {
	if at := slices.IndexFunc(cli.Kinds, func(k cli.Kind) bool { return k.Title == kind }); at >= 0 {
		return cli.Kinds[at].Short()
	}
	return strings.ToLower(cli.Clean(kind))
}

// Reason is why a run ended in its state, in a sentence if there is one.
func Reason(run *archivev1alpha1.Run) string {
	reason, message := cli.Clean(run.Reason), cli.Clean(run.Message)
	switch {
	case message == "":
		return reason
	case reason == "":
		return message
	}
	return reason + ": " + message
}

// Last returns the newest first cause of a run; nil if it has none.
func Last(run *archivev1alpha1.Run) *archivev1alpha1.RunFailure {
	if n := len(run.Failures); n > 0 {
		return &run.Failures[n-1]
	}
	return nil
}

// Failure says what failed first in an attempt.
func Failure(f *archivev1alpha1.RunFailure) string {
	text := cli.Clean(f.Child)
	if f.Pod != "" {
		text = "pod " + cli.Clean(f.Pod)
	}
	if f.Node != "" {
		text += " on node " + cli.Clean(f.Node)
	}
	if how := How(f); how != "" {
		text += ": " + how
	}
	if f.Message != "" {
		text += ": " + cli.Clean(f.Message)
	}
	return strings.TrimPrefix(strings.TrimSpace(text), ": ")
}

// How says how a container failed.
func How(f *archivev1alpha1.RunFailure) string {
	var how []string
	if f.Container != "" {
		how = append(how, "container "+cli.Clean(f.Container))
	}
	if f.ExitCode != nil {
		how = append(how, fmt.Sprintf("exit code %d", *f.ExitCode))
	}
	if f.Signal != nil {
		how = append(how, fmt.Sprintf("signal %d", *f.Signal))
	}
	if f.Reason != "" {
		how = append(how, cli.Clean(f.Reason))
	}
	return strings.Join(how, ", ")
}

// Cell is text for a cell of a CSV file: without control characters, and never a formula to a spreadsheet, which begins with one of the
// signs below.
func Cell(text string) string {
	text = cli.Clean(text)
	if text != "" && strings.ContainsRune("=+-@", rune(text[0])) {
		return "'" + text
	}
	return text
}
