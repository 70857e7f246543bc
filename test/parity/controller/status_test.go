// Copyright The jobset-apiserver Authors.
// SPDX-License-Identifier: Apache-2.0

package controller

import (
	"fmt"
	"strings"
	"time"

	"github.com/google/go-cmp/cmp"
	"k8s.io/apimachinery/pkg/api/meta"

	jobsetv1alpha2 "github.com/jobset-apiserver/jobset-apiserver/pkg/apis/jobset/v1alpha2"
	"github.com/jobset-apiserver/jobset-apiserver/test/parity/fixture"
)

// counters writes what the status says of the replicatedJobs, in its order, without zeros: "b{ready 1, active 1} a{}".
func counters(js *jobSet) string {
	entries := make([]string, 0, len(js.Status.ReplicatedJobsStatus))
	for _, s := range js.Status.ReplicatedJobsStatus {
		fields := []string{}
		for _, f := range []struct {
			name  string
			value int32
		}{{"ready", s.Ready}, {"succeeded", s.Succeeded}, {"failed", s.Failed}, {"active", s.Active}, {"suspended", s.Suspended}} {
			if f.value != 0 {
				fields = append(fields, fmt.Sprintf("%s %d", f.name, f.value))
			}
		}
		name := strings.TrimPrefix(s.Name, "replicated-job-")
		entries = append(entries, name+"{"+strings.Join(fields, ", ")+"}")
	}
	return strings.Join(entries, " ")
}

func (e *env) awaitCounters(want string) {
	e.Helper()
	e.eventually(func() string {
		if got := counters(e.get()); got != want {
			return fmt.Sprintf("counters: got %s, want %s", got, want)
		}
		return ""
	})
}

// stateOf writes a condition as "True SuspendedJobs", and one that is not there as "".
func stateOf(js *jobSet, kind string) string {
	c := meta.FindStatusCondition(js.Status.Conditions, kind)
	if c == nil {
		return ""
	}
	return string(c.Status) + " " + c.Reason
}

// awaitCondition waits until a condition is as in "True SuspendedJobs".
func (e *env) awaitCondition(kind, want string) {
	e.Helper()
	e.eventually(func() string {
		if got := stateOf(e.get(), kind); got != want {
			return fmt.Sprintf("condition %s: got %q, want %q", kind, got, want)
		}
		return ""
	})
}

func (e *env) awaitCompleted() {
	e.Helper()
	e.awaitCondition(jobsetv1alpha2.JobSetCompleted, "True AllJobsCompleted")
	if got := e.get().Status.TerminalState; got != jobsetv1alpha2.TerminalStateCompleted {
		e.Errorf("terminal state: got %q, want %q", got, jobsetv1alpha2.TerminalStateCompleted)
	}
}

func (e *env) awaitFailed(reason string) {
	e.Helper()
	e.awaitCondition(jobsetv1alpha2.JobSetFailed, "True "+reason)
	if got := e.get().Status.TerminalState; got != jobsetv1alpha2.TerminalStateFailed {
		e.Errorf("terminal state: got %q, want %q", got, jobsetv1alpha2.TerminalStateFailed)
	}
}

// staysActive makes sure that the set does not end.
func (e *env) staysActive() {
	e.Helper()
	e.stays(func() string {
		js := e.get()
		for _, kind := range []string{jobsetv1alpha2.JobSetCompleted, jobsetv1alpha2.JobSetFailed} {
			if meta.IsStatusConditionTrue(js.Status.Conditions, kind) {
				return "the set is " + kind + ", must go on"
			}
		}
		return ""
	})
}

type restarts = fixture.Restarts

func restartsOf(js *jobSet) restarts { return fixture.RestartsOf(js) }

func (e *env) awaitRestarts(want restarts) {
	e.Helper()
	e.eventually(func() string { return cmp.Diff(want, restartsOf(e.get())) })
}

// awaitDeleted waits until a deletion of the set was asked for.
func (e *env) awaitDeleted() {
	e.Helper()
	e.eventually(func() string {
		if e.get().DeletionTimestamp == nil {
			return "the set is not being deleted"
		}
		return ""
	})
}

// livedAfterItsEnd makes sure that a set that is being deleted was kept for its time to live. Both times are in seconds,
// rounded down, and the controller counts from the one that is stored.
func (e *env) livedAfterItsEnd(condition string, seconds int) {
	e.Helper()
	js := e.get()
	end := meta.FindStatusCondition(js.Status.Conditions, condition)
	if end == nil {
		e.Fatalf("the set has no condition %s: %+v", condition, js.Status.Conditions)
	}
	if lived := js.DeletionTimestamp.Sub(end.LastTransitionTime.Time); lived < time.Duration(seconds)*time.Second {
		e.Errorf("the set was deleted %s after its end, want %d s at least", lived, seconds)
	}
}
