// Copyright The jobset-apiserver Authors.
// SPDX-License-Identifier: Apache-2.0

// Package lib tests the shell functions of this directory.
package lib

import (
	"fmt"
	"os"
	"os/exec"
	"path/filepath"
	"strings"
	"testing"
)

// looks is how often a test looks at a process: a wrong answer that one look in a hundred gives shows in nearly every run.
const looks = 500

// TestLivingProcessIsNeverTakenForDead looks at processes of the cluster that live all the time.
func TestLivingProcessIsNeverTakenForDead(t *testing.T) {
	for name, command := range map[string]string{
		// The reader of a long command line may close the pipe before all of it is written.
		"with a command line of 60 KB": `exec "${CLUSTER_DIR}/program" $(printf 'argument-%%.0s %%.0s' {1..6000}) 600`,
		// While a process becomes another program, its command line is empty for a moment.
		"that becomes a program again and again": `exec "${CLUSTER_DIR}/program" 600`,
	} {
		t.Run(name, func(t *testing.T) {
			dir := t.TempDir()
			program := "#!/bin/sh\nexec \"$0\" \"$@\"\n"
			if strings.Contains(command, "argument-") {
				program = "#!/bin/sh\nread -r _\n"
			}
			write(t, filepath.Join(dir, "program"), program)
			out := run(t, dir, fmt.Sprintf(`
				mkfifo "${CLUSTER_DIR}/silence"
				( %s ) <>"${CLUSTER_DIR}/silence" &
				pid=$!
				trap 'kill -KILL "${pid}"' EXIT
				poll 10 process::is_ours "${pid}"
				dead=0
				for _ in {1..%d}; do process::is_ours "${pid}" || dead=$((dead + 1)); done
				echo "taken for dead: ${dead}"`, strings.ReplaceAll(command, "%%", "%"), looks))
			if want := "taken for dead: 0"; !strings.Contains(out, want) {
				t.Errorf("%d looks at a living process: want %q, got %q", looks, want, out)
			}
		})
	}
}

func TestEndedAndForeignProcessesAreNotOurs(t *testing.T) {
	for name, script := range map[string]string{
		"ended":                       `true & pid=$!; wait "${pid}"`,
		"ended and not waited for":    `bash -c 'sleep 0 & exec sleep 600' & sleeper=$!; poll 10 zombie; trap 'kill "${sleeper}"' EXIT`,
		"of something else":           `sleep 600 & pid=$!; trap 'kill "${pid}"' EXIT`,
		"of the directory next to it": `mkdir "${CLUSTER_DIR}-2"; cp "$(command -v sleep)" "${CLUSTER_DIR}-2/"; "${CLUSTER_DIR}-2/sleep" 600 & pid=$!; trap 'kill "${pid}"' EXIT`,
	} {
		t.Run(name, func(t *testing.T) {
			out := run(t, t.TempDir(), `
				zombie() { pid=$(cat "/proc/${sleeper}/task/${sleeper}/children") && pid=${pid%% *} && [[ "$(cat "/proc/${pid}/stat")" == *") Z "* ]]; }
				`+script+`
				if process::is_ours "${pid}"; then echo ours; else echo "not ours"; fi`)
			if got := strings.TrimSpace(out); got != "not ours" {
				t.Errorf("want %q, got %q", "not ours", got)
			}
		})
	}
}

// TestStartSaysHowItEnded wants the exit code and the last lines of a program that ends before it is ready.
func TestStartSaysHowItEnded(t *testing.T) {
	dir := t.TempDir()
	write(t, filepath.Join(dir, "program"), "#!/bin/sh\necho line one\necho cannot serve >&2\nexit 3\n")
	out := run(t, dir, `
		mkdir "${CLUSTER_DIR}/logs" "${CLUSTER_DIR}/pids"
		process::start example "${CLUSTER_DIR}/program"
		never() { process::must_run example; false; }
		trap 'exit 0' EXIT
		poll 60 never`)
	for _, want := range []string{"example ended with exit code 3", "line one", "cannot serve", filepath.Join(dir, "logs", "example.log")} {
		if !strings.Contains(out, want) {
			t.Errorf("want %q in:\n%s", want, out)
		}
	}
}

// run runs a script with the functions of process.sh, under the options of cluster.sh.
func run(t *testing.T, dir, script string) string {
	t.Helper()
	cmd := exec.CommandContext(t.Context(), "bash", "-c", "set -euo pipefail\nsource ./process.sh\n"+script)
	cmd.Env = append(os.Environ(), "CLUSTER_DIR="+dir)
	out, err := cmd.CombinedOutput()
	if err != nil {
		t.Fatalf("%v\n%s", err, out)
	}
	return string(out)
}

func write(t *testing.T, path, content string) {
	t.Helper()
	if err := os.WriteFile(path, []byte(content), 0o700); err != nil { //nolint:gosec // a program
		t.Fatal(err)
	}
}
