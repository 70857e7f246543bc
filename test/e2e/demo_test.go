// Copyright The jobset-apiserver Authors.
// SPDX-License-Identifier: Apache-2.0

package e2e

import (
	"bytes"
	"context"
	"os"
	"os/exec"
	"path/filepath"
	"strings"
	"testing"

	"github.com/jobset-apiserver/jobset-apiserver/test/framework/tier"
)

// demo runs hack/demo.sh without the start of a cluster: the shared one is used, with the namespace of the test.
func (k *kubectl) demo(env ...string) result {
	k.Helper()
	ctx, cancel := context.WithTimeout(k.Context(), exampleTimeout)
	defer cancel()
	cmd := exec.CommandContext(ctx, filepath.Join(shared.Root, "hack", "demo.sh"), "--kubeconfig", k.named().kubeconfig)
	cmd.Env = append(append(os.Environ(), "CLUSTER_BIN="+filepath.Dir(shared.Program("kubectl-jobset")), "LC_ALL=C.UTF-8"), env...)
	var stdout, stderr bytes.Buffer
	cmd.Stdout, cmd.Stderr = &stdout, &stderr
	if err := cmd.Run(); ctx.Err() != nil {
		k.Fatalf("hack/demo.sh is not done within %v: %v\n%s%s", exampleTimeout, err, &stdout, &stderr)
	}
	return result{stdout.String(), stderr.String(), cmd.ProcessState.ExitCode()}
}

// TestDemo runs the training of `make demo`: a worker is killed, the set restarts, and completes.
func TestDemo(t *testing.T) {
	tier.OnRequest(t, "runs the whole demo in the shared cluster")
	t.Parallel()
	t.Run("completes", func(t *testing.T) {
		t.Parallel()
		k := newKubectl(t)
		k.admitsPods()
		r := k.demo()
		t.Logf("%s%s", r.stdout, r.stderr)
		if r.code != 0 {
			t.Fatalf("exit code %d", r.code)
		}
		const cause = `pod training-workers-1-2-\w{5} on node \S+`
		k.expect(r.stdout, `\$ kubectl apply -f artifacts/examples/training.yaml`, `attempt 1, ready`,
			`\$ kubectl annotate pod/training-workers-1-2-\w{5} --overwrite .*kwok-outcome=failed`, `attempt 2, ready`,
			`\$ kubectl jobset why training\n`, cause+` ended with exit code 137`,
			`\$ kubectl jobset timeline training\n`, `attempt 1 .*↻\n`, `attempt 2 .*▶\n`, `first cause: `+cause,
			`s  Completed \|`, `training +Completed +1 +True`, `attempt 2 .*✓\n`, `the training took \d+ seconds`)
	})
	t.Run("says what did not happen", func(t *testing.T) {
		t.Parallel()
		k := newKubectl(t)
		k.ok("create", "quota", "none", "--hard=pods=0")
		r := k.demo("DEMO_TIMEOUT_SECONDS=10")
		if want := "jobset/training was not ready within 10s; logs are in "; r.code != 1 || !strings.Contains(r.stderr, want) {
			t.Errorf("exit code %d, want 1 with %q: %s", r.code, want, r.stderr)
		}
		if !strings.Contains(r.stdout, "PodsRefusedByQuota") {
			t.Errorf("the cause is not named:\n%s", r.stdout)
		}
	})
}

// TestDemoRejectsArguments checks that wrong arguments start nothing.
func TestDemoRejectsArguments(t *testing.T) {
	t.Parallel()
	for arguments, want := range map[string]string{
		"--kubeconfig /no/such/file": "--kubeconfig must be the kubeconfig of a local cluster, such as .cluster/kubeconfig; make up starts one",
		"--kubeconfig":               "--kubeconfig must be the kubeconfig of a local cluster",
		"--help":                     "unknown argument --help; must be --kubeconfig FILE, or none",
	} {
		out, err := exec.CommandContext(t.Context(), filepath.Join(shared.Root, "hack", "demo.sh"), strings.Fields(arguments)...).CombinedOutput()
		if err == nil || !strings.Contains(string(out), want) {
			t.Errorf("hack/demo.sh %s: %v, %s, want %q", arguments, err, out, want)
		}
	}
}
