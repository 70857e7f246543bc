// Copyright The jobset-apiserver Authors.
// SPDX-License-Identifier: Apache-2.0

package lib_test

import (
	"os"
	"os/exec"
	"path/filepath"
	"strings"
	"testing"

	"github.com/google/go-cmp/cmp"
)

// benched runs bench.sh with the arguments and variables in a checkout without programs. It returns what bench.sh prints, and the commands that
// it calls.
func benched(t *testing.T, variables []string, args ...string) (out string, called []string, err error) {
	t.Helper()
	root := t.TempDir()
	content, err := os.ReadFile(filepath.Join("..", "bench.sh"))
	if err != nil {
		t.Fatal(err)
	}
	note := func(name string) string { return "#!/bin/sh\necho " + name + " \"$@\" >>\"" + root + "/called\"\n" }
	for file, content := range map[string]string{
		"hack/bench.sh": string(content), "hack/cluster.sh": note("cluster.sh ${CLUSTER_NODES:-default}"), "bin/go": note("go"), "bin/jobset-bench": note("jobset-bench"),
		"hack/ensure-peers.sh": note("ensure-peers.sh"),
	} {
		write(t, filepath.Join(root, file), content)
	}
	command := exec.CommandContext(t.Context(), "hack/bench.sh", args...)
	command.Dir = root
	command.Env = append(os.Environ(), "PATH="+filepath.Join(root, "bin")+":"+os.Getenv("PATH"), "BENCH_OUTPUT="+root+"/out")
	command.Env = append(append(command.Env, "BENCH_KUBECONFIG=", "BENCH_PEERS=", "CLUSTER_NODES="), variables...)
	printed, err := command.CombinedOutput()
	calls, _ := os.ReadFile(filepath.Join(root, "called"))
	return string(printed), strings.Split(strings.TrimSpace(strings.ReplaceAll(string(calls), root+"/", "")), "\n"), err
}

// TestMakePassesSettingsToBench has targets of make that bench.sh refuses with such settings, so that none is ignored.
func TestMakePassesSettingsToBench(t *testing.T) {
	for target, what := range map[string]string{"bench": "full", "bench-smoke": "smoke", "bench-compare": "compare"} {
		command := exec.CommandContext(t.Context(), "make", "--no-print-directory", "--dry-run", target, "PEERS=1", "KUBECONFIG=other.yaml", "ARGS=--jobs 5")
		command.Dir = filepath.Join("..", "..")
		out, err := command.CombinedOutput()
		if want := "BENCH_PEERS='1' BENCH_KUBECONFIG='other.yaml' hack/bench.sh " + what + " --jobs 5\n"; err != nil || !strings.HasSuffix(string(out), want) {
			t.Errorf("%s: error %v, must end with %q:\n%s", target, err, want, out)
		}
	}
}

// Upstream's controllers run in a local cluster only.
func TestBenchRefusesUpstreamInAnotherCluster(t *testing.T) {
	out, called, err := benched(t, []string{"BENCH_KUBECONFIG=other.yaml", "BENCH_PEERS=1"}, "compare")
	if err == nil || len(called) != 1 || called[0] != "" {
		t.Errorf("error %v, commands %q; must fail before any command:\n%s", err, called, out)
	}
	for _, want := range []string{"PEERS=1", "KUBECONFIG=FILE", "cannot be used together", "other.yaml"} {
		if !strings.Contains(out, want) {
			t.Errorf("the message has no %q:\n%s", want, out)
		}
	}
}

func TestBenchRefusesSettingsOfCompare(t *testing.T) {
	for _, setting := range []string{"BENCH_KUBECONFIG=other.yaml", "BENCH_PEERS=1"} {
		out, called, err := benched(t, []string{setting}, "full")
		if err == nil || len(called) != 1 || called[0] != "" {
			t.Errorf("%s: error %v, commands %q; must fail before any command", setting, err, called)
		}
		for _, want := range []string{"cannot be used with full: unset them", "PEERS=1", "KUBECONFIG=FILE", "make bench-compare"} {
			if !strings.Contains(out, want) {
				t.Errorf("%s: the message has no %q:\n%s", setting, want, out)
			}
		}
	}
}

func TestBenchComparesInOneCluster(t *testing.T) {
	for name, tc := range map[string]struct {
		variable string
		want     string
	}{
		"of a kubeconfig": {"BENCH_KUBECONFIG=other.yaml", "jobset-bench compare --kubeconfig other.yaml --output out --jobs 5"},
		"of this machine": {"BENCH_KUBECONFIG=", "jobset-bench compare --cluster-dir .cluster-bench --output out --variant"},
	} {
		t.Run(name, func(t *testing.T) {
			out, called, err := benched(t, []string{tc.variable}, "compare", "--jobs", "5")
			if err != nil || !strings.Contains(strings.Join(called, "\n"), tc.want) {
				t.Errorf("error %v, commands %q, must have %q:\n%s", err, called, tc.want, out)
			}
		})
	}
}

// TestBenchComparesWithUpstreamInPairsOfClusters has the scenarios that measure memory in clusters of their own.
func TestBenchComparesWithUpstreamInPairsOfClusters(t *testing.T) {
	const both = "jobset-bench compare --cluster-dir .cluster-bench --upstream-dir .cluster-bench-upstream --output out"
	for name, tc := range map[string]struct {
		args, want, nodes []string
	}{
		"all scenarios": {[]string{"--preset", "smoke"}, []string{
			"--scenarios many --preset smoke", "--scenarios list --preset smoke", "--scenarios large --preset smoke",
			"--scenarios place --preset smoke",
			"--scenarios floor,labeled-jobs,big,run,write,leaderworkersets --preset smoke",
		}, []string{"default", "default", "default", "default", "default", "default", "1", "1", "default", "default"}},
		"scenarios of a user": {[]string{"--scenarios=big", "--rounds", "2"}, []string{"--scenarios=big --rounds 2"}, []string{"default", "default"}},
	} {
		t.Run(name, func(t *testing.T) {
			out, called, err := benched(t, []string{"BENCH_PEERS=1"}, append([]string{"compare"}, tc.args...)...)
			if err != nil {
				t.Fatalf("%v\n%s", err, out)
			}
			var got, nodes []string
			for _, call := range called {
				if flags, compares := strings.CutPrefix(call, both); compares {
					got = append(got, flags[strings.LastIndex(flags, "compact ")+len("compact "):]) // without the variants
				}
				if number, up := strings.CutSuffix(call, " up"); up {
					nodes = append(nodes, strings.TrimPrefix(number, "cluster.sh "))
				}
			}
			if d := cmp.Diff(tc.want, got); d != "" {
				t.Errorf("comparisons (-want +got):\n%s", d)
			}
			if d := cmp.Diff([]string{"ensure-peers.sh jobset", "ensure-peers.sh lws"}, called[1:3]); d != "" {
				t.Errorf("what is built before clusters are started (-want +got):\n%s", d)
			}
			if d := cmp.Diff(tc.nodes, nodes); d != "" {
				t.Errorf("nodes of the clusters that were started (-want +got):\n%s", d)
			}
		})
	}
}
