// Copyright The jobset-apiserver Authors.
// SPDX-License-Identifier: Apache-2.0

package action

import (
	"bytes"
	"encoding/json"
	"strings"
	"testing"

	"github.com/google/go-cmp/cmp"
	"github.com/spf13/cobra"
	"k8s.io/cli-runtime/pkg/genericiooptions"
	"k8s.io/utils/ptr"

	batchv1alpha1 "github.com/jobset-apiserver/jobset-apiserver/pkg/apis/batch/v1alpha1"
	"github.com/jobset-apiserver/jobset-apiserver/pkg/kubectl/cli"
)

type outcome struct {
	Out, ErrOut, Err string
	Requests         []string
}

func call(t *testing.T, command func(*cli.Factory, []cli.For[Target]) *cobra.Command, args ...string) outcome {
	t.Helper()
	s := newServer(t)
	var out, errOut bytes.Buffer
	f := cli.NewFactory(genericiooptions.IOStreams{In: strings.NewReader(""), Out: &out, ErrOut: &errOut})
	f.Flags.APIServer, f.Flags.Namespace = ptr.To(s.URL), ptr.To("ns")
	cmd := command(f, []cli.For[Target]{{Kind: cli.JobSet, Do: JobSet{}}})
	cmd.SilenceErrors, cmd.SilenceUsage = true, true
	cmd.SetArgs(args)
	err := cmd.ExecuteContext(t.Context())
	got := outcome{Out: out.String(), ErrOut: errOut.String(), Requests: s.got}
	if err != nil {
		got.Err = err.Error()
	}
	return got
}

func TestCommands(t *testing.T) {
	const seen = `"preconditions":{"uid":"u-1","attempt":3}`
	for name, tc := range map[string]struct {
		command func(*cli.Factory, []cli.For[Target]) *cobra.Command
		args    []string
		want    outcome
	}{
		"a restart names the set and the attempt that were seen": {
			command: NewRestart, args: []string{"js/train", "--reason", "rack 7"},
			want: outcome{
				Out:      "jobset.jobset.x-k8s.io/train restarted (attempt 4)\n",
				Requests: []string{"GET train", `POST train/restart JobSetRestart{"scope":"JobSet","reason":"rack 7",` + seen + `}`},
			},
		},
		"a set without attempts is restarted from attempt 0": {
			command: NewRestart, args: []string{"fresh"},
			want: outcome{
				Out:      "jobset.jobset.x-k8s.io/fresh restarted (attempt 4)\n",
				Requests: []string{"GET fresh", `POST fresh/restart JobSetRestart{"scope":"JobSet","preconditions":{"uid":"u-1","attempt":0}}`},
			},
		},
		"a restart of a given attempt does not look first": {
			command: NewRestart, args: []string{"train", "--attempt=2", "--count-towards-max-restarts"},
			want: outcome{
				Out:      "jobset.jobset.x-k8s.io/train restarted (attempt 4)\n",
				Requests: []string{`POST train/restart JobSetRestart{"scope":"JobSet","countTowardsMaxRestarts":true,"preconditions":{"attempt":2}}`},
			},
		},
		"one Job is restarted": {
			command: NewRestart, args: []string{"train", "--attempt=2", "--replicated-job=w", "--job-index=0"},
			want: outcome{
				Out:      "jobset.jobset.x-k8s.io/train restarted (attempt 4, Job 0 of replicatedJob w)\n",
				Requests: []string{`POST train/restart JobSetRestart{"scope":"Job","replicatedJob":"w","jobIndex":0,"preconditions":{"attempt":2}}`},
			},
		},
		"a replicatedJob is restarted": {
			command: NewRestart, args: []string{"train", "--attempt=2", "--replicated-job=w", "--scope=ReplicatedJob"},
			want: outcome{
				Out:      "jobset.jobset.x-k8s.io/train restarted (attempt 4, replicatedJob w)\n",
				Requests: []string{`POST train/restart JobSetRestart{"scope":"ReplicatedJob","replicatedJob":"w","preconditions":{"attempt":2}}`},
			},
		},
		"a dry run is one on the server": {
			command: NewSuspend, args: []string{"train", "--dry-run=server"},
			want: outcome{
				Out:      "jobset.jobset.x-k8s.io/train suspended (attempt 4) (server dry run)\n",
				Requests: []string{"POST train/suspend?dryRun=All JobSetSuspend{}"},
			},
		},
		"what is so already is said": {
			command: NewResume, args: []string{"already", "--reason=go"},
			want: outcome{
				Out:      "jobset.jobset.x-k8s.io/already unchanged: the JobSet is so already\n",
				Requests: []string{`POST already/resume JobSetResume{"reason":"go"}`},
			},
		},
		"a restart that joins another names the flag": {
			command: NewRestart, args: []string{"joined"},
			want: outcome{
				Out: "jobset.jobset.x-k8s.io/joined unchanged: attempt 3, requested 3s ago by bob, is not ready yet; not restarted again; " +
					"use --force to restart it\n",
				Requests: []string{"GET joined", `POST joined/restart JobSetRestart{"scope":"JobSet",` + seen + `}`},
			},
		},
		"a restart by force": {
			command: NewRestart, args: []string{"train", "--attempt=2", "--force"},
			want: outcome{
				Out:      "jobset.jobset.x-k8s.io/train restarted (attempt 4)\n",
				Requests: []string{`POST train/restart JobSetRestart{"scope":"JobSet","preconditions":{"attempt":2},"force":true}`},
			},
		},
		"cancelling asks nobody when there is no terminal": {
			command: NewCancel, args: []string{"train"},
			want: outcome{
				Out:      "jobset.jobset.x-k8s.io/train cancelled (attempt 4)\n",
				Requests: []string{`POST train/cancel JobSetCancel{}`},
			},
		},
		"a retry grants restarts": {
			command: NewRetry, args: []string{"train", "--max-restarts=3"},
			want: outcome{
				Out:      "jobset.jobset.x-k8s.io/train retried (attempt 4)\n",
				Requests: []string{"GET train", `POST train/retry JobSetRetry{"maxRestarts":3,` + seen + `}`},
			},
		},
		"after a failure the other sets are dealt with": {
			command: NewSuspend, args: []string{"finished", "train", "jobset/train", "missing"},
			want: outcome{
				Out: "jobset.jobset.x-k8s.io/train suspended (attempt 4)\n",
				ErrOut: "error: jobset.jobset.x-k8s.io/finished not suspended: the JobSet has completed; there is nothing to do\n" +
					"error: jobsets.jobset.x-k8s.io \"missing\" not found\n",
				Err:      "failed",
				Requests: []string{"POST finished/suspend JobSetSuspend{}", "POST train/suspend JobSetSuspend{}", "POST missing/suspend JobSetSuspend{}", "GET missing"},
			},
		},
		"fields that the server refuses are named": {
			command: NewRestart, args: []string{"invalid", "--attempt=1"},
			want: outcome{
				ErrOut:   "error: jobset.jobset.x-k8s.io/invalid not restarted: spec.replicatedJob: Invalid value: \"x\": must be the name of a replicatedJob of the JobSet: w; spec.jobIndex: Invalid value: 7: must be less\n",
				Err:      "failed",
				Requests: []string{`POST invalid/restart JobSetRestart{"scope":"JobSet","preconditions":{"attempt":1}}`},
			},
		},
		"an attempt that is out of date is that of the flag": {
			command: NewSuspend, args: []string{"outdated", "--attempt=3"},
			want: outcome{
				ErrOut:   "error: jobset.jobset.x-k8s.io/outdated not suspended: --attempt 3 is out of date; attempt 7 is current (begun by bob)\n",
				Err:      "failed",
				Requests: []string{`POST outdated/suspend JobSetSuspend{"preconditions":{"attempt":3}}`},
			},
		},
		"an attempt that does not exist": {
			command: NewRestart, args: []string{"future", "--attempt=9"},
			want: outcome{
				ErrOut:   "error: jobset.jobset.x-k8s.io/future not restarted: --attempt 9 does not exist; attempt 7 is current (begun by bob)\n",
				Err:      "failed",
				Requests: []string{`POST future/restart JobSetRestart{"scope":"JobSet","preconditions":{"attempt":9}}`},
			},
		},
		"an attempt that began while the command ran": {
			command: NewRetry, args: []string{"outdated"},
			want: outcome{
				ErrOut:   "error: jobset.jobset.x-k8s.io/outdated not retried: another attempt began in the meantime: attempt 7 is current (begun by bob)\n",
				Err:      "failed",
				Requests: []string{"GET outdated", "POST outdated/retry JobSetRetry{" + seen + "}"},
			},
		},
		"a set that was recreated while the command ran": {
			command: NewRestart, args: []string{"recreated"},
			want: outcome{
				ErrOut:   "error: jobset.jobset.x-k8s.io/recreated not restarted: the JobSet was deleted and recreated in the meantime\n",
				Err:      "failed",
				Requests: []string{"GET recreated", `POST recreated/restart JobSetRestart{"scope":"JobSet",` + seen + `}`},
			},
		},
		"a policy that denies is named": {
			command: NewSuspend, args: []string{"denied"},
			want: outcome{
				ErrOut:   "error: jobset.jobset.x-k8s.io/denied not suspended: ValidatingAdmissionPolicy 'frozen' with binding 'all' denied request: not on Fridays\n",
				Err:      "failed",
				Requests: []string{"POST denied/suspend JobSetSuspend{}"},
			},
		},
		"a missing right is said": {
			command: NewCancel, args: []string{"forbidden"},
			want: outcome{
				ErrOut:   "error: jobsets.jobset.x-k8s.io \"forbidden\" is forbidden: not yours\n",
				Err:      "failed",
				Requests: []string{"POST forbidden/cancel JobSetCancel{}"},
			},
		},
		"a server without the action": {
			command: NewCancel, args: []string{"upstream"},
			want: outcome{
				ErrOut:   "error: jobset.jobset.x-k8s.io/upstream not cancelled: this server has no action cancel for JobSets; it is a feature of jobset-apiserver\n",
				Err:      "failed",
				Requests: []string{"POST upstream/cancel JobSetCancel{}", "GET upstream"},
			},
		},
		"a server without the action has another way": {
			command: NewSuspend, args: []string{"upstream"},
			want: outcome{
				ErrOut: "error: jobset.jobset.x-k8s.io/upstream not suspended: this server has no action suspend for JobSets, which is a feature of jobset-apiserver; " +
					"use this command instead: kubectl patch jobset upstream -n ns --type=merge -p '{\"spec\":{\"suspend\":true}}'\n",
				Err:      "failed",
				Requests: []string{"POST upstream/suspend JobSetSuspend{}", "GET upstream"},
			},
		},
	} {
		t.Run(name, func(t *testing.T) {
			if diff := cmp.Diff(tc.want, call(t, tc.command, tc.args...)); diff != "" {
				t.Errorf("outcome (-want +got):\n%s", diff)
			}
		})
	}
}

func TestInvalidUsageSendsNoRequest(t *testing.T) {
	for name, tc := range map[string]struct {
		command func(*cli.Factory, []cli.For[Target]) *cobra.Command
		args    []string
		want    string
	}{
		"no name":               {NewSuspend, nil, "NAME: give the name of a JobSet; `kubectl jobset list` lists them"},
		"another resource":      {NewSuspend, []string{"job/x"}, `NAME: must be a JobSet, as NAME or jobset/NAME, not "job/x"`},
		"dry run on the client": {NewSuspend, []string{"a", "--dry-run=client"}, `--dry-run: must be none or server, not "client"`},
		"waiting for a dry run": {NewSuspend, []string{"a", "--dry-run=server", "--wait"}, "--wait: cannot be used with --dry-run=server"},
		"a timeout of nothing":  {NewSuspend, []string{"a", "--timeout=1m"}, "--timeout: requires --wait"},
		"a negative timeout":    {NewSuspend, []string{"a", "--wait", "--timeout=-1m"}, "--timeout: must be 0 or more, not -1m0s"},
		"an unknown format": {NewSuspend, []string{"a", "-o", "wide"}, `unable to match a printer suitable for the output format "wide", allowed formats are: ` +
			"go-template,go-template-file,json,jsonpath,jsonpath-as-json,jsonpath-file,kyaml,name,template,templatefile,yaml"},
		"a negative attempt":         {NewCancel, []string{"a", "--attempt=-1"}, "--attempt: must be 0 or more, not -1"},
		"negative restarts":          {NewRetry, []string{"a", "--max-restarts=-1"}, "--max-restarts: must be 0 or more, not -1"},
		"an index of nothing":        {NewRestart, []string{"a", "--job-index=1"}, "--job-index: requires --replicated-job"},
		"a negative index":           {NewRestart, []string{"a", "--replicated-job=w", "--job-index=-1"}, "--job-index: must be 0 or more, not -1"},
		"a Job without an index":     {NewRestart, []string{"a", "--scope=Job", "--replicated-job=w"}, "--scope: Job requires --replicated-job and --job-index"},
		"a replicatedJob of no name": {NewRestart, []string{"a", "--scope=ReplicatedJob"}, "--scope: ReplicatedJob requires --replicated-job"},
		"a replicatedJob with index": {NewRestart, []string{"a", "--scope=ReplicatedJob", "--replicated-job=w", "--job-index=1"}, "--scope: ReplicatedJob cannot be used with --job-index"},
		"the set and a part of it":   {NewRestart, []string{"a", "--scope=JobSet", "--replicated-job=w"}, "--scope: JobSet cannot be used with --replicated-job or --job-index"},
		"an unknown scope":           {NewRestart, []string{"a", "--scope=Pod"}, `--scope: must be JobSet, ReplicatedJob or Job, not "Pod"`},
	} {
		t.Run(name, func(t *testing.T) {
			if diff := cmp.Diff(outcome{Err: tc.want}, call(t, tc.command, tc.args...)); diff != "" {
				t.Errorf("outcome (-want +got):\n%s", diff)
			}
		})
	}
}

func TestAnswersAsData(t *testing.T) {
	one := call(t, NewCancel, "train", "-o", "json")
	var object batchv1alpha1.JobSetCancel
	if err := json.Unmarshal([]byte(one.Out), &object); err != nil {
		t.Fatalf("%v in:\n%s", err, one.Out)
	}
	if diff := cmp.Diff([]any{"JobSetCancel", "batch.jobset-apiserver.io/v1alpha1", "train", int32(4)},
		[]any{object.Kind, object.APIVersion, object.Name, object.Status.Attempt}); diff != "" {
		t.Errorf("kind, version, name and attempt (-want +got):\n%s", diff)
	}

	two := call(t, NewCancel, "train", "finished", "other", "-o", "json")
	var list struct {
		Kind  string
		Items []batchv1alpha1.JobSetCancel
	}
	if err := json.Unmarshal([]byte(two.Out), &list); err != nil {
		t.Fatalf("%v in:\n%s", err, two.Out)
	}
	names := []string{list.Kind}
	for _, item := range list.Items {
		names = append(names, item.Name)
	}
	if diff := cmp.Diff([]string{"List", "train", "other"}, names); diff != "" {
		t.Errorf("kind and names (-want +got):\n%s", diff)
	}
	if two.Err == "" {
		t.Error("one of the sets was refused, and the command succeeds")
	}
	for format, want := range map[string]string{
		"name":                               "jobset.jobset.x-k8s.io/train\njobset.jobset.x-k8s.io/other\n",
		"jsonpath={.items[*].metadata.name}": "train other",
	} {
		if diff := cmp.Diff(want, call(t, NewCancel, "train", "other", "-o", format).Out); diff != "" {
			t.Errorf("output of %s (-want +got):\n%s", format, diff)
		}
	}
}
