// Copyright The jobset-apiserver Authors.
// SPDX-License-Identifier: Apache-2.0

package simulation

import (
	"fmt"
	"strings"
	"testing"

	jobsetv1alpha2 "github.com/jobset-apiserver/jobset-apiserver/pkg/apis/jobset/v1alpha2"
	"github.com/jobset-apiserver/jobset-apiserver/pkg/controller/jobset/plan"
)

// TestRestores runs histories with a restore.
func TestRestores(t *testing.T) {
	if seed, given := number64(t, "SIMULATION_SEED"); given {
		var trace []string
		_, broken := runRestored(seed, faultless, &trace)
		t.Logf("history %d:\n%s\n%s", seed, strings.Join(trace, "\n"), broken)
		return
	}
	n := uint64(histories / 5)
	if given, ok := number64(t, "SIMULATION_HISTORIES"); ok {
		n = given
	}
	var seen tally
	first := firstSeed(t)
	for i := range n {
		one, broken := runRestored(first+i, faultless, nil)
		seen.add(&one)
		if broken != "" {
			var trace []string
			runRestored(first+i, faultless, &trace)
			t.Fatalf("history %d broke %s\n%s", first+i, broken, strings.Join(trace[max(0, len(trace)-shown):], "\n"))
		}
	}
	t.Logf("%d histories: %d sets held, %d of them resumed, %d times restarts taken over", n, seen[setsHeld], seen[heldResumed], seen[takeOvers])
	if n >= 1000 && (seen[setsHeld] == 0 || seen[heldResumed] == 0 || seen[takeOvers] == 0) {
		t.Error("the histories hold no set, or take over nothing")
	}
}

// TestRestoresShowDefects makes sure that histories with a restore can fail, and by which rule.
func TestRestoresShowDefects(t *testing.T) {
	unaware := func(o *plan.Observed) { o.Restored = false }
	for name, test := range map[string]struct {
		mutant
		wantRule string
	}{
		"nobody asks whether the store was restored": {deciding(unaware, nil), notRunAgain},
		"Jobs that run are suspended": {deciding(func(o *plan.Observed) {
			if isSuspended(o.JobSet) {
				o.Restored = false
			}
		}, nil), nothingStopped},
		"attempts are not taken over": {deciding(func(o *plan.Observed) {
			if len(o.Jobs) > 0 {
				o.Restored = false
			}
		}, nil), numbersStay},
		"Jobs of a held set are created": {deciding(nil, func(o plan.Observed, p *plan.Plan) {
			if conditionIs(&o.JobSet.Status, jobsetv1alpha2.Held) && len(o.Jobs) == 0 {
				free := o
				free.JobSet = o.JobSet.DeepCopy()
				free.JobSet.Status.Conditions = nil
				p.CreateJobs = plan.Decide(free).CreateJobs
			}
		}), heldLeftAlone},
		"a hold that nothing ends": {deciding(func(o *plan.Observed) {
			for i := range o.JobSet.Status.Conditions {
				if c := &o.JobSet.Status.Conditions[i]; c.Type == jobsetv1alpha2.Held {
					c.Status = "True"
				}
			}
		}, nil), resumedComesRun},
		"restarts that are forgotten": {deciding(nil, func(o plan.Observed, p *plan.Plan) {
			if o.Restored && p.Status != nil {
				p.Status.Restarts = 0
			}
		}), numbersStay},
	} {
		t.Run(name, func(t *testing.T) {
			others := map[string]bool{}
			for seed := range uint64(enough) {
				_, broken := runRestored(seed, test.mutant, nil)
				if strings.Contains(broken, fmt.Sprintf("%q", test.wantRule)) {
					return
				}
				if others[broken] = true; len(others) > 20 {
					break
				}
			}
			t.Errorf("the rule %q was not broken; others: %v", test.wantRule, others)
		})
	}
}
