// Copyright The jobset-apiserver Authors.
// SPDX-License-Identifier: Apache-2.0

package v1alpha2

import (
	"github.com/jobset-apiserver/jobset-apiserver/pkg/apis/generic/reasons"
)

import "github.com/jobset-apiserver/jobset-apiserver/pkg/apis/jobset"

// JobSetControllerName is the value of spec.managedBy that means the built-in controller, as its absence does.
const JobSetControllerName = "jobset.sigs.k8s.io/jobset-controller"

// MultiKueueControllerName is the value of spec.managedBy that Kueue gives to sets which it runs in another cluster.
const MultiKueueControllerName = "kueue.x-k8s.io/multikueue"

// Types of the conditions in status.conditions (docs/reference/jobset.md#conditions).
const (
	// JobSetCompleted is True when the success policy was met. Never reset.
	JobSetCompleted = "Completed"
	// JobSetFailed is True when the set failed permanently, or was cancelled. Retrying the set makes it False; nothing else
	// resets it.
	JobSetFailed = "Failed"
	// JobSetSuspended is True while the set is suspended.
	JobSetSuspended = "Suspended"
	// JobSetRestarting is True from a restart of the whole set until all its Jobs are ready again.
	JobSetRestarting = "RestartingJobSet"
	// JobSetStartupPolicyInProgress is True while an InOrder start waits for a replicatedJob.
	JobSetStartupPolicyInProgress = "StartupPolicyInProgress"
	// JobSetStartupPolicyCompleted is True when all replicatedJobs of an InOrder start have started.
	JobSetStartupPolicyCompleted = "StartupPolicyCompleted"
	// ChildNameConflict is True while an object exists under the name of a Job that the set needs, and the set does not
	// own it. The set waits until that object is gone. Upstream has no such condition.
	ChildNameConflict = "ChildNameConflict"
	// JobCreationFailure is True while a Job, the Service or a volume claim of the set cannot be created. Upstream has no such condition.
	JobCreationFailure = "JobCreationFailure"
	// PodCreationFailure is True while the API refuses pods of the set to the Job controller, for example because a quota
	// is used up or a PriorityClass is missing. It has the same reasons as JobCreationFailure. Upstream has no such condition.
	PodCreationFailure = "PodCreationFailure"
	// PodsUnschedulable is True while pods of the set have waited for a node for some time. Upstream has no such condition.
	PodsUnschedulable = "PodsUnschedulable"
	// PlacementPending is True while the set waits for topology domains, because it asks for exclusive placement and other
	// sets have them. Upstream has no such condition.
	PlacementPending = "PlacementPending"
	// Retried is True of a set that had failed and was retried while it was suspended: it no longer counts as failed, and
	// runs once it is resumed. Upstream has no such condition.
	Retried = "Retried"
	// Held is True while the controller leaves the set alone until a user resumes or deletes it. Upstream has no such condition.
	Held = "Held"
	// RestartRulesMissing is True while Jobs of a set that restarts in place lack restart rules that the set has for its containers, because
	// kube-apiserver has left them out. Their pods are recreated when they fail. Upstream has no such condition.
	RestartRulesMissing = "RestartRulesMissing"
	// ServiceEndpointsByCluster is True while the controllers of the cluster write the addresses of the headless Service
	// although the set asks for those of ServiceEndpointsController. Upstream has no such condition.
	ServiceEndpointsByCluster = "ServiceEndpointsByCluster"
)

// ReasonRestoredFromBackup is the reason of Held while it is True: the store was restored from a backup, and what became of the set
// since the backup is not known.
const ReasonRestoredFromBackup = reasons.RestoredFromBackup

// Reasons of JobCreationFailure and PodCreationFailure while they are True.
const (
	// ReasonQuotaExceeded means that a ResourceQuota is used up.
	ReasonQuotaExceeded = reasons.QuotaExceeded
	// ReasonForbidden means that the controller lacks a permission.
	ReasonForbidden = reasons.Forbidden
	// ReasonAdmissionDenied means that a webhook, a policy or an admission plugin refused the object.
	ReasonAdmissionDenied = reasons.AdmissionDenied
	// ReasonInvalid means that the API considers the object invalid.
	ReasonInvalid = reasons.Invalid
	// ReasonNotSupported means that the cluster lacks an API or a feature that the set asks for.
	ReasonNotSupported = reasons.NotSupported
	// ReasonFailedCreate is for all other failures, for example a webhook that does not answer.
	ReasonFailedCreate = reasons.FailedCreate
	// ReasonUndoneByOthers means that the API was not asked, because another party deletes the object each time it was
	// created, or removes its labels.
	ReasonUndoneByOthers = reasons.UndoneByOthers
)

// ReasonUnschedulable is the reason of PodsUnschedulable while it is True.
const ReasonUnschedulable = reasons.Unschedulable

// ReasonCancelled is the reason of Failed after a user cancelled the set.
const ReasonCancelled = reasons.Cancelled

// Values of status.terminalState.
const (
	// TerminalStateCompleted is the terminal state of a set whose success policy was met.
	TerminalStateCompleted = "Completed"
	// TerminalStateFailed is the terminal state of a set that failed permanently.
	TerminalStateFailed = "Failed"
)

// Keys that the controller puts on every child Job and its pod template, each as a label and as an annotation with the
// same value (docs/reference/jobset.md#identity-keys).
const (
	// JobSetNameKey holds the name of the set; volume claims and the selector of the headless Service use it too.
	JobSetNameKey = "jobset.sigs.k8s.io/jobset-name"
	// JobSetUIDKey holds the UID of the set.
	JobSetUIDKey = "jobset.sigs.k8s.io/jobset-uid"
	// ReplicatedJobNameKey holds the name of the replicatedJob.
	ReplicatedJobNameKey = "jobset.sigs.k8s.io/replicatedjob-name"
	// ReplicatedJobReplicas holds the number of Jobs of the replicatedJob.
	ReplicatedJobReplicas = "jobset.sigs.k8s.io/replicatedjob-replicas"
	// GlobalReplicasKey holds the number of Jobs of the set.
	GlobalReplicasKey = "jobset.sigs.k8s.io/global-replicas"
	// RestartsKey holds status.restarts at the time the Job was created.
	RestartsKey = "jobset.sigs.k8s.io/restart-attempt"
	// JobRestartAttemptKey holds the restarts of this single Job; only with the RestartJob feature, or once users have
	// restarted single Jobs of the set.
	JobRestartAttemptKey = "jobset.sigs.k8s.io/job-restart-attempt"
	// JobIndexKey holds the index of the Job in its replicatedJob.
	JobIndexKey = "jobset.sigs.k8s.io/job-index"
	// JobGlobalIndexKey holds the index of the Job in the set.
	JobGlobalIndexKey = "jobset.sigs.k8s.io/job-global-index"
	// JobKey holds the SHA-1 of "<namespace>/<job name>" in hexadecimal.
	JobKey = "jobset.sigs.k8s.io/job-key"
	// GroupNameKey holds the groupName of the replicatedJob.
	GroupNameKey = "jobset.sigs.k8s.io/group-name"
	// GroupReplicasKey holds the number of Jobs of the group.
	GroupReplicasKey = "jobset.sigs.k8s.io/group-replicas"
	// JobGroupIndexKey holds the index of the Job in its group.
	JobGroupIndexKey = "jobset.sigs.k8s.io/job-group-index"
	// CoordinatorKey holds the DNS name of the coordinator pod; only when spec.coordinator is set.
	CoordinatorKey = "jobset.sigs.k8s.io/coordinator"
)

// ExecutionAttemptKey is the annotation that holds status.executionAttempts at the time when a Job was created or last
// resumed. The controller puts it on the Job and on its pod template; only with the ExecutionAttemptsTracking feature.
const ExecutionAttemptKey = "jobset.sigs.k8s.io/execution-attempt"

// ReleasedKey is the annotation of a child Job that holds the generation of the set for which the controller last let
// the Job run. While the Job is suspended because the set is, it holds "suspended-in-attempt-" and the number of the
// attempt in which that happened; it is empty if there was none. A Job that is suspended although it was released for
// the present generation was suspended by another party, and stays suspended until that party resumes it. Upstream has no such key.
const ReleasedKey = "jobset-apiserver.io/released-at-generation"

// PlacementKey is the annotation of a child Job with exclusive placement whose domain the scheduler chooses; its value
// is PlacementByAffinity. Upstream has no such key.
const PlacementKey = "jobset-apiserver.io/placement"

// PlacementByAffinity is the value of PlacementKey: pods attract those of their Job, and repel those of others.
const PlacementByAffinity = "affinity"

// AvoidedNodesKey is the annotation of a child Job whose pods keep off nodes; its value is the names of these, separated by commas.
// Upstream has no such key.
const AvoidedNodesKey = "jobset-apiserver.io/avoided-nodes"

// Keys that users and administrators set, and that the controller passes on (docs/reference/jobset.md#other-keys).
const (
	// ExclusiveKey is the annotation that asks for one Job per topology domain; its value is the node label that
	// names the domain.
	ExclusiveKey = "alpha.jobset.sigs.k8s.io/exclusive-topology"
	// PlacementLevelsKey is the annotation of a set with exclusive placement that names labels of nodes, the outermost first and separated by
	// commas: the domains of its Jobs lie in as few values of each as possible. Upstream has no such key.
	PlacementLevelsKey = "jobset-apiserver.io/placement-levels"
	// MaxPlacementLevels is how many of these labels count.
	MaxPlacementLevels = 4
	// NodeSelectorStrategyKey is the annotation that, beside ExclusiveKey, chooses placement through node selectors.
	NodeSelectorStrategyKey = "alpha.jobset.sigs.k8s.io/node-selector"
	// NamespacedJobKey is the node label, and the pods' node selector, that ties a node to one Job.
	NamespacedJobKey = "alpha.jobset.sigs.k8s.io/namespaced-job"
	// NoScheduleTaintKey is the taint that keeps other pods off the nodes of a Job.
	NoScheduleTaintKey = "alpha.jobset.sigs.k8s.io/no-schedule"
	// PriorityKey is the pod label that holds the priority of the pod.
	PriorityKey = "jobset.sigs.k8s.io/priority"
	// InPlaceRestartAttemptKey is the pod annotation that holds the in-place restart attempt the pod has reached.
	InPlaceRestartAttemptKey = "jobset.sigs.k8s.io/in-place-restart-attempt"
	// DisableInPlaceRestartKey is the annotation of a set that lets its agents pass the restart barrier.
	DisableInPlaceRestartKey = "jobset.sigs.k8s.io/disable-in-place-restart"
	// ScaleReplicatedJobKey is the annotation of a set that names the replicatedJob whose size the scale subresource changes.
	// Upstream has no such key.
	ScaleReplicatedJobKey = "jobset-apiserver.io/scale-replicated-job"
	// CheckpointStepKey is the annotation of a set in which its job reports the step of its last checkpoint, a decimal number
	// from 0 to 9223372036854775807. Upstream has no such key.
	CheckpointStepKey = "jobset-apiserver.io/checkpoint-step"
	// AvoidFailedNodesKey is the annotation of a set that holds for how long the pods of later attempts keep off a node on
	// which an attempt failed: a duration like 90m, from 0s, for not at all, to 720h. The flag of the controller gives the
	// default. Upstream has no such key.
	AvoidFailedNodesKey = "jobset-apiserver.io/avoid-failed-nodes"
	// MetadataKey is the annotation of a set that says which keys its Jobs and pods get. The only value is
	// MetadataCompact; without the annotation they have the identity keys as labels and as annotations alike. Upstream has no such key.
	MetadataKey = "jobset-apiserver.io/metadata"
	// MetadataCompact gives Jobs and pods the identity keys as labels, and as annotations only what the pod template reads
	// through the downward API.
	MetadataCompact = "compact"
	// ServiceEndpointsKey is the annotation of a set that says who writes the addresses of its headless Service: ServiceEndpointsCluster,
	// ServiceEndpointsController or ServiceEndpointsAuto. The flag of the controller gives the default. Upstream has no such key.
	ServiceEndpointsKey = "jobset-apiserver.io/service-endpoints"
	// ServiceEndpointsCluster leaves the addresses to the controllers of the cluster.
	ServiceEndpointsCluster = "cluster"
	// ServiceEndpointsController lets the controller of JobSets write EndpointSlices.
	ServiceEndpointsController = "controller"
	// ServiceEndpointsAuto lets it do so while many pods of a large set come and go, and leaves the addresses to the controllers of the
	// cluster at other times.
	ServiceEndpointsAuto = "auto"
	// EndpointsKey is the key of a label that no pod carries. While the selector of a Service has it, the controllers of
	// the cluster find no pods for the Service. The value is ServiceEndpointsController. Upstream has no such key.
	EndpointsKey = "jobset-apiserver.io/endpoints"
	// QueueNameKey is the label of a set that names the queue of Kueue which decides when the set runs.
	QueueNameKey = "kueue.x-k8s.io/queue-name"
)

// Bounds of the history in status.attempts.
const (
	// MaxAttempts is the number of attempts that a status holds: the newest ones.
	MaxAttempts = jobset.MaxAttempts
	// MaxAttemptUserBytes is the length of the name of a user.
	MaxAttemptUserBytes = jobset.MaxAttemptUserBytes
	// MaxAttemptReasonCharacters is the length of a reason.
	MaxAttemptReasonCharacters = jobset.MaxAttemptReasonCharacters
	// MaxCauseBytes is the length of the reason and of the message of a first cause.
	MaxCauseBytes = jobset.MaxCauseBytes
	// MaxAvoidedNodes is the number of nodes that the pods of an attempt keep off, and MaxAvoidedReasonBytes the length of the
	// reason of each.
	MaxAvoidedNodes       = jobset.MaxAvoidedNodes
	MaxAvoidedReasonBytes = jobset.MaxAvoidedReasonBytes
)
