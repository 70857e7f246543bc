// Copyright The jobset-apiserver Authors.
// SPDX-License-Identifier: Apache-2.0

// Package run describes the runs of LeaderWorkerSets for the archive.
package run

import (
	"math"
	"time"

	"k8s.io/apimachinery/pkg/api/meta"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/runtime"
	"k8s.io/apimachinery/pkg/runtime/schema"
	utilruntime "k8s.io/apimachinery/pkg/util/runtime"

	"github.com/jobset-apiserver/jobset-apiserver/pkg/apis/archive"
	"github.com/jobset-apiserver/jobset-apiserver/pkg/apis/disaggregatedset"
	"github.com/jobset-apiserver/jobset-apiserver/pkg/apis/leaderworkerset"
	leaderworkersetv1 "github.com/jobset-apiserver/jobset-apiserver/pkg/apis/leaderworkerset/v1"
	"github.com/jobset-apiserver/jobset-apiserver/pkg/apis/leaderworkerset/v1/helper"
	"github.com/jobset-apiserver/jobset-apiserver/pkg/archive/description"
	"github.com/jobset-apiserver/jobset-apiserver/pkg/unreadable"
)

// kind is what runs of LeaderWorkerSets have in common. The annotations are those by which users choose where pods run.
var kind = description.Kind{
	Served:      leaderworkersetv1.SchemeGroupVersion.WithKind("LeaderWorkerSet"),
	Owners:      []schema.GroupKind{disaggregatedset.Kind("DisaggregatedSet")},
	Annotations: []string{leaderworkerset.ExclusiveKey, leaderworkerset.SubGroupExclusiveKey},
}

// Describe returns the run of a LeaderWorkerSet. It implements archive.Describe. A set never ends by itself, so that its state is always
// empty: the condition Failed ends when a group is restarted, or when its limit is raised. There is one execution.
func Describe(object runtime.Object, now time.Time) *archive.Run {
	hub, is := object.(*leaderworkerset.LeaderWorkerSet)
	if !is || unreadable.Is(hub) || !began(hub) {
		return nil
	}
	var set leaderworkersetv1.LeaderWorkerSet
	utilruntime.Must(leaderworkersetv1.Convert_leaderworkerset_LeaderWorkerSet_To_v1_LeaderWorkerSet(hub, &set, nil))
	set.DeletionTimestamp = nil // how it was matters, and not that it is being deleted
	run := kind.Run(hub, 1)
	run.Attempts = 1
	description.Times(run, hub.CreationTimestamp.Time, now)
	summary := helper.Summarize(&set)
	run.Reason, run.Message = summary.Reason, description.Message(summary.Message)
	describeGroups(run, hub)

	ready := readyTime(hub, description.WorksUntil(hub, now))
	run.ReadyMilliseconds = ready.Milliseconds()
	describePods(run, &set, ready)
	return run
}

// began returns whether the set has, or had, groups.
func began(set *leaderworkerset.LeaderWorkerSet) bool {
	return set.Status.Replicas > 0 || len(set.Status.Groups) > 0 ||
		meta.FindStatusCondition(set.Status.Conditions, leaderworkersetv1.ConditionAvailable) != nil
}

// readyTime returns since when all groups were ready without a break. Nothing notes how long they were ready before.
func readyTime(set *leaderworkerset.LeaderWorkerSet, until time.Time) time.Duration {
	c := meta.FindStatusCondition(set.Status.Conditions, leaderworkersetv1.ConditionAvailable)
	if c == nil || c.Status != metav1.ConditionTrue {
		return 0
	}
	return max(0, until.Sub(c.LastTransitionTime.Time)).Truncate(time.Millisecond)
}

// describeGroups describes the groups, and why they were recreated.
func describeGroups(run *archive.Run, set *leaderworkerset.LeaderWorkerSet) {
	groups := archive.RunChild{Name: "groups", Kind: "StatefulSet", Wanted: wanted(set), Ready: set.Status.ReadyReplicas}
	restarts := int64(0)
	for i := range set.Status.Groups {
		g := &set.Status.Groups[i]
		restarts += int64(max(g.Restarts, 0))
		if g.Failed {
			groups.Failed++
		}
		if g.FirstCause != nil {
			run.Failures = append(run.Failures, description.Failure(attemptOf(g), g.FirstCause.Job, g.FirstCause))
		}
	}
	sortByTime(run.Failures)
	run.Failures = description.Failures(run.Failures)
	run.Restarts, run.Children = int32(min(restarts, math.MaxInt32)), []archive.RunChild{groups}
}

// describePods describes the pods: each group has a leader, and its workers.
func describePods(run *archive.Run, set *leaderworkersetv1.LeaderWorkerSet, ready time.Duration) {
	groups, size := int64(helper.Replicas(set)), int64(helper.Size(set))
	leader, worker := helper.LeaderTemplate(set), &set.Spec.LeaderWorkerTemplate.WorkerTemplate
	var usage description.Usage
	usage.Add(&leader.Spec, groups, ready)
	usage.Add(&worker.Spec, groups*(size-1), ready)
	run.Pods, run.Resources = groups*size, usage.Times()
	description.PriorityClass(run, leader.Spec.PriorityClassName, worker.Spec.PriorityClassName)
}
