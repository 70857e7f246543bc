// Copyright The jobset-apiserver Authors.
// SPDX-License-Identifier: Apache-2.0

package why

import (
	"bytes"
	"strings"
	"testing"
	"time"

	"github.com/google/go-cmp/cmp"

	archivev1alpha1 "github.com/jobset-apiserver/jobset-apiserver/pkg/apis/archive/v1alpha1"
	"github.com/jobset-apiserver/jobset-apiserver/pkg/kubectl/cli"
	"github.com/jobset-apiserver/jobset-apiserver/pkg/kubectl/record/recordtest"
)

// runCase is a run, with the first cause of its end.
type runCase struct {
	changes []func(*archivev1alpha1.Run)
	want    Cause
}

func runCases() map[string]runCase {
	state := func(state archivev1alpha1.RunState, reason string) func(*archivev1alpha1.Run) {
		return func(run *archivev1alpha1.Run) { run.State, run.Reason = state, reason }
	}
	failed := func(reason, why string, changes ...func(*archivev1alpha1.Run)) runCase {
		then := state(archivev1alpha1.RunFailed, reason)
		return runCase{changes: append([]func(*archivev1alpha1.Run){recordtest.Failed(why, "node-7"), then}, changes...)}
	}
	is := func(c runCase, want Cause) runCase { c.want = want; return c }
	noExit := func(run *archivev1alpha1.Run) { run.Failures[0].ExitCode = nil }
	return map[string]runCase{
		"a run that completed":                  {want: Completed},
		"a run that was cancelled":              {changes: []func(*archivev1alpha1.Run){state(archivev1alpha1.RunCancelled, "Cancelled")}, want: Cancelled},
		"a run that was deleted":                {changes: []func(*archivev1alpha1.Run){state(archivev1alpha1.RunDeleted, "")}, want: Deleted},
		"a run that took too long":              is(failed("DeadlineExceeded", "Error"), DeadlineExceeded),
		"a run without memory":                  is(failed("ReachedMaxRestarts", "OOMKilled"), OutOfMemory),
		"a run whose node was lost":             is(failed("FailedJobs", "NodeLost"), NodeLost),
		"a run without restarts left":           is(failed("ReachedMaxRestarts", "Error"), MaxRestartsReached),
		"a run that exited":                     is(failed("FailedJobs", "Error"), ExitCode),
		"a run that failed for unknown reasons": is(failed("FailedJobs", "BackoffLimitExceeded", noExit), JobFailed),
		"a run without failures":                {changes: []func(*archivev1alpha1.Run){state(archivev1alpha1.RunFailed, "FailedJobs")}, want: JobFailed},
		"a run without failures or restarts":    {changes: []func(*archivev1alpha1.Run){state(archivev1alpha1.RunFailed, "ReachedMaxRestarts")}, want: MaxRestartsReached},
		"a run in a state that is not known":    {changes: []func(*archivev1alpha1.Run){state("Lost", "")}, want: JobFailed},
	}
}

func TestCausesOfRuns(t *testing.T) {
	for name, tc := range runCases() {
		t.Run(name, func(t *testing.T) {
			run := recordtest.Run("train", now, tc.changes...)
			if got := diagnoseRun(&run, now).Findings[0].Cause; got != tc.want {
				t.Errorf("got %s, want %s", got, tc.want)
			}
		})
	}
}

func TestDiagnosisOfRun(t *testing.T) {
	ended := time.Date(2026, 3, 9, 15, 0, 0, 0, time.UTC)
	run := recordtest.Run("train", ended, recordtest.Failed("OOMKilled", "node-7"), func(run *archivev1alpha1.Run) {
		run.EndUser, run.Failures[0].Message = recordtest.Hostile, recordtest.Hostile
	})
	var out bytes.Buffer
	if err := render(&out, cli.Run, diagnoseRun(&run, ended.Add(3*time.Hour)), cli.Terminal{}, ended.Add(3*time.Hour)); err != nil {
		t.Fatal(err)
	}
	want := `run ns/train-0a1b2c3d4e5f  Failed (ReachedMaxRestarts)

OutOfMemory
  record of JobSet ns/train, execution 1: Failed 3h ago (2026-03-09 15:00:00 UTC), created by alice, ended by [31mred[2J]0;title next: ReachedMaxRestarts: jobset failed due to reaching max number of restarts
  - attempt 3 failed first: pod train-workers-0-1-x7k2p on node node-7: container main, exit code 137, OOMKilled: [31mred[2J]0;title next (3h1m ago)
  next: kubectl jobset -n ns timeline run/train-0a1b2c3d4e5f
        kubectl jobset -n ns tree run/train-0a1b2c3d4e5f

also
  MaxRestartsReached: no restart of the failure policy was left

note: this is a record of the archive: it says nothing about the object as it is now, which may be gone or run again
`
	if diff := cmp.Diff(want, out.String()); diff != "" {
		t.Errorf("text (-want +got):\n%s", diff)
	}
}

func TestRunThatIsMissing(t *testing.T) {
	for name, tc := range map[string]struct {
		server *recordtest.Server
		want   string
	}{
		"no such run":        {recordtest.New(t), `runs.archive.jobset-apiserver.io "gone" not found in the namespace ns`},
		"the archive is off": {recordtest.New(t).Off(), "the archive of runs is off: --archive-database turns it on"},
	} {
		t.Run(name, func(t *testing.T) {
			f, _, _ := tc.server.Factory()
			c, err := f.Clients()
			if err != nil {
				t.Fatal(err)
			}
			if _, err := Run(t.Context(), c, "gone"); err == nil || !strings.HasPrefix(err.Error(), tc.want) {
				t.Errorf("got %v, want it to begin with %s", err, tc.want)
			}
		})
	}
}
