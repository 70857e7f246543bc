// Copyright The jobset-apiserver Authors.
// SPDX-License-Identifier: Apache-2.0

package localcluster

import (
	"os"
	"path/filepath"
	"slices"
	"strings"
	"testing"

	"github.com/google/go-cmp/cmp"

	"github.com/jobset-apiserver/jobset-apiserver/test/framework/apiservice"
)

// gated returns the settings of a cluster in the directory with the feature gates, and with flags in other variables.
func gated(dir, gates string) (settings, error) {
	return gatedIn(dir, filepath.Join(dir, ".cluster"), gates)
}

func gatedIn(root, dir, gates string) (settings, error) {
	return readSettings(root, func(variable string) string {
		return map[string]string{
			"CLUSTER_DIR": dir, "CLUSTER_FEATURE_GATES": gates, "CLUSTER_APISERVER_ARGS": "--v=4", "CLUSTER_CONTROLLER_ARGS": "--v=6", "CLUSTER_KUBE_SCHEDULER_ARGS": "--v=1",
		}[variable]
	})
}

// TestFeatureGates checks which flags, permissions and API groups follow from CLUSTER_FEATURE_GATES.
func TestFeatureGates(t *testing.T) {
	const scheduling = "--feature-gates=GenericWorkload=true"
	type flags struct {
		server, controller, kubeAPIServer, kubeScheduler string
		components                                       []string
		groups                                           int
	}
	for name, test := range map[string]struct {
		gates string
		want  flags
	}{
		"no gates change nothing": {want: flags{server: "--v=4", controller: "--v=6", kubeScheduler: "--v=1"}},
		"a gate without needs is for our programs only": {
			gates: "ElasticJobSet=true",
			want:  flags{server: "--feature-gates=ElasticJobSet=true --v=4", controller: "--feature-gates=ElasticJobSet=true --v=6", kubeScheduler: "--v=1"},
		},
		"groups of pods need the scheduling API": {
			gates: "JobSetWorkloadAwareSchedulingAPI=true",
			want: flags{
				server: "--feature-gates=JobSetWorkloadAwareSchedulingAPI=true --v=4", controller: "--feature-gates=JobSetWorkloadAwareSchedulingAPI=true --v=6",
				kubeAPIServer: scheduling + " --runtime-config=scheduling.k8s.io/v1beta1=true", kubeScheduler: scheduling + " --v=1",
				components: []string{"pod-groups"},
			},
		},
		"components come with their gates": {
			gates: "DisaggregatedSet=true,SequentialJobWorkload=true",
			want: flags{
				server:     "--feature-gates=DisaggregatedSet=true,SequentialJobWorkload=true --v=4",
				controller: "--feature-gates=DisaggregatedSet=true,SequentialJobWorkload=true --v=6", kubeScheduler: "--v=1",
				components: []string{"disaggregatedset", "sequentialjob-workload"}, groups: 1,
			},
		},
		"a gate that is turned off needs nothing": {
			gates: "DisaggregatedSet=false",
			want:  flags{server: "--feature-gates=DisaggregatedSet=false --v=4", controller: "--feature-gates=DisaggregatedSet=false --v=6", kubeScheduler: "--v=1"},
		},
	} {
		t.Run(name, func(t *testing.T) {
			s, err := gated(t.TempDir(), test.gates)
			if err != nil {
				t.Fatal(err)
			}
			s.addScheduling("v1.37.2")
			words := func(list []string) string { return strings.Join(list, " ") }
			got := flags{
				server: words(s.apiServerArgs), controller: words(s.controllerArgs), kubeAPIServer: words(s.kubeAPIServerArgs), kubeScheduler: words(s.kubeSchedulerArgs),
				groups: len(s.groups()) - len(apiservice.Groups),
			}
			for _, directory := range s.componentsOfGates() {
				got.components = append(got.components, filepath.Base(directory))
			}
			if diff := cmp.Diff(test.want, got, cmp.AllowUnexported(flags{})); diff != "" {
				t.Error(diff)
			}
		})
	}
}

// TestSchedulingFlags checks that no version gets a gate that it does not know: it would not start.
func TestSchedulingFlags(t *testing.T) {
	more := []string{"TopologyAwareWorkloadScheduling", "WorkloadAwarePreemption"}
	for version, want := range map[string][2]string{
		"v1.35.4": {},
		"v1.36.3": {
			"--feature-gates=GenericWorkload=true,GangScheduling=true,TopologyAwareWorkloadScheduling=true,WorkloadAwarePreemption=true",
			"--runtime-config=scheduling.k8s.io/v1alpha2=true",
		},
		"v1.37.2": {"--feature-gates=GenericWorkload=true,TopologyAwareWorkloadScheduling=true", "--runtime-config=scheduling.k8s.io/v1beta1=true"},
	} {
		if gates, api := SchedulingFlags(version, more...); gates != want[0] || api != want[1] {
			t.Errorf("%s: %s %s, want %q", version, gates, api, want)
		}
	}
	s, err := gated(t.TempDir(), "JobSetWorkloadAwareSchedulingAPI=true")
	if err != nil {
		t.Fatal(err)
	}
	s.addScheduling("v1.35.4")
	for name, flags := range map[string][]string{
		"kube-apiserver": s.kubeAPIServerArgs, "kube-controller-manager": s.kubeControllerManagerArgs, "kube-scheduler": s.kubeSchedulerArgs,
	} {
		if slices.ContainsFunc(flags, func(flag string) bool { return flag == "" || strings.HasPrefix(flag, "--feature-gates") }) {
			t.Errorf("%s of 1.35 gets %q", name, flags)
		}
	}
}

// TestFeatureGatesAreKept checks that a cluster keeps the gates that it was created with, and that other values are refused.
func TestFeatureGatesAreKept(t *testing.T) {
	root := t.TempDir()
	if _, err := gated(root, "Unknown=true"); message(err) != "CLUSTER_FEATURE_GATES: unrecognized feature gate: Unknown; must have the form of --feature-gates, such as InPlaceRestart=true" {
		t.Errorf("an unknown gate: %v", err)
	}
	if _, err := gated(root, "InPlaceRestart"); !strings.HasPrefix(message(err), "CLUSTER_FEATURE_GATES: ") {
		t.Errorf("a gate without a value: %v", err)
	}
	created, err := gated(root, "InPlaceRestart=true")
	if err != nil {
		t.Fatal(err)
	}
	if err := created.save(); err != nil {
		t.Fatal(err)
	}
	if later, err := gated(root, ""); err != nil || later.apiServerArgs[0] != "--feature-gates=InPlaceRestart=true" {
		t.Errorf("without the variable: %v, %v", later.apiServerArgs, err)
	}
	const kept = `CLUSTER_FEATURE_GATES: "ElasticJobSet=true" must be "InPlaceRestart=true", with which this cluster was created; use another CLUSTER_DIR`
	if _, err := gated(root, "ElasticJobSet=true"); message(err) != kept {
		t.Errorf("another gate: %v", err)
	}
}

// TestComponentsOfGatesExist checks that the directories have what is applied, and that pods on real nodes get the components.
func TestComponentsOfGatesExist(t *testing.T) {
	root, err := filepath.Abs("../..")
	if err != nil {
		t.Fatal(err)
	}
	s, err := gatedIn(root, t.TempDir(), "DisaggregatedSet=true,SequentialJobWorkload=true")
	if err != nil {
		t.Fatal(err)
	}
	if len(s.componentsOfGates()) != 2 {
		t.Errorf("components: %v", s.componentsOfGates())
	}
	for _, directory := range s.componentsOfGates() {
		for _, file := range []string{"rbac.yaml", "kustomization.yaml"} {
			if _, err := os.Stat(filepath.Join(directory, file)); err != nil {
				t.Error(err)
			}
		}
	}
	c := &supervisor{settings: s}
	overlay, err := c.overlay(filepath.Join(root, ".cluster", "install"))
	if err != nil || !strings.Contains(overlay, `"components":["../../artifacts/components/disaggregatedset","../../artifacts/components/sequentialjob-workload"]`) {
		t.Errorf("the overlay lacks the components: %s, %v", overlay, err)
	}
}

// TestFlagsBringPermissionsForGroups checks flags of the controller that need the permissions without a gate of the cluster.
func TestFlagsBringPermissionsForGroups(t *testing.T) {
	for flag, want := range map[string]bool{
		"--gang-scheduling-provider=volcano": true, "--feature-gates=A=true,JobSetWorkloadAwareSchedulingAPI=true": true,
		"--feature-gates=JobSetWorkloadAwareSchedulingAPI=false": false, "--v=4": false,
	} {
		s, err := gated(t.TempDir(), "")
		if err != nil {
			t.Fatal(err)
		}
		s.controllerArgs = []string{flag}
		if got := len(s.componentsOfGates()) == 1; got != want {
			t.Errorf("%s: components are %v", flag, s.componentsOfGates())
		}
	}
}
