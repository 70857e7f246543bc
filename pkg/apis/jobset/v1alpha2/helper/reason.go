// Copyright The jobset-apiserver Authors.
// SPDX-License-Identifier: Apache-2.0

package helper

import (
	"fmt"
	"slices"
	"strings"

	"k8s.io/apimachinery/pkg/api/meta"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/utils/ptr"

	"github.com/jobset-apiserver/jobset-apiserver/pkg/apis/generic/reasons"
	jobsetv1alpha2 "github.com/jobset-apiserver/jobset-apiserver/pkg/apis/jobset/v1alpha2"
	"github.com/jobset-apiserver/jobset-apiserver/pkg/namespaceuid"
	"github.com/jobset-apiserver/jobset-apiserver/pkg/unreadable"
)

// The reasons of a phase that no condition explains.
const (
	ReasonFinalizersRemain = "FinalizersRemain" // it is being deleted, and finalizers of other controllers keep it
	ReasonDependentsRemain = "DependentsRemain" // it is being deleted, after its Jobs and pods
	ReasonDeleted          = "Deleted"          // it is being deleted, and nothing keeps it
	ReasonQueued           = "Queued"           // the queue that its label names has not admitted it
	ReasonSuspendRequested = "SuspendRequested" // it is to be suspended, and the controller has not said yet that it is
	ReasonManagedByOther   = "ManagedByOther"   // another controller runs it
	ReasonJobsFailed       = "JobsFailed"       // Jobs of it have failed, which has not ended or restarted it
	ReasonNoJobs           = "NoJobs"           // the spec asks for no Jobs, so that it has nothing to do and never completes
	ReasonJobsNotReady     = "JobsNotReady"     // Jobs do not exist or are not ready yet, and nothing else is known
)

// The reasons of conditions and events that the controller sets and others read (docs/reference/jobset.md#conditions).
const (
	ReasonReachedMaxRestarts = "ReachedMaxRestarts"     // of Failed: no restart is left
	ReasonDeadlineExceeded   = reasons.DeadlineExceeded // of Failed: it ran longer than activeDeadlineSeconds
	// The next three are of PlacementPending, and of the event about Jobs whose domain the scheduler chooses.
	ReasonNoDomain        = "NoDomain"        // no topology domain is free and suitable
	ReasonNodesUnknown    = "NodesUnknown"    // nodes and pods have not been read yet
	ReasonInvalidTemplate = "InvalidTemplate" // it is not known on which nodes the pods may run
	// The next three are of events.
	ReasonJobCreationFailed             = reasons.JobCreationFailed
	ReasonHeadlessServiceCreationFailed = "HeadlessServiceCreationFailed"
	ReasonPVCCreationFailed             = "PVCCreationFailed"
	// The next one is of the end of other conditions, once the set has failed.
	ReasonJobSetFailed = "JobSetFailed"
	// The next one is of PlacementPending once it is False.
	ReasonPlaced = "Placed"
)

// up are the phases in which a set is to run and does not yet.
var up = []string{PhaseRestarting, PhasePending, PhaseStarting}

// troubles are the conditions that keep a set from running while they are True. Those of a suspended set explain why it stays suspended.
var troubles = []struct {
	condition string
	suspended bool
}{
	{namespaceuid.Condition, true}, {jobsetv1alpha2.Held, true}, {jobsetv1alpha2.ChildNameConflict, false},
	{jobsetv1alpha2.JobCreationFailure, false}, {jobsetv1alpha2.PodCreationFailure, false}, {jobsetv1alpha2.PlacementPending, false},
	{jobsetv1alpha2.PodsUnschedulable, false},
}

// Troubles returns the conditions that keep a set from running while they are True. The first that is True is its reason.
func Troubles() []string {
	var conditions []string
	for _, t := range troubles {
		conditions = append(conditions, t.condition)
	}
	return conditions
}

// explanation is a condition that explains phases while it is True.
type explanation struct {
	condition string
	phases    []string
}

// explanations are in order: the first that is True gives the reason.
var explanations = slices.Concat(
	[]explanation{{jobsetv1alpha2.JobSetCompleted, []string{PhaseCompleted}}, {jobsetv1alpha2.JobSetFailed, []string{PhaseFailed}}},
	troublesExplain(),
	[]explanation{
		{jobsetv1alpha2.JobSetSuspended, []string{PhaseSuspended}},
		{jobsetv1alpha2.JobSetRestarting, []string{PhaseRestarting}},
		{jobsetv1alpha2.JobSetStartupPolicyInProgress, []string{PhasePending, PhaseStarting}},
	},
)

// troublesExplain returns the phases that troubles explain.
func troublesExplain() (all []explanation) {
	for _, t := range troubles {
		e := explanation{t.condition, up}
		if t.suspended {
			e.phases = append([]string{PhaseSuspended}, up...)
		}
		all = append(all, e)
	}
	return all
}

// Reason returns why a set is in its phase, in one word, and in a sentence if there is more to say. It is "" for a set that runs;
// it is never "" while something keeps a set from running.
func Reason(js *jobsetv1alpha2.JobSet) (reason, message string) { return reasonOf(js, Phase(js)) }

func reasonOf(js *jobsetv1alpha2.JobSet, phase string) (reason, message string) {
	if phase == PhaseUnreadable {
		return PhaseUnreadable, unreadable.Explain(js)
	}
	return reasonOfReadable(js, phase)
}

// reasonOfReadable returns the reason of a set whose spec and status are known.
func reasonOfReadable(js *jobsetv1alpha2.JobSet, phase string) (reason, message string) {
	queue := js.Labels[jobsetv1alpha2.QueueNameKey]
	switch {
	case phase == PhaseTerminating:
		return whyTerminating(js)
	case phase == PhaseSuspended && queue != "" && !Held(js):
		return ReasonQueued, fmt.Sprintf("the queue %s has not admitted the set", queue)
	}
	for _, e := range explanations {
		if !slices.Contains(e.phases, phase) {
			continue
		}
		if c := meta.FindStatusCondition(js.Status.Conditions, e.condition); c != nil && c.Status == metav1.ConditionTrue {
			return c.Reason, c.Message
		}
	}
	switch phase {
	case PhaseFailed:
		return PhaseFailed, "" // only its terminal state is known
	case PhaseSuspended:
		return ReasonSuspendRequested, ""
	case PhasePending, PhaseStarting:
		return whyNotReady(js)
	}
	return "", ""
}

// whyTerminating returns what the deletion of a set waits for.
func whyTerminating(js *jobsetv1alpha2.JobSet) (reason, message string) {
	others := slices.DeleteFunc(slices.Clone(js.Finalizers), func(finalizer string) bool {
		return finalizer == metav1.FinalizerDeleteDependents || finalizer == metav1.FinalizerOrphanDependents
	})
	switch {
	case len(others) > 0:
		return ReasonFinalizersRemain, "finalizers of other controllers keep the set: " + strings.Join(others, ", ")
	case len(js.Finalizers) > 0:
		return ReasonDependentsRemain, "the set is deleted once its dependents are"
	}
	return ReasonDeleted, ""
}

func whyNotReady(js *jobsetv1alpha2.JobSet) (reason, message string) {
	if manager := ptr.Deref(js.Spec.ManagedBy, jobsetv1alpha2.JobSetControllerName); manager != jobsetv1alpha2.JobSetControllerName {
		return ReasonManagedByOther, "spec.managedBy is " + manager
	}
	if TotalReplicas(js) == 0 {
		return ReasonNoJobs, "the spec asks for no Jobs"
	}
	failed := int64(0)
	for i := range js.Status.ReplicatedJobsStatus {
		failed += int64(js.Status.ReplicatedJobsStatus[i].Failed)
	}
	if failed > 0 {
		return ReasonJobsFailed, fmt.Sprintf("%d of %d Jobs have failed", failed, TotalReplicas(js))
	}
	return ReasonJobsNotReady, ""
}
