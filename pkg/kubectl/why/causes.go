// Copyright The jobset-apiserver Authors.
// SPDX-License-Identifier: Apache-2.0

package why

import (
	"slices"
)

// Cause is the reason for the state of a set, in one word. Causes are an interface for scripts; docs/why.md describes each.
type Cause string

// The causes, most decisive first: of two that hold at once, the one further up explains the one further down, or has to
// be dealt with before it.
const (
	APIServiceUnavailable Cause = "APIServiceUnavailable"
	NotFound              Cause = "NotFound"

	FinalizerBlocksDeletion Cause = "FinalizerBlocksDeletion"
	Deleting                Cause = "Deleting"
	ManagedByOther          Cause = "ManagedByOther"
	Cancelled               Cause = "Cancelled"
	DeadlineExceeded        Cause = "DeadlineExceeded"

	QueueMissing          Cause = "QueueMissing"
	QueueStopped          Cause = "QueueStopped"
	WorkloadDeactivated   Cause = "WorkloadDeactivated"
	AdmissionCheckPending Cause = "AdmissionCheckPending"
	WorkloadPreempted     Cause = "WorkloadPreempted"
	QuotaNotReserved      Cause = "QuotaNotReserved"
	WorkloadMissing       Cause = "WorkloadMissing"
	SuspendedByOwner      Cause = "SuspendedByOwner"
	SuspendedByUser       Cause = "SuspendedByUser"

	ControllerNotRunning Cause = "ControllerNotRunning"
	ControllerNotActing  Cause = "ControllerNotActing"

	JobNameTaken        Cause = "JobNameTaken"
	JobTemplateRefused  Cause = "JobTemplateRefused"
	JobRefusedByQuota   Cause = "JobRefusedByQuota"
	JobRefusedByWebhook Cause = "JobRefusedByWebhook"
	JobRefusedByPolicy  Cause = "JobRefusedByPolicy"
	JobCreationFailed   Cause = "JobCreationFailed"
	JobSuspendedByOther Cause = "JobSuspendedByOther"

	PodsRefusedBySecurity Cause = "PodsRefusedBySecurity"
	PodsRefusedByQuota    Cause = "PodsRefusedByQuota"
	PodsRefusedByWebhook  Cause = "PodsRefusedByWebhook"
	PodCreationFailed     Cause = "PodCreationFailed"

	NodeLost                   Cause = "NodeLost"
	TerminatingPodsBlock       Cause = "TerminatingPodsBlockRestart"
	UnboundClaim               Cause = "UnboundClaim"
	SchedulingGate             Cause = "SchedulingGate"
	UnschedulableTaint         Cause = "UnschedulableTaint"
	UnschedulableAffinity      Cause = "UnschedulableAffinity"
	UnschedulableResources     Cause = "UnschedulableResources"
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
	// CauseUnknown means that the user has no permission to read what would show the cause.
	CauseUnknown Cause = "CauseUnknown"

	MaxRestartsReached Cause = "MaxRestartsReached"
	CrashLoop          Cause = "CrashLoop"
	ExitCode           Cause = "ExitCode"
	JobFailed          Cause = "JobFailed"

	DependsOn    Cause = "DependsOn"
	StartupOrder Cause = "StartupOrder"
	Restarting   Cause = "Restarting"
	PodsNotReady Cause = "PodsNotReady"
	Starting     Cause = "Starting"
	Running      Cause = "Running"
	Completed    Cause = "Completed"
)

// Causes are all causes, most decisive first.
var Causes = []Cause{
	APIServiceUnavailable, NotFound,
	FinalizerBlocksDeletion, Deleting, ManagedByOther, Cancelled, DeadlineExceeded,
	QueueMissing, QueueStopped, WorkloadDeactivated, AdmissionCheckPending, WorkloadPreempted, QuotaNotReserved, WorkloadMissing,
	SuspendedByOwner, SuspendedByUser,
	ControllerNotRunning, ControllerNotActing,
	JobNameTaken, JobTemplateRefused, JobRefusedByQuota, JobRefusedByWebhook, JobRefusedByPolicy, JobCreationFailed, JobSuspendedByOther,
	PodsRefusedBySecurity, PodsRefusedByQuota, PodsRefusedByWebhook, PodCreationFailed,
	NodeLost, TerminatingPodsBlock, UnboundClaim, SchedulingGate, UnschedulableTaint, UnschedulableAffinity, UnschedulableResources, Unschedulable,
	PodGroupWaits, SchedulerSilent, ImagePull, ContainerConfig, VolumeMount, OutOfMemory, Evicted, Preempted,
	ServiceForeign, ServiceMissing, CoordinatorWithoutHostname,
	CauseUnknown,
	MaxRestartsReached, CrashLoop, ExitCode, JobFailed,
	DependsOn, StartupOrder, Restarting, PodsNotReady, Starting, Running, Completed,
}

// Normal reports that nothing is wrong.
func (c Cause) Normal() bool {
	switch c {
	case Deleting, Restarting, Starting, Running, Completed:
		return true
	}
	return false
}

func rank(c Cause) int { return slices.Index(Causes, c) }
