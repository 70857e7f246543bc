// Copyright The jobset-apiserver Authors.
// SPDX-License-Identifier: Apache-2.0

package simulation

import (
	"fmt"
	"slices"
	"testing"
	"time"

	batchv1 "k8s.io/api/batch/v1"
	corev1 "k8s.io/api/core/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/utils/ptr"

	batchv1alpha1 "github.com/jobset-apiserver/jobset-apiserver/pkg/apis/batch/v1alpha1"
	jobsetv1alpha2 "github.com/jobset-apiserver/jobset-apiserver/pkg/apis/jobset/v1alpha2"
	"github.com/jobset-apiserver/jobset-apiserver/pkg/controller/sequentialjob/plan"
	"github.com/jobset-apiserver/jobset-apiserver/test/simulation"
)

// restarts are a small history of a sequence of three steps, with a restart of the controller after each of its writes: the sequence runs, is
// suspended and resumed, completes, and runs again.
var restarts = simulation.Sweep[mutant]{Run: runWithRestart, Faultless: faultless, Least: 15}

func runWithRestart(m mutant, restartAfter int, trace *[]string) (outcome []string, writes int, broken string) {
	broken = simulation.Guarded(func() {
		e := newEnv(1, m, trace)
		e.faults, e.kueue, e.skew, e.RestartAfter = faults{}, kueue{served: true}, 0, restartAfter
		e.EndTrouble()
		e.template = threeSteps()
		e.sequences.Remove(name)
		e.createSequence()
		e.startProcess()
		e.comeToRest("")
		e.act("suspend")
		e.comeToRest("")
		e.act("resume")
		e.comeToRest("")
		e.comeToRest(plan.Succeeded)
		e.act("restart")
		e.comeToRest(plan.Succeeded)
		e.checkRest(plan.Succeeded)
		outcome, writes = e.outcome(), e.Writes
	})
	return outcome, writes, broken
}

// threeSteps returns a sequence of a Job, a JobSet and a container.
func threeSteps() *batchv1alpha1.SequentialJob {
	pods := corev1.PodTemplateSpec{Spec: corev1.PodSpec{RestartPolicy: corev1.RestartPolicyNever, Containers: []corev1.Container{{Name: "main", Image: "a"}}}}
	rj := jobsetv1alpha2.ReplicatedJob{Name: "w", Replicas: ptr.To[int32](2), Template: batchv1.JobTemplateSpec{Spec: batchv1.JobSpec{Template: pods}}}
	return &batchv1alpha1.SequentialJob{ObjectMeta: metav1.ObjectMeta{Name: name, Namespace: namespace}, Spec: batchv1alpha1.SequentialJobSpec{
		UpdateStrategy: &batchv1alpha1.SequentialJobUpdateStrategy{Type: batchv1alpha1.UpdateContinue},
		Steps: []batchv1alpha1.SequentialJobStep{
			{Name: "a", Job: &batchv1.JobTemplateSpec{Spec: batchv1.JobSpec{Template: pods}}},
			{Name: "b", JobSet: &batchv1alpha1.JobSetTemplateSpec{Spec: jobsetv1alpha2.JobSetSpec{ReplicatedJobs: []jobsetv1alpha2.ReplicatedJob{rj}}}},
			{Name: "c", Container: &corev1.Container{Name: "c", Image: "a"}},
		},
	}}
}

// comeToRest gives every component turns until all is at rest. Children end as given.
func (e *env) comeToRest(heading plan.End) {
	if !e.Stabilize(maxRounds, func() bool { return e.round(heading) }, func() time.Time { return e.process.worker.Due() }) {
		e.Fail(ruleRest, "%d rounds were not enough", maxRounds)
	}
}

// outcome returns what came of a history.
func (e *env) outcome() []string {
	status := e.sequence().Status
	lines := slices.Concat(simulation.Creations("job", &e.jobs), simulation.Creations("jobset", &e.jobSets))
	for _, step := range status.Steps {
		lines = append(lines, fmt.Sprintf("step %s is %s after %d attempts", step.Name, step.State, step.Attempts))
	}
	for _, c := range status.Conditions {
		lines = append(lines, fmt.Sprintf("%s is %s: %s %s", c.Type, c.Status, c.Reason, c.Message))
	}
	return append(lines, fmt.Sprintf("it is %s after %v", status.Phase, status.Progress.CompletedIndices))
}

func TestRestartsAfterEachWrite(t *testing.T) { restarts.Test(t) }

// TestRestartsShowDefects makes sure that the restarts can change something.
func TestRestartsShowDefects(t *testing.T) {
	restarts.ShowDefects(t, map[string]simulation.Defect[mutant]{
		"children of another process that count as failed": {
			Mutant: mutant{decide: plan.Decide, finish: plan.Finish, misreading: true}, Rules: []string{simulation.RuleRestarts, ruleFinalizer},
		},
	})
}

// misread returns what a process with a defect observes first: what it did not create itself has failed.
func (p *process) misread(obs plan.Observed) plan.Observed {
	if !p.misreading || p.decided {
		return obs
	}
	wrong := *copied(obs)
	for i := range wrong.Children {
		wrong.Children[i].End = plan.Failed
	}
	return wrong
}
