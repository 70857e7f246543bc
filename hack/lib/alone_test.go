// Copyright The jobset-apiserver Authors.
// SPDX-License-Identifier: Apache-2.0

package lib_test

import (
	"bufio"
	"io"
	"os"
	"os/exec"
	"path/filepath"
	"strings"
	"testing"
)

// alone is hack/alone.sh in a checkout of its own.
func alone(t *testing.T) string {
	t.Helper()
	content, err := os.ReadFile(filepath.Join("..", "alone.sh"))
	if err != nil {
		t.Fatal(err)
	}
	script := filepath.Join(t.TempDir(), "hack", "alone.sh")
	write(t, script, string(content))
	return script
}

// Only a command that ran and succeeded is a success.
func TestAloneExitsAsTheCommand(t *testing.T) {
	script := alone(t)
	for name, test := range map[string]struct {
		args []string
		want int
	}{
		"a command that succeeds":           {args: []string{"true"}},
		"a command that fails":              {args: []string{"sh", "-c", "exit 3"}, want: 3},
		"a command that is killed":          {args: []string{"sh", "-c", "kill -9 $$"}, want: 128 + 9},
		"a command that does not exist":     {args: []string{filepath.Join(t.TempDir(), "none")}, want: 69},
		"no command":                        {want: 64},
		"a measured command that fails":     {args: []string{filepath.Join("..", "measured.sh"), "none", "sh", "-c", "exit 3"}, want: 3},
		"a measured command that is killed": {args: []string{filepath.Join("..", "measured.sh"), "none", "sh", "-c", "kill -9 $$"}, want: 128 + 9},
	} {
		t.Run(name, func(t *testing.T) {
			command := exec.CommandContext(t.Context(), script, test.args...)
			out, _ := command.CombinedOutput()
			if got := command.ProcessState.ExitCode(); got != test.want {
				t.Errorf("exits with %d, want %d\n%s", got, test.want, out)
			}
		})
	}
}

// TestAloneSaysThatItWaits runs two commands, of which the second has to wait.
func TestAloneSaysThatItWaits(t *testing.T) {
	script := alone(t)
	first := exec.CommandContext(t.Context(), script, "sh", "-c", "echo runs; read line")
	end, err := first.StdinPipe()
	if err != nil {
		t.Fatal(err)
	}
	runs, err := first.StdoutPipe()
	if err != nil {
		t.Fatal(err)
	}
	if err := first.Start(); err != nil {
		t.Fatal(err)
	}
	if line, err := bufio.NewReader(runs).ReadString('\n'); err != nil || line != "runs\n" {
		t.Fatalf("the first command: %q, %v", line, err)
	}
	second := exec.CommandContext(t.Context(), script, "echo", "runs, too")
	said, err := second.StderrPipe()
	if err != nil {
		t.Fatal(err)
	}
	var out strings.Builder
	second.Stdout = &out
	if err := second.Start(); err != nil {
		t.Fatal(err)
	}
	errors := bufio.NewReader(said)
	if line, err := errors.ReadString('\n'); err != nil || !strings.HasPrefix(line, "waiting for another run of the suites in this checkout, which holds ") {
		t.Errorf("the second command says %q, %v", line, err)
	}
	if _, err := io.WriteString(end, "end\n"); err != nil {
		t.Fatal(err)
	}
	if rest, err := io.ReadAll(errors); err != nil || len(rest) > 0 {
		t.Errorf("the second command says also %q, %v", rest, err)
	}
	if err := second.Wait(); err != nil || out.String() != "runs, too\n" {
		t.Errorf("the second command: %q, %v", out.String(), err)
	}
	if err := first.Wait(); err != nil {
		t.Error(err)
	}
}
