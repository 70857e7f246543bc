// Copyright The jobset-apiserver Authors.
// SPDX-License-Identifier: Apache-2.0

// Package run describes the runs of SequentialJobs for the archive.
package run

import (
	"cmp"
	"time"

	corev1 "k8s.io/api/core/v1"
	"k8s.io/apimachinery/pkg/runtime"

	"github.com/jobset-apiserver/jobset-apiserver/pkg/apis/archive"
	"github.com/jobset-apiserver/jobset-apiserver/pkg/apis/batch"
	batchv1alpha1 "github.com/jobset-apiserver/jobset-apiserver/pkg/apis/batch/v1alpha1"
	"github.com/jobset-apiserver/jobset-apiserver/pkg/apis/batch/v1alpha1/helper"
	jobsethelper "github.com/jobset-apiserver/jobset-apiserver/pkg/apis/jobset/v1alpha2/helper"
	"github.com/jobset-apiserver/jobset-apiserver/pkg/archive/description"
	"github.com/jobset-apiserver/jobset-apiserver/pkg/registry/batch/sequentialjob/actions"
	"github.com/jobset-apiserver/jobset-apiserver/pkg/unreadable"
)

// kind is what runs of SequentialJobs have in common. They keep no annotations: none says how a sequence runs.
var kind = description.Kind{Served: batchv1alpha1.SchemeGroupVersion.WithKind("SequentialJob")}

// Describe returns the run of a SequentialJob. It implements archive.Describe.
func Describe(object runtime.Object, now time.Time) *archive.Run {
	hub, is := object.(*batch.SequentialJob)
	if !is || unreadable.Is(hub) || len(hub.Status.Steps) == 0 {
		return nil
	}
	sj := actions.Versioned(hub)
	again := rerun(&sj.Status)
	run := kind.Run(hub, again+1)
	// Steps do not say in which execution they ran again: all of it counts.
	run.Attempts, run.Restarts = again+1, again

	until, end := description.WorksUntil(hub, now), now
	if finished := helper.Finished(sj); finished != nil {
		end = endOf(sj, finished)
		until = end
		switch {
		case finished.Type == batchv1alpha1.ConditionComplete:
			run.State = archive.RunCompleted
		case finished.Reason == batchv1alpha1.ReasonCancelled:
			run.State, run.EndUser = archive.RunCancelled, actions.CancelledBy(hub)
		default:
			run.State = archive.RunFailed
		}
	}
	description.Times(run, beginOf(sj), end)
	run.Reason = helper.Reason(sj)
	if c := cmp.Or(helper.Explanation(sj), helper.Finished(sj)); c != nil {
		run.Reason, run.Message = cmp.Or(run.Reason, c.Reason), description.Message(c.Message)
	}
	run.Failures = failures(hub)
	describeSteps(run, sj, stepTimes(sj, until))
	return run
}

// failures returns the first causes of the steps, and what is known of steps that failed without one.
func failures(sj *batch.SequentialJob) []archive.RunFailure {
	var all []archive.RunFailure
	for i := range sj.Status.Steps {
		switch s := &sj.Status.Steps[i]; {
		case s.FirstCause != nil:
			all = append(all, description.Failure(s.Attempts, s.Name, s.FirstCause))
		case s.State == batch.StepFailed && s.Reason != "":
			all = append(all, archive.RunFailure{
				Attempt: s.Attempts, Child: s.Name, Reason: s.Reason, Message: description.Message(s.Message), Time: s.CompletionTime.DeepCopy(),
			})
		}
	}
	return description.Failures(all)
}

// describeSteps describes the steps and their pods. One step runs at a time: a sequence has as many pods as its largest step.
func describeSteps(run *archive.Run, sj *batchv1alpha1.SequentialJob, times []time.Duration) {
	var usage description.Usage
	steps := helper.Steps(&sj.Spec)
	for i, step := range steps {
		spec, pods := podsOf(sj, step)
		run.Pods = max(run.Pods, pods)
		if spec != nil {
			description.PriorityClass(run, spec.PriorityClassName)
			if i < len(times) {
				usage.Add(spec, pods, times[i])
			}
		}
		run.Children = append(run.Children, child(sj, step))
	}
	run.ReadyMilliseconds = readyTime(steps, times).Milliseconds()
	run.Children, run.Resources = description.Children(run.Children), usage.Times()
}

// podsOf returns the pods that a step runs at once, and their spec; nil for a JobSet, which has several.
func podsOf(sj *batchv1alpha1.SequentialJob, step helper.Step) (*corev1.PodSpec, int64) {
	switch {
	case step.Container != nil:
		var spec corev1.PodSpec
		if sj.Spec.Template != nil {
			spec = sj.Spec.Template.Spec
		}
		spec.Containers = []corev1.Container{*step.Container}
		return &spec, 1
	case step.Job != nil:
		return &step.Job.Spec.Template.Spec, description.PodsOfJob(&step.Job.Spec)
	case step.JobSet == nil:
		return nil, 0
	}
	pods := int64(0)
	for i := range step.JobSet.Spec.ReplicatedJobs {
		rj := &step.JobSet.Spec.ReplicatedJobs[i]
		pods += int64(max(jobsethelper.Replicas(rj), 0)) * description.PodsOfJob(&rj.Template.Spec)
	}
	return nil, pods
}

// child returns what became of a step. One that never started has no state.
func child(sj *batchv1alpha1.SequentialJob, step helper.Step) archive.RunChild {
	c := archive.RunChild{Name: step.Name, Kind: string(step.Kind()), Wanted: 1}
	if step.Index >= len(sj.Status.Steps) {
		return c
	}
	s := &sj.Status.Steps[step.Index]
	c.State, c.Attempts = string(s.State), s.Attempts
	switch s.State {
	case batchv1alpha1.StepRunning:
		c.Ready = 1
	case batchv1alpha1.StepSucceeded:
		c.Succeeded = 1
	case batchv1alpha1.StepFailed:
		c.Failed = 1
	}
	return c
}
