// Copyright The jobset-apiserver Authors.
// SPDX-License-Identifier: Apache-2.0

package main

import (
	"bytes"
	"errors"
	"fmt"
	"net"
	"os"
	"os/exec"
	"path/filepath"
	"slices"
	"strings"
	"testing"

	"github.com/google/go-cmp/cmp"

	"github.com/jobset-apiserver/jobset-apiserver/pkg/features"
)

const kubeconfig = `apiVersion: v1
kind: Config
current-context: c
clusters: [{name: c, cluster: {server: "https://127.0.0.1:1"}}]
contexts: [{name: c, context: {cluster: c, user: u}}]
users: [{name: u, user: {token: t}}]
`

func writeFile(t *testing.T, content string) string {
	t.Helper()
	path := filepath.Join(t.TempDir(), "file")
	if err := os.WriteFile(path, []byte(content), 0o600); err != nil {
		t.Fatal(err)
	}
	return path
}

// asCommand makes this test program run as the command.
const asCommand = "JOBSET_CONTROLLER_TEST_AS_COMMAND"

func TestMain(m *testing.M) {
	if os.Getenv(asCommand) != "" {
		main()
		os.Exit(0)
	}
	os.Exit(m.Run())
}

// command runs the command as a process of its own, outside of a cluster.
func command(t *testing.T, args ...string) (code int, stdout, stderr string) {
	t.Helper()
	cmd := exec.CommandContext(t.Context(), os.Args[0], args...)
	cmd.Env = []string{asCommand + "=1"}
	var out, errOut bytes.Buffer
	cmd.Stdout, cmd.Stderr = &out, &errOut
	if err := cmd.Run(); err != nil {
		var exit *exec.ExitError
		if !errors.As(err, &exit) {
			t.Fatal(err)
		}
	}
	return cmd.ProcessState.ExitCode(), out.String(), errOut.String()
}

// controllers are all that the program has.
const controllers = "jobset, sequentialjob, podgroup, leaderworkerset, disaggregatedset, endpoints"

// TestBadFlags runs the command itself. Each case must end with one line that names the flag and what to do.
func TestBadFlags(t *testing.T) {
	taken, err := net.Listen("tcp", "127.0.0.1:0")
	if err != nil {
		t.Fatal(err)
	}
	defer taken.Close()
	good := "--kubeconfig=" + writeFile(t, kubeconfig)
	ownFlags := []string{good, "--leader-elect-resource-namespace=ns", "--metrics-bind-address=0", "--health-probe-bind-address=0"}
	var gates []string
	for name := range features.Specs() {
		gates = append(gates, string(name))
	}
	slices.Sort(gates)
	foreign := writeFile(t, "{apiVersion: config.jobset.x-k8s.io/v1alpha1, kind: Configuration, spec: {}}")
	broken, empty := writeFile(t, "}"), t.TempDir()
	for name, tc := range map[string]struct {
		args []string
		want string
	}{
		"a flag that does not exist": {
			[]string{"--foo"}, "unknown flag: --foo; see --help"},
		"an argument": {
			[]string{"up"}, `argument "up" is not known: jobset-controller takes flags only`},
		"a value of the wrong type": {
			[]string{"--concurrent-jobset-syncs=x"}, `invalid argument "x" for "--concurrent-jobset-syncs" flag: strconv.ParseInt: parsing "x": invalid syntax; see --help`},
		"no workers": {
			[]string{"--concurrent-jobset-syncs=0"}, "--concurrent-jobset-syncs: must be 1 or more, not 0"},
		"an unknown controller": {
			[]string{"--controllers=*,-job"}, `--controllers: unknown controller "job"; known are ` + controllers},
		"somebody else who writes addresses": {
			[]string{"--service-endpoints=kube"}, `--service-endpoints: must be cluster, controller or auto, not "kube"`},
		"no controller": {
			[]string{"--controllers=-jobset"}, "--controllers: must leave at least one of " + controllers},
		"no requests": {
			[]string{"--kube-api-qps=0"}, "--kube-api-qps: must not be 0; use a negative number for no limit"},
		"no burst": {
			[]string{"--kube-api-burst=0"}, "--kube-api-burst: must be 1 or more, not 0"},
		"an unknown feature gate": {
			[]string{"--feature-gates=Foo=true"}, `--feature-gates: unknown gate "Foo"; known are ` + strings.Join(gates, ", ")},
		"a feature gate that is neither on nor off": {
			[]string{"--feature-gates=RestartJob=maybe"}, `--feature-gates: RestartJob must be true or false, not "maybe"`},
		"a feature gate that is locked": {
			[]string{"--feature-gates=TLSOptions=false"}, "--feature-gates: TLSOptions is always true; leave it out"},
		"an address without a port": {
			[]string{"--metrics-bind-address=localhost"}, `--metrics-bind-address: must be [host]:port, or 0 to switch it off, not "localhost"`},
		"a port beyond all ports": {
			[]string{"--health-probe-bind-address=:70000"}, `--health-probe-bind-address: the port must be a number from 0 to 65535, not "70000"`},
		"another kind of lock": {
			[]string{"--leader-elect-resource-lock=configmaps"}, `--leader-elect-resource-lock: must be leases, not "configmaps"`},
		"a lease without a name": {
			[]string{"--leader-elect-resource-name="}, "--leader-elect-resource-name: must not be empty"},
		"no retries": {
			[]string{"--leader-elect-retry-period=0s"}, "--leader-elect-retry-period: must be more than 0, not 0s"},
		"a deadline too short for the retries": {
			[]string{"--leader-elect-renew-deadline=2s"},
			"--leader-elect-renew-deadline: must be more than 1.2 times --leader-elect-retry-period (2s), not 2s"},
		"a lease shorter than the deadline": {
			[]string{"--leader-elect-lease-duration=10s"},
			"--leader-elect-lease-duration: must be more than --leader-elect-renew-deadline (10s), not 10s"},
		"a configuration file that does not exist": {
			[]string{"--config=/does/not/exist"}, "--config: must name a readable file: open /does/not/exist: no such file or directory"},
		"a configuration file with an unknown field": {
			[]string{"--config=" + foreign}, `--config: ` + foreign + `: unknown field "spec"`},
		"no kubeconfig outside of a cluster": {
			nil, "--kubeconfig: must be set outside of a cluster: unable to load in-cluster configuration, " +
				"KUBERNETES_SERVICE_HOST and KUBERNETES_SERVICE_PORT must be defined"},
		"a kubeconfig that does not exist": {
			[]string{"--kubeconfig=/does/not/exist"},
			"--kubeconfig: must name a readable kubeconfig file: stat /does/not/exist: no such file or directory"},
		"a kubeconfig that is none": {
			[]string{"--kubeconfig=" + broken},
			"--kubeconfig: must name a readable kubeconfig file: error loading config file \"" + broken + "\": yaml: did not find expected node content"},
		"no namespace for the lease outside of a cluster": {
			[]string{good}, "--leader-elect-resource-namespace: must be set outside of a cluster, to the namespace that holds the lease; " +
				"use --leader-elect=false if there is one controller only"},
		"a port in use for health": {
			append(ownFlags, "--health-probe-bind-address="+taken.Addr().String()),
			"--health-probe-bind-address: listen tcp " + taken.Addr().String() + ": bind: address already in use; choose a free address, or 0 to switch it off"},
		"a port in use for metrics": {
			append(ownFlags, "--metrics-bind-address="+taken.Addr().String()),
			"--metrics-bind-address: listen tcp " + taken.Addr().String() + ": bind: address already in use; choose a free address, or 0 to switch it off"},
		"no certificate in the directory": {
			append(ownFlags, "--metrics-bind-address=127.0.0.1:0", "--metrics-cert-dir="+empty),
			"--metrics-cert-dir: must hold tls.crt and tls.key: open " + empty + "/tls.crt: no such file or directory"},
	} {
		t.Run(name, func(t *testing.T) {
			code, stdout, stderr := command(t, tc.args...)
			if d := cmp.Diff("1 Error: "+tc.want+"\n", fmt.Sprintf("%d %s%s", code, stdout, stderr)); d != "" {
				t.Errorf("exit code and output (-want +got):\n%s", d)
			}
		})
	}
}

func TestHelpAndVersionSucceed(t *testing.T) {
	for arg, want := range map[string]string{"--help": "--metrics-bind-address", "--version": "Kubernetes "} {
		code, stdout, stderr := command(t, arg)
		if code != 0 || stderr != "" || !strings.Contains(stdout, want) {
			t.Errorf("%s ended with %d, printed %q and %q, want %q", arg, code, stdout, stderr, want)
		}
	}
}
