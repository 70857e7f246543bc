// Copyright The jobset-apiserver Authors.
// SPDX-License-Identifier: Apache-2.0

// Package kubectl drives the kubectl that belongs to a local cluster, as a user would.
package kubectl

import (
	"bytes"
	"context"
	"errors"
	"fmt"
	"os"
	"os/exec"
	"path/filepath"
	"slices"
	"strings"
	"testing"
	"time"

	"github.com/jobset-apiserver/jobset-apiserver/test/framework"
	"github.com/jobset-apiserver/jobset-apiserver/test/localcluster"
)

// callTimeout ends a call that hangs.
const callTimeout = 6 * time.Minute

// Kubectl is the program of one test, with a namespace and credentials.
type Kubectl struct {
	framework.Test
	Cluster   *localcluster.Cluster
	Namespace string

	program string
}

// Result is what one call left.
type Result struct {
	Stdout, Stderr string
	Code           int
}

// New makes a namespace for the test, removes it afterwards, and returns kubectl as administrator in it.
func New(t *testing.T, c *localcluster.Cluster) *Kubectl {
	t.Helper()
	return begin(t, c, Namespace(t))
}

// In makes the namespace of a test in another cluster, too, and returns kubectl as administrator there.
func In(k *Kubectl, c *localcluster.Cluster) *Kubectl {
	k.Helper()
	return begin(k.T, c, k.Namespace)
}

func begin(t *testing.T, c *localcluster.Cluster, namespace string) *Kubectl {
	t.Helper()
	binaries, err := localcluster.TestBinaries(c.Root)
	if err != nil {
		t.Fatal(err)
	}
	k := &Kubectl{Test: framework.Test{T: t}, Cluster: c, program: filepath.Join(binaries, "kubectl"), Namespace: namespace}
	CreateNamespace(t, c.Kubeconfig(), namespace)
	AwaitServiceAccount(t, c.Kubeconfig(), namespace)
	t.Cleanup(func() { DeleteNamespace(t, c.Kubeconfig(), namespace) })
	return k
}

// Run calls kubectl in the namespace of the test and returns what it did, whatever that is.
func (k *Kubectl) Run(stdin string, args ...string) Result {
	k.Helper()
	return k.call(stdin, k.program, append([]string{"--namespace", k.Namespace}, args...))
}

// Plugin calls the plugin in the namespace of the test.
func (k *Kubectl) Plugin(args ...string) Result {
	k.Helper()
	return k.call("", k.Cluster.Program("kubectl-jobset"), append(slices.Clone(args), "--namespace", k.Namespace))
}

func (k *Kubectl) call(stdin, program string, args []string) Result {
	k.Helper()
	return Call(k.T, program, k.Cluster.Kubeconfig(), stdin, []string{"COLUMNS=200"}, args...)
}

// Call calls a program with the kubeconfig and some further environment, and returns what it did, whatever that is. A call
// ends after six minutes. A `kubectl get` that prints fields runs in this process (read.go).
func Call(t *testing.T, program, kubeconfig, stdin string, env []string, args ...string) Result {
	t.Helper()
	if r := parseRead(args); r != nil && filepath.Base(program) == "kubectl" {
		return r.do(kubeconfig)
	}
	ctx, cancel := context.WithTimeout(context.Background(), callTimeout)
	defer cancel()
	cmd := exec.CommandContext(ctx, program, args...)
	cmd.Env = slices.Concat(os.Environ(), []string{"KUBECONFIG=" + kubeconfig, "LC_ALL=C.UTF-8"}, env)
	cmd.Stdin = strings.NewReader(stdin)
	var stdout, stderr bytes.Buffer
	cmd.Stdout, cmd.Stderr = &stdout, &stderr
	err := cmd.Run()
	var exit *exec.ExitError
	if err != nil && !errors.As(err, &exit) {
		t.Fatalf("%s %s: %v", filepath.Base(program), strings.Join(args, " "), err)
	}
	return Result{stdout.String(), stderr.String(), cmd.ProcessState.ExitCode()}
}

// OK calls kubectl, which must succeed, and returns what it printed.
func (k *Kubectl) OK(args ...string) string {
	k.Helper()
	return k.OKIn("", args...)
}

// OKIn is OK with text on the standard input, for `-f -`.
func (k *Kubectl) OKIn(stdin string, args ...string) string {
	k.Helper()
	r := k.Run(stdin, args...)
	if r.Code != 0 {
		k.Fatalf("kubectl %s: exit code %d\n%s%s", strings.Join(args, " "), r.Code, r.Stdout, r.Stderr)
	}
	return r.Stdout
}

// PluginOK calls the plugin, which must succeed, and returns what it printed.
func (k *Kubectl) PluginOK(args ...string) string {
	k.Helper()
	r := k.Plugin(args...)
	if r.Code != 0 {
		k.Fatalf("kubectl jobset %s: exit code %d\n%s%s", strings.Join(args, " "), r.Code, r.Stdout, r.Stderr)
	}
	return r.Stdout
}

// Field returns one JSONPath of one object, and an empty string if there is no such object.
func (k *Kubectl) Field(object, path string) string {
	k.Helper()
	return k.OK("get", object, "--ignore-not-found", "-o", "jsonpath="+path)
}

// Awaits polls until a JSONPath of an object has the value.
func (k *Kubectl) Awaits(object, path, want string) {
	k.Helper()
	k.Eventually(func() string {
		r := k.Run("", "get", object, "-o", "jsonpath="+path)
		if r.Stdout != want {
			return fmt.Sprintf("%s of %s is %q, want %q %s", path, object, r.Stdout, want, r.Stderr)
		}
		return ""
	})
}

// Eventually polls until the check finds no problem. An error of kubectl in it is a problem, too.
func (k *Kubectl) Eventually(check func() (problem string)) {
	k.Helper()
	framework.EventuallyNoProblem(k, check)
}
