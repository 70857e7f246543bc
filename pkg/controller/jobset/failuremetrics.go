// Copyright The jobset-apiserver Authors.
// SPDX-License-Identifier: Apache-2.0

package jobset

import (
	"slices"

	batchv1 "k8s.io/api/batch/v1"
	corev1 "k8s.io/api/core/v1"
	"k8s.io/apimachinery/pkg/api/meta"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/client-go/tools/cache"

	jobsetv1alpha2 "github.com/jobset-apiserver/jobset-apiserver/pkg/apis/jobset/v1alpha2"
	"github.com/jobset-apiserver/jobset-apiserver/pkg/apis/jobset/v1alpha2/helper"
	"github.com/jobset-apiserver/jobset-apiserver/pkg/controller/host/children"
	"github.com/jobset-apiserver/jobset-apiserver/pkg/instrument"
)

// causeOther is the label of causes that are not listed, so that the number of series is bounded, whatever a pod says.
const causeOther = "Other"

// causes are reasons of pods, containers and Jobs by which first failures are counted.
var causes = []string{
	helper.ReasonError, helper.ReasonOOMKilled, helper.ReasonContainerCannotRun, helper.ReasonStartError,
	helper.ReasonEvicted, helper.ReasonPreempting,
	corev1.PodReasonPreemptionByScheduler, helper.ReasonDeletionByTaintManager, helper.ReasonDeletionByPodGC,
	helper.ReasonEvictionByEvictionAPI, corev1.PodReasonTerminationByKubelet, helper.ReasonNodeLost, helper.ReasonUnassigned,
	batchv1.JobReasonBackoffLimitExceeded, batchv1.JobReasonDeadlineExceeded, batchv1.JobReasonPodFailurePolicy,
	batchv1.JobReasonFailedIndexes, batchv1.JobReasonMaxFailedIndexesExceeded, causeOther,
}

var (
	firstFailuresTotal = instrument.CounterVec("jobset_first_failures_total",
		"Number of attempts of JobSets whose first cause of failure was recorded, by the reason of the pod, container or Job that "+
			"failed first, or Other.", "cause")

	placementWaitSeconds = instrument.Histogram("jobset_placement_wait_seconds",
		"Time for which JobSets waited for domains of exclusive placement. Only JobSets that had to wait count.", waits)

	// conditions are the conditions that say why a set does not go on by itself.
	conditions = children.NewConditionCounts("jobset_jobsets_with_condition",
		"JobSets", helper.Troubles())
)

// countConditions counts the conditions of a set that has not finished: a finished one waits for nothing.
func countConditions(js *jobsetv1alpha2.JobSet, finished bool) {
	name := cache.MetaObjectToName(js)
	if finished {
		conditions.Set(name, nil)
		return
	}
	conditions.Set(name, js.Status.Conditions)
}

// countCauses counts the first causes that have just been stored.
func countCauses(was, is *jobsetv1alpha2.JobSetStatus) {
	for i := range is.Attempts {
		a := &is.Attempts[i]
		if a.FirstCause == nil {
			continue
		}
		old := attemptNumbered(was, a.Number)
		if old == nil && a.Number > lastNumber(was) || old != nil && old.FirstCause == nil {
			firstFailuresTotal.WithLabelValues(causeOf(a.FirstCause)).Inc()
		}
	}
}

func causeOf(cause *jobsetv1alpha2.FailureCause) string {
	if slices.Contains(causes, cause.Reason) {
		return cause.Reason
	}
	return causeOther
}

// observeWait observes a wait for domains that has just ended.
func observeWait(was, is *jobsetv1alpha2.JobSetStatus) {
	before := meta.FindStatusCondition(was.Conditions, jobsetv1alpha2.PlacementPending)
	now := meta.FindStatusCondition(is.Conditions, jobsetv1alpha2.PlacementPending)
	if before == nil || now == nil || before.Status != metav1.ConditionTrue || now.Status != metav1.ConditionFalse {
		return
	}
	placementWaitSeconds.Observe(max(0, now.LastTransitionTime.Sub(before.LastTransitionTime.Time).Seconds()))
}
