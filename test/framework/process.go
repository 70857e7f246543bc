// Copyright The jobset-apiserver Authors.
// SPDX-License-Identifier: Apache-2.0

package framework

import (
	"context"
	"errors"
	"fmt"
	"os"
	"os/exec"
	"path/filepath"
	"strconv"
	"syscall"
	"testing"
	"time"

	"github.com/jobset-apiserver/jobset-apiserver/test/localcluster"
)

// Process is a program that runs beside the tests. Its output goes to a file.
type Process struct {
	// LogFile is the file with the output.
	LogFile string

	cmd  *exec.Cmd
	done chan struct{}
	err  error
}

// StartProcess starts a program and appends its output to the file.
func StartProcess(logFile, path string, args ...string) (*Process, error) {
	file, err := os.OpenFile(logFile, os.O_APPEND|os.O_CREATE|os.O_WRONLY, 0o644)
	if err != nil {
		return nil, err
	}
	defer file.Close()
	p := &Process{LogFile: logFile, cmd: exec.Command(path, args...), done: make(chan struct{})}
	p.cmd.Stdout, p.cmd.Stderr = file, file
	// The program must not outlive a test binary that was killed. It is also killed when the thread ends that has started it.
	p.cmd.SysProcAttr = &syscall.SysProcAttr{Pdeathsig: syscall.SIGKILL}
	if err := p.cmd.Start(); err != nil {
		return nil, fmt.Errorf("starting %s: %w", path, err)
	}
	go func() {
		p.err = p.cmd.Wait()
		close(p.done)
	}()
	return p, nil
}

// Run starts a program, which is killed at the end of the test if it still runs.
func Run(t testing.TB, path string, args ...string) *Process {
	t.Helper()
	p, err := StartProcess(filepath.Join(t.TempDir(), filepath.Base(path)+".log"), path, args...)
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() {
		p.Kill()
		if t.Failed() {
			t.Logf("log of %s:\n%s", path, p.logEnd())
		}
	})
	return p
}

func (p *Process) name() string { return filepath.Base(p.cmd.Path) }

// Signal sends a signal to the program.
func (p *Process) Signal(signal os.Signal) error { return p.cmd.Process.Signal(signal) }

// PID is the id of the process.
func (p *Process) PID() int { return p.cmd.Process.Pid }

// Kill kills the program, if it still runs, and waits for its end.
func (p *Process) Kill() {
	_ = p.Signal(syscall.SIGKILL)
	<-p.done
}

// Terminate ends the program with SIGTERM, as Kubernetes does. It returns an error if the program has ended before, does not
// end, or ends with another exit code than 0.
func (p *Process) Terminate() error {
	select {
	case <-p.done:
		return fmt.Errorf("%s has ended before: %w; its log:\n%s", p.name(), p.err, p.logEnd())
	default:
	}
	if err := p.Signal(syscall.SIGTERM); err != nil {
		return err
	}
	select {
	case <-p.done:
		if p.err != nil {
			return fmt.Errorf("ending %s: %w; its log:\n%s", p.name(), p.err, p.logEnd())
		}
		return nil
	case <-time.After(StepTimeout()):
		p.Kill()
		return fmt.Errorf("%s does not end within %s; its log:\n%s", p.name(), StepTimeout(), p.logEnd())
	}
}

// Done is closed when the program has ended.
func (p *Process) Done() <-chan struct{} { return p.done }

// State describes how the program ended.
func (p *Process) State() *os.ProcessState { return p.cmd.ProcessState }

// Log returns what the program has written so far.
func (p *Process) Log() string {
	content, err := os.ReadFile(p.LogFile)
	if err != nil {
		return err.Error()
	}
	return string(content)
}

func (p *Process) logEnd() string {
	const limit = 20_000
	log := p.Log()
	return log[max(0, len(log)-limit):]
}

// Wait waits for the end and returns the exit code.
func (p *Process) Wait(t testing.TB) int {
	t.Helper()
	patience := stepTimeout(t)
	select {
	case <-p.done:
		return p.cmd.ProcessState.ExitCode()
	case <-time.After(patience):
		t.Fatalf("%s still runs after %s; its log:\n%s", p.name(), patience, p.logEnd())
		return -1
	}
}

// Await polls until the check passes. It returns an error if the program ends before that.
func (p *Process) Await(ctx context.Context, what string, check func(context.Context) error) error {
	ctx, cancel := context.WithCancelCause(ctx)
	defer cancel(nil)
	go func() {
		select {
		case <-p.done:
			cancel(errors.Join(errors.New("the program has ended"), p.err))
		case <-ctx.Done():
		}
	}()
	err := poll(ctx, StepTimeout(), func(ctx context.Context) error {
		select {
		case <-p.done:
			return errors.New("the program has ended")
		default:
			return check(ctx)
		}
	})
	if err != nil {
		return fmt.Errorf("waiting until %s %s: %w; its log:\n%s", p.name(), what, errors.Join(context.Cause(ctx), err), p.logEnd())
	}
	return nil
}

// UnusedPort returns a port of the loopback address that is free, and that no other test gets.
func UnusedPort() (int, error) {
	ports, err := localcluster.FreePorts(1)
	if err != nil {
		return 0, err
	}
	return strconv.Atoi(ports[0])
}

// FreePort is UnusedPort for a test.
func FreePort(t testing.TB) int {
	t.Helper()
	port, err := UnusedPort()
	if err != nil {
		t.Fatal(err)
	}
	return port
}
