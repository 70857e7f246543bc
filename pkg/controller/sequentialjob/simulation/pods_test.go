// Copyright The jobset-apiserver Authors.
// SPDX-License-Identifier: Apache-2.0

package simulation

import (
	"context"
	"fmt"
	"slices"

	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/types"

	batchv1alpha1 "github.com/jobset-apiserver/jobset-apiserver/pkg/apis/batch/v1alpha1"
	"github.com/jobset-apiserver/jobset-apiserver/pkg/controller/sequentialjob/plan"
	"github.com/jobset-apiserver/jobset-apiserver/test/simulation"
)

// This file holds what is below children: the pods of a sequence, and Jobs of JobSets. A pod ends with its Job, but a
// JobSet may end, or be gone, before all of its Jobs are. A child that a user deletes in the background, or without its
// dependents, is gone before its pods.

const ruleRuns = "pods of two steps, or of two attempts, never run at the same time"

// workloadOf is a pod that runs, or a Job of a JobSet that has ended or is gone, which may create one.
type workloadOf struct {
	name     string
	sequence types.UID
	child    types.UID
	// childName and kind are the name and the kind of the child.
	childName string
	kind      batchv1alpha1.StepKind
	attempt   attempt
}

func newWorkloadOf(child metav1.Object, name string) workloadOf {
	c, owner := view(child), metav1.GetControllerOfNoCopy(child)
	w := workloadOf{name: name, child: c.UID, childName: c.Name, kind: c.Kind, attempt: attemptOf(child)}
	if owner != nil {
		w.sequence = owner.UID
	}
	return w
}

// startPod lets a pod of a child run, unless one does.
func (e *env) startPod(of workloadOf) {
	if slices.ContainsFunc(e.pods, func(p workloadOf) bool { return p.child == of.child }) {
		return
	}
	of.name = fmt.Sprintf("pod-%s-%d", of.childName, e.jobs.Versions.Last)
	e.Note("pod %s of attempt %d runs", of.name, of.attempt.number)
	for _, other := range e.pods {
		if other.sequence == of.sequence && other.attempt != of.attempt && !e.rules.unknown[of.child] && !e.rules.unknown[other.child] {
			e.Fail(ruleRuns, "%s of step %d, attempt %d, runs beside %s of step %d, attempt %d",
				of.name, of.attempt.index, of.attempt.number, other.name, other.attempt.index, other.attempt.number)
		}
	}
	e.pods = append(e.pods, of)
}

// endPods ends the pods of a child.
func (e *env) endPods(child types.UID) {
	e.pods = slices.DeleteFunc(e.pods, func(p workloadOf) bool { return p.child == child })
}

// outlive leaves a Job of a child that has ended or is gone, or only its pod.
func (e *env) outlive(child metav1.Object) {
	c := view(child)
	switch n := e.Dice.IntN(100); {
	case c.Kind == batchv1alpha1.StepKindJobSet && n < 70:
		e.Note("a job of jobset %s is left", c.Name)
		e.Seen["jobs that outlive their jobset"]++
		e.left = append(e.left, newWorkloadOf(child, "job-"+c.Name))
		if n < 66 {
			e.endPods(c.UID) // it has no pod yet
		}
	case n < 90:
		e.Seen["pods that outlive their child"]++
	default:
		e.endPods(c.UID)
	}
}

// podsAct lets what is left of children act: a Job creates its pod or is deleted, and a pod ends. It reports whether anything happened.
func (e *env) podsAct(all bool) bool {
	stray := slices.DeleteFunc(slices.Clone(e.pods), func(p workloadOf) bool { return e.isLeft(p.child) || e.lives(p.child) })
	switch {
	case len(e.left) > 0 && (all || e.Dice.Percent(50)):
		job := simulation.OneOf(e.Dice, e.left...)
		if !all && e.Dice.Percent(85) {
			e.startPod(job)
			return true
		}
		e.Note("job %s is deleted", job.name)
		e.left = slices.DeleteFunc(e.left, func(j workloadOf) bool { return j == job })
		return true
	case len(stray) > 0:
		pod := simulation.OneOf(e.Dice, stray...)
		e.Note("pod %s ends", pod.name)
		e.endPods(pod.child)
		return true
	}
	return false
}

func (e *env) isLeft(child types.UID) bool {
	return slices.ContainsFunc(e.left, func(j workloadOf) bool { return j.child == child })
}

// lives returns whether a child is there that has not ended.
func (e *env) lives(child types.UID) bool {
	return slices.ContainsFunc(e.children(), func(c metav1.Object) bool { return c.GetUID() == child && view(c).End == "" })
}

// running is what the controller reads of earlier children.
func (p *process) running(_ context.Context, sj *batchv1alpha1.SequentialJob, query plan.EarlierQuery) (string, error) {
	find := func(all []workloadOf, match func(workloadOf) bool) func() (string, error) {
		return func() (string, error) {
			for _, w := range all {
				if w.sequence == sj.UID && w.attempt != (attempt{int32(query.Index), query.Attempt}) && match(w) {
					return w.name, nil
				}
			}
			return "", nil
		}
	}
	job, err := simulation.Read(p.sender, func() (string, error) {
		if p.unreadable != nil {
			return "", p.unreadable
		}
		return find(p.left, func(j workloadOf) bool { return slices.Contains(query.JobSets, j.childName) })()
	})
	if p.heedless.jobs {
		job, err = "", nil
	}
	if err == nil && job == "" {
		job, err = simulation.Read(p.sender, func() (string, error) { return find(p.pods, func(workloadOf) bool { return true })() })
	}
	switch {
	case p.heedless.pods, p.heedless.unknown && err != nil:
		return "", nil
	case job != "":
		p.Seen["steps that waited for pods"]++
	}
	return job, err
}

// heedless is how a controller looks at what still runs, with a defect.
type heedless struct {
	// pods means that it looks at nothing, jobs that it does not look at Jobs, and unknown that it takes what it cannot read for nothing.
	pods, jobs, unknown bool
}
