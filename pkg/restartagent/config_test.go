// Copyright The jobset-apiserver Authors.
// SPDX-License-Identifier: Apache-2.0

package restartagent

import (
	"fmt"
	"os"
	"path/filepath"
	"testing"
	"time"

	"github.com/google/go-cmp/cmp"
)

// accountOf returns a directory of a service account in the namespace.
func accountOf(t *testing.T, namespace string) string {
	t.Helper()
	dir := t.TempDir()
	if err := os.WriteFile(filepath.Join(dir, "namespace"), []byte(namespace), 0o600); err != nil {
		t.Fatal(err)
	}
	return dir
}

// environment returns variables of a sidecar, changed: an empty pointer removes one.
func environment(change map[string]*string) func(string) (string, bool) {
	vars := map[string]string{jobSetVariable: "train", podVariable: "train-w-0-0-abcde"}
	for name, value := range change {
		if value == nil {
			delete(vars, name)
		} else {
			vars[name] = *value
		}
	}
	return func(name string) (string, bool) {
		value, set := vars[name]
		return value, set
	}
}

func text(s string) *string { return &s }

func TestConfig(t *testing.T) {
	sidecar := Config{Namespace: "default", JobSet: "train", Pod: "train-w-0-0-abcde", Shell: "bash", ProbePath: "/barrier-is-down", ProbePort: 8081,
		ExitCode: 1, MaxBackoff: 5 * time.Minute}
	for name, tc := range map[string]struct {
		env  map[string]*string
		want func(*Config)
	}{
		"the defaults are those of a sidecar": {},
		"a command makes the agent its parent": {
			env:  map[string]*string{commandVariable: text("train.sh"), shellVariable: text("/bin/sh")},
			want: func(c *Config) { c.Command, c.Shell = "train.sh", "/bin/sh" },
		},
		"everything else can be set": {
			env: map[string]*string{pathVariable: text("/up"), portVariable: text("9000"), exitCodeVariable: text("88"), backoffVariable: text("0")},
			want: func(c *Config) {
				c.ProbePath, c.ProbePort, c.ExitCode, c.MaxBackoff = "/up", 9000, 88, 0
			},
		},
	} {
		t.Run(name, func(t *testing.T) {
			want := sidecar
			if tc.want != nil {
				tc.want(&want)
			}
			got, err := readConfig(environment(tc.env), accountOf(t, "default\n"))
			if err != nil {
				t.Fatal(err)
			}
			if diff := cmp.Diff(want, *got); diff != "" {
				t.Errorf("(-want +got):\n%s", diff)
			}
		})
	}
}

func TestMistakesInConfig(t *testing.T) {
	missing := t.TempDir()
	for name, tc := range map[string]struct {
		env     map[string]*string
		account string
		want    string
	}{
		"no set": {env: map[string]*string{jobSetVariable: nil},
			want: "JOBSET_NAME must be the name of the JobSet: set it with the downward API from the annotation jobset.sigs.k8s.io/jobset-name"},
		"no pod": {env: map[string]*string{podVariable: text("")},
			want: "POD_NAME must be the name of the pod: set it with the downward API from metadata.name"},
		"a pod that is a path": {env: map[string]*string{podVariable: text("../nodes/n")},
			want: `POD_NAME must be the name of the pod: set it with the downward API from metadata.name; it is "../nodes/n"`},
		"an empty command": {env: map[string]*string{commandVariable: text(" ")},
			want: "WORKER_COMMAND must be the command of the worker, or must not be set: without it, the agent is a sidecar"},
		"a command and a path": {env: map[string]*string{commandVariable: text("x"), pathVariable: text("/up")},
			want: "STARTUP_PROBE_PATH must not be set together with WORKER_COMMAND: it is for agents that run as a sidecar"},
		"a command and a port": {env: map[string]*string{commandVariable: text("x"), portVariable: text("8081")},
			want: "STARTUP_PROBE_PORT must not be set together with WORKER_COMMAND: it is for agents that run as a sidecar"},
		"a command and a backoff": {env: map[string]*string{commandVariable: text("x"), backoffVariable: text("10")},
			want: "IN_PLACE_RESTART_MAX_BACKOFF_SECONDS must not be set together with WORKER_COMMAND: it is for agents that run as a sidecar"},
		"a path without a slash": {env: map[string]*string{pathVariable: text("up")},
			want: `STARTUP_PROBE_PATH must begin with a slash, as the path of the startup probe does; it is "up"`},
		"a port that is none": {env: map[string]*string{portVariable: text("http")},
			want: `STARTUP_PROBE_PORT must be a number from 1 to 65535; it is "http"`},
		"an exit code that means success": {env: map[string]*string{exitCodeVariable: text("0")},
			want: `IN_PLACE_RESTART_EXIT_CODE must be a number from 1 to 255; it is "0"`},
		"a backoff below zero": {env: map[string]*string{backoffVariable: text("-1")},
			want: `IN_PLACE_RESTART_MAX_BACKOFF_SECONDS must be a number from 0 to 86400; it is "-1"`},
		"no service account": {account: missing,
			want: missing + "/namespace must hold the namespace of the pod: set automountServiceAccountToken to true in the pod or in its service account"},
		"two mistakes": {env: map[string]*string{portVariable: text("0"), exitCodeVariable: text("256")},
			want: "IN_PLACE_RESTART_EXIT_CODE must be a number from 1 to 255; it is \"256\"\nSTARTUP_PROBE_PORT must be a number from 1 to 65535; it is \"0\""},
	} {
		t.Run(name, func(t *testing.T) {
			if tc.account == "" {
				tc.account = accountOf(t, "default")
			}
			_, err := readConfig(environment(tc.env), tc.account)
			if got := fmt.Sprint(err); got != tc.want {
				t.Errorf("got  %s\nwant %s", got, tc.want)
			}
		})
	}
}
