// Copyright The jobset-apiserver Authors.
// SPDX-License-Identifier: Apache-2.0

package simulation

import (
	"context"
	"fmt"
	"strconv"

	batchv1 "k8s.io/api/batch/v1"
	corev1 "k8s.io/api/core/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/types"
	"k8s.io/utils/ptr"

	"github.com/jobset-apiserver/jobset-apiserver/pkg/apis/batch"
	batchv1alpha1 "github.com/jobset-apiserver/jobset-apiserver/pkg/apis/batch/v1alpha1"
	"github.com/jobset-apiserver/jobset-apiserver/pkg/apis/batch/v1alpha1/helper"
	"github.com/jobset-apiserver/jobset-apiserver/pkg/apis/jobset/gates"
	jobsetv1alpha2 "github.com/jobset-apiserver/jobset-apiserver/pkg/apis/jobset/v1alpha2"
	registry "github.com/jobset-apiserver/jobset-apiserver/pkg/registry/batch/sequentialjob"
	"github.com/jobset-apiserver/jobset-apiserver/pkg/registry/batch/sequentialjob/actions"
	"github.com/jobset-apiserver/jobset-apiserver/test/simulation"
)

// This file holds what users do, as the server carries it out: by its real strategies and actions.

// randomSequence returns a sequence of one to three steps.
func randomSequence(d simulation.Dice) *batchv1alpha1.SequentialJob {
	sj := &batchv1alpha1.SequentialJob{ObjectMeta: metav1.ObjectMeta{Name: name, Namespace: namespace}}
	sj.Spec.UpdateStrategy = &batchv1alpha1.SequentialJobUpdateStrategy{
		Type: simulation.OneOf(d, batchv1alpha1.UpdateContinue, batchv1alpha1.UpdateRestart, batchv1alpha1.UpdateRestart, batchv1alpha1.UpdateForbid),
	}
	inContainers := d.Percent(40)
	for i := range 1 + d.IntN(3) {
		if inContainers {
			sj.Spec.Containers = append(sj.Spec.Containers, corev1.Container{Name: fmt.Sprint("step-", i), Image: "a"})
		} else {
			sj.Spec.Steps = append(sj.Spec.Steps, randomStep(d, fmt.Sprint("step-", i)))
		}
	}
	if d.Percent(25) {
		sj.Labels = map[string]string{helper.QueueKey: "team"}
	}
	sj.Spec.Suspend = simulation.OneOf(d, nil, nil, nil, ptr.To(true))
	sj.Spec.ActiveDeadlineSeconds = simulation.OneOf[*int64](d, nil, nil, nil, ptr.To[int64](30))
	sj.Spec.TTLSecondsAfterFinished = simulation.OneOf[*int32](d, nil, nil, nil, ptr.To[int32](5))
	if d.Percent(3) {
		sj.Spec.ManagedBy = ptr.To("example.com/other")
	}
	return sj
}

func randomStep(d simulation.Dice, name string) batchv1alpha1.SequentialJobStep {
	pods := corev1.PodTemplateSpec{Spec: corev1.PodSpec{RestartPolicy: corev1.RestartPolicyNever, Containers: []corev1.Container{{Name: "main", Image: "a"}}}}
	ttl := simulation.OneOf[*int32](d, nil, nil, ptr.To[int32](3))
	switch d.IntN(3) {
	case 0:
		return batchv1alpha1.SequentialJobStep{Name: name, Container: &corev1.Container{Name: name, Image: "a"}}
	case 1:
		return batchv1alpha1.SequentialJobStep{Name: name, Job: &batchv1.JobTemplateSpec{Spec: batchv1.JobSpec{Template: pods, TTLSecondsAfterFinished: ttl}}}
	}
	rj := jobsetv1alpha2.ReplicatedJob{Name: "w", Replicas: ptr.To[int32](2), Template: batchv1.JobTemplateSpec{Spec: batchv1.JobSpec{Template: pods}}}
	spec := jobsetv1alpha2.JobSetSpec{ReplicatedJobs: []jobsetv1alpha2.ReplicatedJob{rj}, TTLSecondsAfterFinished: ttl}
	return batchv1alpha1.SequentialJobStep{Name: name, JobSet: &batchv1alpha1.JobSetTemplateSpec{Spec: spec}}
}

func (e *env) createSequence() {
	e.creations++
	sj := e.template.DeepCopy()
	sj.UID, sj.CreationTimestamp = types.UID("uid-"+strconv.Itoa(e.creations)), e.stored()
	next := hub(sj)
	e.strategy().PrepareForCreate(context.Background(), next)
	created := served(next)
	e.rules = newRules(e, created)
	e.sequences.Put(created)
	e.Note("user creates the sequence %s: %s", created.UID, describeSpec(created))
}

func (e *env) strategy() registry.Strategy {
	return registry.NewStrategy(nil, gates.Gates{}, e.Now)
}

func hub(sj *batchv1alpha1.SequentialJob) *batch.SequentialJob {
	var out batch.SequentialJob
	if err := batchv1alpha1.Convert_v1alpha1_SequentialJob_To_batch_SequentialJob(sj.DeepCopy(), &out, nil); err != nil {
		panic(err)
	}
	return &out
}

func served(sj *batch.SequentialJob) *batchv1alpha1.SequentialJob {
	var out batchv1alpha1.SequentialJob
	if err := batchv1alpha1.Convert_batch_SequentialJob_To_v1alpha1_SequentialJob(sj, &out, nil); err != nil {
		panic(err)
	}
	return &out
}

// prepareStatus returns what the server stores when a controller writes a status.
func (e *env) prepareStatus(wanted, current *batchv1alpha1.SequentialJob) *batchv1alpha1.SequentialJob {
	strategy := registry.NewStatusStrategy(e.strategy())
	next, prev := hub(wanted), hub(current)
	strategy.PrepareForUpdate(context.Background(), next, prev)
	if errs := strategy.ValidateUpdate(context.Background(), next, prev); len(errs) > 0 {
		e.Fail("the server accepts every status", "%v", errs.ToAggregate())
	}
	return served(next)
}

// userActs is what users do to the sequence.
func (e *env) userActs() {
	sj := e.sequence()
	if sj == nil {
		if e.Dice.Percent(30) {
			e.createSequence()
		}
		return
	}
	failed := helper.Finished(sj) != nil && helper.Finished(sj).Type == batchv1alpha1.ConditionFailed
	switch n := e.Dice.IntN(100); {
	case failed && n < 60:
		e.act("retry")
	case n < 45:
		e.act(simulation.OneOf(e.Dice, "restart", "restart", "suspend", "resume", "resume", "cancel", "retry"))
	case n < 90:
		e.edit()
	case n < 95:
		e.Note("user annotates the sequence")
		next := sj.DeepCopy()
		next.Annotations = map[string]string{"touched": strconv.Itoa(e.sequences.Versions.Last)}
		e.sequences.Put(next)
	case sj.DeletionTimestamp == nil:
		finalizer := simulation.OneOf(e.Dice, "", "", metav1.FinalizerDeleteDependents, metav1.FinalizerDeleteDependents, metav1.FinalizerOrphanDependents)
		e.Note("user deletes the sequence: %q", finalizer)
		e.Seen["deletions"+finalizer]++
		e.deleteSequence(finalizer)
	}
}

// act lets a user ask for an action, as the server does it.
func (e *env) act(what string) {
	before := e.sequence()
	next := hub(before)
	spec, call := &batch.SequentialJobActionSpec{Reason: "because"}, actions.Call{User: "alice", Now: e.Now()}
	var answer *batch.SequentialJobActionStatus
	var err error
	from := ""
	switch what {
	case "restart":
		answer, err = actions.Restart(next, spec, call)
	case "suspend":
		answer, err = actions.Suspend(next, spec, call)
	case "resume":
		answer, err = actions.Resume(next, spec, call)
	case "cancel":
		answer, err = actions.Cancel(next, spec, call)
	case "retry":
		if steps := helper.Steps(&before.Spec); e.Dice.Percent(40) && len(steps) > 0 {
			from = simulation.OneOf(e.Dice, steps...).Name
		}
		answer, err = actions.Retry(next, &batch.SequentialJobRetrySpec{Reason: "because", FromStep: from}, call)
	}
	if err != nil {
		e.Note("user asks to %s: %v", what, err)
		return
	}
	strategy := registry.NewActionStrategy(e.strategy())
	strategy.PrepareForUpdate(context.Background(), next, hub(before))
	if errs := strategy.ValidateUpdate(context.Background(), next, hub(before)); len(errs) > 0 {
		e.Fail("the server accepts every action", "%s: %v", what, errs.ToAggregate())
	}
	after := served(next)
	e.Note("user asks to %s: %s", what, answer.Message)
	if answer.Time != nil {
		e.Seen["actions: "+what]++
		e.rules.acted(what, from, before, after)
		e.sequences.Put(after)
	}
}

// edit lets a user change the spec. What the server refuses changes nothing.
func (e *env) edit() {
	before := e.sequence()
	wanted := before.DeepCopy()
	spec, count := &wanted.Spec, helper.StepCount(&wanted.Spec)
	what := simulation.OneOf(e.Dice, "suspend", "image", "image", "image", "kind", "append", "remove", "ttl", "deadline")
	i := e.Dice.IntN(count)
	switch {
	case what == "suspend":
		spec.Suspend = ptr.To(!helper.Suspended(before))
	case what == "ttl":
		spec.TTLSecondsAfterFinished = simulation.OneOf[*int32](e.Dice, nil, ptr.To[int32](0), ptr.To[int32](5))
	case what == "deadline":
		spec.ActiveDeadlineSeconds = simulation.OneOf[*int64](e.Dice, nil, ptr.To[int64](20), ptr.To[int64](90))
	case what == "image" && len(spec.Containers) > 0:
		spec.Containers[i].Image = "b" + strconv.Itoa(e.Dice.IntN(5))
	case what == "image" || what == "kind" && len(spec.Steps) > 0:
		spec.Steps[i] = randomStep(e.Dice, spec.Steps[i].Name)
	case what == "append" && count < 4 && len(spec.Containers) > 0:
		spec.Containers = append(spec.Containers, corev1.Container{Name: fmt.Sprint("more-", e.sequences.Versions.Last), Image: "a"})
	case what == "append" && count < 4:
		spec.Steps = append(spec.Steps, randomStep(e.Dice, fmt.Sprint("more-", e.sequences.Versions.Last)))
	case what == "remove" && count > 1 && len(spec.Containers) > 0:
		spec.Containers = spec.Containers[:count-1]
	case what == "remove" && count > 1:
		spec.Steps = spec.Steps[:count-1]
	}
	e.update(before, wanted, fmt.Sprintf("%s of step %d", what, i))
}

// update stores a changed sequence, as the server does.
func (e *env) update(before, wanted *batchv1alpha1.SequentialJob, what string) {
	ctx, next, prev := context.Background(), hub(wanted), hub(before)
	e.strategy().PrepareForUpdate(ctx, next, prev)
	if errs := e.strategy().ValidateUpdate(ctx, next, prev); len(errs) > 0 {
		e.Note("user changes %s: %v", what, errs.ToAggregate())
		e.Seen["edits refused"]++
		return
	}
	after := served(next)
	e.Note("user changes %s: %s", what, describeSpec(after))
	e.Seen["edits"]++
	e.rules.edited(before, after)
	e.sequences.Put(after)
}
