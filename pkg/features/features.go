// Copyright The jobset-apiserver Authors.
// SPDX-License-Identifier: Apache-2.0

// Package features names the feature gates of the API server and the controller, with their stages and defaults
// (spec/jobset.md §5.18). Versions are those of the JobSet API line in which a gate changed its stage.
package features

import (
	"k8s.io/apimachinery/pkg/util/version"
	"k8s.io/component-base/featuregate"
)

const (
	// InPlaceRestart allows the restart strategy InPlaceRestart, which restarts containers without new pods.
	InPlaceRestart featuregate.Feature = "InPlaceRestart"
	// RestartJob allows failure-policy actions that restart single Jobs, and their counters.
	RestartJob featuregate.Feature = "RestartJob"
	// ElasticJobSet allows parallelism and completions of Indexed Jobs to change while the set runs.
	ElasticJobSet featuregate.Feature = "ElasticJobSet"
	// TLSOptions allows the tls block of the controller's configuration file.
	TLSOptions featuregate.Feature = "TLSOptions"
)

// current is the version whose defaults a new gate starts with.
var current = version.MustParse("0.13")

// Specs returns the stages of every gate by version, for adding them to a gate that holds others too.
func Specs() map[featuregate.Feature]featuregate.VersionedSpecs {
	alpha := func(since string) featuregate.VersionedSpecs {
		return featuregate.VersionedSpecs{{Version: version.MustParse(since), Default: false, PreRelease: featuregate.Alpha}}
	}
	return map[featuregate.Feature]featuregate.VersionedSpecs{
		InPlaceRestart: alpha("0.11"),
		RestartJob:     alpha("0.12"),
		ElasticJobSet:  alpha("0.12"),
		TLSOptions: {
			{Version: version.MustParse("0.12"), Default: true, PreRelease: featuregate.Beta},
			{Version: version.MustParse("0.13"), Default: true, PreRelease: featuregate.GA, LockToDefault: true},
		},
	}
}

// NewGate returns a gate that holds these features only, with their defaults.
func NewGate() (featuregate.MutableVersionedFeatureGate, error) {
	gate := featuregate.NewVersionedFeatureGate(current)
	return gate, gate.AddVersioned(Specs())
}
