// Copyright The jobset-apiserver Authors.
// SPDX-License-Identifier: Apache-2.0

package why

import (
	"slices"

	batchv1alpha1 "github.com/jobset-apiserver/jobset-apiserver/pkg/apis/batch/v1alpha1"
	"github.com/jobset-apiserver/jobset-apiserver/pkg/apis/generic/reasons"
	jobsetv1alpha2 "github.com/jobset-apiserver/jobset-apiserver/pkg/apis/jobset/v1alpha2"
	"github.com/jobset-apiserver/jobset-apiserver/pkg/apis/jobset/v1alpha2/helper"
	lwshelper "github.com/jobset-apiserver/jobset-apiserver/pkg/apis/leaderworkerset/v1/helper"
	"github.com/jobset-apiserver/jobset-apiserver/pkg/namespaceuid"
)

// Cause is the reason for the state of an object, in one word. Causes are an interface for scripts; docs/why.md describes each.
type Cause string

// Causes are all causes in the order in which they are declared below, most decisive first.
var Causes []Cause

// cause declares a cause.
func cause(name string) Cause {
	Causes = append(Causes, Cause(name))
	return Cause(name)
}

// The causes, most decisive first: of two that hold at once, the one further up explains the one further down, or has to
// be dealt with before it.
var (
	StoreRefused = cause("StoreRefused")
	// FeatureGateOff means that a kind is turned off.
	FeatureGateOff        = cause("FeatureGateOff")
	APIServiceUnavailable = cause("APIServiceUnavailable")
	NotFound              = cause("NotFound")

	FinalizerBlocksDeletion = cause("FinalizerBlocksDeletion")
	Deleting                = cause("Deleting")
	// WorkerClusterUnreachable and WorkerClusterPending are causes of what Kueue runs in another cluster.
	WorkerClusterUnreachable = cause("WorkerClusterUnreachable")
	ManagedByOther           = cause(helper.ReasonManagedByOther)
	OlderThanNamespace       = cause(namespaceuid.ReasonOlderThanNamespace)
	HeldAfterRestore         = cause("HeldAfterRestore")
	Cancelled                = cause(reasons.Cancelled)
	// Deleted is a cause of runs of the archive only.
	Deleted          = cause("Deleted")
	DeadlineExceeded = cause(reasons.DeadlineExceeded)

	QueueMissing          = cause("QueueMissing")
	QueueStopped          = cause("QueueStopped")
	WorkloadDeactivated   = cause("WorkloadDeactivated")
	WorkerClusterPending  = cause("WorkerClusterPending")
	AdmissionCheckPending = cause("AdmissionCheckPending")
	WorkloadPreempted     = cause("WorkloadPreempted")
	PodsNotReadyInTime    = cause("PodsNotReadyInTime")
	QuotaNotReserved      = cause("QuotaNotReserved")
	WorkloadMissing       = cause("WorkloadMissing")

	SuspendedByOwner = cause("SuspendedByOwner")
	SuspendedByUser  = cause("SuspendedByUser")
	// UpdatePaused and the other causes of this kind apply to LeaderWorkerSets only.
	UpdatePaused = cause("UpdatePaused")

	ControllerNotRunning = cause("ControllerNotRunning")
	ControllerNotActing  = cause("ControllerNotActing")
	// ReconciliationFailed is a cause of sequences only.
	ReconciliationFailed = cause(batchv1alpha1.ReasonReconciliationFailed)

	JobNameTaken        = cause("JobNameTaken")
	JobTemplateRefused  = cause("JobTemplateRefused")
	JobRefusedByQuota   = cause("JobRefusedByQuota")
	JobRefusedByWebhook = cause("JobRefusedByWebhook")
	JobRefusedByPolicy  = cause("JobRefusedByPolicy")
	JobCreationFailed   = cause(reasons.JobCreationFailed)
	// ClusterOverloaded is a cause of sequences only.
	ClusterOverloaded    = cause(batchv1alpha1.ReasonClusterOverloaded)
	StatefulSetNameTaken = cause("StatefulSetNameTaken")
	StatefulSetRefused   = cause("StatefulSetRefused")
	// LeaderWorkerSetNameTaken and the next two are causes of DisaggregatedSets only.
	LeaderWorkerSetNameTaken = cause("LeaderWorkerSetNameTaken")
	ScalerNameTaken          = cause("ScalerNameTaken")
	LeaderWorkerSetRefused   = cause("LeaderWorkerSetRefused")
	JobSuspendedByOther      = cause("JobSuspendedByOther")
	// ChildUnreadable means that the server cannot read a child, of sequences and DisaggregatedSets.
	ChildUnreadable = cause(reasons.ChildUnreadable)
	// ChildUndoneByOther means that another party deletes a child each time it was created, or removes what the controller sets on it.
	ChildUndoneByOther = cause("ChildUndoneByOther")

	PodsRefusedBySecurity = cause("PodsRefusedBySecurity")
	PodsRefusedByQuota    = cause("PodsRefusedByQuota")
	PodsRefusedByWebhook  = cause("PodsRefusedByWebhook")
	PodCreationFailed     = cause("PodCreationFailed")

	NodeLost             = cause(helper.ReasonNodeLost)
	TerminatingPodsBlock = cause("TerminatingPodsBlockRestart")
	// EarlierStepRuns is a cause of sequences only.
	EarlierStepRuns = cause("EarlierStepRuns")
	UnboundClaim    = cause("UnboundClaim")
	// DeviceClaimMissing means that pods ask for devices by a claim, or by a template of claims, that does not exist.
	DeviceClaimMissing = cause("DeviceClaimMissing")
	SchedulingGate     = cause("SchedulingGate")

	NodesUnknown           = cause(helper.ReasonNodesUnknown)
	NoFreeDomain           = cause("NoFreeDomain")
	TopologyLabelMissing   = cause("TopologyLabelMissing")
	TooFewDomains          = cause("TooFewDomains")
	DomainsUnsuitable      = cause("DomainsUnsuitable")
	DomainsLackRoom        = cause("DomainsLackRoom")
	DomainLostNodes        = cause("DomainLostNodes")
	DomainFull             = cause("DomainFull")
	UnschedulableTaint     = cause("UnschedulableTaint")
	UnschedulableAffinity  = cause("UnschedulableAffinity")
	UnschedulableResources = cause("UnschedulableResources")
	RestartRulesMissing    = cause(jobsetv1alpha2.RestartRulesMissing)
	Unschedulable          = cause(reasons.Unschedulable)
	PodGroupWaits          = cause("PodGroupWaits")
	SchedulerSilent        = cause("SchedulerSilent")

	ImagePull       = cause("ImagePull")
	ContainerConfig = cause("ContainerConfig")
	VolumeMount     = cause("VolumeMount")
	OutOfMemory     = cause("OutOfMemory")
	Evicted         = cause(string(helper.Evicted))
	Preempted       = cause(string(helper.Preempted))

	ServiceForeign             = cause("ServiceForeign")
	ServiceMissing             = cause("ServiceMissing")
	CoordinatorWithoutHostname = cause("CoordinatorWithoutHostnames")
	// RevisionMixed means that a group has a leader and workers of different revisions.
	RevisionMixed = cause("RevisionMixed")
	// CauseUnknown means that the user has no permission to read what would show the cause.
	CauseUnknown = cause("CauseUnknown")

	MaxRestartsReached = cause("MaxRestartsReached")
	GroupBackoff       = cause("GroupBackoff")
	GroupRestarts      = cause("GroupRestarts")
	CrashLoop          = cause("CrashLoop")
	ExitCode           = cause("ExitCode")
	JobFailed          = cause(batchv1alpha1.ReasonJobFailed)
	// UpdateStuck means that an update replaces no group.
	UpdateStuck = cause("UpdateStuck")
	// RequestFailed means that a request of the controller failed for a reason that passes by itself, such as a server that is away.
	RequestFailed = cause("RequestFailed")

	// NoJobs means that the spec asks for no Jobs.
	NoJobs       = cause(helper.ReasonNoJobs)
	DependsOn    = cause("DependsOn")
	StartupOrder = cause("StartupOrder")
	// LeaderNotReady means that workers wait for their leader.
	LeaderNotReady = cause("LeaderNotReady")
	Restarting     = cause(helper.PhaseRestarting)
	// Updating means that groups are being replaced.
	Updating     = cause(lwshelper.PhaseUpdating)
	PodsNotReady = cause("PodsNotReady")
	Starting     = cause(helper.PhaseStarting)
	Running      = cause(helper.PhaseRunning)
	Completed    = cause(helper.PhaseCompleted)
)

// Normal reports that nothing is wrong.
func (c Cause) Normal() bool {
	switch c {
	case Deleting, Restarting, Updating, Starting, Running, Completed:
		return true
	}
	return false
}

func rank(c Cause) int { return slices.Index(Causes, c) }
