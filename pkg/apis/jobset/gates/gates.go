// Copyright The jobset-apiserver Authors.
// SPDX-License-Identifier: Apache-2.0

// Package gates holds the states of the feature gates on which the behavior of JobSets depends, as a value. The server,
// the controller's decisions and the kubectl plugin share it; package features registers the gates themselves.
package gates

// Gates are the states of feature gates. Each field has the name of its gate, also in JSON.
type Gates struct {
	// InPlaceRestart allows the restart strategy of the same name, which restarts containers without new pods.
	InPlaceRestart bool
	// RestartJob allows failure-policy actions that restart single Jobs.
	RestartJob bool
	// ElasticJobSet allows parallelism and completions of Indexed Jobs to change.
	ElasticJobSet bool
	// JobSetActiveDeadlineSeconds keeps spec.activeDeadlineSeconds and status.startTime.
	JobSetActiveDeadlineSeconds bool
	// ExecutionAttemptsTracking keeps status.executionAttempts.
	ExecutionAttemptsTracking bool
	// MutablePodResourcesForSuspendedJobSets allows requests and limits of containers to change while a set is suspended.
	MutablePodResourcesForSuspendedJobSets bool
	// RestartOnFailureTarget restarts a set as soon as a Job is bound to fail. Only the controller uses it.
	RestartOnFailureTarget bool
	// ExclusivePlacement gives each Job of a set that asks for it a topology domain of its own.
	ExclusivePlacement bool
	// JobSetWorkloadAwareSchedulingAPI allows spec.scheduling.
	JobSetWorkloadAwareSchedulingAPI bool
}
