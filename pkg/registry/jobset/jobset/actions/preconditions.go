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
)

// seconds is the precision of the times of conditions.
const seconds = time.Second

func conflict(js *jobset.JobSet, format string, args ...any) error {
	return apierrors.NewConflict(jobset.Resource("jobsets"), js.Name, fmt.Errorf(format, args...))
}

// checkUID refuses what was meant for another set of the name.
func checkUID(js *jobset.JobSet, p *batch.ActionPreconditions) error {
	if p == nil || p.UID == nil || *p.UID == js.UID {
		return nil
	}
	return conflict(js, "the JobSet has the UID %s, but preconditions.uid is %s: the JobSet was deleted and recreated; get it again", js.UID, *p.UID)
}

// done returns the entry of the attempt that the very request has begun already, for the attempt that it names; nil if it has not.
func done(js *jobset.JobSet, p *batch.ActionPreconditions, same func(*jobset.Attempt) bool) *jobset.Attempt {
	if p == nil || p.Attempt == nil {
		return nil
	}
	if next := following(&js.Status, *p.Attempt); next != nil && same(next) {
		return next
	}
	return nil
}

// checkAttempt refuses what was meant for another attempt of the set.
func checkAttempt(js *jobset.JobSet, p *batch.ActionPreconditions) error {
	current := currentNumber(&js.Status)
	if p == nil || p.Attempt == nil || *p.Attempt == current {
		return nil
	}
	if current == 0 {
		return conflict(js, "the JobSet has no attempts yet, but preconditions.attempt is %d; get the JobSet again", *p.Attempt)
	}
	return conflict(js, "the current attempt is %d, begun %s, but preconditions.attempt is %d; get the JobSet again",
		current, origin(Current(&js.Status)), *p.Attempt)
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
		return "when the JobSet was admitted again after a preemption"
	case jobset.TriggerFailurePolicy:
		if entry.Rule != "" {
			return fmt.Sprintf("by rule %q of the failure policy", entry.Rule)
		}
		return "by the failure policy"
	}
	return "when the JobSet was started"
}

// checkManaged refuses every action on sets that nobody acts on any more, or that another controller acts on.
func checkManaged(js *jobset.JobSet) error {
	if js.DeletionTimestamp != nil {
		return conflict(js, "the JobSet is being deleted; wait until it is gone and recreate it")
	}
	if manager := ptr.Deref(js.Spec.ManagedBy, jobsetv1alpha2.JobSetControllerName); manager != jobsetv1alpha2.JobSetControllerName {
		return conflict(js, "the JobSet is run by the controller %q, which spec.managedBy names; ask that one", manager)
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
		return fmt.Sprintf("queue %q, which the label %s names", queue, jobsetv1alpha2.QueueNameKey)
	}
	if owner := metav1.GetControllerOfNoCopy(js); owner != nil {
		return fmt.Sprintf("%s %q, which owns it", owner.Kind, owner.Name)
	}
	return ""
}

// wayOutOfSuspension says how a suspended set comes to run.
func wayOutOfSuspension(js *jobset.JobSet) string {
	if who := decider(js); who != "" {
		return fmt.Sprintf("%s, decides when it runs", who)
	}
	return "resume it instead"
}

// wayOutOfFailure says how a failed set comes to run again. It agrees with what Retry refuses.
func wayOutOfFailure(js *jobset.JobSet) string {
	if _, queued := js.Labels[jobsetv1alpha2.QueueNameKey]; queued {
		return "recreate it to run it again"
	}
	if who := decider(js); who != "" {
		return fmt.Sprintf("recreate %s, to run it again", who)
	}
	return "retry it instead"
}
