// Copyright The jobset-apiserver Authors.
// SPDX-License-Identifier: Apache-2.0

package simulation

import (
	"fmt"
	"slices"
	"testing"
	"time"

	"k8s.io/utils/ptr"

	disaggregatedsetv1 "github.com/jobset-apiserver/jobset-apiserver/pkg/apis/disaggregatedset/v1"
	"github.com/jobset-apiserver/jobset-apiserver/pkg/controller/disaggregatedset/plan"
	"github.com/jobset-apiserver/jobset-apiserver/test/simulation"
)

// restarts are a small history of a set of two roles, with a restart of the controller after each of its writes: the set is created, updated,
// scaled by an autoscaler, and loses a slice.
var restarts = simulation.Sweep[mutant]{Run: runWithRestart, Faultless: faultless, Least: 30}

func runWithRestart(m mutant, restartAfter int, trace *[]string) (outcome []string, writes int, broken string) {
	broken = simulation.Guarded(func() {
		e := newEnv(1, m, trace)
		e.faults = faults{}
		e.EndTrouble()
		e.RestartAfter = restartAfter
		e.change(func(ds disaggregatedSet) {
			ds.Spec.Roles, ds.Spec.Slices = ds.Spec.Roles[:2], ptr.To[int32](2)
			for i := range ds.Spec.Roles {
				ds.Spec.Roles[i].Scaling = nil
				ds.Spec.Roles[i].Spec.Replicas = ptr.To[int32](3)
			}
		})
		e.comeToRest()
		e.change(func(ds disaggregatedSet) { setImage(ds, "b") })
		e.comeToRest()
		e.change(func(ds disaggregatedSet) { ds.Spec.Slices = ptr.To[int32](1) })
		e.comeToRest()
		e.change(func(ds disaggregatedSet) {
			ds.Spec.Roles[0].Scaling = &disaggregatedsetv1.RoleScaling{Mode: disaggregatedsetv1.RoleScalingExternal}
		})
		e.comeToRest()
		e.checkRest()
		outcome, writes = e.outcome(), e.Writes
	})
	return outcome, writes, broken
}

// change stores a changed copy of the set, as a user does.
func (e *env) change(change func(disaggregatedSet)) {
	e.Note("user changes the set")
	e.rules.decidedSizes(e.sets.Change(e.set(), func(next disaggregatedSet) {
		change(next)
		next.Generation++
	}))
}

// comeToRest gives every component turns until all is at rest.
func (e *env) comeToRest() {
	if !e.Stabilize(maxRounds, e.round, func() time.Time { return e.process.worker.Due() }) {
		e.Fail(ruleRest, "%d rounds were not enough", maxRounds)
	}
}

// outcome returns what came of a history.
func (e *env) outcome() []string {
	status := e.set().Status
	lines := slices.Concat(simulation.Creations("leaderworkerset", &e.children.Store), simulation.Creations("service", &e.services.Store),
		simulation.Creations("scaler", &e.scalers.Store))
	for _, lws := range e.children.Objects {
		lines = append(lines, fmt.Sprintf("%s has %d replicas and %v", lws.Name, *lws.Spec.Replicas, lws.Annotations))
	}
	for i := range status.Conditions {
		status.Conditions[i].LastTransitionTime.Reset()
	}
	return append(lines, fmt.Sprintf("%+v", status))
}

func TestRestartsAfterEachWrite(t *testing.T) { restarts.Test(t) }

// TestRestartsShowDefects makes sure that the restarts can change something.
func TestRestartsShowDefects(t *testing.T) {
	replacing := func(replace func(plan.Observed, *plan.Plan)) mutant {
		return mutant{decide: plan.Decide, finish: plan.Finish, replacing: replace}
	}
	restarts.ShowDefects(t, map[string]simulation.Defect[mutant]{
		"LeaderWorkerSets of another process that are replaced": {Mutant: replacing(replaceChild), Rules: []string{ruleRuns}},
		"scalers of another process that are replaced":          {Mutant: replacing(replaceScaler), Rules: []string{simulation.RuleRestarts}},
	})
}

// replaceOthers lets the first pass of a process with a defect replace what it did not create itself.
func (p *process) replaceOthers(obs plan.Observed, next *plan.Plan) {
	if p.replacing != nil && !p.decided {
		p.replacing(obs, next)
	}
	p.decided = true
}

func replaceChild(obs plan.Observed, next *plan.Plan) {
	for _, c := range obs.Children {
		for i := range next.Slices {
			if next.Slices[i].Slice == c.Slice && !c.Deleting {
				next.Slices[i].DeleteChildren = append(next.Slices[i].DeleteChildren, plan.Deletion{Ref: c.Ref, Reason: plan.Drained})
				return
			}
		}
	}
}

func replaceScaler(obs plan.Observed, next *plan.Plan) {
	for _, s := range obs.Scalers {
		next.DeleteScalers = append(next.DeleteScalers, plan.Ref{Name: s.Name, UID: s.UID})
	}
}
