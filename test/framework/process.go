// Copyright The jobset-apiserver Authors.
// SPDX-License-Identifier: Apache-2.0

package framework

import (
	"bytes"
	"fmt"
	"net"
	"os"
	"os/exec"
	"sync"
	"syscall"
	"testing"
	"time"
)

// Process is a program that a test started. It is killed at the end of the test, if it still runs.
type Process struct {
	cmd    *exec.Cmd
	stderr lockedBuffer
	done   chan struct{}
	err    error
}

// Run starts a program.
func Run(t testing.TB, path string, args ...string) *Process {
	t.Helper()
	p := &Process{cmd: exec.Command(path, args...), done: make(chan struct{})}
	p.cmd.Stderr = &p.stderr
	// The program must not outlive a test binary that was killed.
	p.cmd.SysProcAttr = &syscall.SysProcAttr{Pdeathsig: syscall.SIGKILL}
	if err := p.cmd.Start(); err != nil {
		t.Fatalf("starting %s: %v", path, err)
	}
	go func() {
		p.err = p.cmd.Wait()
		close(p.done)
	}()
	t.Cleanup(func() {
		_ = p.cmd.Process.Kill()
		<-p.done
		if t.Failed() {
			t.Logf("log of %s:\n%s", path, tail(p.stderr.String(), 20000))
		}
	})
	return p
}

// Signal sends a signal to the program.
func (p *Process) Signal(signal os.Signal) error { return p.cmd.Process.Signal(signal) }

// Done is closed when the program has ended.
func (p *Process) Done() <-chan struct{} { return p.done }

// Stderr is what the program has written so far.
func (p *Process) Stderr() string { return p.stderr.String() }

// Wait waits for the end and returns the exit code.
func (p *Process) Wait(t testing.TB, timeout time.Duration) int {
	t.Helper()
	select {
	case <-p.done:
		return p.cmd.ProcessState.ExitCode()
	case <-time.After(timeout):
		t.Fatalf("%s still runs after %s", p.cmd.Path, timeout)
		return -1
	}
}

// FreePort returns a port of the loopback address that nobody uses at this moment.
func FreePort(t testing.TB) int {
	t.Helper()
	listener, err := net.Listen("tcp", "127.0.0.1:0")
	if err != nil {
		t.Fatal(err)
	}
	defer listener.Close()
	return listener.Addr().(*net.TCPAddr).Port
}

type lockedBuffer struct {
	mu     sync.Mutex
	buffer bytes.Buffer
}

func (b *lockedBuffer) Write(p []byte) (int, error) {
	b.mu.Lock()
	defer b.mu.Unlock()
	return b.buffer.Write(p)
}

func (b *lockedBuffer) String() string {
	b.mu.Lock()
	defer b.mu.Unlock()
	return b.buffer.String()
}

func tail(s string, limit int) string {
	if len(s) <= limit {
		return s
	}
	return fmt.Sprintf("… %s", s[len(s)-limit:])
}
