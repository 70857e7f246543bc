// Copyright The jobset-apiserver Authors.
// SPDX-License-Identifier: Apache-2.0

package simulation

import (
	"fmt"
	"slices"
	"testing"
	"time"

	corev1 "k8s.io/api/core/v1"
	"k8s.io/utils/ptr"

	"github.com/jobset-apiserver/jobset-apiserver/pkg/apis/batch"
	leaderworkersetv1 "github.com/jobset-apiserver/jobset-apiserver/pkg/apis/leaderworkerset/v1"
	"github.com/jobset-apiserver/jobset-apiserver/pkg/controller/leaderworkerset/plan"
	"github.com/jobset-apiserver/jobset-apiserver/test/simulation"
)

// restarts are a small history of a set of two groups, with a restart of the controller after each of its writes: the groups start, are
// updated and restarted, and there are more of them.
var restarts = simulation.Sweep[mutant]{Run: runWithRestart, Faultless: faultless, Least: 20}

func runWithRestart(m mutant, restartAfter int, trace *[]string) (outcome []string, writes int, broken string) {
	broken = simulation.Guarded(func() {
		e := newEnv(1, m, trace)
		e.faults, e.gang, e.dropping, e.skew, e.RestartAfter = faults{}, "", false, 0, restartAfter
		e.EndTrouble()
		e.labelNodes()
		e.template = twoGroups(e.template)
		e.sets.Remove(name)
		e.createSet()
		e.startProcess()
		e.comeToRest()
		e.change(func(spec *leaderworkersetv1.LeaderWorkerSetSpec) {
			spec.LeaderWorkerTemplate.WorkerTemplate = podTemplate("b")
		})
		e.comeToRest()
		e.askToRestart(e.set(), &batch.LeaderWorkerSetRestartSpec{Reason: "because"}, "all groups")
		e.comeToRest()
		e.change(func(spec *leaderworkersetv1.LeaderWorkerSetSpec) { spec.Replicas = ptr.To[int32](3) })
		e.comeToRest()
		e.checkRest()
		outcome, writes = e.outcome(), e.Writes
	})
	return outcome, writes, broken
}

// twoGroups returns a set of two groups of two pods each.
func twoGroups(template *leaderworkersetv1.LeaderWorkerSet) *leaderworkersetv1.LeaderWorkerSet {
	set := template.DeepCopy()
	set.Annotations = nil
	set.Spec.Replicas, set.Spec.RevisionHistoryLimit = ptr.To[int32](2), nil
	set.Spec.StartupPolicy = leaderworkersetv1.StartupPolicyLeaderCreated
	set.Spec.LeaderWorkerTemplate = leaderworkersetv1.LeaderWorkerTemplate{
		WorkerTemplate: podTemplate("a"), GroupSize: ptr.To[int32](2), RestartPolicy: leaderworkersetv1.RestartPolicyRecreateGroupOnPodRestart,
	}
	set.Spec.RolloutStrategy.RollingUpdateConfiguration = nil
	set.Spec.NetworkConfig = &leaderworkersetv1.NetworkConfig{SubdomainPolicy: ptr.To(leaderworkersetv1.SubdomainShared)}
	return served(hub(set))
}

// change lets a user change the spec.
func (e *env) change(change func(*leaderworkersetv1.LeaderWorkerSetSpec)) {
	next := e.set().DeepCopy()
	change(&next.Spec)
	e.put(e.set(), next, "edits")
}

// comeToRest gives every component turns until all is at rest.
func (e *env) comeToRest() {
	begin := e.Now()
	round := func() bool { return e.round() || e.awaitReports(begin) }
	if !e.Stabilize(maxRounds, round, func() time.Time { return e.process.worker.Due() }) {
		e.Fail(ruleRest, "%d rounds were not enough", maxRounds)
	}
}

// outcome returns what came of a history.
func (e *env) outcome() []string {
	status := e.set().Status
	lines := slices.Concat(simulation.Creations("statefulset", &e.statefulSets), simulation.Creations("pod", &e.pods),
		simulation.Creations("service", &e.services), simulation.Creations("revision", &e.revisions))
	for _, c := range status.Conditions {
		lines = append(lines, fmt.Sprintf("%s is %s: %s %s", c.Type, c.Status, c.Reason, c.Message))
	}
	return append(lines, fmt.Sprintf("%d of %d groups are ready, %d are updated", status.ReadyReplicas, status.Replicas, status.UpdatedReplicas))
}

func TestRestartsAfterEachWrite(t *testing.T) { restarts.Test(t) }

// TestRestartsShowDefects makes sure that the restarts can change something.
func TestRestartsShowDefects(t *testing.T) {
	restarts.ShowDefects(t, map[string]simulation.Defect[mutant]{
		"a leader that another process has known counts as failed": {
			Mutant: mutant{decide: plan.Decide, finish: plan.Finish, misreading: true}, Rules: []string{simulation.RuleRestarts, ruleCause},
		},
	})
}

// misread returns what a process with a defect observes: containers of leaders that another process has known have restarted.
func (p *process) misread(obs plan.Observed) plan.Observed {
	if !p.misreading {
		return obs
	}
	obs.Leaders = slices.Clone(obs.Leaders)
	for i := range obs.Leaders {
		leader := &obs.Leaders[i]
		leader.Restarted = leader.Restarted || slices.ContainsFunc(p.listed, func(pod *corev1.Pod) bool { return pod.UID == leader.UID })
	}
	return obs
}
