// Copyright The jobset-apiserver Authors.
// SPDX-License-Identifier: Apache-2.0

package tree

import (
	"strings"
	"testing"
	"time"

	"github.com/google/go-cmp/cmp"

	archivev1alpha1 "github.com/jobset-apiserver/jobset-apiserver/pkg/apis/archive/v1alpha1"
	"github.com/jobset-apiserver/jobset-apiserver/pkg/kubectl/cli"
	"github.com/jobset-apiserver/jobset-apiserver/pkg/kubectl/record/recordtest"
)

func runTree(t *testing.T, run archivev1alpha1.Run, now time.Time) string {
	t.Helper()
	f, _, _ := recordtest.New(t, run).Factory()
	c, err := f.Clients()
	if err != nil {
		t.Fatal(err)
	}
	view, err := Run(t.Context(), c, run.Name)
	if err != nil {
		t.Fatal(err)
	}
	var lines []string
	for _, line := range view.Lines(cli.Terminal{}, now, false) {
		lines = append(lines, strings.TrimRight(line, " "))
	}
	return strings.Join(lines, "\n")
}

func TestTreeOfRun(t *testing.T) {
	ended := time.Date(2026, 3, 9, 15, 0, 0, 0, time.UTC)
	of := func(kind string, children ...archivev1alpha1.RunChild) func(*archivev1alpha1.Run) {
		return func(run *archivev1alpha1.Run) { run.Object.Kind, run.Children = kind, children }
	}
	for name, tc := range map[string]struct {
		changes []func(*archivev1alpha1.Run)
		want    string
	}{
		"a set": {
			changes: []func(*archivev1alpha1.Run){recordtest.Failed("OOMKilled", "node-7"), of("JobSet",
				archivev1alpha1.RunChild{Name: "driver", Kind: "Job", Wanted: 1, Succeeded: 1},
				archivev1alpha1.RunChild{Name: "workers", Kind: "Job", Wanted: 4, Ready: 2, Failed: 1},
				archivev1alpha1.RunChild{Name: "work", Kind: "Job", Wanted: 2})},
			want: `record of JobSet ns/train, execution 1: Failed 3h ago (2026-03-09 15:00:00 UTC), created by alice

NAME                      STATE              READY  RESTARTS  LASTED  NODE    MESSAGE
jobset/train              Failed                    2         60m             ReachedMaxRestarts: jobset failed due to reaching max number of restarts
├─ replicatedJob/driver   Succeeded          1/1
├─ replicatedJob/workers  1 Failed, 2 Ready  2/4                      node-7  attempt 3 failed first: pod train-workers-0-1-x7k2p on node node-7: container main, exit code 137, OOMKilled
└─ replicatedJob/work     NotReady           0/2`,
		},
		"a sequence": {
			changes: []func(*archivev1alpha1.Run){of("SequentialJob",
				archivev1alpha1.RunChild{Name: "load", Kind: "Job", State: "Succeeded", Wanted: 1, Succeeded: 1, Attempts: 2},
				archivev1alpha1.RunChild{Name: "fit", Kind: "JobSet", State: "Failed", Wanted: 1, Failed: 1, Attempts: 1})},
			want: `record of SequentialJob ns/train, execution 1: Completed 3h ago (2026-03-09 15:00:00 UTC), created by alice

NAME                 STATE      READY  RESTARTS  LASTED  NODE  MESSAGE
sequentialjob/train  Completed         0         60m
├─ step/load         Succeeded  1/1    1
└─ step/fit          Failed     0/1    0`,
		},
		"a set that was deleted by a user who means harm": {
			changes: []func(*archivev1alpha1.Run){recordtest.Failed(recordtest.Hostile, recordtest.Hostile), of("JobSet", archivev1alpha1.RunChild{Name: recordtest.Hostile, Wanted: 1}),
				func(run *archivev1alpha1.Run) {
					run.State, run.EndUser, run.Reason, run.Message = archivev1alpha1.RunDeleted, recordtest.Hostile, recordtest.Hostile, recordtest.Hostile
				}},
			want: `record of JobSet ns/train, execution 1: Deleted 3h ago (2026-03-09 15:00:00 UTC), created by alice, deleted by [31mred[2J]0;title next

NAME                                      STATE     READY  RESTARTS  LASTED  NODE  MESSAGE
jobset/train                              Deleted          2         60m           [31mred[2J]0;title next: [31mred[2J]0;title next
└─ replicatedJob/[31mred[2J]0;title next  NotReady  0/1`,
		},
		"of a record without parts": {want: `record of JobSet ns/train, execution 1: Completed 3h ago (2026-03-09 15:00:00 UTC), created by alice

NAME          STATE      READY  RESTARTS  LASTED  NODE  MESSAGE
jobset/train  Completed         0         60m`},
	} {
		t.Run(name, func(t *testing.T) {
			if diff := cmp.Diff(tc.want, runTree(t, recordtest.Run("train", ended, tc.changes...), ended.Add(3*time.Hour))); diff != "" {
				t.Errorf("tree (-want +got):\n%s", diff)
			}
		})
	}
}

func TestWatchOfRunIsRefused(t *testing.T) {
	f, _, _ := recordtest.New(t).Factory()
	cmd := NewCommand(f, []cli.For[Loader]{{Kind: cli.JobSet, Do: JobSet}, {Kind: cli.Run, Do: Run}})
	cmd.SilenceUsage, cmd.SilenceErrors = true, true
	cmd.SetArgs([]string{"run/a", "-w"})
	want := "--watch: must be absent for a run: it is a record, and does not change"
	if err := cmd.ExecuteContext(t.Context()); err == nil || err.Error() != want {
		t.Errorf("got %v, want %s", err, want)
	}
}
