// Copyright The jobset-apiserver Authors.
// SPDX-License-Identifier: Apache-2.0

package restartagent

import (
	"errors"
	"fmt"
	"os"
	"os/exec"
	"os/signal"
	"syscall"

	"golang.org/x/sys/unix"
)

// cannotRun is the exit code of the agent when the worker could not be started.
const cannotRun = 1

// worker is the process of the user, the leader of a process group, with the input and the outputs of the agent:
// nothing stands between them and kubelet, so nothing that the worker writes is lost.
type worker struct {
	pid int
	// ended gets the exit code.
	ended chan int
	// children gets a signal when one has ended.
	children chan os.Signal
}

// startWorker starts the worker. From then on, this process waits for all of its children, and those that lose their
// parent become its children: in a container of which it is the first process they would otherwise stay in the table of
// processes.
func startWorker(shell, command string) (*worker, error) {
	if err := unix.Prctl(unix.PR_SET_CHILD_SUBREAPER, 1, 0, 0, 0); err != nil {
		return nil, fmt.Errorf("preparing to wait for the processes of the worker: %w", err)
	}
	file, err := exec.LookPath(shell)
	if err != nil {
		return nil, fmt.Errorf("%s runs %s with a shell, which must be in the image: set %s to its path: %w", commandVariable, shell,
			shellVariable, err)
	}
	w := &worker{ended: make(chan int, 1), children: make(chan os.Signal, 1)}
	signal.Notify(w.children, syscall.SIGCHLD)
	process, err := os.StartProcess(file, []string{shell, "-c", command}, &os.ProcAttr{
		Env: os.Environ(), Files: []*os.File{os.Stdin, os.Stdout, os.Stderr}, Sys: &syscall.SysProcAttr{Setpgid: true},
	})
	if err != nil {
		return nil, fmt.Errorf("%s: running %s -c: %w", commandVariable, shell, err)
	}
	w.pid = process.Pid
	_ = process.Release()
	go w.wait()
	return w, nil
}

// wait waits for children until the worker has ended.
func (w *worker) wait() {
	for {
		for {
			var status unix.WaitStatus
			pid, err := unix.Wait4(-1, &status, unix.WNOHANG, nil)
			if errors.Is(err, unix.EINTR) {
				continue
			}
			if err != nil || pid <= 0 {
				break
			}
			if pid == w.pid {
				w.ended <- exitCode(status)
				return
			}
		}
		<-w.children
	}
}

// exitCode returns the exit code of the worker, or the one that shells give to a process that a signal has ended.
func exitCode(status unix.WaitStatus) int {
	if status.Signaled() {
		return 128 + int(status.Signal())
	}
	return status.ExitStatus()
}

// signal sends a signal to all processes of the group of the worker.
func (w *worker) signal(s syscall.Signal) { _ = unix.Kill(-w.pid, s) }

// kill ends the worker at once, as kubelet ends the containers of a pod that restarts.
func (w *worker) kill() { w.signal(syscall.SIGKILL) }
