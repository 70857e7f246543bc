// Copyright The jobset-apiserver Authors.
// SPDX-License-Identifier: Apache-2.0

package why

import (
	"context"
	"fmt"
	"slices"
	"time"

	archivev1alpha1 "github.com/jobset-apiserver/jobset-apiserver/pkg/apis/archive/v1alpha1"
	jobsetv1alpha2 "github.com/jobset-apiserver/jobset-apiserver/pkg/apis/jobset/v1alpha2"
	"github.com/jobset-apiserver/jobset-apiserver/pkg/apis/jobset/v1alpha2/helper"
	"github.com/jobset-apiserver/jobset-apiserver/pkg/kubectl/cli"
	"github.com/jobset-apiserver/jobset-apiserver/pkg/kubectl/record"
	"github.com/jobset-apiserver/jobset-apiserver/pkg/kubectl/snapshot"
)

// Run is the Diagnoser of runs of the archive. A run has ended, so its record says everything; nothing else is read.
func Run(ctx context.Context, c *cli.Clients, name string) (*Report, error) {
	run, err := record.Get(ctx, c, name)
	if err != nil {
		return nil, err
	}
	return diagnoseRun(run, time.Now()), nil
}

func diagnoseRun(run *archivev1alpha1.Run, now time.Time) *Report {
	r := &Report{
		Namespace: oneLine(run.Namespace), Name: oneLine(run.Name),
		Phase: snapshot.Phase{State: oneLine(string(run.State)), Reason: oneLine(run.Reason), Message: oneLine(run.Message)},
		Notes: []string{"this is a record of the archive: it says nothing about the object as it is now, which may be gone or run again"},
	}
	plugin := func(command string) string {
		return fmt.Sprintf("kubectl jobset -n %s %s run/%s", r.Namespace, command, r.Name)
	}
	summary := record.Sentence(run, now)
	if reason := record.Reason(run); reason != "" && run.State != archivev1alpha1.RunCompleted {
		summary += ": " + reason
	}
	r.Findings = []Finding{{Cause: causeOfRun(run)}}
	if run.Reason == helper.ReasonReachedMaxRestarts && r.Findings[0].Cause != MaxRestartsReached {
		r.Findings = sorted(append(r.Findings, Finding{Cause: MaxRestartsReached, Summary: "no restart of the failure policy was left"}))
	}
	if further := r.Findings[1:]; len(further) > 0 && further[0].Cause != MaxRestartsReached {
		further[0].Summary = "the last failure: " + record.Failure(record.Last(run))
	}
	first := &r.Findings[0]
	first.Summary, first.Evidence = summary, evidenceOfRun(run)
	first.Commands = []string{plugin("timeline"), plugin("tree")}
	return r
}

// evidenceOfRun are the first causes of the attempts, the newest first.
func evidenceOfRun(run *archivev1alpha1.Run) (facts []Fact) {
	for i := range slices.Backward(run.Failures) {
		f := &run.Failures[i]
		object, text := "run/"+oneLine(run.Name), "failed first: "+record.Failure(f)
		if f.Attempt > 0 {
			object = fmt.Sprintf("attempt %d", f.Attempt)
		}
		facts = append(facts, Fact{Object: object, Text: text, Time: f.Time})
	}
	return facts
}

// causeOfRun is the cause of the end of a run, in the words for objects that exist.
func causeOfRun(run *archivev1alpha1.Run) Cause {
	switch run.State {
	case archivev1alpha1.RunCompleted:
		return Completed
	case archivev1alpha1.RunCancelled:
		return Cancelled
	case archivev1alpha1.RunDeleted:
		return Deleted
	}
	switch run.Reason {
	case helper.ReasonDeadlineExceeded:
		return DeadlineExceeded
	case jobsetv1alpha2.ReasonCancelled:
		return Cancelled
	}
	last := record.Last(run)
	if last == nil && run.Reason == helper.ReasonReachedMaxRestarts {
		return MaxRestartsReached
	}
	if last == nil {
		return JobFailed
	}
	if cause := causeOfReason(last.Reason); cause != "" {
		return cause
	}
	if last.ExitCode != nil {
		return ExitCode
	}
	return JobFailed
}
