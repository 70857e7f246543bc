// Copyright The jobset-apiserver Authors.
// SPDX-License-Identifier: Apache-2.0

// Package reasons names the reasons that conditions and events of several kinds have. One fault has one reason in all kinds. The reasons
// of one kind alone stand beside its types.
package reasons

// Reasons of conditions about children or pods that cannot be created.
const (
	// QuotaExceeded means that a ResourceQuota is used up.
	QuotaExceeded = "QuotaExceeded"
	// Forbidden means that the controller lacks a permission.
	Forbidden = "Forbidden"
	// AdmissionDenied means that a webhook, a policy or an admission plugin refused the object.
	AdmissionDenied = "AdmissionDenied"
	// Invalid means that the API considers the object invalid.
	Invalid = "Invalid"
	// NotSupported means that the cluster lacks an API or a feature that the object asks for.
	NotSupported = "NotSupported"
	// FailedCreate is for all other failures, for example a webhook that does not answer. The controllers of the cluster report pods that
	// they cannot create in events with this reason.
	FailedCreate = "FailedCreate"
	// UndoneByOthers means that the API was not asked, because another party deletes the object each time it was created, or removes
	// its labels.
	UndoneByOthers = "UndoneByOthers"
	// NameConflict means that an object of another owner has the name.
	NameConflict = "NameConflict"
	// ChildrenCreated means that all children exist again.
	ChildrenCreated = "ChildrenCreated"
	// PodsCreated means that no pods are refused any more.
	PodsCreated = "PodsCreated"
)

// Reasons of conditions about pods that wait for nodes.
const (
	// Unschedulable means that the scheduler has found no node for some time.
	Unschedulable = "Unschedulable"
	// PodsScheduled means that no pod waits for a node any more.
	PodsScheduled = "PodsScheduled"
)

// Reasons of other conditions.
const (
	// AllJobsCompleted means that all Jobs or steps have completed.
	AllJobsCompleted = "AllJobsCompleted"
	// DeadlineExceeded means that the object ran longer than its activeDeadlineSeconds.
	DeadlineExceeded = "DeadlineExceeded"
	// Cancelled means that a user cancelled the object.
	Cancelled = "Cancelled"
	// Resumed means that a user resumed the object.
	Resumed = "Resumed"
	// Retried means that a user asked to run the object again after it had failed.
	Retried = "Retried"
	// RestartRequested means that a user asked for a restart.
	RestartRequested = "RestartRequested"
	// RestoredFromBackup means that the store was restored from a backup, and what became of the object since is not known.
	RestoredFromBackup = "RestoredFromBackup"
	// ChildUnreadable means that the server cannot read a child.
	ChildUnreadable = "ChildUnreadable"
)

// Reasons of events.
const (
	// JobCreationFailed means that a Job or the JobSet of a step could not be created.
	JobCreationFailed = "JobCreationFailed"
	// QueueIgnored means that no queueing system reads the queue that the object names.
	QueueIgnored = "QueueIgnored"
	// AdoptedChild means that the object has taken children over that had no controller.
	AdoptedChild = "AdoptedChild"
)
