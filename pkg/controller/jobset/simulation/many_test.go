// Copyright The jobset-apiserver Authors.
// SPDX-License-Identifier: Apache-2.0

package simulation

import (
	"testing"

	batchv1 "k8s.io/api/batch/v1"
	"k8s.io/utils/ptr"

	"github.com/jobset-apiserver/jobset-apiserver/pkg/apis/jobset/gates"
	"github.com/jobset-apiserver/jobset-apiserver/pkg/controller/jobset/plan"
	"github.com/jobset-apiserver/jobset-apiserver/test/simulation"
)

// manyJobs is how many Jobs a large set has.
const manyJobs = 130

// manyOfSet is the history of a large set: its Jobs run, one fails, and all complete after the restart of the set and of the controller.
var manyOfSet = simulation.Histories[mutant]{Run: runMany, Faultless: faultless, Number: 1, Wanted: []string{"restarts of large sets"}}

func runMany(_ uint64, m mutant, trace *[]string) (seen map[string]int, broken string) {
	broken = simulation.Guarded(func() {
		e := newEnv(1, m, trace)
		seen = e.Seen
		e.faults, e.gates, e.decide = faultProfile{}, gates.Gates{}, m.decide
		e.EndTrouble()
		e.template = threeJobs(e.template)
		e.template.Spec.ReplicatedJobs[0].Replicas = ptr.To[int32](manyJobs - 1)
		e.jobSets.Remove(setName)
		e.createSet()
		e.startProcess()
		e.comeToRest(runOn, 0)
		if n := len(e.ownJobs()); n != manyJobs {
			e.Fail("a large set has all of its Jobs", "%d of %d", n, manyJobs)
		}
		e.process.sender.Dead = true
		e.comeToRest(failSoon, 1)
		e.Seen["restarts of large sets"] += int(e.set().Status.Restarts)
		e.checkRest()
	})
	return seen, broken
}

func TestManyJobs(t *testing.T) { manyOfSet.Test(t) }

func TestManyJobsShowDefects(t *testing.T) {
	manyOfSet.ShowDefects(t, 1, map[string]simulation.Defect[mutant]{
		"Jobs beside a hundred others that are forgotten": {
			Mutant: deciding(nil, firstHundred), Rules: []string{"a large set has all of its Jobs", "every history comes to rest"},
		},
	})
}

// firstHundred creates no Job of a set that has a hundred.
func firstHundred(o plan.Observed, p *plan.Plan) {
	if p.CreateJobs = p.CreateJobs[:min(len(p.CreateJobs), max(0, 100-len(o.Jobs)))]; len(p.CreateJobs) == 0 {
		p.CreateJobs = []*batchv1.Job(nil)
	}
}
