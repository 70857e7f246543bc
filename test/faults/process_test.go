// Copyright The jobset-apiserver Authors.
// SPDX-License-Identifier: Apache-2.0

package faults

import (
	"context"
	"fmt"
	"os"
	"path/filepath"
	"sync"
	"syscall"
	"testing"

	"k8s.io/apimachinery/pkg/util/wait"

	"github.com/jobset-apiserver/jobset-apiserver/test/framework"
)

// controllers starts controllers that ask one proxy, and ends them with the test.
type controllers struct {
	framework.Test
	kubeconfig string
	flags      []string
	log        string
}

func newControllers(t *testing.T, kubeconfig string, flags ...string) *controllers {
	t.Helper()
	c := &controllers{Test: framework.Test{T: t}, kubeconfig: kubeconfig, flags: flags, log: filepath.Join(t.TempDir(), "controller.log")}
	t.Cleanup(func() {
		if t.Failed() {
			logTail(t, c.log)
		}
	})
	return c
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
func (c *controllers) start() (*framework.Process, error) {
	p, err := framework.StartProcess(c.log, shared.Program("jobset-controller"), append([]string{
		"--kubeconfig=" + c.kubeconfig, "--leader-elect-resource-namespace=jobset-system",
		"--metrics-bind-address=0", "--health-probe-bind-address=0", "--v=2",
	}, c.flags...)...)
	if err == nil {
		c.Cleanup(p.Kill)
	}
	return p, err
}

// must starts a controller, or ends the test.
func (c *controllers) must() *framework.Process {
	c.Helper()
	p, err := c.start()
	if err != nil {
		c.Fatal(err)
	}
	return p
}

// supervisor keeps one controller running, as a kubelet does: one that was killed is followed by the next.
type supervisor struct {
	*controllers

	mu      sync.Mutex
	current *framework.Process
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
	<-p.Done()
	s.mu.Lock()
	defer s.mu.Unlock()
	if s.stopped {
		return false
	}
	if p.State().Sys().(syscall.WaitStatus).Signal() != syscall.SIGKILL {
		s.Errorf("the controller ended by itself: %v", p.State())
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
	p.Kill()
}

// died waits until all kills are seen, and returns an error if there were others.
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
