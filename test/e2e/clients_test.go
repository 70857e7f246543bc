// Copyright The jobset-apiserver Authors.
// SPDX-License-Identifier: Apache-2.0

package e2e

import (
	"context"
	"fmt"
	"os"
	"os/exec"
	"path/filepath"
	"regexp"
	"strings"
	"testing"
	"time"

	"k8s.io/client-go/tools/clientcmd"

	"github.com/jobset-apiserver/jobset-apiserver/test/framework/runbook"
	"github.com/jobset-apiserver/jobset-apiserver/test/framework/tier"
)

// exampleTimeout is for one example, with the time to compile or to install it.
const exampleTimeout = 6 * time.Minute

// TestClients runs the examples of docs/clients.md.
func TestClients(t *testing.T) {
	tier.OnRequest(t, "starts the Python client and old versions of kubectl")
	t.Parallel()
	t.Run("Go", func(t *testing.T) {
		t.Parallel()
		k := newClients(t)
		printed := k.example("go", "run", "-C", filepath.Join(shared.Root, "examples", "client-go"), ".")
		k.expect(printed, `created example with the uid \S+`, `the cache has example\n`, `applied: suspended is false now`,
			`restart: the JobSet was restarted as attempt 2\n`, `example has completed after 2 attempts`, `example-groups has 2 groups of 2 pods`)
		k.areGone("jobset/example", "lws/example-groups")
	})
	t.Run("Python", func(t *testing.T) {
		t.Parallel()
		k := newClients(t)
		python, err := exec.Command(filepath.Join(shared.Root, "hack", "ensure-python-client.sh")).Output()
		if err != nil {
			t.Fatal(err)
		}
		printed := k.example(strings.TrimSpace(string(python)), filepath.Join(shared.Root, "examples", "python", "jobsets.py"))
		k.expect(printed, `created python-example\n`, `restart: the JobSet was restarted as attempt 2\n`, `python-example has completed after 2 attempts`)
		k.areGone("jobset/python-example")
	})
	t.Run("curl", func(t *testing.T) {
		t.Parallel()
		k := newClients(t)
		script := strings.Join(runbook.Lines(t, filepath.Join(shared.Root, "docs", "clients.md"), "curl"), "\n")
		printed := k.example("bash", "-euo", "pipefail", "-c", script)
		k.expect(printed, `"reason": "waiting for data"`, `"type":"ADDED"`, `"status": "Success"`)
		k.areGone("jobset/curl-example")
	})
}

// newClients makes a namespace whose pods run long enough to be restarted, and a kubeconfig that names it.
func newClients(t *testing.T) *kubectl {
	t.Helper()
	k := newKubectl(t)
	k.admitsPods()
	policy := "long-" + k.namespace
	k.okIn(fmt.Sprintf(`apiVersion: admissionregistration.k8s.io/v1
kind: MutatingAdmissionPolicy
metadata: {name: %[1]s}
spec:
  failurePolicy: Fail
  reinvocationPolicy: Never
  matchConstraints:
    resourceRules:
    - {apiGroups: [""], apiVersions: [v1], operations: [CREATE], resources: [pods]}
  mutations:
  - patchType: ApplyConfiguration
    applyConfiguration:
      expression: 'Object{metadata: Object.metadata{annotations: {"jobset-apiserver.io/kwok-run-seconds": "20"}}}'
---
apiVersion: admissionregistration.k8s.io/v1
kind: MutatingAdmissionPolicyBinding
metadata: {name: %[1]s}
spec:
  policyName: %[1]s
  matchResources:
    namespaceSelector: {matchLabels: {kubernetes.io/metadata.name: %[2]s}}
`, policy, k.namespace), "create", "-f", "-")
	t.Cleanup(func() { k.run("", "delete", "mutatingadmissionpolicybinding,mutatingadmissionpolicy", policy) })
	k.eventually(func() string {
		const path = `jsonpath={.metadata.annotations.jobset-apiserver\.io/kwok-run-seconds}`
		if got := k.ok("run", "probe", "--image=busybox", "--dry-run=server", "-o", path); got != "20" {
			return fmt.Sprintf("a pod would run for %q seconds", got)
		}
		return ""
	})
	return k.named()
}

// named returns kubectl with a kubeconfig that names the namespace of the test, for programs that are not given it.
func (k *kubectl) named() *kubectl {
	k.Helper()
	config, err := clientcmd.LoadFromFile(k.kubeconfig)
	if err != nil {
		k.Fatal(err)
	}
	config.Contexts[config.CurrentContext].Namespace = k.namespace
	// The namespace is removed with the kubeconfig of the cluster, when this one is gone.
	named := *k
	named.kubeconfig = filepath.Join(k.TempDir(), "kubeconfig")
	if err := clientcmd.WriteToFile(*config, named.kubeconfig); err != nil {
		k.Fatal(err)
	}
	return &named
}

// example runs a program with the kubeconfig, which must succeed, and returns what it printed.
func (k *kubectl) example(program string, args ...string) string {
	k.Helper()
	ctx, cancel := context.WithTimeout(k.Context(), exampleTimeout)
	defer cancel()
	cmd := exec.CommandContext(ctx, program, args...)
	cmd.Env = append(os.Environ(), "KUBECONFIG="+k.kubeconfig, "PATH="+filepath.Dir(kubectlPath(k.T))+":"+os.Getenv("PATH"), "PYTHONDONTWRITEBYTECODE=1")
	out, err := cmd.CombinedOutput()
	k.Logf("%s", out)
	if err != nil {
		k.Fatalf("%s: %v", program, err)
	}
	return string(out)
}

// expect looks for lines in their order.
func (k *kubectl) expect(printed string, expressions ...string) {
	k.Helper()
	for _, expression := range expressions {
		at := regexp.MustCompile(expression).FindStringIndex(printed)
		if at == nil {
			k.Errorf("%s was not printed, or not in this order", expression)
			return
		}
		printed = printed[at[1]:]
	}
}

// areGone waits until objects are gone.
func (k *kubectl) areGone(objects ...string) {
	k.Helper()
	for _, object := range objects {
		k.eventually(func() string {
			if r := k.run("", "get", object); !strings.Contains(r.stderr, "NotFound") {
				return object + " is still there: " + r.stdout + r.stderr
			}
			return ""
		})
	}
}
