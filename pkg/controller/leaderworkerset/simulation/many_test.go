// Copyright The jobset-apiserver Authors.
// SPDX-License-Identifier: Apache-2.0

package simulation

import (
	"testing"
	"time"

	"k8s.io/utils/ptr"

	leaderworkersetv1 "github.com/jobset-apiserver/jobset-apiserver/pkg/apis/leaderworkerset/v1"
	"github.com/jobset-apiserver/jobset-apiserver/pkg/controller/leaderworkerset/plan"
	"github.com/jobset-apiserver/jobset-apiserver/test/simulation"
)

// manyGroups is how many groups a large set has: more than one plan creates workers for.
const manyGroups = 130

// manyDenied are histories of a large set whose workers the API does not accept, while the server of the set is away, and pods change.
var manyDenied = simulation.Histories[mutant]{
	Run: runMany, Faultless: faultless, Number: 4, Decisions: "decisions", Wanted: []string{"denied requests", "outages", "failed syncs"},
}

func runMany(seed uint64, m mutant, trace *[]string) (seen map[string]int, broken string) {
	if m.finish == nil {
		m.finish = plan.Finish
	}
	broken = simulation.Guarded(func() {
		e := newEnv(seed, m, trace)
		seen = e.Seen
		e.faults = faults{}
		e.EndTrouble()
		set := e.set()
		next := set.DeepCopy()
		next.Spec.Replicas, next.Spec.LeaderWorkerTemplate.GroupSize = ptr.To[int32](manyGroups), ptr.To[int32](2)
		next.Spec.StartupPolicy, next.Spec.Paused = leaderworkersetv1.StartupPolicyLeaderCreated, nil
		e.put(set, next, "edits")
		e.denials["create statefulset"] = simulation.OneOf(e.Dice, deniedByWebhook, "quota is used up", "invalid")
		e.rest()
		e.failServer()
		for begin := e.Now(); e.Since(begin) < 3*time.Minute; {
			e.Pass(100 * time.Millisecond)
			if pod := e.somePod(); pod != nil && e.Dice.Percent(50) {
				e.pods.Put(pod.DeepCopy())
			}
			if !e.round() {
				e.Pass(time.Second)
			}
		}
	})
	return seen, broken
}

// TestManyDenied runs them.
func TestManyDenied(t *testing.T) { manyDenied.Test(t) }

// TestManyDeniedShowDefects makes sure that they can fail.
func TestManyDeniedShowDefects(t *testing.T) {
	manyDenied.ShowDefects(t, 4, map[string]simulation.Defect[mutant]{
		"denied children that are asked for too early": {
			Mutant: mutant{decide: plan.Decide, hurried: true}, Rules: []string{simulation.RuleDeniedChild, simulation.RuleDeniedObject},
		},
		"a status that is to be stored counts as stored": {
			Mutant: mutant{decide: plan.Decide, storming: true}, Rules: []string{simulation.RulePasses, simulation.RuleRefusals},
		},
	})
}
