// Copyright The jobset-apiserver Authors.
// SPDX-License-Identifier: Apache-2.0

package runbook

import (
	"bufio"
	"fmt"
	"io"
	"os"
	"os/exec"
	"path/filepath"
	"strings"
	"testing"
	"time"
)

// Shell is one bash, in which commands run as if a reader pasted them one after another: variables stay.
type Shell struct {
	script string
	stdin  io.Writer
	lines  <-chan string
}

// NewShell starts the shell in the directory. It ends with the test.
func NewShell(t testing.TB, dir string, env ...string) *Shell {
	t.Helper()
	cmd := exec.Command("bash", "--noprofile", "--norc")
	cmd.Dir, cmd.Env = dir, append(os.Environ(), env...)
	stdin, err := cmd.StdinPipe()
	if err != nil {
		t.Fatal(err)
	}
	output, err := cmd.StdoutPipe()
	if err != nil {
		t.Fatal(err)
	}
	cmd.Stderr = cmd.Stdout // both in the order in which a terminal shows them
	if err := cmd.Start(); err != nil {
		t.Fatal(err)
	}
	lines := make(chan string)
	go func() {
		defer close(lines)
		reader := bufio.NewReader(output)
		for {
			line, err := reader.ReadString('\n')
			if line != "" {
				lines <- line
			}
			if err != nil {
				return
			}
		}
	}()
	t.Cleanup(func() {
		_ = cmd.Process.Kill() // it waits for commands otherwise
		for range lines {
			continue
		}
		_ = cmd.Wait()
	})
	return &Shell{filepath.Join(t.TempDir(), "commands"), stdin, lines}
}

// end is printed after the last output of a step, with its exit code.
const end = "-- end of the step:"

// Run runs commands and returns what they printed, and the exit code of the last one that failed, or 0. The test fails if they take longer
// than the limit.
func (s *Shell) Run(t testing.TB, limit time.Duration, commands string) (printed string, code int) {
	t.Helper()
	if err := os.WriteFile(s.script, []byte(commands+"\n"), 0o600); err != nil {
		t.Fatal(err)
	}
	const frame = "set -o pipefail -o errtrace; code=0; trap 'code=$?' ERR\nsource %q </dev/null\nprintf '\\n%s %%d\\n' \"$code\"\n"
	if _, err := fmt.Fprintf(s.stdin, frame, s.script, end); err != nil {
		t.Fatal(err)
	}
	deadline := time.After(limit)
	var b strings.Builder
	for {
		select {
		case line, open := <-s.lines:
			if !open {
				t.Fatalf("the shell has ended:\n%s\nit printed:\n%s", commands, b.String())
			}
			if _, err := fmt.Sscanf(line, end+" %d", &code); err == nil {
				return strings.TrimSuffix(b.String(), "\n"), code
			}
			b.WriteString(line)
		case <-deadline:
			t.Fatalf("not done within %v:\n%s\nit printed:\n%s", limit, commands, b.String())
		}
	}
}
