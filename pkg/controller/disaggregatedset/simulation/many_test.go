// Copyright The jobset-apiserver Authors.
// SPDX-License-Identifier: Apache-2.0

package simulation

import (
	"slices"
	"testing"

	"k8s.io/utils/ptr"

	"github.com/jobset-apiserver/jobset-apiserver/pkg/controller/disaggregatedset/plan"
	"github.com/jobset-apiserver/jobset-apiserver/test/simulation"
)

// manySlices is how many slices a large set has: more than one pass writes.
const manySlices = 120

// many is the history of a large set: it is created, updated after a restart of the controller, and loses some slices.
var many = simulation.Histories[mutant]{Run: runMany, Faultless: faultless, Number: 1, Decisions: "decisions", Wanted: []string{"at rest: available"}}

func runMany(_ uint64, m mutant, trace *[]string) (seen map[string]int, broken string) {
	broken = simulation.Guarded(func() {
		e := newEnv(1, m, trace)
		seen = e.Seen
		e.faults = faults{}
		e.EndTrouble()
		e.change(func(ds disaggregatedSet) {
			ds.Spec.Roles, ds.Spec.Slices = ds.Spec.Roles[:2], ptr.To[int32](manySlices)
			for i := range ds.Spec.Roles {
				ds.Spec.Roles[i].Scaling = nil
				ds.Spec.Roles[i].Spec.Replicas = ptr.To[int32](1)
			}
		})
		e.comeToRest()
		e.checkRest()
		e.process.sender.Dead = true
		e.change(func(ds disaggregatedSet) { setImage(ds, "b") })
		e.comeToRest()
		e.change(func(ds disaggregatedSet) { ds.Spec.Slices = ptr.To[int32](manySlices - 15) })
		e.comeToRest()
		e.checkRest()
	})
	return seen, broken
}

func TestManySlices(t *testing.T) { many.Test(t) }

func TestManySlicesShowDefects(t *testing.T) {
	many.ShowDefects(t, 1, map[string]simulation.Defect[mutant]{
		"slices after the first hundred that are forgotten": {Mutant: deciding(nil, firstHundred), Rules: []string{ruleIs, ruleServices, ruleRest}},
	})
}

func firstHundred(_ plan.Observed, p *plan.Plan) {
	p.Slices = slices.DeleteFunc(p.Slices, func(s plan.SlicePlan) bool { return s.Slice >= 100 })
}
