// Copyright The jobset-apiserver Authors.
// SPDX-License-Identifier: Apache-2.0

package localcluster

import (
	"fmt"
	"path/filepath"
	"slices"
	"strings"

	"k8s.io/apimachinery/pkg/runtime/schema"
	"k8s.io/component-base/featuregate"

	"github.com/jobset-apiserver/jobset-apiserver/pkg/features"
	"github.com/jobset-apiserver/jobset-apiserver/test/framework/apiservice"
)

// gatesVariable has the feature gates of both of our programs, in the form of --feature-gates.
const gatesVariable = "CLUSTER_FEATURE_GATES"

// noGates is what is kept of a cluster that was created without gates.
const noGates = "none"

// gateComponents are the components of artifacts with what a feature gate needs besides, such as permissions.
var gateComponents = []struct {
	gate      featuregate.Feature
	component string
}{
	{features.DisaggregatedSet, "disaggregatedset"},
	{features.SequentialJobWorkload, "sequentialjob-workload"},
}

// podGroups is the component for groups of pods.
const podGroups = "pod-groups"

// SchedulingFlags returns the flags that a version of Kubernetes, such as v1.37.2, needs for groups of pods (docs/scheduling.md): gates,
// with more that it may have, for kube-apiserver, kube-scheduler and kube-controller-manager, and the API for kube-apiserver. Versions
// before 1.36 know neither, and get none.
func SchedulingFlags(version string, more ...string) (gates, api string) {
	if strings.HasPrefix(version, "v1.34.") || strings.HasPrefix(version, "v1.35.") {
		return "", ""
	}
	names := []string{"GenericWorkload"}
	api = "--runtime-config=scheduling.k8s.io/v1beta1=true"
	// From 1.37 on, GenericWorkload also schedules and preempts gangs.
	if strings.HasPrefix(version, "v1.36.") {
		names = append(names, "GangScheduling")
		api = "--runtime-config=scheduling.k8s.io/v1alpha2=true"
	} else {
		more = slices.DeleteFunc(slices.Clone(more), func(gate string) bool { return gate == "WorkloadAwarePreemption" })
	}
	return "--feature-gates=" + strings.Join(append(names, more...), "=true,") + "=true", api
}

// readGates reads the feature gates, and gives their flags to the programs, before those of the other variables. Gates are kept for the
// life of the cluster: kube-apiserver has its flags from the beginning, and an APIService without a server keeps namespaces from being
// deleted.
func (s *settings) readGates(value string) error {
	value, err := s.keep(gatesVariable, value, noGates)
	if err != nil {
		return err
	}
	if s.gates, err = features.NewGate(); err != nil {
		return err
	}
	s.featureGates = value
	if value == noGates {
		return nil
	}
	if err := s.gates.Set(value); err != nil {
		return fmt.Errorf("%s: %w; must have the form of --feature-gates, such as InPlaceRestart=true", gatesVariable, err)
	}
	flags := []string{"--feature-gates=" + value}
	s.apiServerArgs, s.controllerArgs = append(flags, s.apiServerArgs...), append(flags, s.controllerArgs...)
	return nil
}

// addScheduling adds what the control plane needs for groups of pods, if a gate asks for them.
func (s *settings) addScheduling(version string) {
	if !s.gates.Enabled(features.JobSetWorkloadAwareSchedulingAPI) {
		return
	}
	gates, api := SchedulingFlags(version)
	if gates == "" {
		return
	}
	s.kubeAPIServerArgs = append([]string{gates, api}, s.kubeAPIServerArgs...)
	s.kubeControllerManagerArgs = append([]string{gates}, s.kubeControllerManagerArgs...)
	s.kubeSchedulerArgs = append([]string{gates}, s.kubeSchedulerArgs...)
}

// groups returns the API groups that the server serves.
func (s *settings) groups() []schema.GroupVersion {
	if !s.gates.Enabled(features.DisaggregatedSet) {
		return apiservice.Groups
	}
	return append([]schema.GroupVersion{{Group: "disaggregatedset.x-k8s.io", Version: "v1"}}, apiservice.Groups...)
}

// componentsOfGates returns the directories of the components that the feature gates and the flag for gangs need.
func (s *settings) componentsOfGates() (directories []string) {
	for _, c := range gateComponents {
		if s.gates.Enabled(c.gate) {
			directories = append(directories, filepath.Join(s.root, "artifacts", "components", c.component))
		}
	}
	if s.makesPodGroups() {
		directories = append(directories, filepath.Join(s.root, "artifacts", "components", podGroups))
	}
	return directories
}

// makesPodGroups returns whether the controller makes PodGroups, by the gate, by the gate among its flags, or by the flag for gangs.
func (s *settings) makesPodGroups() bool {
	return s.gates.Enabled(features.JobSetWorkloadAwareSchedulingAPI) || slices.ContainsFunc(s.controllerArgs, func(arg string) bool {
		return strings.HasPrefix(arg, "--gang-scheduling-provider=") ||
			strings.HasPrefix(arg, "--feature-gates=") && strings.Contains(arg, string(features.JobSetWorkloadAwareSchedulingAPI)+"=true")
	})
}
