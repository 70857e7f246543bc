// Copyright The jobset-apiserver Authors.
// SPDX-License-Identifier: Apache-2.0

package actions

import (
	"fmt"
	"time"

	apierrors "k8s.io/apimachinery/pkg/api/errors"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/utils/ptr"

	"github.com/jobset-apiserver/jobset-apiserver/pkg/apis/batch"
	"github.com/jobset-apiserver/jobset-apiserver/pkg/apis/jobset"
	jobsetv1alpha2 "github.com/jobset-apiserver/jobset-apiserver/pkg/apis/jobset/v1alpha2"
	"github.com/jobset-apiserver/jobset-apiserver/pkg/apis/jobset/v1alpha2/helper"
	"github.com/jobset-apiserver/jobset-apiserver/pkg/registry/generic/action"
)

// seconds is the precision of the times of conditions.
const seconds = time.Second

func conflict(js *jobset.JobSet, format string, args ...any) *apierrors.StatusError {
	return apierrors.NewConflict(jobset.Resource("jobsets"), js.Name, fmt.Errorf(format, args...))
}

// checkUID refuses what was meant for another set of the name.
func checkUID(js *jobset.JobSet, p *batch.ActionPreconditions) error {
	if p == nil || p.UID == nil || *p.UID == js.UID {
		return nil
	}
	return action.Unmet(conflict(js, "preconditions.uid is %s, but the JobSet has the UID %s: it was deleted and recreated", *p.UID, js.UID),
		metav1.CauseTypeFieldValueInvalid, "uid", "the JobSet was deleted and recreated")
}

// checkMeant refuses requests that were meant for another set of the name, or that none of our controllers would carry out.
func checkMeant(js *jobset.JobSet, p *batch.ActionPreconditions, action string) error {
	if err := checkUID(js, p); err != nil {
		return err
	}
	if runsInWorkerCluster(js) && js.DeletionTimestamp == nil {
		if action != "retry" {
			if err := checkUnfinished(js, action); err != nil {
				return err
			}
		}
		return conflict(js, "Kueue runs the JobSet in another cluster (spec.managedBy is %s); %s", *js.Spec.ManagedBy, insteadOf[action])
	}
	return checkManaged(js)
}

// insteadOf says what takes the place of an action on a set that Kueue runs in a worker cluster. Kueue reverts what the
// action would do to the spec here, and copies the status from there.
var insteadOf = map[string]string{
	"restart": "restart it in the cluster that status.clusterName of its Workload names",
	"suspend": "to suspend it, set spec.active of its Workload to false",
	resume:    "to resume it, set spec.active of its Workload to true",
	"retry":   "recreate the JobSet instead",
}

// runsInWorkerCluster returns whether Kueue runs the set, or will run it, in another cluster (MultiKueue).
func runsInWorkerCluster(js *jobset.JobSet) bool {
	return ptr.Deref(js.Spec.ManagedBy, "") == jobsetv1alpha2.MultiKueueControllerName
}

// checkAttempt refuses what was meant for another attempt of the set.
func checkAttempt(js *jobset.JobSet, p *batch.ActionPreconditions) error {
	current := currentNumber(&js.Status)
	if p == nil || p.Attempt == nil || *p.Attempt == current {
		return nil
	}
	kind, state := metav1.CauseTypeFieldValueInvalid, "the JobSet has no attempt yet"
	if current > 0 {
		state = fmt.Sprintf("attempt %d is current (begun %s)", current, origin(Current(&js.Status)))
	}
	if *p.Attempt > current {
		kind = metav1.CauseTypeFieldValueNotFound
	}
	return action.Unmet(conflict(js, "preconditions.attempt is %d, but %s", *p.Attempt, state), kind, "attempt", state)
}

// origin says what began an attempt.
func origin(entry *jobset.Attempt) string {
	by := func(what string) string {
		if entry.User == "" {
			return what
		}
		return what + " by " + entry.User
	}
	switch entry.Trigger {
	case jobset.TriggerRequested:
		return by("by a restart requested")
	case jobset.TriggerRetry:
		return by("by a retry requested")
	case jobset.TriggerResume:
		return by("when the JobSet was resumed")
	case jobset.TriggerPreemption:
		return "when its queue admitted the JobSet again"
	case jobset.TriggerFailurePolicy:
		if entry.Rule != "" {
			return fmt.Sprintf("by rule %q of the failure policy", entry.Rule)
		}
		return "by the failure policy"
	}
	return "when the JobSet was started"
}

// checkManaged refuses every action on sets that are being deleted, or that another controller manages.
func checkManaged(js *jobset.JobSet) error {
	if js.DeletionTimestamp != nil {
		return conflict(js, "the JobSet is being deleted; recreate it after it is gone")
	}
	if manager := ptr.Deref(js.Spec.ManagedBy, jobsetv1alpha2.JobSetControllerName); manager != jobsetv1alpha2.JobSetControllerName {
		return conflict(js, "the JobSet is managed by the controller %q (spec.managedBy); use that controller instead", manager)
	}
	return nil
}

// checkUnfinished rejects actions that only an unfinished set supports.
func checkUnfinished(js *jobset.JobSet, action string) error {
	switch finishedAs(js) {
	case helper.PhaseCompleted:
		return conflict(js, "the JobSet has completed; there is nothing to %s; recreate it to run it again", action)
	case helper.PhaseFailed:
		return conflict(js, "the JobSet has failed; there is nothing to %s; %s", action, wayOutOfFailure(js))
	}
	return nil
}

// decider returns who decides when a set runs: a queue or the controller that owns it. It is "" when its users do.
func decider(js *jobset.JobSet) string {
	if queue, queued := js.Labels[jobsetv1alpha2.QueueNameKey]; queued {
		return fmt.Sprintf("queue %q (label %s)", queue, jobsetv1alpha2.QueueNameKey)
	}
	if owner := metav1.GetControllerOfNoCopy(js); owner != nil {
		return fmt.Sprintf("the owner %s %q", owner.Kind, owner.Name)
	}
	return ""
}

// wayOutOfSuspension says how a suspended set comes to run.
func wayOutOfSuspension(js *jobset.JobSet) string {
	if who := decider(js); who != "" {
		return fmt.Sprintf("%s decides when it runs", who)
	}
	return "resume it instead"
}

// wayOutOfFailure says how a failed set comes to run again. It agrees with what Retry refuses.
func wayOutOfFailure(js *jobset.JobSet) string {
	if _, queued := js.Labels[jobsetv1alpha2.QueueNameKey]; queued {
		return "recreate it to run it again"
	}
	if who := decider(js); who != "" {
		return fmt.Sprintf("recreate %s to run it again", who)
	}
	return "retry it instead"
}
