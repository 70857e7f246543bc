// Copyright The jobset-apiserver Authors.
// SPDX-License-Identifier: Apache-2.0

// Package features names the feature gates of the API server and the controller, with their stages and defaults
// (docs/reference/jobset.md#feature-gates). Versions are the JobSet releases in which a gate changed its stage.
package features

import (
	"reflect"

	"k8s.io/apimachinery/pkg/util/version"
	"k8s.io/component-base/featuregate"

	"github.com/jobset-apiserver/jobset-apiserver/pkg/apis/jobset/gates"
)

const (
	// InPlaceRestart allows the restart strategy InPlaceRestart, which restarts containers without new pods.
	InPlaceRestart featuregate.Feature = "InPlaceRestart"
	// RestartJob allows failure-policy actions that restart single Jobs. Restarts that users ask for need no gate.
	RestartJob featuregate.Feature = "RestartJob"
	// ElasticJobSet allows parallelism and completions of Indexed Jobs to change while the set runs.
	ElasticJobSet featuregate.Feature = "ElasticJobSet"
	// JobSetActiveDeadlineSeconds allows a limit on the time that a set runs, and keeps the time from which it counts.
	JobSetActiveDeadlineSeconds featuregate.Feature = "JobSetActiveDeadlineSeconds"
	// ExecutionAttemptsTracking counts how often a set was started, after suspensions and restarts of the whole set.
	ExecutionAttemptsTracking featuregate.Feature = "ExecutionAttemptsTracking"
	// MutablePodResourcesForSuspendedJobSets allows requests and limits of containers to change while a set is
	// suspended. The main cluster must allow the same for suspended Jobs.
	MutablePodResourcesForSuspendedJobSets featuregate.Feature = "MutablePodResourcesForSuspendedJobSets"
	// RestartOnFailureTarget restarts a set as soon as a Job is bound to fail, before its last pod has stopped. It is on by default, so
	// that one slow pod delays only its own Job. Upstream has no such gate.
	RestartOnFailureTarget featuregate.Feature = "RestartOnFailureTarget"
	// ExclusivePlacement lets the controller choose a topology domain for each Job of a set that asks for exclusive
	// placement. It is on by default, since upstream's annotation needs no gate. Upstream has no such gate.
	ExclusivePlacement featuregate.Feature = "ExclusivePlacement"
	// JobSetWorkloadAwareSchedulingAPI allows sets to say how their pods are grouped for the scheduler of the cluster.
	JobSetWorkloadAwareSchedulingAPI featuregate.Feature = "JobSetWorkloadAwareSchedulingAPI"
	// SequentialJobWorkload lets a SequentialJob with a queue hold quota for all of its steps, by one Workload of Kueue.
	SequentialJobWorkload featuregate.Feature = "SequentialJobWorkload"
	// DisaggregatedSet serves the API group disaggregatedset.x-k8s.io, and runs its controller.
	DisaggregatedSet featuregate.Feature = "DisaggregatedSet"
	// TLSOptions allows the tls block of the controller's configuration file.
	TLSOptions featuregate.Feature = "TLSOptions"
)

// Gate is a feature gate as users see it.
type Gate struct {
	Name featuregate.Feature
	// Specs are its stages by version.
	Specs featuregate.VersionedSpecs
}

// Gates is the table of all gates. Lists of gates elsewhere, such as those of messages and documents, are made from it or tested against
// it.
func Gates() []Gate {
	return []Gate{
		alpha(InPlaceRestart, "0.11"),
		alpha(RestartJob, "0.12"),
		alpha(ElasticJobSet, "0.12"),
		alpha(JobSetActiveDeadlineSeconds, "0.13"),
		alpha(ExecutionAttemptsTracking, "0.13"),
		alpha(MutablePodResourcesForSuspendedJobSets, "0.13"),
		beta(RestartOnFailureTarget, "0.13"),
		beta(ExclusivePlacement, "0.13"),
		alpha(JobSetWorkloadAwareSchedulingAPI, "0.13"),
		alpha(SequentialJobWorkload, "0.13"),
		alpha(DisaggregatedSet, "0.13"),
		{Name: TLSOptions, Specs: featuregate.VersionedSpecs{
			{Version: version.MustParse("0.12"), Default: true, PreRelease: featuregate.Beta},
			{Version: version.MustParse("0.13"), Default: true, PreRelease: featuregate.GA, LockToDefault: true},
		}},
	}
}

func alpha(name featuregate.Feature, since string) Gate {
	spec := featuregate.FeatureSpec{Version: version.MustParse(since), PreRelease: featuregate.Alpha}
	return Gate{Name: name, Specs: featuregate.VersionedSpecs{spec}}
}

func beta(name featuregate.Feature, since string) Gate {
	spec := featuregate.FeatureSpec{Version: version.MustParse(since), Default: true, PreRelease: featuregate.Beta}
	return Gate{Name: name, Specs: featuregate.VersionedSpecs{spec}}
}

// current is the version whose defaults a new gate starts with.
var current = version.MustParse("0.13")

// Specs returns the stages of every gate by version, for adding them to a gate that holds others too.
func Specs() map[featuregate.Feature]featuregate.VersionedSpecs {
	specs := map[featuregate.Feature]featuregate.VersionedSpecs{}
	for _, gate := range Gates() {
		specs[gate.Name] = gate.Specs
	}
	return specs
}

// NewGate returns a gate that holds these features only, with their defaults.
func NewGate() (featuregate.MutableVersionedFeatureGate, error) {
	gate := featuregate.NewVersionedFeatureGate(current)
	return gate, gate.AddVersioned(Specs())
}

// JobSet returns the states of the gates on which the behavior of JobSets depends: each field has the name of its gate.
func JobSet(gate featuregate.FeatureGate) (states gates.Gates) {
	fields := reflect.ValueOf(&states).Elem()
	for i := range fields.NumField() {
		fields.Field(i).SetBool(gate.Enabled(featuregate.Feature(fields.Type().Field(i).Name)))
	}
	return states
}

// States returns the states of all gates of this project by name.
func States(gate featuregate.FeatureGate) map[string]bool {
	states := map[string]bool{}
	for name := range Specs() {
		states[string(name)] = gate.Enabled(name)
	}
	return states
}
