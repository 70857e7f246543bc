// Copyright The jobset-apiserver Authors.
// SPDX-License-Identifier: Apache-2.0

package storage

import (
	"fmt"
	"time"

	"k8s.io/apimachinery/pkg/api/meta"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/utils/ptr"

	"github.com/jobset-apiserver/jobset-apiserver/pkg/apis/jobset"
	jobsetv1alpha2 "github.com/jobset-apiserver/jobset-apiserver/pkg/apis/jobset/v1alpha2"
	"github.com/jobset-apiserver/jobset-apiserver/pkg/apis/jobset/v1alpha2/helper"
	"github.com/jobset-apiserver/jobset-apiserver/pkg/registry/jobset/jobset/actions"
)

// summary is what the wide columns show.
type summary struct {
	phase, ready, attempt, reason, duration string
}

// conditions are the types of those that explain a phase.
var conditions = map[string]string{
	helper.PhaseSuspended: jobsetv1alpha2.JobSetSuspended, helper.PhaseRestarting: jobsetv1alpha2.JobSetRestarting,
	helper.PhasePending: jobsetv1alpha2.JobSetStartupPolicyInProgress, helper.PhaseStarting: jobsetv1alpha2.JobSetStartupPolicyInProgress,
}

// summarize derives the wide columns from the object and the time.
func summarize(hub *jobset.JobSet, now time.Time) summary {
	js := actions.Versioned(hub)
	counts := helper.CountJobs(js)
	s := summary{
		phase:    helper.Phase(js),
		ready:    fmt.Sprintf("%d/%d", counts.Up, counts.Wanted),
		attempt:  attempt(js),
		duration: elapsed(js, now),
	}
	condition := conditions[s.phase]
	switch finished, _ := helper.Finished(js); s.phase {
	case helper.PhaseTerminating, helper.PhaseCompleted, helper.PhaseFailed:
		condition = finished
	case helper.PhasePending, helper.PhaseStarting, helper.PhaseRestarting:
		if meta.IsStatusConditionTrue(js.Status.Conditions, jobsetv1alpha2.ChildNameConflict) {
			condition = jobsetv1alpha2.ChildNameConflict // what the missing Jobs wait for
		}
	}
	if c := meta.FindStatusCondition(js.Status.Conditions, condition); c != nil && c.Status == metav1.ConditionTrue {
		s.reason = c.Reason
	}
	return s
}

// attempt is the number of the current attempt, of the attempts that the set can reach as of now: one more for each restart
// that is left. Restarts that do not count raise both numbers. Without a failure policy nothing is left. A set whose
// attempts were not recorded yet has had one for each restart of the whole set, and the first one.
func attempt(js *jobsetv1alpha2.JobSet) string {
	status := &js.Status
	restarts := max(int64(status.Restarts), int64(ptr.Deref(status.CurrentInPlaceRestartAttempt, 0)))
	number := restarts + 1
	if current := helper.CurrentAttempt(status); current != nil {
		number = int64(current.Number)
	}
	left := int64(0)
	if js.Spec.FailurePolicy != nil {
		// Restarts in place use up the limit, but are counted elsewhere.
		inPlace := restarts - int64(status.Restarts)
		left = max(helper.RestartLimit(js)-helper.CountedRestarts(status)-inPlace, 0)
	}
	return fmt.Sprintf("%d/%d", number, number+left)
}

// elapsed is the time that a set has run, or "" while it is suspended.
func elapsed(js *jobsetv1alpha2.JobSet, now time.Time) string {
	start := js.CreationTimestamp.Time
	if resumed := meta.FindStatusCondition(js.Status.Conditions, jobsetv1alpha2.JobSetSuspended); resumed != nil && resumed.Status == metav1.ConditionFalse {
		start = resumed.LastTransitionTime.Time
	}
	if finished, c := helper.Finished(js); finished != "" {
		if c != nil {
			return humanDuration(c.LastTransitionTime.Sub(start))
		}
		return ""
	}
	if helper.Suspended(js) || start.IsZero() {
		return ""
	}
	return humanDuration(now.Sub(start))
}
