// Copyright The jobset-apiserver Authors.
// SPDX-License-Identifier: Apache-2.0

package preview

import (
	"strings"
	"testing"

	"github.com/jobset-apiserver/jobset-apiserver/pkg/kubectl/cli"
)

// TestNarrowTerminal cuts lines of tables at 60 columns, and keeps fields whole, so that they can be copied.
func TestNarrowTerminal(t *testing.T) {
	const field = "spec.replicatedJobs[0].template.spec.template.spec.containers[0].image:"
	refused := Verdict{Answer: Refused, Problems: []string{field + " Required value"}}
	fresh := want(func(s *Set) {
		s.ReplicatedJobs = workers(func(rj *ReplicatedJob) { rj.Job, rj.JobNames = &refused, strings.Repeat("name-", 20) })
		s.Quota = []QuotaLine{{Quota: strings.Repeat("q", 60), Resource: "pods", Adds: "6", Used: "0", Hard: "10"}}
	})
	old := Set{Object: Object{Kind: "JobSet", Name: "train", Namespace: "ns", Exists: true, Verdict: refused, Changes: []Change{{Field: strings.TrimSuffix(field, ":"), Live: "x", Next: "y", Effect: EffectRefused}}}}
	lines := render(&Report{Sets: []View{&fresh, &old}}, nil, cli.Terminal{Width: 60, Height: 20})
	whole := 0
	for _, line := range lines {
		if strings.Contains(line, field) {
			whole++
		} else if cli.Columns(line) > 60 {
			t.Errorf("%d columns: %s", cli.Columns(line), line)
		}
	}
	if whole != 3 {
		t.Errorf("%d lines have the field, want 3:\n%s", whole, strings.Join(lines, "\n"))
	}
}
