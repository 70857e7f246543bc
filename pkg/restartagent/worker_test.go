// Copyright The jobset-apiserver Authors.
// SPDX-License-Identifier: Apache-2.0

package restartagent

import (
	"bufio"
	"bytes"
	"context"
	"fmt"
	"os"
	"os/exec"
	"os/signal"
	"path/filepath"
	"slices"
	"strconv"
	"strings"
	"syscall"
	"testing"
	"time"
)

// asWorker makes the program of the tests run the command in it as an agent does whose barrier has just been lifted: a
// worker takes over all children of its process.
const asWorker = "RESTART_AGENT_TEST_COMMAND"

func TestMain(m *testing.M) {
	command, set := os.LookupEnv(asWorker)
	if !set {
		os.Exit(m.Run())
	}
	signals := make(chan os.Signal, 1)
	signal.Notify(signals, syscall.SIGTERM, syscall.SIGINT)
	a := newAgent(&Config{Command: command, Shell: os.Getenv("TEST_SHELL")}, nil, signals)
	if err := a.lift(); err != nil {
		os.Exit(complain(err))
	}
	for {
		if code, _ := a.await(context.Background(), 0); code != nil {
			os.Exit(*code)
		}
	}
}

// agentProcess is an agent that runs a command in a process of its own.
func agentProcess(t *testing.T, shell, command string) *exec.Cmd {
	t.Helper()
	cmd := exec.Command(os.Args[0])
	cmd.Env = append(os.Environ(), asWorker+"="+command, "TEST_SHELL="+shell)
	cmd.WaitDelay = time.Minute
	return cmd
}

func TestExitCodeOfTheWorker(t *testing.T) {
	for name, tc := range map[string]struct {
		shell, command string
		want           int
		wantOutput     string
	}{
		"success":                       {command: "true"},
		"failure":                       {command: "exit 42", want: 42},
		"killed":                        {command: "kill -9 $$", want: 137},
		"output":                        {command: "seq 1 20000; echo end >&2; exit 3", want: 3, wantOutput: "end"},
		"children that have ended":      {command: "for i in 1 2 3 4; do (sleep 0.01 &) ; done; sleep 0.1; exit 5", want: 5},
		"children that go on":           {command: "sleep 1000 & exit 6", want: 6},
		"a shell that is not there":     {shell: "/no/shell", command: "true", want: 1, wantOutput: "WORKER_COMMAND runs /no/shell with a shell, which must be in the image: set SHELL to its path"},
		"a shell that is not a program": {shell: "/dev/null", command: "true", want: 1, wantOutput: "SHELL"},
	} {
		t.Run(name, func(t *testing.T) {
			if tc.shell == "" {
				tc.shell = "bash"
			}
			cmd := agentProcess(t, tc.shell, tc.command)
			var output bytes.Buffer
			cmd.Stdout, cmd.Stderr = &output, &output
			_ = cmd.Run()
			if got := cmd.ProcessState.ExitCode(); got != tc.want {
				t.Errorf("exit code %d, want %d; output %.500s", got, tc.want, output.String())
			}
			if name == "output" && !strings.Contains(output.String(), "\n20000\n") || !strings.Contains(output.String(), tc.wantOutput) {
				t.Errorf("%q is not all of the output", output.String()[max(0, output.Len()-300):])
			}
		})
	}
}

// TestSignalsReachTheWorker sends one to an agent whose worker ends in good order, which must be heard, and whose child does not.
func TestSignalsReachTheWorker(t *testing.T) {
	for signal, want := range map[syscall.Signal]int{syscall.SIGTERM: 143, syscall.SIGINT: 130} {
		t.Run(signal.String(), func(t *testing.T) {
			cmd := agentProcess(t, "bash", `trap 'echo saved; exit 0' TERM INT; (trap "" TERM INT; exec sleep 1000) & echo $!; while :; do sleep 0.05; done`)
			out, err := cmd.StdoutPipe()
			if err != nil {
				t.Fatal(err)
			}
			if err := cmd.Start(); err != nil {
				t.Fatal(err)
			}
			lines := bufio.NewScanner(out)
			lines.Scan()
			child, err := strconv.Atoi(lines.Text())
			if err != nil {
				t.Fatal(err)
			}
			_ = cmd.Process.Signal(signal)
			lines.Scan()
			if lines.Text() != "saved" {
				t.Errorf("the worker wrote %q", lines.Text())
			}
			_ = cmd.Wait()
			if got := cmd.ProcessState.ExitCode(); got != want {
				t.Errorf("exit code %d, want %d", got, want)
			}
			until(t, "no process of the worker is left", func() bool { return syscall.Kill(child, 0) != nil || zombie(child) })
		})
	}
}

// zombie reports whether a process has ended and its parent has not waited for it.
func zombie(pid int) bool {
	stat, err := os.ReadFile(fmt.Sprintf("/proc/%d/stat", pid))
	return err != nil || strings.Contains(string(stat), ") Z ")
}

// TestOrphansAreReaped has a worker lose children, and looks for them among the processes.
func TestOrphansAreReaped(t *testing.T) {
	file := filepath.Join(t.TempDir(), "left")
	cmd := agentProcess(t, "bash", `for i in 1 2 3 4 5; do (sleep 0.05 & echo $!) >>`+file+`; done; sleep 1000`)
	if err := cmd.Start(); err != nil {
		t.Fatal(err)
	}
	defer func() { _ = cmd.Process.Signal(syscall.SIGTERM); _ = cmd.Wait() }()
	until(t, "five processes have begun and none is left", func() bool {
		content, _ := os.ReadFile(file)
		pids := strings.Fields(string(content))
		return len(pids) == 5 && !slices.ContainsFunc(pids, func(pid string) bool {
			_, err := os.Stat("/proc/" + pid)
			return err == nil
		})
	})
}

// until polls until it holds, at most until shortly before the deadline of the tests.
func until(t *testing.T, what string, holds func() bool) {
	t.Helper()
	for !holds() {
		if deadline, ok := t.Deadline(); ok && time.Until(deadline) < time.Minute {
			t.Fatalf("it does not hold that %s", what)
		}
		time.Sleep(10 * time.Millisecond)
	}
}

func TestCopy(t *testing.T) {
	dir := t.TempDir()
	if err := copyProgram(dir); err != nil {
		t.Fatal(err)
	}
	info, err := os.Stat(filepath.Join(dir, "jobset-restart-agent"))
	if err != nil {
		t.Fatal(err)
	}
	if info.Mode().Perm()&0o111 == 0 || info.Size() < 1<<20 {
		t.Errorf("mode %v, %d bytes", info.Mode(), info.Size())
	}
	if err := copyProgram(filepath.Join(dir, "missing")); err == nil {
		t.Error("a directory that is not there was taken")
	}
}

func TestUsage(t *testing.T) {
	if code := Main([]string{"copy"}); code != 1 {
		t.Errorf("exit code %d", code)
	}
}
