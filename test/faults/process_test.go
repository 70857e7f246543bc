// Copyright The jobset-apiserver Authors.
// SPDX-License-Identifier: Apache-2.0

package faults

import (
	"context"
	"errors"
	"fmt"
	"os"
	"os/exec"
	"path/filepath"
	"sync"
	"syscall"
	"testing"
	"time"

	"k8s.io/apimachinery/pkg/util/wait"
)

// process is a running controller.
type process struct {
	cmd *exec.Cmd
	// ended is closed when the process has ended.
	ended chan struct{}
}

// controllers starts controllers that ask one proxy, and ends them with the test.
type controllers struct {
	*testing.T
	kubeconfig string
	flags      []string
	log        *os.File
}

func newControllers(t *testing.T, kubeconfig string, flags ...string) *controllers {
	t.Helper()
	log, err := os.Create(filepath.Join(t.TempDir(), "controller.log"))
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() {
		if t.Failed() {
			logTail(t, log.Name())
		}
		log.Close()
	})
	return &controllers{T: t, kubeconfig: kubeconfig, flags: flags, log: log}
}

func logTail(t *testing.T, path string) {
	const most = 20_000
	content, err := os.ReadFile(path)
	if err != nil {
		t.Error(err)
	}
	t.Logf("last output of the controllers:\n%s", content[max(0, len(content)-most):])
}

// start starts a controller.
func (c *controllers) start() (*process, error) {
	cmd := exec.Command(shared.Program("jobset-controller"), append([]string{
		"--kubeconfig=" + c.kubeconfig, "--leader-elect-resource-namespace=jobset-system",
		"--metrics-bind-address=0", "--health-probe-bind-address=0", "--v=2",
	}, c.flags...)...)
	cmd.Stdout, cmd.Stderr = c.log, c.log
	// It must not outlive the test, however that ends.
	cmd.SysProcAttr = &syscall.SysProcAttr{Pdeathsig: syscall.SIGKILL}
	if err := cmd.Start(); err != nil {
		return nil, err
	}
	p := &process{cmd: cmd, ended: make(chan struct{})}
	go func() {
		defer close(p.ended)
		_ = cmd.Wait() // how it ended is asked for where it matters
	}()
	c.Cleanup(func() { p.kill() })
	return p, nil
}

// must starts a controller, or ends the test.
func (c *controllers) must() *process {
	c.Helper()
	p, err := c.start()
	if err != nil {
		c.Fatal(err)
	}
	return p
}

func (p *process) signal(s syscall.Signal) { _ = p.cmd.Process.Signal(s) }

// kill ends the process at once and returns when it is gone.
func (p *process) kill() {
	p.signal(syscall.SIGKILL)
	<-p.ended
}

// exitCode waits for the end of the process.
func (p *process) exitCode(timeout time.Duration) (int, error) {
	select {
	case <-p.ended:
		return p.cmd.ProcessState.ExitCode(), nil
	case <-time.After(timeout):
		return 0, errors.New("the process does not end")
	}
}

// supervisor keeps one controller running, as a kubelet does: one that was killed is followed by the next.
type supervisor struct {
	*controllers

	mu      sync.Mutex
	current *process
	stopped bool
	deaths  int
}

func supervise(c *controllers) *supervisor {
	s := &supervisor{controllers: c}
	s.mu.Lock()
	s.current = c.must()
	s.mu.Unlock()
	over := make(chan struct{})
	go func() {
		defer close(over)
		for s.replace() {
		}
	}()
	c.Cleanup(func() {
		s.mu.Lock()
		s.stopped = true
		s.mu.Unlock()
		s.kill()
		<-over
	})
	return s
}

// replace waits for the end of the controller and starts the next one.
func (s *supervisor) replace() bool {
	s.mu.Lock()
	p := s.current
	s.mu.Unlock()
	<-p.ended
	s.mu.Lock()
	defer s.mu.Unlock()
	if s.stopped {
		return false
	}
	if p.cmd.ProcessState.Sys().(syscall.WaitStatus).Signal() != syscall.SIGKILL {
		s.Errorf("the controller ended by itself: %v", p.cmd.ProcessState)
		return false
	}
	s.deaths++
	next, err := s.start()
	if err != nil {
		s.Errorf("starting the next controller: %v", err)
		return false
	}
	s.current = next
	return true
}

// kill ends the controller that runs now.
func (s *supervisor) kill() {
	s.mu.Lock()
	p := s.current
	s.mu.Unlock()
	p.kill()
}

// died waits until all the kills are known, and tells if there were others.
func (s *supervisor) died(kills int) error {
	deaths := 0
	err := wait.PollUntilContextTimeout(context.Background(), pollInterval, phaseTimeout, true, func(context.Context) (bool, error) {
		s.mu.Lock()
		defer s.mu.Unlock()
		deaths = s.deaths
		return deaths >= kills, nil
	})
	if err != nil || deaths != kills {
		return fmt.Errorf("controllers died %d times, must have died %d times", deaths, kills)
	}
	return nil
}
