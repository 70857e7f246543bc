// Copyright The jobset-apiserver Authors.
// SPDX-License-Identifier: Apache-2.0

package action

import (
	"fmt"

	"k8s.io/apimachinery/pkg/api/meta"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"

	leaderworkersetv1 "github.com/jobset-apiserver/jobset-apiserver/pkg/apis/leaderworkerset/v1"
	"github.com/jobset-apiserver/jobset-apiserver/pkg/apis/leaderworkerset/v1/helper"
	"github.com/jobset-apiserver/jobset-apiserver/pkg/kubectl/cli"
)

// replicaProgress returns how far a set is on the way to the goal, after an action that got the answer.
func replicaProgress(goal Goal, set *leaderworkersetv1.LeaderWorkerSet, answer Status) Progress {
	switch {
	case set.UID != answer.UID:
		return Progress{Failure: "the set was deleted, and another one created under its name"}
	case set.DeletionTimestamp != nil:
		return Progress{Failure: "the set is being deleted"}
	case set.Status.ObservedGeneration < set.Generation:
		return Progress{Text: "the controller has not seen the change yet"}
	case goal == GoalPaused && !helper.Paused(set):
		return Progress{Failure: "the set was resumed in the meantime" + leaderWorkerSetActedBy(set, leaderworkersetv1.ActionResume)}
	case goal == GoalPaused:
		return Progress{Reached: true, Text: "paused, " + replicaCounts(set)}
	case set.Status.Restart != nil:
		return Progress{Text: restartText(set)}
	}
	return replicasReady(goal, set)
}

// replicasReady is reached when all replicas are ready, and updated unless rolling updates are paused.
func replicasReady(goal Goal, set *leaderworkersetv1.LeaderWorkerSet) Progress {
	failed := meta.FindStatusCondition(set.Status.Conditions, leaderworkersetv1.ConditionFailed)
	paused := helper.Paused(set)
	switch {
	case failed != nil && failed.Status == metav1.ConditionTrue:
		return Progress{Failure: fmt.Sprintf("the set has failed (%s): %s", failed.Reason, failed.Message)}
	case goal == GoalUpdated && paused:
		return Progress{Failure: "rolling updates are paused" + leaderWorkerSetActedBy(set, leaderworkersetv1.ActionPause) +
			"; run `kubectl jobset resume lws/" + set.Name + "` to resume them"}
	case meta.IsStatusConditionTrue(set.Status.Conditions, leaderworkersetv1.ConditionAvailable):
		return Progress{Reached: true, Text: replicaCounts(set)}
	case paused && set.Status.ReadyReplicas >= helper.Replicas(set):
		return Progress{Reached: true, Text: replicaCounts(set) + "; rolling updates are paused"}
	}
	return Progress{Text: replicaCounts(set)}
}

// restartText describes a restart that is not complete.
func restartText(set *leaderworkersetv1.LeaderWorkerSet) string {
	r := set.Status.Restart
	if !r.Found && len(r.Leaders) == 0 {
		return "the restart has not begun; " + replicaCounts(set)
	}
	return cli.Count(len(r.Leaders), "group") + " to be recreated; " + replicaCounts(set)
}

// replicaCounts are the replicas by how far they are. Those of a surge are left out.
func replicaCounts(set *leaderworkersetv1.LeaderWorkerSet) string {
	total := helper.Replicas(set)
	text := fmt.Sprintf("%d of %d groups ready", min(set.Status.ReadyReplicas, total), total)
	if set.Status.UpdatedReplicas < total {
		text = fmt.Sprintf("%d of %d groups updated, ", set.Status.UpdatedReplicas, total) + text
	}
	return text
}

func leaderWorkerSetActedBy(set *leaderworkersetv1.LeaderWorkerSet, action leaderworkersetv1.Action) string {
	if last := set.Status.LastAction; last != nil && last.Action == action && last.User != "" {
		return " by " + last.User
	}
	return ""
}
