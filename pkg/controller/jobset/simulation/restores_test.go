// Copyright The jobset-apiserver Authors.
// SPDX-License-Identifier: Apache-2.0

package simulation

import (
	"testing"

	jobsetv1alpha2 "github.com/jobset-apiserver/jobset-apiserver/pkg/apis/jobset/v1alpha2"
	hostplan "github.com/jobset-apiserver/jobset-apiserver/pkg/controller/host/plan"
	"github.com/jobset-apiserver/jobset-apiserver/pkg/controller/jobset/plan"
	"github.com/jobset-apiserver/jobset-apiserver/test/simulation"
)

// restores are histories with a restore.
var restores = simulation.Histories[mutant]{
	Run: runRestored, Faultless: faultless, Number: 2_000, Long: 4_000,
	Wanted: []string{"sets held after a restore", "held sets that were resumed", "restarts taken over after a restore"},
}

// TestRestores runs histories with a restore.
func TestRestores(t *testing.T) { restores.Test(t) }

// TestRestoresShowDefects makes sure that histories with a restore can fail, and by which rule.
func TestRestoresShowDefects(t *testing.T) {
	unaware := func(o *plan.Observed) { o.Restored = hostplan.None[plan.Restored]() }
	restores.ShowDefects(t, enough, map[string]simulation.Defect[mutant]{
		"nobody asks whether the store was restored": {Mutant: deciding(unaware, nil), Rules: []string{notRunAgain}},
		"Jobs that run are suspended": {Mutant: deciding(func(o *plan.Observed) {
			if isSuspended(o.JobSet) {
				o.Restored = hostplan.None[plan.Restored]()
			}
		}, nil), Rules: []string{nothingStopped}},
		"attempts are not taken over": {Mutant: deciding(func(o *plan.Observed) {
			if len(o.Jobs) > 0 {
				o.Restored = hostplan.None[plan.Restored]()
			}
		}, nil), Rules: []string{numbersStay}, First: 367},
		"Jobs of a held set are created": {Mutant: deciding(nil, func(o plan.Observed, p *plan.Plan) {
			if conditionIs(&o.JobSet.Status, jobsetv1alpha2.Held) && len(o.Jobs) == 0 {
				free := o
				free.JobSet = o.JobSet.DeepCopy()
				free.JobSet.Status.Conditions = nil
				p.CreateJobs = plan.Decide(free).CreateJobs
			}
		}), Rules: []string{heldLeftAlone}, First: 881},
		"a hold that nothing ends": {Mutant: deciding(func(o *plan.Observed) {
			for i := range o.JobSet.Status.Conditions {
				if c := &o.JobSet.Status.Conditions[i]; c.Type == jobsetv1alpha2.Held {
					c.Status = "True"
				}
			}
		}, nil), Rules: []string{resumedComesRun}, First: 491},
		"restarts that are forgotten": {Mutant: deciding(nil, func(o plan.Observed, p *plan.Plan) {
			if _, restored := o.Restored.Get(); restored && p.Status != nil {
				p.Status.Restarts = 0
			}
		}), Rules: []string{numbersStay}},
	})
}
