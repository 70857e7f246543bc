// Copyright The jobset-apiserver Authors.
// SPDX-License-Identifier: Apache-2.0

package simulation

import (
	"fmt"
	"slices"
	"testing"

	batchv1 "k8s.io/api/batch/v1"
	corev1 "k8s.io/api/core/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/utils/ptr"

	"github.com/jobset-apiserver/jobset-apiserver/pkg/apis/jobset/gates"
	jobsetv1alpha2 "github.com/jobset-apiserver/jobset-apiserver/pkg/apis/jobset/v1alpha2"
	"github.com/jobset-apiserver/jobset-apiserver/pkg/controller/jobset/plan"
	"github.com/jobset-apiserver/jobset-apiserver/test/simulation"
)

// restartsAfterWrites are a small history of a set of three Jobs, with a restart of the controller after each of its writes: the Jobs run, are
// suspended and resumed, one fails, and all complete after the restart of the set.
var restartsAfterWrites = simulation.Sweep[mutant]{Run: runWithRestart, Faultless: faultless, Least: 15}

func runWithRestart(m mutant, restartAfter int, trace *[]string) (outcome []string, writes int, broken string) {
	broken = simulation.Guarded(func() {
		e := newEnv(1, m, trace)
		e.faults, e.gates, e.decide, e.RestartAfter = faultProfile{}, gates.Gates{}, m.decide, restartAfter
		e.EndTrouble()
		e.template = threeJobs(e.template)
		e.jobSets.Remove(setName)
		e.createSet()
		e.startProcess()
		e.comeToRest(runOn, 0)
		e.changeSpec(func(js *jobsetv1alpha2.JobSet) { js.Spec.Suspend = ptr.To(true) })
		e.comeToRest(runOn, 0)
		e.changeSpec(func(js *jobsetv1alpha2.JobSet) { js.Spec.Suspend = ptr.To(false) })
		e.comeToRest(runOn, 0)
		e.comeToRest(failSoon, 1)
		e.checkRest()
		outcome, writes = e.outcome(), e.Writes
	})
	return outcome, writes, broken
}

// threeJobs returns a set of three Jobs that may be restarted.
func threeJobs(template *jobsetv1alpha2.JobSet) *jobsetv1alpha2.JobSet {
	js := template.DeepCopy()
	js.Annotations, js.Labels = nil, nil
	pods := corev1.PodTemplateSpec{Spec: corev1.PodSpec{RestartPolicy: corev1.RestartPolicyNever, Containers: []corev1.Container{{Name: "main", Image: "a"}}}}
	replicated := func(name string, n int32) jobsetv1alpha2.ReplicatedJob {
		return jobsetv1alpha2.ReplicatedJob{Name: name, GroupName: ptr.To("default"), Replicas: ptr.To(n), Template: batchv1.JobTemplateSpec{
			Spec: batchv1.JobSpec{Parallelism: ptr.To[int32](1), Completions: ptr.To[int32](1), Template: pods},
		}}
	}
	js.Spec = jobsetv1alpha2.JobSetSpec{
		ReplicatedJobs: []jobsetv1alpha2.ReplicatedJob{replicated("a", 2), replicated("b", 1)},
		Network:        &jobsetv1alpha2.Network{EnableDNSHostnames: ptr.To(true), PublishNotReadyAddresses: ptr.To(true)},
		SuccessPolicy:  &jobsetv1alpha2.SuccessPolicy{Operator: jobsetv1alpha2.OperatorAll},
		FailurePolicy:  &jobsetv1alpha2.FailurePolicy{MaxRestarts: 2, RestartStrategy: jobsetv1alpha2.RestartStrategyRecreate},
		StartupPolicy:  &jobsetv1alpha2.StartupPolicy{StartupPolicyOrder: jobsetv1alpha2.AnyOrder},
	}
	js.ObjectMeta = metav1.ObjectMeta{Name: js.Name, Namespace: js.Namespace}
	return js
}

// comeToRest gives every component turns until all is at rest.
func (e *env) comeToRest(heading destiny, failures int) {
	if !e.rounds(maxRounds, heading, &failures) {
		e.Fail("every history comes to rest", "%d rounds were not enough", maxRounds)
	}
}

// outcome returns what came of a history.
func (e *env) outcome() []string {
	status := e.set().Status
	lines := slices.Concat(simulation.Creations("job", &e.jobs.Store), simulation.Creations("service", &e.services.Store))
	for _, c := range status.Conditions {
		lines = append(lines, fmt.Sprintf("%s is %s: %s", c.Type, c.Status, c.Reason))
	}
	for _, of := range status.ReplicatedJobsStatus {
		lines = append(lines, fmt.Sprintf("%+v", of))
	}
	return append(lines, fmt.Sprintf("%d restarts, of which %d count; it is %q", status.Restarts, status.RestartsCountTowardsMax, status.TerminalState))
}

func TestRestartsAfterEachWrite(t *testing.T) { restartsAfterWrites.Test(t) }

// TestRestartsShowDefects makes sure that the restarts can change something.
func TestRestartsShowDefects(t *testing.T) {
	restartsAfterWrites.ShowDefects(t, map[string]simulation.Defect[mutant]{
		"Jobs of another process that count as failed": {
			Mutant: mutant{decide: plan.Decide, misreading: true}, Rules: []string{simulation.RuleRestarts, "there is one restart for each attempt that failed"},
		},
	})
}

// misread returns what a process with a defect observes first: a Job that it did not create itself has failed.
func (p *process) misread(obs plan.Observed) plan.Observed {
	if !p.misreading || p.decided || len(obs.Jobs) == 0 {
		return obs
	}
	obs.Jobs = slices.Clone(obs.Jobs)
	failed := obs.Jobs[0].DeepCopy()
	failed.Status.Conditions = []batchv1.JobCondition{{Type: batchv1.JobFailed, Status: corev1.ConditionTrue, Reason: "Any", LastTransitionTime: p.Stored()}}
	obs.Jobs[0] = failed
	return obs
}
