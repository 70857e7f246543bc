// Copyright The jobset-apiserver Authors.
// SPDX-License-Identifier: Apache-2.0

// Package matrix finds out what a version of Kubernetes has of what our features need. hack/matrix.sh runs it on each version; it is not
// one of the suites.
package matrix

import (
	"encoding/json"
	"os"
	"os/exec"
	"path/filepath"
	"regexp"
	"strings"
	"testing"

	"k8s.io/client-go/discovery"

	"github.com/jobset-apiserver/jobset-apiserver/test/localcluster"
)

// outputVariable names the file for the result.
const outputVariable = "MATRIX_OUTPUT"

// gates are feature gates of kube-apiserver that our features need.
var gates = []string{
	"ContainerRestartRules", "RestartAllContainersOnContainerExits", "MutablePodResourcesForSuspendedJobs", "GenericWorkload", "GangScheduling",
	"MaxUnavailableStatefulSet", "PodTopologyLabelsAdmission",
}

// apis are resources that our features need, with the versions that they use.
var apis = map[string][]string{
	"mutatingadmissionpolicies": {"admissionregistration.k8s.io/v1"},
	"podgroups":                 {"scheduling.k8s.io/v1beta1", "scheduling.k8s.io/v1alpha3", "scheduling.k8s.io/v1alpha2"},
}

// TestFeatures writes what a control plane without flags has: its version, the stage and the default of each gate, and each API.
func TestFeatures(t *testing.T) {
	output := os.Getenv(outputVariable)
	if output == "" {
		t.Fatalf("%s must name a file: use hack/matrix.sh", outputVariable)
	}
	local := start(t)
	config, err := local.Config()
	if err != nil {
		t.Fatal(err)
	}
	client, err := discovery.NewDiscoveryClientForConfig(config)
	if err != nil {
		t.Fatal(err)
	}
	version, err := client.ServerVersion()
	if err != nil {
		t.Fatal(err)
	}
	features := map[string]string{"version": strings.TrimPrefix(version.GitVersion, "v")}
	readGates(t, local.Root, features)
	readAPIs(t, client, features)
	data, err := json.MarshalIndent(features, "", "  ")
	if err != nil {
		t.Fatal(err)
	}
	if err := os.WriteFile(output, append(data, '\n'), 0o644); err != nil {
		t.Fatal(err)
	}
	t.Logf("%s", data)
}

// start starts a control plane without our programs.
func start(t *testing.T) *localcluster.Cluster {
	t.Helper()
	local, err := localcluster.New(".cluster-matrix", "", "CLUSTER_COMPONENTS=none")
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() {
		if err := local.Stop(!t.Failed()); err != nil {
			t.Error(err)
		}
	})
	if err := local.Stop(false); err != nil {
		t.Fatal(err)
	}
	if err := local.Script("up"); err != nil {
		t.Fatal(err)
	}
	return local
}

// readGates reads the gates from the help of kube-apiserver, such as "GenericWorkload=true|false (ALPHA - default=false)".
func readGates(t *testing.T, root string, features map[string]string) {
	t.Helper()
	binaries, err := localcluster.TestBinaries(root)
	if err != nil {
		t.Fatal(err)
	}
	help, err := exec.Command(filepath.Join(binaries, "kube-apiserver"), "--help").Output()
	if err != nil {
		t.Fatal(err)
	}
	for _, gate := range gates {
		features[gate] = "absent"
		if found := regexp.MustCompile(gate + `=true\|false \((\w+) - default=(\w+)\)`).FindSubmatch(help); found != nil {
			state := map[string]string{"true": "on", "false": "off"}[string(found[2])]
			features[gate] = strings.ToLower(string(found[1])) + ", " + state
		}
	}
}

// readAPIs asks which versions are served.
func readAPIs(t *testing.T, client discovery.DiscoveryInterface, features map[string]string) {
	t.Helper()
	for resource, versions := range apis {
		features[resource] = "absent"
		for _, version := range versions {
			list, err := client.ServerResourcesForGroupVersion(version)
			if err != nil {
				continue // it is not served
			}
			for i := range list.APIResources {
				if list.APIResources[i].Name == resource && features[resource] == "absent" {
					features[resource] = version[strings.Index(version, "/")+1:]
				}
			}
		}
	}
}
