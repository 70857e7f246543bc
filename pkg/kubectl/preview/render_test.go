// Copyright The jobset-apiserver Authors.
// SPDX-License-Identifier: Apache-2.0

package preview

import (
	"strings"
	"testing"

	"github.com/google/go-cmp/cmp"

	"github.com/jobset-apiserver/jobset-apiserver/pkg/kubectl/cli"
)

func TestRender(t *testing.T) {
	refusal := Verdict{Answer: Refused, Problems: []string{"spec.replicatedJobs[0].template.spec.template.spec.containers[0].image: Required value"}, Warnings: []string{"would violate PodSecurity"}}
	full := want(func(s *Set) {
		s.Notes = []string{"something else that a user should know about this set"}
		s.ReplicatedJobs = append(workers(func(rj *ReplicatedJob) { rj.Job, rj.Pod, rj.TakenNames = &refusal, nil, "train-w-1" }),
			ReplicatedJob{
				Name: "eval", After: []string{"w:Complete"}, Jobs: 1200, JobNames: "train-eval-[0-1199]", Pods: 1200, PodNames: "train-eval-[0-1199]-xxxxx",
				Job: &Verdict{Answer: Accepted}, Pod: &Verdict{Answer: Unknown, Problems: []string{"you may not"}},
			},
			ReplicatedJob{Name: "none"})
		s.Service.Exists = true
		s.Quota = []QuotaLine{
			{Quota: "team", Resource: "pods", Adds: "6", Used: "0", Hard: "10"},
			{Quota: "team", Resource: "requests.cpu", Adds: "12", Used: "1", Hard: "8", Short: "5"},
		}
	})
	unsure := want(func(s *Set) { s.Service.Verdict = Verdict{Answer: Unknown, Problems: []string{"you may not"}} })
	simple := want()
	simple.Claims, simple.Service = nil, nil

	for name, tc := range map[string]struct {
		report   Report
		others   manifest
		terminal cli.Terminal
		want     string
	}{
		"all is well": {
			report: Report{Sets: []View{&simple}},
			want: `JobSet train in namespace default: Accepted

  KIND  NAMES                      COUNT  ANSWER
  Job   train-w-[0-2]              3      Accepted
  Pod   train-w-[0-2]-[0-1]-xxxxx  6      Accepted
    DNS name train-w-[0-2]-[0-1].train

The set would create 3 Jobs and 6 pods.`,
		},
		"much is not": {
			report: Report{Sets: []View{&full}}, others: manifestOf("ServiceAccount", "Secret", "Secret", "Deployment"),
			want: `JobSet train in namespace default: Accepted
  note: something else that a user should know about this set

  KIND     NAMES                      COUNT  ANSWER
  Job      train-w-[0-2]              3      Refused
    exists already: train-w-1; the set would wait until it is gone
    spec.replicatedJobs[0].template.spec.template.spec.containers[0].image: Required value
    warning: would violate PodSecurity
  Pod      train-w-[0-2]-[0-1]-xxxxx  6      Not asked
    DNS name train-w-[0-2]-[0-1].train
  Job      train-eval-[0-1199]        1,200  Accepted
    created once w is complete
  Pod      train-eval-[0-1199]-xxxxx  1,200  Unknown
    you may not
  Job      (none of none)             0      -
  Service  train                      1      Exists, and is used as it is
  Claim    data-train                 1      Accepted

  QUOTA  RESOURCE      ADDS  USED  HARD  ANSWER
  team   pods          6     0     10    Fits
  team   requests.cpu  12    1     8     Short by 5

Not all of this would be created: the set would not run as it is meant to.

taken into account from the manifest: 2 Secrets, 1 ServiceAccount
not previewed: 1 Deployment`,
		},
		"the set itself is refused, and the next one is not sure": {
			report: Report{Sets: []View{&Set{Object: Object{Kind: "JobSet", Name: "a", Namespace: "ns", Verdict: refusal}}, &unsure}},
			want: `JobSet a in namespace ns: Refused
  spec.replicatedJobs[0].template.spec.template.spec.containers[0].image: Required value
  warning: would violate PodSecurity

JobSet train in namespace default: Accepted

  KIND     NAMES                      COUNT  ANSWER
  Job      train-w-[0-2]              3      Accepted
  Pod      train-w-[0-2]-[0-1]-xxxxx  6      Accepted
    DNS name train-w-[0-2]-[0-1].train
  Service  train                      1      Unknown
    you may not
  Claim    data-train                 1      Accepted

As far as your permissions show, the set would create 3 Jobs and 6 pods.`,
		},
		"on a narrow terminal what matters is not cut": {
			report:   Report{Sets: []View{&Set{Object: Object{Kind: "JobSet", Name: "a", Namespace: "ns", Verdict: refusal}}}},
			terminal: cli.Terminal{Width: 40, Height: 20},
			want: `JobSet a in namespace ns: Refused
  spec.replicatedJobs[0].template.spec.template.spec.containers[0].image:
  Required value
  warning: would violate PodSecurity`,
		},
		"colors on a terminal": {
			report:   Report{Sets: []View{&Set{Object: Object{Kind: "JobSet", Name: "a", Namespace: "ns", Verdict: Verdict{Answer: Refused}}}}},
			terminal: cli.Terminal{Width: 80, Height: 20, Colors: true},
			want:     "\x1b[1mJobSet a in namespace ns\x1b[0m: \x1b[31mRefused\x1b[0m",
		},
	} {
		t.Run(name, func(t *testing.T) {
			got := strings.Join(render(&tc.report, tc.others, tc.terminal), "\n")
			if diff := cmp.Diff(tc.want, got); diff != "" {
				t.Errorf("text (-want +got):\n%s", diff)
			}
		})
	}
}
