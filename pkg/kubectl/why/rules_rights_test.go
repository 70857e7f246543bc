// Copyright The jobset-apiserver Authors.
// SPDX-License-Identifier: Apache-2.0

package why

import (
	"context"
	"strings"
	"testing"
	"time"

	"github.com/google/go-cmp/cmp"
	apierrors "k8s.io/apimachinery/pkg/api/errors"
	"k8s.io/cli-runtime/pkg/genericiooptions"
	"k8s.io/utils/ptr"

	jobsetv1alpha2 "github.com/jobset-apiserver/jobset-apiserver/pkg/apis/jobset/v1alpha2"
	"github.com/jobset-apiserver/jobset-apiserver/pkg/kubectl/cli"
)

// TestMissingPermissionLeads diagnoses sets of which the user may not read everything.
func TestMissingPermissionLeads(t *testing.T) {
	starting := status(func(s *jobsetv1alpha2.JobSetStatus) {
		s.ReplicatedJobsStatus[0].Ready = 0
		s.Attempts[len(s.Attempts)-1].ReadyTime = nil
	})
	alike := status(func(s *jobsetv1alpha2.JobSetStatus) {
		s.ReplicatedJobsStatus[0].Ready = 0
		cause := &jobsetv1alpha2.FailureCause{Job: "train-workers-0", Pod: "train-workers-0-0-x", Container: "main", Reason: "Error"}
		for i := range 2 {
			s.Attempts = append([]jobsetv1alpha2.Attempt{{Number: int32(2 - i), Outcome: jobsetv1alpha2.OutcomeRestarted, EndTime: microBefore(time.Minute), FirstCause: cause}}, s.Attempts...)
		}
		s.Attempts[2].Number, s.Attempts[2].ReadyTime = 3, nil
	})
	cases := map[string]struct {
		evidence  *Evidence
		forbidden []string
		want      Cause
		summary   string
	}{
		"pods of a set that starts":           {evidence: healthy(starting), forbidden: []string{"pods"}, want: CauseUnknown, summary: "cause unknown: cannot read pods"},
		"everything":                          {evidence: healthy(starting), forbidden: []string{"pods", "jobs", "events"}, want: CauseUnknown, summary: "cause unknown: cannot read pods, jobs and events"},
		"pods, after failures that are alike": {evidence: healthy(alike), forbidden: []string{"pods", "events"}, want: CauseUnknown, summary: "cause unknown: cannot read pods and events"},
		"events, and nothing else is wrong":   {evidence: healthy(starting), forbidden: []string{"events"}, want: CauseUnknown, summary: "cause unknown: cannot read events"},
		"events, and a pod shows the cause":   {evidence: healthy(pods(crashing("ImagePullBackOff", 0))), forbidden: []string{"events"}, want: ImagePull},
		"pods of a set that runs":             {evidence: healthy(), forbidden: []string{"pods"}, want: Running},
		"only nodes and leases":               {evidence: healthy(starting), forbidden: []string{"nodes", "leases"}, want: Starting},
	}
	for name, tc := range cases {
		t.Run(name, func(t *testing.T) {
			mayNotRead(tc.forbidden...)(tc.evidence)
			report := Diagnose(tc.evidence)
			first := report.Findings[0]
			if first.Cause != tc.want || tc.summary != "" && first.Summary != tc.summary {
				t.Fatalf("first finding %s: %s, want %s: %s", first.Cause, first.Summary, tc.want, tc.summary)
			}
			if tc.want != CauseUnknown {
				return
			}
			for i, resource := range tc.forbidden {
				want := "forbidden: you have no permission to list " + resource + " in the namespace team; the role jobset-operator grants it"
				if diff := cmp.Diff(want, first.Evidence[i].Text); diff != "" {
					t.Errorf("evidence (-want +got):\n%s", diff)
				}
			}
			for _, f := range report.Findings[1:] {
				if f.Cause == Starting {
					t.Errorf("nothing wrong was found, it says: %s", f.Summary)
				}
			}
		})
	}
}

// mayNotRead takes away what the user has no permission to list.
func mayNotRead(resources ...string) func(*Evidence) {
	return func(e *Evidence) {
		for _, resource := range resources {
			e.NotLookedAt = append(e.NotLookedAt, Gap{resource, "forbidden"})
			switch resource {
			case "pods":
				e.Pods = nil
			case "jobs":
				e.Jobs = nil
			case "events":
				e.Events = nil
			}
		}
	}
}

// TestExitCode is 1 when the set cannot be read, and 0 for whatever is wrong with one that can.
func TestExitCode(t *testing.T) {
	for name, tc := range map[string]struct {
		evidence *Evidence
		fails    bool
	}{
		"the set runs":              {evidence: healthy()},
		"a pod crashes":             {evidence: healthy(pods(crashing("CrashLoopBackOff", 3)))},
		"there is no such set":      {evidence: healthy(unread(apierrors.NewNotFound(jobSets, "train"))), fails: true},
		"the API does not answer":   {evidence: healthy(unread(apierrors.NewServiceUnavailable("try later"))), fails: true},
		"the API answers otherwise": {evidence: healthy(unread(apierrors.NewInternalError(context.Canceled))), fails: true},
	} {
		t.Run(name, func(t *testing.T) {
			streams, _, out, _ := genericiooptions.NewTestIOStreams()
			f := cli.NewFactory(streams)
			f.Flags.APIServer = ptr.To("http://127.0.0.1:1")
			diagnoser := func(context.Context, *cli.Clients, string) (*Report, error) { return Diagnose(tc.evidence), nil }
			cmd := NewCommand(f, []cli.For[Diagnoser]{{Kind: cli.JobSet, Do: diagnoser}})
			cmd.SetArgs([]string{"train"})
			cmd.SilenceErrors, cmd.SilenceUsage = true, true
			if err := cmd.ExecuteContext(t.Context()); (err != nil) != tc.fails || !strings.Contains(out.String(), "train") {
				t.Errorf("error %v, want one: %t; output:\n%s", err, tc.fails, out)
			}
		})
	}
}
