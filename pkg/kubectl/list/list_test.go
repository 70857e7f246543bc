// Copyright The jobset-apiserver Authors.
// SPDX-License-Identifier: Apache-2.0

package list

import (
	"bytes"
	"context"
	"errors"
	"net/http"
	"strings"
	"testing"
	"testing/synctest"
	"time"

	"github.com/google/go-cmp/cmp"
	apierrors "k8s.io/apimachinery/pkg/api/errors"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/runtime/schema"

	jobsetv1alpha2 "github.com/jobset-apiserver/jobset-apiserver/pkg/apis/jobset/v1alpha2"
	"github.com/jobset-apiserver/jobset-apiserver/pkg/kubectl/cli"
	"github.com/jobset-apiserver/jobset-apiserver/test/builders"
)

// outcome is what a command has done.
type outcome struct {
	Out, ErrOut, Err string
	Requests         []string
}

func run(t *testing.T, s *server, args ...string) outcome {
	t.Helper()
	f, out, errOut := s.factory()
	cmd := NewCommand(f)
	cmd.SilenceUsage, cmd.SilenceErrors = true, true
	cmd.SetOut(&bytes.Buffer{})
	cmd.SetErr(&bytes.Buffer{})
	if len(args) == 0 || strings.HasPrefix(args[0], "-") {
		args = append([]string{"js"}, args...)
	}
	cmd.SetArgs(args)
	err := cmd.ExecuteContext(t.Context())
	got := outcome{Out: out.String(), ErrOut: errOut.String(), Requests: s.got}
	if err != nil {
		got.Err = err.Error()
	}
	return got
}

const firstPage = "table namespaces/ns/jobsets?includeObject=Metadata&limit=500"

func TestList(t *testing.T) {
	jobsets := schema.GroupResource{Group: jobsetv1alpha2.GroupName, Resource: "jobsets"}
	expired := apierrors.NewResourceExpired("the continue token is too old")
	expired.ErrStatus.ListMeta.Continue = "fresh"
	for name, tc := range map[string]struct {
		args    []string
		answers []answer
		want    outcome
	}{
		"two sets": {
			answers: []answer{page("", set("train", "Running", "4/4", "1/3", inQueue("gpu")), set("eval", "Failed", "0/1", "2/2"))},
			want: outcome{Requests: []string{firstPage}, Out: `NAME   PHASE    READY  ATTEMPT  QUEUE  AGE  REASON
eval   Failed   0/1    2/2             90m
train  Running  4/4    1/3      gpu    90m
`},
		},
		"pages, one of which has expired": {
			args:    []string{"--sort-by=attempt"},
			answers: []answer{page("more", set("a", "Running", "1/1", "1/1")), failure(expired), page("", set("b", "Running", "1/1", "10/10"))},
			want: outcome{
				Requests: []string{firstPage, "table namespaces/ns/jobsets?continue=more&includeObject=Metadata&limit=500", "table namespaces/ns/jobsets?continue=fresh&includeObject=Metadata&limit=500"},
				Out: `NAME  PHASE    READY  ATTEMPT  QUEUE  AGE  REASON
b     Running  1/1    10/10           90m
a     Running  1/1    1/1             90m
`},
		},
		"all namespaces, by age": {
			args:    []string{"-A", "--sort-by", "age"},
			answers: []answer{page("", set("a/old", "Running", "1/1", "1/1", ago(time.Hour)), set("b/new", "Running", "1/1", "1/1"))},
			want: outcome{Requests: []string{"table jobsets?includeObject=Metadata&limit=500"}, Out: `NAMESPACE  NAME  PHASE    READY  ATTEMPT  QUEUE  AGE   REASON
b          new   Running  1/1    1/1             90m
a          old   Running  1/1    1/1             150m
`},
		},
		"the least ready first": {
			args:    []string{"--sort-by", "ready"},
			answers: []answer{page("", set("a", "Running", "2/2", "1/1"), set("b", "Starting", "1/3", "1/1"), set("c", "Running", "0/0", "1/1"))},
			want: outcome{Requests: []string{firstPage}, Out: `NAME  PHASE     READY  ATTEMPT  QUEUE  AGE  REASON
b     Starting  1/3    1/1             90m
a     Running   2/2    1/1             90m
c     Running   0/0    1/1             90m
`},
		},
		"phases and labels": {
			args:    []string{"--phase=failed,Pending", "-l", "team=ml", "--queue=gpu", "-o", "jsonpath={.kind}{range .items[*]} {.name}={.phase}{end}"},
			answers: []answer{page("", set("a", "Running", "2/2", "1/1"), set("b", "Failed", "1/3", "1/1"), set("c", "Pending", "0/1", "1/1"))},
			want: outcome{
				Requests: []string{"table namespaces/ns/jobsets?includeObject=Metadata&labelSelector=team%3Dml%2Ckueue.x-k8s.io%2Fqueue-name%3Dgpu&limit=500"},
				Out:      "JobSetSummaryList b=Failed c=Pending",
			},
		},
		"sets without a queue": {
			args: []string{"--queue="}, answers: []answer{page("")},
			want: outcome{Requests: []string{"table namespaces/ns/jobsets?includeObject=Metadata&labelSelector=%21kueue.x-k8s.io%2Fqueue-name&limit=500"}, ErrOut: "No JobSets found that match in namespace ns.\n"},
		},
		"no set":                     {answers: []answer{page("")}, want: outcome{Requests: []string{firstPage}, ErrOut: "No JobSets found in namespace ns.\n"}},
		"no set as data":             {args: []string{"-o", "jsonpath={.items}"}, answers: []answer{page("")}, want: outcome{Requests: []string{firstPage}, Out: "[]"}},
		"a namespace without access": {answers: []answer{failure(apierrors.NewForbidden(jobsets, "", errors.New(`User "jane" cannot list`)))}, want: outcome{Requests: []string{firstPage}, Err: `jobsets.jobset.x-k8s.io is forbidden: User "jane" cannot list`}},
		"a name":                     {args: []string{"train"}, want: outcome{Err: "KIND: must be one of js, sqj, lws, dset, or absent for all, not \"train\"; `kubectl jobset tree train` shows one object"}},
		"an unknown phase":           {args: []string{"--phase=Done"}, want: outcome{Err: `--phase: must be one of Available, Completed, Failed, Paused, Pending, Progressing, Restarting, Running, Starting, Suspended, Terminating, Unreadable, Updating, Waiting, not "Done"`}},
		"an unknown order":           {args: []string{"--sort-by=size"}, want: outcome{Err: `--sort-by: must be one of name, age, phase, ready, attempt, not "size"`}},
		"a bad selector":             {args: []string{"-l", "a==b==c"}, want: outcome{Err: `--selector: must be a label selector like team=ml, not "a==b==c": found '==', expected: ',' or 'end of string'`}},
		"a bad queue":                {args: []string{"--queue=a/b"}, want: outcome{Err: `--queue: must be the name of a queue, not "a/b": a valid label must be an empty string or consist of alphanumeric characters, '-', '_' or '.', and must start and end with an alphanumeric character (e.g. 'MyValue',  or 'my_value',  or '12345', regex used for validation is '(([A-Za-z0-9][-A-Za-z0-9_.]*)?[A-Za-z0-9])?')`}},
		"a watch of data":            {args: []string{"-w", "-o", "json"}, want: outcome{Err: "--watch: prints text only; use `kubectl get jobsets --watch` for other formats"}},
		"a watch without access":     {args: []string{"-w"}, answers: []answer{failure(apierrors.NewForbidden(jobsets, "", errors.New("no")))}, want: outcome{Requests: []string{firstPage}, Err: "jobsets.jobset.x-k8s.io is forbidden: no"}},
	} {
		t.Run(name, func(t *testing.T) {
			if diff := cmp.Diff(tc.want, run(t, newServer(t, tc.answers...), tc.args...)); diff != "" {
				t.Errorf("outcome (-want +got):\n%s", diff)
			}
		})
	}
}

// TestListOfAnotherServer lists the sets of a server whose table has the columns of upstream.
func TestListOfAnotherServer(t *testing.T) {
	js := builders.JobSet("train", builders.WithJobs("w", 3, 2))
	js.CreationTimestamp, js.Status.Restarts = created, 2
	js.Status.ReplicatedJobsStatus = []jobsetv1alpha2.ReplicatedJobStatus{{Name: "w", Ready: 1, Active: 2}}
	s := newServer(t,
		answer{http.StatusOK, []any{tableOf(wide[:2], "", set("train", "", "", ""))}},
		answer{http.StatusOK, []any{jobsetv1alpha2.JobSetList{Items: []jobsetv1alpha2.JobSet{*js}}}})
	got := run(t, s, "-o", "jsonpath={range .items[*]}{.name} {.phase} {.reason} {.jobsReady}/{.jobs} {.attempt}{end}")
	want := outcome{Out: "train Starting JobsNotReady 1/3 3", Requests: []string{firstPage, "objects namespaces/ns/jobsets?limit=50"}}
	if diff := cmp.Diff(want, got); diff != "" {
		t.Errorf("outcome (-want +got):\n%s", diff)
	}
}

func TestWatch(t *testing.T) {
	gone := apierrors.NewResourceExpired("too old").Status()
	gone.TypeMeta = metav1.TypeMeta{APIVersion: "v1", Kind: "Status"}
	first := set("train", "Starting", "1/4", "1/3")
	s := newServer(t,
		page("", first, set("eval", "Running", "1/1", "1/1"), set("none", "Pending", "0/1", "1/1")),
		changes(
			"MODIFIED", set("train", "Starting", "1/4", "1/3", version("10")), // nothing that is shown
			"MODIFIED", set("train", "Running", "4/4", "1/3", version("11")),
			"BOOKMARK", set("", "", "", "", version("12"))),
		changes("ADDED", set("a-longer-name", "Running", "1/1", "1/1", version("13")), "DELETED", set("eval", "Running", "1/1", "1/1", version("14")), "ERROR", gone),
		page("", set("train", "Failed", "0/4", "3/3")))
	synctest.Test(t, func(t *testing.T) {
		time.Sleep(time.Until(created.Add(90 * time.Minute))) // AGE is of this time
		f, out, _ := s.factory()
		f.Flags.WrapConfigFn = s.inMemory
		ctx, stop := context.WithCancel(t.Context())
		s.done = stop
		o := &options{phases: []string{"Starting", "Running", "Failed"}, sortBy: "name"}
		printer := &cli.Rows{Columns: columns(false)}
		clients, err := f.Clients()
		if err != nil {
			t.Fatal(err)
		}
		terminal := f.Terminal()
		w := newFollower(o, terminal, func(rows [][]string) error { return terminal.Lines(f.Out, printer.Lines(terminal, rows)...) })
		if err := w.run(ctx, &source{kind: kinds[0], client: clients.JobSets.JobsetV1alpha2().RESTClient(), namespace: "ns"}); err != nil {
			t.Fatal(err)
		}
		want := `NAME   PHASE     READY  ATTEMPT  QUEUE  AGE  REASON
eval   Running   1/1    1/1             90m
train  Starting  1/4    1/3             90m
train  Running   4/4    1/3             90m
a-longer-name  Running   1/1    1/1             90m
eval           Deleted   1/1    1/1             90m
a-longer-name  Deleted   1/1    1/1             90m
train          Failed    0/4    3/3             90m
`
		if diff := cmp.Diff(want, out.String()); diff != "" {
			t.Errorf("output (-want +got):\n%s", diff)
		}
		var watches []string
		for _, request := range s.got {
			if _, from, found := strings.Cut(request, "resourceVersion="); found {
				watches = append(watches, from)
			}
		}
		if diff := cmp.Diff([]string{"9&watch=true", "12&watch=true", "9&watch=true"}, watches[:min(3, len(watches))]); diff != "" {
			t.Errorf("watches begin at (-want +got):\n%s", diff)
		}
	})
}
