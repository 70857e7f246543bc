// Copyright The jobset-apiserver Authors.
// SPDX-License-Identifier: Apache-2.0

package tree

import (
	"context"
	"fmt"
	"slices"
	"strconv"
	"strings"
	"time"

	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"

	archivev1alpha1 "github.com/jobset-apiserver/jobset-apiserver/pkg/apis/archive/v1alpha1"
	batchv1alpha1 "github.com/jobset-apiserver/jobset-apiserver/pkg/apis/batch/v1alpha1"
	"github.com/jobset-apiserver/jobset-apiserver/pkg/kubectl/cli"
	"github.com/jobset-apiserver/jobset-apiserver/pkg/kubectl/record"
)

// Run is the Loader of runs of the archive. What a run had is in its record; nothing else is read.
func Run(ctx context.Context, c *cli.Clients, name string) (View, error) {
	run, err := record.Get(ctx, c, name)
	if err != nil {
		return nil, err
	}
	return &RunTree{
		Name: run.Name, Namespace: run.Namespace, Object: run.Object, State: run.State, Reason: run.Reason, Message: run.Message,
		User: run.User, EndUser: run.EndUser, BeginTime: run.BeginTime, EndTime: run.EndTime, Attempts: run.Attempts, Restarts: run.Restarts,
		Children: run.Children, Failures: run.Failures, run: run,
	}, nil
}

// RunTree is a run with the parts of the object that ran, and what -o json prints. It has the fields of the Run.
type RunTree struct {
	Name      string                       `json:"name"`
	Namespace string                       `json:"namespace"`
	Object    archivev1alpha1.RunObject    `json:"object"`
	State     archivev1alpha1.RunState     `json:"state"`
	Reason    string                       `json:"reason,omitempty"`
	Message   string                       `json:"message,omitempty"`
	User      string                       `json:"user,omitempty"`
	EndUser   string                       `json:"endUser,omitempty"`
	BeginTime metav1.MicroTime             `json:"beginTime"`
	EndTime   metav1.MicroTime             `json:"endTime"`
	Attempts  int32                        `json:"attempts,omitempty"`
	Restarts  int32                        `json:"restarts,omitempty"`
	Children  []archivev1alpha1.RunChild   `json:"children,omitempty"`
	Failures  []archivev1alpha1.RunFailure `json:"failures,omitempty"`

	run *archivev1alpha1.Run
}

// Lines returns the tree as text, below a sentence that says that it is a record. All parts that the record has are shown.
func (t *RunTree) Lines(terminal cli.Terminal, now time.Time, _ bool) []string {
	top := t.item()
	lines := append(terminal.Fold(record.Sentence(t.run, now), "", "  "), "")
	return append(lines, draw(terminal, &top).lines(runColumns)...)
}

// runColumns are the columns of runs: what has ended has no age, but lasted for some time.
var runColumns = func() []cli.Column {
	out := slices.Clone(columns)
	for i := range out {
		if out[i].Title == "AGE" {
			out[i].Title = "LASTED"
		}
	}
	return out
}()

var stateSeverities = map[archivev1alpha1.RunState]severity{
	archivev1alpha1.RunFailed: failed, archivev1alpha1.RunCancelled: leaving, archivev1alpha1.RunDeleted: leaving,
}

// item is the object that ran, with its parts.
func (t *RunTree) item() item {
	top := item{
		name:  strings.ToLower(cli.Clean(t.Object.Kind)) + "/" + cli.Clean(t.Object.Name),
		state: cli.Clean(string(t.State)), restarts: strconv.Itoa(int(t.Restarts)), age: cli.Duration(t.EndTime.Sub(t.BeginTime.Time)),
		message: record.Reason(t.run), severity: stateSeverities[t.State],
	}
	for i := range t.Children {
		top.children = append(top.children, t.child(&t.Children[i]))
	}
	return top
}

// prefixes are what the parts of objects are called.
var prefixes = map[string]string{
	cli.JobSet.Title: "replicatedJob/", cli.SequentialJob.Title: "step/", cli.LeaderWorkerSet.Title: "group/",
}

func (t *RunTree) child(c *archivev1alpha1.RunChild) item {
	it := item{
		name: prefixes[t.Object.Kind] + cli.Clean(c.Name), state: cli.Clean(c.State), ready: of(int(c.Ready+c.Succeeded), int(c.Wanted)),
		node: t.nodeOf(c.Name), message: t.failureOf(c.Name),
	}
	if c.Attempts > 0 {
		it.restarts = strconv.Itoa(int(c.Attempts) - 1)
	}
	if it.state == "" {
		it.state = countsOf(c)
	}
	switch {
	case c.Failed > 0, c.State == string(batchv1alpha1.StepFailed):
		it.severity = failed
	case c.Ready+c.Succeeded < c.Wanted:
		it.severity = late
	}
	return it
}

// countsOf says how many children were in which state.
func countsOf(c *archivev1alpha1.RunChild) string {
	var parts []string
	for _, count := range []struct {
		n    int32
		word string
	}{{c.Failed, "Failed"}, {c.Succeeded, "Succeeded"}, {c.Ready, "Ready"}} {
		switch {
		case count.n <= 0:
		case count.n == c.Wanted:
			parts = append(parts, count.word)
		default:
			parts = append(parts, cli.Number(int(count.n))+" "+count.word)
		}
	}
	if len(parts) == 0 {
		return "NotReady"
	}
	return strings.Join(parts, ", ")
}

// last returns the newest failure of a part: of a step, or of a Job of a replicatedJob.
func (t *RunTree) last(part string) *archivev1alpha1.RunFailure {
	prefix := t.Object.Name + "-" + part + "-"
	for i := len(t.Failures) - 1; i >= 0; i-- {
		f := &t.Failures[i]
		if index, found := strings.CutPrefix(f.Child, prefix); f.Child == part || found && isIndex(index) {
			return f
		}
	}
	return nil
}

func isIndex(text string) bool {
	_, err := strconv.ParseUint(text, 10, 31)
	return err == nil
}

func (t *RunTree) nodeOf(part string) string {
	if f := t.last(part); f != nil {
		return cli.Clean(f.Node)
	}
	return ""
}

func (t *RunTree) failureOf(part string) string {
	f := t.last(part)
	if f == nil {
		return ""
	}
	text := record.Failure(f)
	if f.Attempt > 0 {
		return fmt.Sprintf("attempt %d failed first: %s", f.Attempt, text)
	}
	return "failed first: " + text
}
