// Copyright The jobset-apiserver Authors.
// SPDX-License-Identifier: Apache-2.0

package apiserver

import (
	"fmt"
	"os"
	"path/filepath"
	"slices"
	"strings"
	"testing"

	"github.com/jobset-apiserver/jobset-apiserver/test/framework"
)

// fixture is what bad flags are made of.
type fixture struct {
	t          *testing.T
	kubeconfig string
}

// write makes a file and returns its path.
func (f fixture) write(name, content string) string {
	f.t.Helper()
	path := filepath.Join(f.t.TempDir(), name)
	if err := os.WriteFile(path, []byte(content), 0o600); err != nil {
		f.t.Fatal(err)
	}
	return path
}

func (f fixture) missing() string { return filepath.Join(f.t.TempDir(), "missing") }

// authority makes an authority that signed nothing that is in use.
func (f fixture) authority() *framework.Authority {
	f.t.Helper()
	authority, err := framework.NewAuthority("other")
	if err != nil {
		f.t.Fatal(err)
	}
	return authority
}

// valid is a command line that would start a server, less some flags.
func (f fixture) valid(omit ...string) []string {
	f.t.Helper()
	flags := []string{
		fmt.Sprintf("--secure-port=%d", framework.FreePort(f.t)),
		"--bind-address=127.0.0.1",
		"--cert-dir=" + f.t.TempDir(),
		"--kubeconfig=" + f.kubeconfig,
		"--data-dir=" + framework.ShortDir(f.t),
		"--allow-ephemeral-data",
	}
	return slices.DeleteFunc(flags, func(flag string) bool {
		name, _, _ := strings.Cut(strings.TrimPrefix(flag, "--"), "=")
		return slices.Contains(omit, name)
	})
}

// waitingLine begins what the server says when something does not answer at once, as on a slow machine.
const waitingLine = "Waiting before the server can serve"

// expectOneLine runs the server and wants it to end with code 1 and one line that contains the texts.
func expectOneLine(t *testing.T, flags, want []string) {
	t.Helper()
	expectLast(t, flags, want, waitingLine)
}

// expectLast is expectOneLine of a server that may have logged lines with one of the texts before.
func expectLast(t *testing.T, flags, want []string, before ...string) {
	t.Helper()
	if olderThan(t, "v1.36.0") {
		before = append(before, `"Admission plugin is off: the main cluster does not serve its configuration in admissionregistration.k8s.io/v1"`)
	}
	process := framework.Run(t, plane.Binary, flags...)
	if code := process.Wait(t); code != 1 {
		t.Errorf("exit code is %d, not 1", code)
	}
	log := process.Log()
	lines := slices.DeleteFunc(slices.Collect(strings.Lines(log)), func(line string) bool {
		return slices.ContainsFunc(before, func(text string) bool { return strings.Contains(line, text) })
	})
	if len(lines) != 1 || !strings.HasSuffix(log, lines[0]) {
		t.Errorf("%d lines, not one, which is the last:\n%s", len(lines), log)
	}
	for _, text := range want {
		if !strings.Contains(strings.Join(lines, ""), text) {
			t.Errorf("%q is missing in: %s", text, log)
		}
	}
}

func kubeconfigFor(server string) string {
	return fmt.Sprintf(`apiVersion: v1
kind: Config
clusters: [{name: main, cluster: {server: %q, insecure-skip-tls-verify: true}}]
users: [{name: user, user: {token: abc}}]
contexts: [{name: main, context: {cluster: main, user: user}}]
current-context: main
`, server)
}
