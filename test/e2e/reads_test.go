// Copyright The jobset-apiserver Authors.
// SPDX-License-Identifier: Apache-2.0

package e2e

import (
	"bytes"
	"os"
	"os/exec"
	"strings"
	"testing"
)

// TestReadsPrintWhatKubectlPrints compares the reads that tests make in their own process with those of the program.
func TestReadsPrintWhatKubectlPrints(t *testing.T) {
	t.Parallel()
	k := newKubectl(t)
	for _, name := range []string{"a", "b"} {
		k.ok("create", "configmap", name, "--from-literal=x="+name)
	}
	k.ok("label", "configmap", "a", "l=1")
	namespace := []string{"--namespace", k.namespace}
	for _, args := range [][]string{
		{"get", "configmap", "a", "-o", "jsonpath={.data.x} {.metadata.uid} {.none}"},
		{"get", "cm/a", "-o=jsonpath={.metadata}"},
		{"get", "configmap/a", "configmap/b", "-o", "jsonpath={.items[*].metadata.name}"},
		{"get", "configmaps", "-l", "l=1", "-o", `jsonpath={range .items[*]}{.metadata.name}{"\n"}{end}`},
		{"get", "configmaps", "--field-selector=metadata.name=b", "-o", "json"},
		{"get", "configmap", "b", "-o", "json"},
		{"get", "jobsets", "-o", "json"},
		{"get", "js,sequentialjobs", "-o", "jsonpath={.items}"},
		{"get", "jobset", "none", "--ignore-not-found", "-o", "jsonpath={.status}"},
		{"get", "jobset", "none", "-o", "jsonpath={.status}"},
		{"get", "none", "-o", "json"},
		{"get", "configmap", "a", "-o", "jsonpath={.data"},
	} {
		cmd := exec.Command(kubectlPath(t), append(namespace, args...)...)
		cmd.Env = append(os.Environ(), "KUBECONFIG="+k.kubeconfig)
		var stdout, stderr bytes.Buffer
		cmd.Stdout, cmd.Stderr = &stdout, &stderr
		_ = cmd.Run() // the code is compared
		got := k.run("", args...)
		want := result{stdout.String(), stderr.String(), cmd.ProcessState.ExitCode()}
		if got != want {
			t.Errorf("%s:\n got %+v\nwant %+v", strings.Join(args, " "), got, want)
		}
	}
}
