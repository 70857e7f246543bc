// Copyright The jobset-apiserver Authors.
// SPDX-License-Identifier: Apache-2.0

package leaderworkerset

import (
	"slices"
	"sync"

	apierrors "k8s.io/apimachinery/pkg/api/errors"
	"k8s.io/apimachinery/pkg/api/meta"
	"k8s.io/apimachinery/pkg/types"
	"k8s.io/client-go/tools/cache"
	"k8s.io/component-base/metrics/legacyregistry"
	"k8s.io/klog/v2"

	leaderworkersetv1 "github.com/jobset-apiserver/jobset-apiserver/pkg/apis/leaderworkerset/v1"
	"github.com/jobset-apiserver/jobset-apiserver/pkg/apis/leaderworkerset/v1/helper"
	"github.com/jobset-apiserver/jobset-apiserver/pkg/controller/host/children"
	"github.com/jobset-apiserver/jobset-apiserver/pkg/instrument"
)

// Values of labels.
const (
	resultApplied  = "applied"
	resultConflict = "conflict"
	resultFailed   = "failed"
	reasonFailure  = "failure"
	reasonRequest  = "request"
	reasonUpdate   = "update"
	phasePending   = "Pending"
)

var (
	restartsTotal = instrument.CounterVec("leaderworkerset_group_restarts_total",
		"Number of groups of LeaderWorkerSets that were recreated by the controller, by reason: failure, request, or update for those "+
			"that hold up a rolling update.", "reason")

	appliesTotal = instrument.CounterVec("leaderworkerset_leader_applies_total",
		"Number of times that the leader StatefulSet of a LeaderWorkerSet was applied, by result: applied, conflict or failed.", "result")

	// inOrder are the conditions that name the state of a set, the most telling one first.
	inOrder = []string{
		leaderworkersetv1.ConditionFailed, leaderworkersetv1.ConditionUpdateInProgress, leaderworkersetv1.ConditionAvailable,
		leaderworkersetv1.ConditionProgressing,
	}

	phases = children.NewPhaseCounts("leaderworkerset_leaderworkersets",
		"Number of LeaderWorkerSets by phase, which is the first true condition of: Failed, UpdateInProgress, Available, Progressing; or "+
			"Pending without any.",
		append(slices.Clone(inOrder), phasePending))

	// conditions are the conditions that say why a set does not have all its groups.
	conditions = children.NewConditionCounts("leaderworkerset_leaderworkersets_with_condition",
		"LeaderWorkerSets", helper.Troubles())
)

var registerMetrics = sync.OnceFunc(func() {
	legacyregistry.MustRegister(restartsTotal, appliesTotal)
	legacyregistry.CustomMustRegister(phases, conditions)
	for _, reason := range []string{reasonFailure, reasonRequest, reasonUpdate} {
		restartsTotal.WithLabelValues(reason)
	}
	for _, result := range []string{resultApplied, resultConflict, resultFailed} {
		appliesTotal.WithLabelValues(result)
	}
})

func countPhase(set *leaderworkersetv1.LeaderWorkerSet) {
	phases.Set(cache.MetaObjectToName(set), phaseOf(set))
	conditions.Set(cache.MetaObjectToName(set), set.Status.Conditions)
}

// phaseOf returns the condition that names the state of a set.
func phaseOf(set *leaderworkersetv1.LeaderWorkerSet) string {
	for _, condition := range inOrder {
		if meta.IsStatusConditionTrue(set.Status.Conditions, condition) {
			return condition
		}
	}
	return phasePending
}

// countRestart counts a leader pod that was deleted.
func countRestart(set *leaderworkersetv1.LeaderWorkerSet, leader types.UID) {
	reason := reasonUpdate
	if requested := set.Status.Restart; requested != nil && slices.Contains(requested.Leaders, leader) {
		reason = reasonRequest
	} else if slices.ContainsFunc(set.Status.Groups, func(g leaderworkersetv1.GroupStatus) bool { return g.RestartedLeader == leader }) {
		reason = reasonFailure
	}
	restartsTotal.WithLabelValues(reason).Inc()
}

func countApply(err error) {
	result := resultApplied
	switch {
	case apierrors.IsConflict(err):
		result = resultConflict
	case err != nil:
		result = resultFailed
	}
	appliesTotal.WithLabelValues(result).Inc()
}

// logTransitions logs the changes of the state of a set, one line each, as the watch shows them.
func logTransitions(logger klog.Logger, was, is *leaderworkersetv1.LeaderWorkerSet) {
	before, after := phaseOf(was), phaseOf(is)
	if before == after {
		return
	}
	logger.Info("LeaderWorkerSet is "+after, Name, klog.KObj(is), "before", before, "replicas", is.Status.Replicas,
		"ready", is.Status.ReadyReplicas, "updated", is.Status.UpdatedReplicas)
}
