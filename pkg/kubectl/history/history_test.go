// Copyright The jobset-apiserver Authors.
// SPDX-License-Identifier: Apache-2.0

package history

import (
	"bytes"
	"fmt"
	"regexp"
	"strings"
	"testing"
	"time"

	"github.com/google/go-cmp/cmp"

	archivev1alpha1 "github.com/jobset-apiserver/jobset-apiserver/pkg/apis/archive/v1alpha1"
	"github.com/jobset-apiserver/jobset-apiserver/pkg/kubectl/record/recordtest"
)

// outcome is what a command has done.
type outcome struct {
	Out, ErrOut, Err string
	Requests         []string
}

// since is the value of a flag that depends on the time.
var since = regexp.MustCompile(`endedAfter%3D[0-9]{4}-[0-9A-Z%-]*`)

func run(t *testing.T, s *recordtest.Server, args ...string) outcome {
	t.Helper()
	f, out, errOut := s.Factory()
	cmd := NewCommand(f)
	cmd.SilenceUsage, cmd.SilenceErrors = true, true
	cmd.SetOut(&bytes.Buffer{})
	cmd.SetErr(&bytes.Buffer{})
	cmd.SetArgs(args)
	err := cmd.ExecuteContext(t.Context())
	got := outcome{Out: out.String(), ErrOut: errOut.String()}
	for _, request := range s.Got {
		got.Requests = append(got.Requests, since.ReplaceAllString(request, "endedAfter"))
	}
	if err != nil {
		got.Err = err.Error()
	}
	return got
}

var ended = time.Now().Add(-3*time.Hour - time.Second)

func inQueue(run *archivev1alpha1.Run) { run.Queue = "gpu" }

func TestHistory(t *testing.T) {
	const all = "namespaces/ns/runs?limit=50"
	two := []archivev1alpha1.Run{
		recordtest.Run("train", ended, recordtest.Failed("OOMKilled", "node-7"), inQueue),
		recordtest.Run("eval", ended.Add(-24*time.Hour), func(run *archivev1alpha1.Run) { run.Object.Kind = "LeaderWorkerSet" }),
	}
	began := ended.Add(-time.Hour).UTC().Format(time.RFC3339)
	for name, tc := range map[string]struct {
		args []string
		runs []archivev1alpha1.Run
		want outcome
	}{
		"two runs": {runs: two, want: outcome{Requests: []string{all}, Out: `NAME                OBJECT    STATE      ATTEMPTS  LASTED  ENDED    USER   REASON
train-0a1b2c3d4e5f  js/train  Failed     3         60m     3h ago   alice  ReachedMaxRestarts
eval-0a1b2c3d4e5f   lws/eval  Completed  1         60m     27h ago  alice
`}},
		"wide, of all namespaces": {args: []string{"-A", "-o", "wide"}, runs: two[:1], want: outcome{Requests: []string{"runs?limit=50"}, Out: `NAMESPACE  NAME                OBJECT    STATE   ATTEMPTS  LASTED  ENDED   USER   REASON              QUEUE  CAUSE      NODE    BEGAN
ns         train-0a1b2c3d4e5f  js/train  Failed  3         60m     3h ago  alice  ReachedMaxRestarts  gpu    OOMKilled  node-7  ` + began + "\n"}},
		"values that mean harm": {runs: []archivev1alpha1.Run{recordtest.Run("train", ended, func(run *archivev1alpha1.Run) {
			run.User, run.Reason, run.State, run.Object.Name = recordtest.Hostile, recordtest.Hostile, recordtest.Hostile, recordtest.Hostile
		})}, want: outcome{Requests: []string{all}, Out: `NAME                OBJECT                      STATE                    ATTEMPTS  LASTED  ENDED   USER                     REASON
train-0a1b2c3d4e5f  js/[31mred[2J]0;title next  [31mred[2J]0;title next  1         60m     3h ago  [31mred[2J]0;title next  [31mred[2J]0;title next
`}},
		"comma-separated": {args: []string{"-o", "csv"}, runs: []archivev1alpha1.Run{recordtest.Run("train", ended, func(run *archivev1alpha1.Run) {
			good := int64(1500)
			run.User, run.ReadyMilliseconds, run.GoodMilliseconds = "=cmd|'x'!A1\x1b[31m", 3000, &good
		})}, want: outcome{Requests: []string{all}, Out: strings.Join(header, ",") + "\n" +
			"ns,train-0a1b2c3d4e5f,JobSet,train,1,Completed,,'=cmd|'x'!A1[31m,,," + began + "," + ended.UTC().Format(time.RFC3339) + ",2,1,0,3,1.5,,,\n"}},
		"as data": {args: []string{"-o", "jsonpath={.kind}{range .items[*]} {.kind} {.object.name}{end}"}, runs: two, want: outcome{
			Requests: []string{all}, Out: "RunList Run train Run eval",
		}},
		"all filters": {
			args: []string{"LWS/vllm", "--since=2w", "--state=failed", "--user=a,b", "--queue=", "--cause=NodeLost", "--node=n1", "-l", "team=ml", "--limit=0"},
			want: outcome{
				Requests: []string{"namespaces/ns/runs?fieldSelector=cause%3DNodeLost%2Ckind%3DLeaderWorkerSet%2Cnode%3Dn1%2Cobject%3Dvllm%2Cqueue%3D%2Cstate%3DFailed%2Cuser%3Da%5C%2Cb%2CendedAfter&labelSelector=team%3Dml&limit=500"},
				ErrOut:   "No runs found that match in namespace ns.\n",
			},
		},
		"no run":         {want: outcome{Requests: []string{all}, ErrOut: "No runs found in namespace ns.\n"}},
		"no run at all":  {args: []string{"-A"}, want: outcome{Requests: []string{"runs?limit=50"}, ErrOut: "No runs found.\n"}},
		"no run as data": {args: []string{"-o", "jsonpath={.items}"}, want: outcome{Requests: []string{all}, Out: "[]"}},
		"no run as CSV":  {args: []string{"-o", "csv"}, want: outcome{Requests: []string{all}, Out: strings.Join(header, ",") + "\n"}},
		"more runs than asked for": {args: []string{"--limit=1"}, runs: two, want: outcome{Requests: []string{"namespaces/ns/runs?limit=1"},
			Out: `NAME                OBJECT    STATE   ATTEMPTS  LASTED  ENDED   USER   REASON
train-0a1b2c3d4e5f  js/train  Failed  3         60m     3h ago  alice  ReachedMaxRestarts
`, ErrOut: "note: there are more runs than these 1; --limit=0 prints all\n"}},
		"two names":         {args: []string{"a", "b"}, want: outcome{Err: "NAME: must be the name of one object, not 2 (a, b)"}},
		"an empty name":     {args: []string{"js/"}, want: outcome{Err: `NAME: must be NAME or KIND/NAME, not "js/"`}},
		"the name of a run": {args: []string{"run/a"}, want: outcome{Err: "NAME: must be the name of an object that ran, not of a run; `kubectl jobset why run/a` explains the run"}},
		"a kind without runs": {args: []string{"dset/llm"}, want: outcome{
			Err: `NAME: must be a JobSet, SequentialJob or LeaderWorkerSet, as NAME, js/NAME, sqj/NAME, lws/NAME, not "dset/llm"`,
		}},
		"two kinds":        {args: []string{"js/a", "--kind=lws"}, want: outcome{Err: `--kind: must be the kind of js/a or absent, not "lws"`}},
		"an unknown kind":  {args: []string{"--kind=job"}, want: outcome{Err: `--kind: must be one of js, sqj, lws, not "job"`}},
		"an unknown state": {args: []string{"--state=Done"}, want: outcome{Err: `--state: must be one of Completed, Failed, Cancelled, Deleted, not "Done"`}},
		"a bad time":       {args: []string{"--since=month"}, want: outcome{Err: `--since: must be a duration like 30d, 2w or 12h, not "month"`}},
		"a bad limit":      {args: []string{"--limit=-1"}, want: outcome{Err: "--limit: must be 0 for all runs, or more, not -1"}},
		"a bad selector":   {args: []string{"-l", "a==b==c"}, want: outcome{Err: `--selector: must be a label selector like team=ml, not "a==b==c": found '==', expected: ',' or 'end of string'`}},
	} {
		t.Run(name, func(t *testing.T) {
			if diff := cmp.Diff(tc.want, run(t, recordtest.New(t, tc.runs...), tc.args...)); diff != "" {
				t.Errorf("outcome (-want +got):\n%s", diff)
			}
		})
	}
}

// TestPagesArePrintedAsTheyArrive has a server that fails at the third page: the first two have been printed.
func TestPagesArePrintedAsTheyArrive(t *testing.T) {
	var runs []archivev1alpha1.Run
	for i := range 6 {
		runs = append(runs, recordtest.Run(fmt.Sprintf("set-%d", i), ended))
	}
	s := recordtest.New(t, runs...)
	s.Page = 2
	got := run(t, s, "--limit=0")
	if len(s.Got) != 3 || strings.Count(got.Out, "js/set-") != 6 || strings.Count(got.Out, "NAME") != 1 {
		t.Errorf("want one header and 6 lines of 3 pages; requests %v, output:\n%s", s.Got, got.Out)
	}
	broken := recordtest.New(t, runs...)
	broken.Page, broken.FailFrom = 2, 3
	got = run(t, broken, "--limit=0", "-o", "csv")
	if strings.Count(got.Out, "\n") != 5 || got.Err != "broken" {
		t.Errorf("want a header, 4 lines and the error of the server; got error %q, output:\n%s", got.Err, got.Out)
	}
}

func TestArchiveIsOff(t *testing.T) {
	want := outcome{Requests: []string{"namespaces/ns/runs?limit=50"}, Err: "the archive of runs is off: --archive-database turns it on\n" +
		"Only the archive of runs does not answer. JobSets and the other kinds do not depend on it."}
	if diff := cmp.Diff(want, run(t, recordtest.New(t).Off())); diff != "" {
		t.Errorf("outcome (-want +got):\n%s", diff)
	}
}
