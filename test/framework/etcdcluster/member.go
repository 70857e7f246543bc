// Copyright The jobset-apiserver Authors.
// SPDX-License-Identifier: Apache-2.0

package etcdcluster

import (
	"fmt"
	"sync"
	"syscall"
	"time"

	"github.com/jobset-apiserver/jobset-apiserver/test/framework"
)

// Member is a member of a cluster, which runs or not.
type Member struct {
	Name string
	// Endpoint is its address for clients.
	Endpoint string

	binary, log string
	// peer is where it listens to the others, relay where the others reach it.
	peer, relay string
	args        []string

	mu      sync.Mutex
	process *framework.Process
}

// Start starts the member, unless it runs.
func (m *Member) Start() error {
	m.mu.Lock()
	defer m.mu.Unlock()
	if m.process != nil {
		select {
		case <-m.process.Done():
		default:
			return nil
		}
	}
	process, err := framework.StartProcess(m.log, m.binary, m.args...)
	if err != nil {
		return fmt.Errorf("starting %s: %w", m.Name, err)
	}
	m.process = process
	return nil
}

// PID is the ID of the process.
func (m *Member) PID() int { return m.current().PID() }

// current is the process that was started last; nil before the first start.
func (m *Member) current() *framework.Process {
	m.mu.Lock()
	defer m.mu.Unlock()
	return m.process
}

// Stop ends the member with SIGTERM and waits for its end. etcd ends by the signal itself once it has stopped.
func (m *Member) Stop() error {
	process := m.current()
	if err := process.Signal(syscall.SIGTERM); err != nil {
		return fmt.Errorf("stopping %s: %w", m.Name, err)
	}
	select {
	case <-process.Done():
		return nil
	case <-time.After(framework.StepTimeout()):
		process.Kill()
		return fmt.Errorf("%s does not end within %s", m.Name, framework.StepTimeout())
	}
}

// Kill ends the member with SIGKILL and waits for its end.
func (m *Member) Kill() {
	if process := m.current(); process != nil {
		process.Kill()
	}
}

// Pause stops the member with SIGSTOP: its connections stay, and nothing is answered.
func (m *Member) Pause() error { return m.current().Signal(syscall.SIGSTOP) }

// Resume ends a pause.
func (m *Member) Resume() error { return m.current().Signal(syscall.SIGCONT) }
