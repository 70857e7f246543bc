// Copyright The jobset-apiserver Authors.
// SPDX-License-Identifier: Apache-2.0

package why

import (
	"slices"
)

// Cause is the reason for the state of an object, in one word. Causes are an interface for scripts; docs/why.md describes each.
type Cause string

// The causes, most decisive first: of two that hold at once, the one further up explains the one further down, or has to
// be dealt with before it.
const (
	StoreRefused Cause = "StoreRefused"
	// FeatureGateOff means that a kind is turned off.
	FeatureGateOff        Cause = "FeatureGateOff"
	APIServiceUnavailable Cause = "APIServiceUnavailable"
	NotFound              Cause = "NotFound"

	FinalizerBlocksDeletion Cause = "FinalizerBlocksDeletion"
	Deleting                Cause = "Deleting"
	// WorkerClusterUnreachable and WorkerClusterPending are causes of what Kueue runs in another cluster.
	WorkerClusterUnreachable Cause = "WorkerClusterUnreachable"
	ManagedByOther           Cause = "ManagedByOther"
	HeldAfterRestore         Cause = "HeldAfterRestore"
	OlderThanNamespace       Cause = "OlderThanNamespace"
	Cancelled                Cause = "Cancelled"
	DeadlineExceeded         Cause = "DeadlineExceeded"

	QueueMissing          Cause = "QueueMissing"
	QueueStopped          Cause = "QueueStopped"
	WorkloadDeactivated   Cause = "WorkloadDeactivated"
	WorkerClusterPending  Cause = "WorkerClusterPending"
	AdmissionCheckPending Cause = "AdmissionCheckPending"
	WorkloadPreempted     Cause = "WorkloadPreempted"
	PodsNotReadyInTime    Cause = "PodsNotReadyInTime"
	QuotaNotReserved      Cause = "QuotaNotReserved"
	WorkloadMissing       Cause = "WorkloadMissing"
	SuspendedByOwner      Cause = "SuspendedByOwner"
	SuspendedByUser       Cause = "SuspendedByUser"
	// UpdatePaused and the other causes of this kind apply to LeaderWorkerSets only.
	UpdatePaused Cause = "UpdatePaused"

	ControllerNotRunning Cause = "ControllerNotRunning"
	ControllerNotActing  Cause = "ControllerNotActing"
	// ReconciliationFailed is a cause of sequences only.
	ReconciliationFailed Cause = "ReconciliationFailed"

	JobNameTaken        Cause = "JobNameTaken"
	JobTemplateRefused  Cause = "JobTemplateRefused"
	JobRefusedByQuota   Cause = "JobRefusedByQuota"
	JobRefusedByWebhook Cause = "JobRefusedByWebhook"
	JobRefusedByPolicy  Cause = "JobRefusedByPolicy"
	JobCreationFailed   Cause = "JobCreationFailed"
	// ClusterOverloaded is a cause of sequences only.
	ClusterOverloaded    Cause = "ClusterOverloaded"
	StatefulSetNameTaken Cause = "StatefulSetNameTaken"
	StatefulSetRefused   Cause = "StatefulSetRefused"
	// LeaderWorkerSetNameTaken and the next two are causes of DisaggregatedSets only.
	LeaderWorkerSetNameTaken Cause = "LeaderWorkerSetNameTaken"
	ScalerNameTaken          Cause = "ScalerNameTaken"
	LeaderWorkerSetRefused   Cause = "LeaderWorkerSetRefused"
	JobSuspendedByOther      Cause = "JobSuspendedByOther"
	// ChildUndoneByOther means that another party deletes a child each time it was created, or removes what the controller sets on it.
	ChildUndoneByOther Cause = "ChildUndoneByOther"

	PodsRefusedBySecurity Cause = "PodsRefusedBySecurity"
	PodsRefusedByQuota    Cause = "PodsRefusedByQuota"
	PodsRefusedByWebhook  Cause = "PodsRefusedByWebhook"
	PodCreationFailed     Cause = "PodCreationFailed"

	NodeLost             Cause = "NodeLost"
	TerminatingPodsBlock Cause = "TerminatingPodsBlockRestart"
	// EarlierStepRuns is a cause of sequences only.
	EarlierStepRuns            Cause = "EarlierStepRuns"
	UnboundClaim               Cause = "UnboundClaim"
	SchedulingGate             Cause = "SchedulingGate"
	NodesUnknown               Cause = "NodesUnknown"
	NoFreeDomain               Cause = "NoFreeDomain"
	TopologyLabelMissing       Cause = "TopologyLabelMissing"
	TooFewDomains              Cause = "TooFewDomains"
	DomainsUnsuitable          Cause = "DomainsUnsuitable"
	DomainsLackRoom            Cause = "DomainsLackRoom"
	DomainLostNodes            Cause = "DomainLostNodes"
	DomainFull                 Cause = "DomainFull"
	UnschedulableTaint         Cause = "UnschedulableTaint"
	UnschedulableAffinity      Cause = "UnschedulableAffinity"
	UnschedulableResources     Cause = "UnschedulableResources"
	RestartRulesMissing        Cause = "RestartRulesMissing"
	Unschedulable              Cause = "Unschedulable"
	PodGroupWaits              Cause = "PodGroupWaits"
	SchedulerSilent            Cause = "SchedulerSilent"
	ImagePull                  Cause = "ImagePull"
	ContainerConfig            Cause = "ContainerConfig"
	VolumeMount                Cause = "VolumeMount"
	OutOfMemory                Cause = "OutOfMemory"
	Evicted                    Cause = "Evicted"
	Preempted                  Cause = "Preempted"
	ServiceForeign             Cause = "ServiceForeign"
	ServiceMissing             Cause = "ServiceMissing"
	CoordinatorWithoutHostname Cause = "CoordinatorWithoutHostnames"
	// RevisionMixed means that a group has a leader and workers of different revisions.
	RevisionMixed Cause = "RevisionMixed"
	// RequestFailed means that a request of the controller failed for a reason that passes by itself, such as a server that is away.
	RequestFailed Cause = "RequestFailed"
	// CauseUnknown means that the user has no permission to read what would show the cause.
	CauseUnknown Cause = "CauseUnknown"

	MaxRestartsReached Cause = "MaxRestartsReached"
	GroupBackoff       Cause = "GroupBackoff"
	GroupRestarts      Cause = "GroupRestarts"
	CrashLoop          Cause = "CrashLoop"
	ExitCode           Cause = "ExitCode"
	JobFailed          Cause = "JobFailed"
	// UpdateStuck means that an update replaces no group.
	UpdateStuck Cause = "UpdateStuck"

	// NoJobs means that the spec asks for no Jobs.
	NoJobs       Cause = "NoJobs"
	DependsOn    Cause = "DependsOn"
	StartupOrder Cause = "StartupOrder"
	// LeaderNotReady means that workers wait for their leader.
	LeaderNotReady Cause = "LeaderNotReady"
	Restarting     Cause = "Restarting"
	// Updating means that groups are being replaced.
	Updating     Cause = "Updating"
	PodsNotReady Cause = "PodsNotReady"
	Starting     Cause = "Starting"
	Running      Cause = "Running"
	Completed    Cause = "Completed"
)

// Causes are all causes, most decisive first.
var Causes = []Cause{
	StoreRefused, FeatureGateOff, APIServiceUnavailable, NotFound,
	FinalizerBlocksDeletion, Deleting, WorkerClusterUnreachable, ManagedByOther, OlderThanNamespace, HeldAfterRestore, Cancelled,
	DeadlineExceeded,
	QueueMissing, QueueStopped, WorkloadDeactivated, WorkerClusterPending, AdmissionCheckPending, WorkloadPreempted, PodsNotReadyInTime,
	QuotaNotReserved, WorkloadMissing,
	SuspendedByOwner, SuspendedByUser, UpdatePaused,
	ControllerNotRunning, ControllerNotActing, ReconciliationFailed,
	JobNameTaken, JobTemplateRefused, JobRefusedByQuota, JobRefusedByWebhook, JobRefusedByPolicy, JobCreationFailed, ClusterOverloaded,
	StatefulSetNameTaken, StatefulSetRefused, LeaderWorkerSetNameTaken, ScalerNameTaken, LeaderWorkerSetRefused, JobSuspendedByOther,
	ChildUndoneByOther,
	PodsRefusedBySecurity, PodsRefusedByQuota, PodsRefusedByWebhook, PodCreationFailed,
	NodeLost, TerminatingPodsBlock, EarlierStepRuns, UnboundClaim, SchedulingGate,
	NodesUnknown, NoFreeDomain, TopologyLabelMissing, TooFewDomains, DomainsUnsuitable, DomainsLackRoom, DomainLostNodes, DomainFull,
	UnschedulableTaint, UnschedulableAffinity, UnschedulableResources, RestartRulesMissing, Unschedulable, PodGroupWaits, SchedulerSilent,
	ImagePull, ContainerConfig, VolumeMount, OutOfMemory, Evicted, Preempted,
	ServiceForeign, ServiceMissing, CoordinatorWithoutHostname, RevisionMixed,
	CauseUnknown,
	MaxRestartsReached, GroupBackoff, GroupRestarts, CrashLoop, ExitCode, JobFailed, UpdateStuck, RequestFailed,
	NoJobs, DependsOn, StartupOrder, LeaderNotReady, Restarting, Updating, PodsNotReady, Starting, Running, Completed,
}

// Normal reports that nothing is wrong.
func (c Cause) Normal() bool {
	switch c {
	case Deleting, Restarting, Updating, Starting, Running, Completed:
		return true
	}
	return false
}

func rank(c Cause) int { return slices.Index(Causes, c) }
