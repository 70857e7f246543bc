// Copyright The jobset-apiserver Authors.
// SPDX-License-Identifier: Apache-2.0

// Package run describes the runs of JobSets for the archive.
package run

import (
	"time"

	"k8s.io/apimachinery/pkg/runtime"
	"k8s.io/apimachinery/pkg/runtime/schema"

	"github.com/jobset-apiserver/jobset-apiserver/pkg/apis/archive"
	"github.com/jobset-apiserver/jobset-apiserver/pkg/apis/batch"
	"github.com/jobset-apiserver/jobset-apiserver/pkg/apis/jobset"
	jobsetv1alpha2 "github.com/jobset-apiserver/jobset-apiserver/pkg/apis/jobset/v1alpha2"
	"github.com/jobset-apiserver/jobset-apiserver/pkg/apis/jobset/v1alpha2/helper"
	"github.com/jobset-apiserver/jobset-apiserver/pkg/archive/description"
	"github.com/jobset-apiserver/jobset-apiserver/pkg/registry/jobset/jobset/actions"
	"github.com/jobset-apiserver/jobset-apiserver/pkg/unreadable"
)

// kind is what runs of JobSets have in common. The annotations are those by which users choose where pods run, and the step that the job
// reports.
var kind = description.Kind{
	Served:      jobsetv1alpha2.SchemeGroupVersion.WithKind("JobSet"),
	Owners:      []schema.GroupKind{batch.Kind("SequentialJob")},
	Annotations: []string{jobset.ExclusiveKey, jobset.AvoidFailedNodesKey, jobset.CheckpointStepKey},
}

// Describe returns the run of a JobSet. It implements archive.Describe.
func Describe(object runtime.Object, now time.Time) *archive.Run {
	hub, is := object.(*jobset.JobSet)
	if !is || unreadable.Is(hub) {
		return nil
	}
	js := actions.Versioned(hub)
	e := executionOf(js)
	if e == nil {
		return nil
	}
	run := kind.Run(hub, e.number)
	until, end := description.WorksUntil(hub, now), now
	if run.State = stateOf(js); run.State != "" {
		end = endOf(js)
		until = end
	}
	description.Times(run, e.begin(js), end)
	if run.State == archive.RunCancelled {
		run.EndUser = actions.CancelledBy(hub)
	}
	js.DeletionTimestamp = nil // why it ended matters, and not what its deletion waits for
	summary := helper.Summarize(js)
	run.Reason, run.Message = summary.Reason, description.Message(summary.Message)

	ready := e.ready(js, until)
	run.Attempts, run.Restarts, run.ReadyMilliseconds = e.count(js), e.restarts(js), ready.Milliseconds()
	run.GoodMilliseconds = e.good(js, ready, until)
	run.Failures = failures(hub, e)
	describeJobs(run, js, ready)
	return run
}

// stateOf returns how a set ended; empty for one that has not.
func stateOf(js *jobsetv1alpha2.JobSet) archive.RunState {
	switch phase, c := helper.Finished(js); {
	case phase == "":
		return ""
	case phase == helper.PhaseCompleted:
		return archive.RunCompleted
	case c != nil && c.Reason == actions.ReasonCancelled:
		return archive.RunCancelled
	}
	return archive.RunFailed
}

// endOf returns when a set ended. If nothing says so, it is the last change that is known: the answer must always be the same.
func endOf(js *jobsetv1alpha2.JobSet) time.Time {
	if end := helper.EndTime(js); !end.IsZero() {
		return end
	}
	last := js.CreationTimestamp.Time
	for i := range js.Status.Conditions {
		if at := js.Status.Conditions[i].LastTransitionTime.Time; at.After(last) {
			last = at
		}
	}
	return last
}

// failures returns the first causes of the attempts of the execution.
func failures(js *jobset.JobSet, e *execution) []archive.RunFailure {
	var all []archive.RunFailure
	for i := len(e.before); i < len(js.Status.Attempts); i++ {
		if a := &js.Status.Attempts[i]; a.FirstCause != nil {
			all = append(all, description.Failure(a.Number, a.FirstCause.Job, a.FirstCause))
		}
	}
	return description.Failures(all)
}

// describeJobs describes the Jobs and their pods.
func describeJobs(run *archive.Run, js *jobsetv1alpha2.JobSet, ready time.Duration) {
	var usage description.Usage
	for i := range js.Spec.ReplicatedJobs {
		rj := &js.Spec.ReplicatedJobs[i]
		pods := int64(max(helper.Replicas(rj), 0)) * description.PodsOfJob(&rj.Template.Spec)
		run.Pods += pods
		usage.Add(&rj.Template.Spec.Template.Spec, pods, ready)
		description.PriorityClass(run, rj.Template.Spec.Template.Spec.PriorityClassName)
		run.Children = append(run.Children, child(js, rj))
	}
	run.Children, run.Resources = description.Children(run.Children), usage.Times()
}

func child(js *jobsetv1alpha2.JobSet, rj *jobsetv1alpha2.ReplicatedJob) archive.RunChild {
	c := archive.RunChild{Name: rj.Name, Kind: "Job", Wanted: max(helper.Replicas(rj), 0)}
	for i := range js.Status.ReplicatedJobsStatus {
		if s := &js.Status.ReplicatedJobsStatus[i]; s.Name == rj.Name {
			c.Ready, c.Succeeded, c.Failed = s.Ready, s.Succeeded, s.Failed
		}
	}
	return c
}
