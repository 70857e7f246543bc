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

// TestPackagesSayInOneLineWhatFails installs a package with an apt-get that does what a case says, and compares what is printed, and which
// commands of apt-get ran.
func TestPackagesSayInOneLineWhatFails(t *testing.T) {
	const installing = "installing hello ...\n"
	for name, tc := range map[string]struct {
		aptGet, root, install string
		want, wantCalls       string
		wantErr               bool
	}{
		"as root":        {aptGet: "echo Reading; echo Setting up >&2", want: installing, wantCalls: "install "},
		"with its words": {aptGet: "echo Reading", install: "verbose", want: installing + "Reading\n", wantCalls: "install "},
		"beside another package manager": {
			aptGet: `echo "Waiting for cache lock: Could not get lock /l. It is held by process 7 (apt)..."; echo "E: Could not get lock /l. It is held by process 7 (apt)" >&2; exit 100`,
			want:   installing + "hello: not installed, because another package manager runs: It is held by process 7 (apt)\n", wantCalls: "install ", wantErr: true,
		},
		"with an old list of packages": {
			aptGet: `[ "$1" = update ] && touch updated; [ -f updated ] || { echo "E: Unable to locate package hello"; exit 100; }`,
			want:   installing, wantCalls: "install update install ",
		},
		"without network": {
			aptGet: `echo "E: Failed to fetch http://deb  Temporary failure resolving 'deb'"; exit 100`,
			want:   installing + "hello: not installed: E: Failed to fetch http://deb  Temporary failure resolving 'deb'\n", wantCalls: "install update ", wantErr: true,
		},
		"without root": {root: "false", wantErr: true},
		"within tests": {install: "no", want: "hello must be installed before the tests: hack/ensure-packages.sh long\n", wantErr: true},
	} {
		t.Run(name, func(t *testing.T) {
			dir := t.TempDir()
			write(t, filepath.Join(dir, "apt-get"), "#!/bin/sh\ncd "+dir+"\nprintf '%s ' \"$1\" >>calls\n"+tc.aptGet+"\n")
			library, err := filepath.Abs("packages.sh")
			if err != nil {
				t.Fatal(err)
			}
			root := "true"
			if tc.root != "" {
				root = tc.root
			}
			command := exec.CommandContext(t.Context(), "bash", "-c", "set -euo pipefail\nsource "+library+"\npackages::is_root() { "+root+"; }\npackages::install hello")
			command.Env = append(os.Environ(), "PATH="+dir+":"+os.Getenv("PATH"), "JOBSET_INSTALL="+tc.install)
			var printed strings.Builder
			command.Stderr = &printed
			if err := command.Run(); (err != nil) != tc.wantErr {
				t.Errorf("error %v, want one: %t", err, tc.wantErr)
			}
			if diff := cmp.Diff(tc.want, printed.String()); diff != "" {
				t.Errorf("printed (-want +got):\n%s", diff)
			}
			calls, _ := os.ReadFile(filepath.Join(dir, "calls"))
			if diff := cmp.Diff(tc.wantCalls, string(calls)); diff != "" {
				t.Errorf("commands of apt-get (-want +got):\n%s", diff)
			}
		})
	}
}
