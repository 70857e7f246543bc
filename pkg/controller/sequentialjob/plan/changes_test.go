// Copyright The jobset-apiserver Authors.
// SPDX-License-Identifier: Apache-2.0

package plan

import (
	"fmt"
	"slices"
	"testing"

	corev1 "k8s.io/api/core/v1"

	batchv1alpha1 "github.com/jobset-apiserver/jobset-apiserver/pkg/apis/batch/v1alpha1"
	"github.com/jobset-apiserver/jobset-apiserver/pkg/apis/batch/v1alpha1/helper"
)

// edit changes the image of a container as a user does, with what the server adds: a new generation, and with the strategy
// Restart another attempt of the step that runs.
func (w *world) edit(index int, image string) *world {
	return w.change(func(sj *batchv1alpha1.SequentialJob) {
		old := sj.Spec.DeepCopy()
		sj.Spec.Containers[index].Image = image
		sj.Generation++
		sj.Status.StepsGeneration = sj.Generation
		entry := begunStep(sj)
		if entry == nil || sj.Spec.UpdateStrategy.Type != batchv1alpha1.UpdateRestart || helper.EqualStep(old, &sj.Spec, currentIndex(&sj.Status)) {
			return
		}
		entry.Attempts++
		entry.ChildUID, entry.State = "", batchv1alpha1.StepStarting
	}).stabilize()
}

// TestChangesAtAnyPoint changes a step while another one, or the same one, is at any point.
func TestChangesAtAnyPoint(t *testing.T) {
	points := map[string]func(*world){
		"before the start":          func(*world) {},
		"while the first step runs": func(w *world) { w.stabilize() },
		"while the second one runs": func(w *world) { w.stabilize().ends(0, Succeeded) },
		"while the last one runs":   func(w *world) { w.stabilize().ends(0, Succeeded).ends(1, Succeeded) },
	}
	running := map[string]int{"before the start": -1, "while the first step runs": 0, "while the second one runs": 1, "while the last one runs": 2}
	for _, strategy := range []batchv1alpha1.SequentialJobUpdateStrategyType{batchv1alpha1.UpdateContinue, batchv1alpha1.UpdateRestart} {
		for name, point := range points {
			for step := range 3 {
				at := running[name]
				if step < at {
					continue // the server refuses to change what has finished
				}
				t.Run(fmt.Sprintf("%s/%s/step %d", strategy, name, step), func(t *testing.T) {
					w := newWorld(t, func(sj *batchv1alpha1.SequentialJob) { sj.Spec.UpdateStrategy.Type = strategy })
					point(w)
					w.edit(step, "changed")
					for i := max(at, 0); i < 3; i++ {
						w.ends(i, Succeeded)
					}
					var want []string
					for i := range 3 {
						want = append(want, fmt.Sprintf("etl-%d/1", i))
						if i == at && i == step && strategy == batchv1alpha1.UpdateRestart {
							want = append(want, fmt.Sprintf("etl-%d/2", i))
						}
					}
					diff(t, "what was created", want, w.created)
					diff(t, "Complete", "True AllJobsCompleted: all jobs completed successfully", w.condition("Complete"))
					told := slices.Contains(w.events, "Warning SpecChanged SequentialJob spec changed while jobs running")
					diff(t, "whether the change is reported", at >= 0, told)
				})
			}
		}
	}
}

func TestChangeIsReportedOnce(t *testing.T) {
	w := newWorld(t).stabilize().edit(1, "changed").edit(2, "changed")
	w.change(func(sj *batchv1alpha1.SequentialJob) { sj.Generation++ }).stabilize() // not of steps
	n := 0
	for _, e := range w.events {
		if e == "Warning SpecChanged SequentialJob spec changed while jobs running" {
			n++
		}
	}
	diff(t, "the number of events", 2, n)
	diff(t, "the generation that was taken up", w.sj.Generation, w.sj.Status.ObservedGeneration)
}

func TestStepsComeAndGo(t *testing.T) {
	w := newWorld(t).stabilize()
	w.change(func(sj *batchv1alpha1.SequentialJob) {
		sj.Spec.Containers = append(sj.Spec.Containers[:2], corev1.Container{Name: "check"}, corev1.Container{Name: "publish"})
	})
	w.ends(0, Succeeded).ends(1, Succeeded)
	diff(t, "the name of the third step", "check", w.sj.Status.Steps[2].Name)
	w.change(func(sj *batchv1alpha1.SequentialJob) { sj.Spec.Containers = sj.Spec.Containers[:3] })
	w.ends(2, Succeeded)
	diff(t, "Complete", "True AllJobsCompleted: all jobs completed successfully", w.condition("Complete"))
	diff(t, "the number of children", 3, len(w.owned))
}

// TestKindOfStepChanges replaces a container that has begun, and whose Job is not there yet, by a JobSet.
func TestKindOfStepChanges(t *testing.T) {
	w := newWorld(t, func(sj *batchv1alpha1.SequentialJob) { sj.Spec = stepsOf("container") })
	w.pass()
	w.change(func(sj *batchv1alpha1.SequentialJob) { sj.Spec = stepsOf("jobSet") }).stabilize()
	diff(t, "the kind of the child", batchv1alpha1.StepKindJobSet, w.child("etl-0").Kind)
	diff(t, "the kind of the step", batchv1alpha1.StepKindJobSet, w.sj.Status.Steps[0].Kind)
	w.change(func(sj *batchv1alpha1.SequentialJob) {
		sj.Spec = stepsOf("job")
		sj.Status.Steps[0].Attempts, sj.Status.Steps[0].ChildUID, sj.Status.Steps[0].State = 2, "", batchv1alpha1.StepStarting
	}).stabilize()
	diff(t, "the children", 1, len(w.owned))
	diff(t, "the kind of the child after the change", batchv1alpha1.StepKindJob, w.child("etl-0").Kind)
	w.ends(0, Succeeded)
	diff(t, "Complete", "True AllJobsCompleted: all jobs completed successfully", w.condition("Complete"))
}

// TestRetry runs a failed sequence again, as the server prepares it.
func TestRetry(t *testing.T) {
	for from, want := range map[int][]string{
		0: {"etl-0/1", "etl-1/1", "etl-0/2", "etl-1/2", "etl-2/1"},
		1: {"etl-0/1", "etl-1/1", "etl-1/2", "etl-2/1"},
	} {
		t.Run(fmt.Sprintf("from step %d", from), func(t *testing.T) {
			w := newWorld(t).stabilize().ends(0, Succeeded).ends(1, Failed)
			w.change(func(sj *batchv1alpha1.SequentialJob) { retry(sj, from) }).stabilize()
			diff(t, "Failed", "False Retried: retried", w.condition("Failed"))
			diff(t, "Available", "True Operational: the sequence is operational", w.condition("Available"))
			diff(t, "Progressing", fmt.Sprintf("True JobStarted: Job %d runs", from), w.condition("Progressing"))
			for i := from; i < 3; i++ {
				w.ends(i, Succeeded)
			}
			diff(t, "what was created", want, w.created)
			diff(t, "Complete", "True AllJobsCompleted: all jobs completed successfully", w.condition("Complete"))
			diff(t, "the state", batchv1alpha1.SequentialJobState{Succeeded: 3}, w.sj.Status.State)
		})
	}
}

func TestRestart(t *testing.T) {
	w := newWorld(t).stabilize().ends(0, Succeeded)
	w.change(func(sj *batchv1alpha1.SequentialJob) {
		sj.Status.Steps[1].Attempts, sj.Status.Steps[1].ChildUID, sj.Status.Steps[1].State = 2, "", batchv1alpha1.StepStarting
	}).stabilize()
	diff(t, "what was created", []string{"etl-0/1", "etl-1/1", "etl-1/2"}, w.created)
	diff(t, "the event", true, slices.Contains(w.events, "Normal JobStopped Stopped job 1, Job etl-1, because another attempt follows"))
	w.ends(1, Succeeded).ends(2, Succeeded)
	diff(t, "attempts", int32(2), w.sj.Status.Steps[1].Attempts)
}

// retry does what the server does.
func retry(sj *batchv1alpha1.SequentialJob, from int) {
	s := &sj.Status
	*s.Progress.CurrentIndex = int32(from)
	s.Progress.CompletedIndices = s.Progress.CompletedIndices[:from]
	s.Progress.FailedIndex, s.Progress.FailureReason = nil, ""
	s.CompletionTime, s.ActiveSeconds, s.ActiveSince = nil, 0, nil
	for i := from; i < len(s.Steps); i++ {
		was := s.Steps[i]
		s.Steps[i] = batchv1alpha1.SequentialJobStepStatus{Name: was.Name, Kind: was.Kind, ChildName: was.ChildName, Attempts: was.Attempts, State: batchv1alpha1.StepPending}
	}
	s.Steps[from].Attempts++
	s.Steps[from].State = batchv1alpha1.StepStarting
	for i := range s.Conditions {
		switch c := &s.Conditions[i]; c.Type {
		case batchv1alpha1.ConditionFailed:
			c.Status, c.Reason, c.Message = "False", batchv1alpha1.ReasonRetried, "retried"
		case batchv1alpha1.ConditionAvailable:
			c.Status, c.Reason, c.Message = "True", batchv1alpha1.ReasonRetried, "retried"
		}
	}
}
