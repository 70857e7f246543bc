// Copyright The jobset-apiserver Authors.
// SPDX-License-Identifier: Apache-2.0

package v1alpha1

import (
	"github.com/jobset-apiserver/jobset-apiserver/pkg/apis/generic/reasons"
)

// SequentialJobControllerName is the value of spec.managedBy that means the built-in controller, as its absence does.
const SequentialJobControllerName = "jobset-apiserver.io/sequentialjob-controller"

// MaxSteps is the largest number of steps of a sequence.
const MaxSteps = 100

// SequentialJobFinalizer keeps a SequentialJob while it has an active child, so that the child is deleted first.
const SequentialJobFinalizer = GroupName + "/sequentialjob-cleanup"

// Labels of the children of a SequentialJob, and of their pods.
const (
	// SequentialJobNameKey is the name of the SequentialJob.
	SequentialJobNameKey = GroupName + "/sequentialjob-name"
	// SequentialJobUIDKey is the UID of the SequentialJob.
	SequentialJobUIDKey = GroupName + "/sequentialjob-uid"
	// StepIndexKey is the index of the step, from 0.
	StepIndexKey = GroupName + "/step-index"
	// StepNameKey is the name of the step.
	StepNameKey = GroupName + "/step-name"
	// StepAttemptKey is the number of the attempt of the step, from 1. The controller stops children of older attempts.
	StepAttemptKey = GroupName + "/step-attempt"
	// PartOfKey is the name of the SequentialJob for tools that know the labels which Kubernetes recommends.
	PartOfKey = "app.kubernetes.io/part-of"
)

// DeactivatedByKey is the annotation of a Workload of Kueue that was deactivated because its sequence is suspended: the name of the
// SequentialJob. Only such a Workload is activated when the sequence is resumed.
const DeactivatedByKey = GroupName + "/deactivated-by"

// AdmissionKey is the annotation of a child that runs with the quota of its sequence: it differs for different admissions.
const AdmissionKey = GroupName + "/admission"

// Labels of pods that form a group, with either prefix.
const (
	// PodGroupKey is the name of the group that a pod belongs to.
	PodGroupKey = GroupName + "/pod-group"
	// PodGroupReadyKey is true on all pods of a group once all of them run.
	PodGroupReadyKey = GroupName + "/pod-group-ready"
	// PodGroupSizeKey is a label or an annotation of a pod: the number of pods of its group.
	PodGroupSizeKey = GroupName + "/pod-group-size"
	// LegacyPodGroupKey, LegacyPodGroupReadyKey and LegacyPodGroupSizeKey are the same with the prefix that the first controller of
	// pod groups used.
	LegacyPodGroupKey      = legacyPodGroupPrefix + "name"
	LegacyPodGroupReadyKey = legacyPodGroupPrefix + "ready"
	LegacyPodGroupSizeKey  = legacyPodGroupPrefix + "pod-group-size"
	legacyPodGroupPrefix   = "podgroup.jhwagner.github.io/"
	// PodGroupReadyValue is the value of the label that says that a group is ready.
	PodGroupReadyValue = "true"
)

// Types of the conditions of SequentialJobs.
const (
	// ConditionAvailable is True when the controller has taken up the object, and its children can be made.
	ConditionAvailable = "Available"
	// ConditionProgressing is True while a step runs, or the next one is about to.
	ConditionProgressing = "Progressing"
	// ConditionComplete is True when all steps have completed.
	ConditionComplete = "Complete"
	// ConditionFailed is True when a step has failed permanently, and while the controller fails to reconcile the object.
	ConditionFailed = "Failed"
	// ConditionSuspended is True when the sequence is suspended and no child is active.
	ConditionSuspended = "Suspended"
	// ConditionResourcesUnavailable is True while the cluster refuses or cannot place the current step for lack of resources.
	ConditionResourcesUnavailable = "ResourcesUnavailable"
	// ConditionHeld is True while the controller leaves the sequence alone until a user resumes or deletes it.
	ConditionHeld = "Held"
)

// ConditionReady is the condition of a PodReadinessGroup that is True while enough of its pods run.
const ConditionReady = "Ready"

// Reasons of conditions.
const (
	// ReasonOperational is the reason of Available while it is True.
	ReasonOperational = "Operational"
	// ReasonJobCreationFailed is the reason of Available while the API refuses to create a child.
	ReasonJobCreationFailed = reasons.JobCreationFailed
	// ReasonUndoneByOthers is the reason of Available while a child is not created, because another party deletes it each
	// time, or removes its label.
	ReasonUndoneByOthers = reasons.UndoneByOthers
	// ReasonNameConflict is the reason of Available while another object has the name of a child.
	ReasonNameConflict = reasons.NameConflict
	// ReasonFailed is the reason of Available when the sequence has failed.
	ReasonFailed = "Failed"

	// ReasonJobStarted is the reason of Progressing while a step runs.
	ReasonJobStarted = "JobStarted"
	// ReasonJobCompleted is the reason of Progressing between two steps.
	ReasonJobCompleted = "JobCompleted"
	// ReasonSuspended is the reason of Progressing and of Suspended while the sequence is suspended.
	ReasonSuspended = "Suspended"
	// ReasonResumed is the reason of Suspended after the sequence was resumed.
	ReasonResumed = reasons.Resumed
	// ReasonWaitingForQuota is the reason of Progressing while the current child waits in a queue.
	ReasonWaitingForQuota = "WaitingForQuota"
	// ReasonWaitingForPods is the reason of Progressing while the current step waits until the pods of earlier ones have ended.
	ReasonWaitingForPods = "WaitingForPods"
	// ReasonSuspendedByOthers is the reason of Progressing while the current child is suspended, although the sequence is
	// not, because another party suspended it again three times within a minute after the controller had resumed it.
	ReasonSuspendedByOthers = "SuspendedByOthers"
	// ReasonChildUnreadable is the reason of Progressing while the server cannot read the JobSet of a step that may run.
	ReasonChildUnreadable = reasons.ChildUnreadable
	// ReasonCompleted is the reason of Progressing when all steps have completed.
	ReasonCompleted = "Completed"
	// ReasonJobFailed is the reason of Failed and Progressing when a step has failed permanently.
	ReasonJobFailed = "JobFailed"

	// ReasonDeadlineExceeded is the reason of Failed after activeDeadlineSeconds.
	ReasonDeadlineExceeded = reasons.DeadlineExceeded
	// ReasonCancelled is the reason of Failed after a user cancelled the sequence.
	ReasonCancelled = reasons.Cancelled
	// ReasonReconciliationError is the reason of Failed while the controller fails to reconcile the object.
	ReasonReconciliationError = "ReconciliationError"
	// ReasonReconciliationFailed is the reason of the event about that.
	ReasonReconciliationFailed = "ReconciliationFailed"
	// ReasonReconciled is the reason of Failed, which is False, after the controller could reconcile the object again.
	ReasonReconciled = "Reconciled"
	// ReasonRetried is the reason of Failed and Available after a user asked to run a failed sequence again.
	ReasonRetried = reasons.Retried

	// ReasonAllJobsCompleted is the reason of Complete.
	ReasonAllJobsCompleted = reasons.AllJobsCompleted

	// ReasonClusterOverloaded is the reason of ResourcesUnavailable while the API asks for fewer requests, times out, or
	// cannot call a webhook.
	ReasonClusterOverloaded = "ClusterOverloaded"
	// ReasonQuotaExceeded is the reason of ResourcesUnavailable while a ResourceQuota has no room for the current child or for its pods.
	ReasonQuotaExceeded = reasons.QuotaExceeded
	// ReasonUnschedulable is the reason of ResourcesUnavailable while pods have waited for a node for 30 seconds.
	ReasonUnschedulable = reasons.Unschedulable
	// ReasonPodsRefused is the reason of ResourcesUnavailable while the API refuses pods of the current child and it is not known why. If it
	// is, the condition has the reason that PodCreationFailure of a JobSet has for it.
	ReasonPodsRefused = "PodsRefused"
	// ReasonQueueUnavailable is the reason of ResourcesUnavailable while a queue is named, and the cluster does not serve Kueue's API.
	ReasonQueueUnavailable = "QueueUnavailable"
	// ReasonRestoredFromBackup is the reason of Held and Progressing while it is not known what became of the sequence since the backup from
	// which the store was restored.
	ReasonRestoredFromBackup = reasons.RestoredFromBackup
	// ReasonResourcesAvailable is the reason of ResourcesUnavailable after the cause has gone.
	ReasonResourcesAvailable = "ResourcesAvailable"
)
