// Copyright The jobset-apiserver Authors.
// SPDX-License-Identifier: Apache-2.0

package localcluster

import (
	"context"
	"errors"
	"fmt"
	"os"
	"os/exec"
	"path/filepath"
	"strconv"
	"strings"
	"testing"
	"time"
)

// looks is how often a test looks at a process: a wrong answer that one look in a hundred gives shows in nearly every run.
const looks = 500

func newProcesses(t *testing.T) *processes {
	t.Helper()
	p := &processes{base: t.TempDir(), started: map[string]*child{}}
	for _, dir := range []string{"logs", "pids"} {
		if err := os.Mkdir(filepath.Join(p.base, dir), 0o755); err != nil {
			t.Fatal(err)
		}
	}
	t.Cleanup(func() {
		for name := range p.started {
			if pid, ok := p.pid(name); ok {
				_ = p.stop(0, pid)
			}
		}
	})
	return p
}

func script(t *testing.T, path, content string) string {
	t.Helper()
	if err := os.WriteFile(path, []byte("#!/bin/sh\n"+content), 0o700); err != nil { //nolint:gosec // a program
		t.Fatal(err)
	}
	return path
}

// begin starts a program that reads from a silent pipe, and returns its process.
func begin(t *testing.T, path string, args ...string) *exec.Cmd {
	t.Helper()
	cmd := exec.Command(path, args...)
	if _, err := cmd.StdinPipe(); err != nil {
		t.Fatal(err)
	}
	if err := cmd.Start(); err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() {
		_ = cmd.Process.Kill()
		_ = cmd.Wait()
	})
	return cmd
}

func TestOwnsLivingProcesses(t *testing.T) {
	for name, tc := range map[string]struct {
		content string
		args    int
	}{
		"with a command line of 60 KB": {"read -r _\n", 6000},
		// While a process becomes another program, its command line is empty for a moment.
		"that becomes a program again and again": {"exec \"$0\"\n", 0},
	} {
		t.Run(name, func(t *testing.T) {
			p := newProcesses(t)
			args := make([]string, tc.args)
			for i := range args {
				args[i] = fmt.Sprintf("argument-%d", i)
			}
			cmd := begin(t, script(t, filepath.Join(p.base, "program"), tc.content), args...)
			for range looks {
				if !p.owns(cmd.Process.Pid) {
					t.Fatal("a living process of the cluster is not owned")
				}
			}
		})
	}
}

func TestDoesNotOwnOtherProcesses(t *testing.T) {
	t.Run("ended and not waited for", func(t *testing.T) {
		p := newProcesses(t)
		cmd := exec.Command(script(t, filepath.Join(p.base, "program"), "exit 0\n"))
		if err := cmd.Start(); err != nil {
			t.Fatal(err)
		}
		if !p.gone(time.Minute, []int{cmd.Process.Pid}) {
			t.Error("a process that has ended is owned")
		}
		if err := cmd.Wait(); err != nil {
			t.Fatal(err)
		}
		if p.owns(cmd.Process.Pid) {
			t.Error("a process that does not exist is owned")
		}
	})
	t.Run("of the directory next to it", func(t *testing.T) {
		p := newProcesses(t)
		if err := os.Mkdir(p.base+"-2", 0o755); err != nil {
			t.Fatal(err)
		}
		cmd := begin(t, script(t, filepath.Join(p.base+"-2", "program"), "read -r _\n"))
		if p.owns(cmd.Process.Pid) {
			t.Error("a process of another directory is owned")
		}
	})
	t.Run("whose id is in a pid file", func(t *testing.T) {
		p := newProcesses(t)
		if err := writeFile(p.file("other", ".pid"), strconv.Itoa(os.Getpid())); err != nil {
			t.Fatal(err)
		}
		if pid, ok := p.pid("other"); ok {
			t.Errorf("process %d is owned because of its pid file", pid)
		}
	})
}

// A program that ends before it is ready fails the wait at once, with its exit code and the end of its log.
func TestAwaitReportsAProgramThatEnds(t *testing.T) {
	p := newProcesses(t)
	program := script(t, filepath.Join(p.base, "program"), "echo line one\necho cannot serve >&2\nexit 3\n")
	if err := p.start("example", program); err != nil {
		t.Fatal(err)
	}
	err := p.await(t.Context(), "example", "never", func(context.Context) error { return errors.New("not ready") })
	if err == nil {
		t.Fatal("waiting for a program that has ended succeeds")
	}
	for _, want := range []string{"example ended with exit status 3", "  line one\n  cannot serve", filepath.Join(p.base, "logs", "example.log")} {
		if !strings.Contains(err.Error(), want) {
			t.Errorf("want %q in:\n%v", want, err)
		}
	}
}

func TestStartRunsInASessionOfItsOwn(t *testing.T) {
	p := newProcesses(t)
	program := script(t, filepath.Join(p.base, "program"), "while :; do sleep 1; done\n")
	if err := p.start("example", program, "--flag"); err != nil {
		t.Fatal(err)
	}
	pid, ok := p.pid("example")
	if !ok {
		t.Fatal("the program is not owned")
	}
	stat, err := os.ReadFile(fmt.Sprintf("/proc/%d/stat", pid))
	if err != nil {
		t.Fatal(err)
	}
	if session := strings.Fields(string(stat))[5]; session != strconv.Itoa(pid) {
		t.Errorf("session: got %s, want %d", session, pid)
	}
	if err := p.running("example"); err != nil {
		t.Error(err)
	}
	if err := p.stop(time.Minute, pid); err != nil || p.owns(pid) {
		t.Errorf("stopping: %v; still owned: %t", err, p.owns(pid))
	}
}
