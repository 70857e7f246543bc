// Copyright The jobset-apiserver Authors.
// SPDX-License-Identifier: Apache-2.0

package report

import (
	"bytes"
	"encoding/json"
	"fmt"
	"strings"
	"testing"
	"time"

	"github.com/google/go-cmp/cmp"
	"k8s.io/apimachinery/pkg/types"
	"k8s.io/utils/ptr"

	archivev1alpha1 "github.com/jobset-apiserver/jobset-apiserver/pkg/apis/archive/v1alpha1"
	"github.com/jobset-apiserver/jobset-apiserver/pkg/kubectl/record/recordtest"
)

func run(t *testing.T, s *recordtest.Server, args ...string) (out, errOut, failure string) {
	t.Helper()
	f, stdout, stderr := s.Factory()
	cmd := NewCommand(f)
	cmd.SilenceUsage, cmd.SilenceErrors = true, true
	cmd.SetOut(&bytes.Buffer{})
	cmd.SetErr(&bytes.Buffer{})
	cmd.SetArgs(args)
	if err := cmd.ExecuteContext(t.Context()); err != nil {
		failure = err.Error()
	}
	return stdout.String(), stderr.String(), failure
}

var ended = time.Now().Add(-time.Hour)

const hour = 3_600_000

// used makes a run have been ready for so many hours, of which so many were good, on 8 accelerators and 4 cores; -1 for not known.
func used(ready, good float64) func(*archivev1alpha1.Run) {
	return func(run *archivev1alpha1.Run) {
		run.ReadyMilliseconds = int64(ready * hour)
		if good >= 0 {
			run.GoodMilliseconds = ptr.To(int64(good * hour))
		}
		for name, amount := range map[string]float64{"cpu": 4, "memory": 1024, "ephemeral-storage": 9, "hugepages-2Mi": 5, "nvidia.com/gpu": 8} {
			run.Resources = append(run.Resources, archivev1alpha1.ResourceTime{Name: name, AmountSeconds: int64(amount * ready * 3600)})
		}
	}
}

func by(user, queue string) func(*archivev1alpha1.Run) {
	return func(run *archivev1alpha1.Run) { run.User, run.Queue = user, queue }
}

// sequence makes a run one of a SequentialJob.
func sequence(uid types.UID) func(*archivev1alpha1.Run) {
	return func(run *archivev1alpha1.Run) { run.Object.Kind, run.Object.UID = "SequentialJob", uid }
}

// ownedBy makes a run one that a SequentialJob created.
func ownedBy(uid types.UID) func(*archivev1alpha1.Run) {
	return func(run *archivev1alpha1.Run) {
		run.User = "system:serviceaccount:jobset-system:jobset-controller"
		run.Object.Owner = &archivev1alpha1.RunOwner{Kind: "SequentialJob", Name: "etl", UID: uid}
	}
}

// some are runs of two users: a set that failed after 2 hours, one with checkpoints, and a sequence with a step that is a set.
func some() []archivev1alpha1.Run {
	return []archivev1alpha1.Run{
		recordtest.Run("a", ended, recordtest.Failed("OOMKilled", "n1"), used(2, -1), by("alice", "gpu")),
		recordtest.Run("b", ended, used(10, 9), by("alice", "gpu")),
		recordtest.Run("etl", ended, sequence("s1"), used(1, -1), by("bob", "")),
		recordtest.Run("etl-1", ended, ownedBy("s1"), used(4, -1)),
		recordtest.Run("orphan", ended, ownedBy("s2"), used(0.5, -1)),
	}
}

func TestReport(t *testing.T) {
	for name, tc := range map[string]struct {
		args                  []string
		runs                  []archivev1alpha1.Run
		out, errOut, wantFail string
	}{
		"by user": {args: []string{"--by=user"}, runs: some(), out: `USER                                               RUNS  FAILED  SHARE  RESTARTS  READY H  ACCELERATOR H  CPU H  GOODPUT  HOURS LOST
alice                                              2     1       50%    2         12.0     96.0           48.0   90%      3.0
bob                                                1     0       0%     0         5.0      40.0           20.0   -        0.0
system:serviceaccount:jobset-system:jobset-controller  1     0       0%     0         0.5      4.0            2.0    -        0.0
TOTAL                                              4     1       25%    2         17.5     140            70.0   90%      3.0
`},
		"by queue": {args: []string{"--by=queue"}, runs: some(), out: `QUEUE   RUNS  FAILED  SHARE  RESTARTS  READY H  ACCELERATOR H  CPU H  GOODPUT  HOURS LOST
gpu     2     1       50%    2         12.0     96.0           48.0   90%      3.0
<none>  2     0       0%     0         5.5      44.0           22.0   -        0.0
TOTAL   4     1       25%    2         17.5     140            70.0   90%      3.0
`},
		"by cause, comma-separated": {args: []string{"--by=cause", "-o", "csv"}, runs: some(), out: `cause,runs,failed,failedShare,restarts,readyHours,acceleratorHours,cpuHours,goodput,lostHours
,3,0,0,0,15.5,124,62,0.9,1
OOMKilled,1,1,1,2,2,16,8,,2
`},
		"one namespace has no total": {runs: some()[:1], out: `NAMESPACE  RUNS  FAILED  SHARE  RESTARTS  READY H  ACCELERATOR H  CPU H  GOODPUT  HOURS LOST
ns         1     1       100%   2         2.0      16.0           8.0    -        2.0
`},
		"values that mean harm": {args: []string{"--by=user"}, runs: []archivev1alpha1.Run{recordtest.Run("a", ended, by(recordtest.Hostile, ""))},
			out: `USER                        RUNS  FAILED  SHARE  RESTARTS  READY H  ACCELERATOR H  CPU H  GOODPUT  HOURS LOST
[31mred[2J]0;title next  1     0       0%     0         0.0      0.0            0.0    -        0.0
`},
		"formulas": {args: []string{"--by=user", "-o", "csv"}, runs: []archivev1alpha1.Run{recordtest.Run("a", ended, by("=1+1", ""))},
			out: "user,runs,failed,failedShare,restarts,readyHours,acceleratorHours,cpuHours,goodput,lostHours\n'=1+1,1,0,0,0,0,0,0,,0\n"},
		"an empty archive":             {errOut: "No runs found that ended in the last 30d in namespace ns.\n"},
		"an empty archive, all":        {args: []string{"-A", "--since=1w"}, errOut: "No runs found that ended in the last 1w.\n"},
		"an empty archive by node":     {args: []string{"--by=node"}, errOut: "No runs found that ended in the last 30d in namespace ns.\n"},
		"an empty archive as data":     {args: []string{"-o", "jsonpath={.rows} {.total.runs}"}, out: "[] 0"},
		"an empty archive of nodes":    {args: []string{"--by=node", "-o", "jsonpath={.nodes} {.enough}"}, out: "[] false"},
		"nothing failed on a node":     {args: []string{"--by=node"}, runs: some()[1:2], out: "No run failed first on a node that is known.\n"},
		"an argument":                  {args: []string{"train"}, wantFail: "train: report takes no arguments"},
		"an unknown grouping":          {args: []string{"--by=team"}, wantFail: `--by: must be one of namespace, user, queue, node, cause, not "team"`},
		"a bad time":                   {args: []string{"--since=0d"}, wantFail: `--since: must be more than 0 and at most 36500d, not "0d"`},
		"good time beyond the ready":   {args: []string{"-o", "jsonpath={.total.goodput} {.total.lostHours}"}, runs: []archivev1alpha1.Run{recordtest.Run("a", ended, used(1, 3))}, out: "1 0"},
		"a failed run of a sequence":   {args: []string{"-o", "jsonpath={.total.runs} {.total.failed} {.total.lostHours}"}, runs: failedSequence(), out: "1 1 4"},
		"no goodput without any known": {args: []string{"-o", "jsonpath=<{.total.goodput}>"}, runs: some()[:1], out: "<>"},
	} {
		t.Run(name, func(t *testing.T) {
			out, errOut, failure := run(t, recordtest.New(t, tc.runs...), tc.args...)
			// The widths of columns are tested with the table.
			squeeze := func(text string) []string {
				var lines []string
				for line := range strings.Lines(text) {
					lines = append(lines, strings.Join(strings.Fields(line), " "))
				}
				return lines
			}
			if diff := cmp.Diff(squeeze(tc.out), squeeze(out)); diff != "" {
				t.Errorf("output (-want +got):\n%s", diff)
			}
			if diff := cmp.Diff([]string{tc.errOut, tc.wantFail}, []string{errOut, failure}); diff != "" {
				t.Errorf("notes and error (-want +got):\n%s", diff)
			}
		})
	}
}

// failedSequence is a sequence that failed with its step, which is a set.
func failedSequence() []archivev1alpha1.Run {
	return []archivev1alpha1.Run{
		recordtest.Run("etl", ended, sequence("s1"), recordtest.Failed("Error", "n1")),
		recordtest.Run("etl-1", ended, ownedBy("s1"), recordtest.Failed("Error", "n1"), used(4, -1)),
	}
}

// TestReportOfManyRuns adds up 10,000 runs in 20 pages.
func TestReportOfManyRuns(t *testing.T) {
	var runs []archivev1alpha1.Run
	for i := range 10_000 {
		changes := []func(*archivev1alpha1.Run){used(1, -1), by(fmt.Sprintf("user-%d", i%100), "")}
		if i%10 == 0 {
			changes = append(changes, recordtest.Failed("NodeLost", "n"))
		}
		runs = append(runs, recordtest.Run(fmt.Sprintf("set-%d", i), ended, changes...))
	}
	s := recordtest.New(t, runs...)
	out, _, failure := run(t, s, "-A", "--by=user", "-o", "json")
	if failure != "" {
		t.Fatal(failure)
	}
	var got Report
	if err := json.Unmarshal([]byte(out), &got); err != nil {
		t.Fatal(err)
	}
	want := Row{Runs: 10_000, Failed: 1000, FailedShare: 0.1, Restarts: 2000, ReadyHours: 10_000, AcceleratorHours: 80_000, CPUHours: 40_000, LostHours: 1000}
	if diff := cmp.Diff([]any{20, 100, want.Runs, want.Failed, want.ReadyHours, want.AcceleratorHours, want.CPUHours, want.LostHours},
		[]any{len(s.Got), len(got.Rows), got.Total.Runs, got.Total.Failed, got.Total.ReadyHours, got.Total.AcceleratorHours, got.Total.CPUHours, got.Total.LostHours}); diff != "" {
		t.Errorf("pages, rows and total (-want +got):\n%s", diff)
	}
}

// TestReportBoundsRows: what is kept is bounded, and what would be more is an error.
func TestReportBoundsRows(t *testing.T) {
	u, n := newUse(byUser), newNodes()
	for i := range mostRows {
		u.rows[fmt.Sprint(i)], n.seen[fmt.Sprint(i)] = &Row{}, &Node{}
	}
	known := recordtest.Run("a", ended, by("7", ""), recordtest.Failed("Error", "7"))
	other := recordtest.Run("a", ended, by("other", ""), recordtest.Failed("Error", "other"))
	owner := recordtest.Run("etl", ended, sequence("s"))
	full := owners{}
	for i := range mostRows {
		full[types.UID(fmt.Sprint(i))] = ""
	}
	const way = ": choose a shorter time with --since, or one namespace"
	for name, tc := range map[string]struct {
		err  error
		want string
	}{
		"a user that is known":  {u.add(&known), ""},
		"one user more":         {u.add(&other), "the runs have more than 100,000 different users" + way},
		"a node that is known":  {n.add(&known), ""},
		"one node more":         {n.add(&other), "the runs have more than 100,000 different nodes" + way},
		"one sequence too many": {full.note(&owner), "the runs have more than 100,000 different SequentialJobs" + way},
	} {
		if got := fmt.Sprint(tc.err); got != tc.want && (tc.err != nil || tc.want != "") {
			t.Errorf("%s: got %s, want %s", name, got, tc.want)
		}
	}
}

// TestReportByNode has a fleet in which one node ends runs, and a program of which every run fails somewhere.
func TestReportByNode(t *testing.T) {
	var runs []archivev1alpha1.Run
	for i := range 40 {
		runs = append(runs, recordtest.Run("bad-program", ended, recordtest.Failed("Error", fmt.Sprintf("node-%02d", i%20))))
	}
	for range 12 {
		runs = append(runs, recordtest.Run("train", ended, recordtest.Failed("NodeLost", "node-07")))
	}
	runs = append(runs, recordtest.Run("train", ended, recordtest.Failed("Evicted", recordtest.Hostile)))
	out, _, failure := run(t, recordtest.New(t, runs...), "--by=node")
	if failure != "" {
		t.Fatal(failure)
	}
	lines := strings.Split(out, "\n")
	want := []string{
		"NODE                     NODE FAULTS  EXPECTED  AT FAULT  BY CHANCE  PROGRAM FAULTS  OTHER  RUNS",
		"node-07                  12           0.1       likely    <0.01%     2               0      14",
		"node-00                  0            0.1       -         100%       2               0      2",
	}
	if diff := cmp.Diff(want, lines[:3]); diff != "" {
		t.Errorf("first lines (-want +got):\n%s", diff)
	}
	if strings.Count(out, "likely") != 1 || strings.Contains(out, "\x1b") {
		t.Errorf("want one node at fault, and no control characters:\n%s", out)
	}
	const basis = "The median of the 21 nodes is 0 node faults. How many pods each node has run is not known: a node that runs many more than others has more faults."
	if got := lines[len(lines)-2]; got != basis {
		t.Errorf("got %q, want %q", got, basis)
	}
	out, _, _ = run(t, recordtest.New(t, runs[40:]...), "--by=node", "-o", "csv")
	if want := "node,runs,infrastructure,program,other,probability,verdict\nnode-07,12,12,0,0,1,\n[31mred[2J]0;title next,1,0,0,1,1,\n"; out != want {
		t.Errorf("two nodes are not compared: got\n%s\nwant\n%s", out, want)
	}
}

func TestArchiveIsOff(t *testing.T) {
	_, _, failure := run(t, recordtest.New(t).Off(), "-A")
	want := "the archive of runs is off: --archive-database turns it on\nOnly the archive of runs does not answer. JobSets and the other kinds do not depend on it."
	if diff := cmp.Diff(want, failure); diff != "" {
		t.Errorf("error (-want +got):\n%s", diff)
	}
}
