// Copyright The jobset-apiserver Authors.
// SPDX-License-Identifier: Apache-2.0

package localcluster

import (
	"bytes"
	"context"
	"errors"
	"fmt"
	"os"
	"os/exec"
	"path/filepath"
	"slices"
	"strconv"
	"strings"
	"syscall"
	"time"

	"k8s.io/apimachinery/pkg/util/wait"
)

// executables are the files of the programs of a cluster, with those that start them.
var executables = []string{
	"etcd", "kube-apiserver", "kube-controller-manager", "kube-scheduler", "kwok-controller", "kwok", "kwokctl",
	"jobset-apiserver", "jobset-controller", "containerd", "containerd-shim-runc-v2", "coredns", "kubelet", "kube-proxy", "localcluster",
}

// processes are the programs that run for the cluster in the base directory. A process belongs to the cluster when its command
// line names a file below that directory; a process id alone proves nothing, since after a crash another program may have it.
type processes struct {
	base string
	// started has the programs that this command started.
	started map[string]*child
}

// child is a process that this command started.
type child struct {
	ended chan struct{}
	err   error
}

func (p *processes) file(name, suffix string) string {
	return filepath.Join(p.base, "pids", name+suffix)
}
func (p *processes) log(name string) string { return filepath.Join(p.base, "logs", name+".log") }

// lives reports whether the process has not ended. One that ended exists until its parent has waited for it.
func lives(pid int) bool {
	stat, err := os.ReadFile(fmt.Sprintf("/proc/%d/stat", pid))
	if err != nil {
		return false
	}
	// The name of the program comes before and may contain anything.
	end := bytes.LastIndex(stat, []byte(") "))
	return end >= 0 && len(stat) > end+2 && !strings.ContainsRune("ZX", rune(stat[end+2]))
}

// owns reports whether the process belongs to the cluster. While a living process becomes another program, its command
// line is empty for a moment, on a busy machine for a while.
func (p *processes) owns(pid int) bool {
	for deadline := time.Now().Add(10 * time.Second); time.Now().Before(deadline); time.Sleep(10 * time.Millisecond) {
		command, err := os.ReadFile(fmt.Sprintf("/proc/%d/cmdline", pid))
		if err != nil {
			return false
		}
		if len(command) > 0 {
			return bytes.Contains(command, []byte(p.base+"/")) && lives(pid)
		}
		// What has no executable has ended or is a thread of the kernel.
		if _, err := os.Readlink(fmt.Sprintf("/proc/%d/exe", pid)); err != nil || !lives(pid) {
			return false
		}
	}
	return false
}

// pid returns the id of the process that a pid file names, if it runs and belongs to the cluster.
func (p *processes) pid(name string) (int, bool) {
	content, err := os.ReadFile(p.file(name, ".pid"))
	if err != nil {
		return 0, false
	}
	pid, err := strconv.Atoi(strings.TrimSpace(string(content)))
	return pid, err == nil && p.owns(pid)
}

// start runs a program in a session of its own, with its output in its log.
func (p *processes) start(name string, command ...string) error {
	return p.startIn(nil, name, command...)
}

// startIn is start with variables of the environment besides those of this process.
func (p *processes) startIn(environment []string, name string, command ...string) error {
	if err := writeFile(p.file(name, ".command"), lines(command)); err != nil {
		return err
	}
	log, err := os.OpenFile(p.log(name), os.O_CREATE|os.O_APPEND|os.O_WRONLY, 0o644)
	if err != nil {
		return err
	}
	defer log.Close()
	cmd := exec.Command(command[0], command[1:]...)
	cmd.Env = append(os.Environ(), environment...)
	cmd.Stdout, cmd.Stderr = log, log
	cmd.SysProcAttr = &syscall.SysProcAttr{Setsid: true}
	if err := cmd.Start(); err != nil {
		return fmt.Errorf("starting %s: %w", name, err)
	}
	c := &child{ended: make(chan struct{})}
	p.started[name] = c
	go func() {
		c.err = cmd.Wait()
		close(c.ended)
	}()
	return writeFile(p.file(name, ".pid"), strconv.Itoa(cmd.Process.Pid)+"\n")
}

func lines(words []string) string { return strings.Join(words, "\n") + "\n" }

// current reports whether the process runs this command from the program that is on disk now.
func (p *processes) current(name string, command []string) bool {
	pid, ok := p.pid(name)
	if !ok {
		return false
	}
	running, err := os.Stat(fmt.Sprintf("/proc/%d/exe", pid))
	if err != nil {
		return false
	}
	program, err := os.Stat(command[0])
	if err != nil || !os.SameFile(running, program) {
		return false
	}
	recorded, err := os.ReadFile(p.file(name, ".command"))
	return err == nil && string(recorded) == lines(command)
}

// running returns an error with the end of the log once the program has ended.
func (p *processes) running(name string) error {
	if c := p.started[name]; c != nil {
		select {
		case <-c.ended:
			var exit *exec.ExitError
			if errors.As(c.err, &exit) {
				return p.failure(name, fmt.Errorf("%s ended with %w", name, exit))
			}
			return p.failure(name, fmt.Errorf("%s ended", name))
		default:
			return nil
		}
	}
	if _, ok := p.pid(name); !ok {
		return p.failure(name, fmt.Errorf("%s ended", name))
	}
	return nil
}

// await polls until the check passes; it fails with the end of the log when the program ends or the time is over.
func (p *processes) await(ctx context.Context, name, what string, check func(context.Context) error) error {
	return p.poll(ctx, name, what, func(ctx context.Context) error {
		if err := p.running(name); err != nil {
			return errors.Join(errEnded, err)
		}
		return check(ctx)
	})
}

// errEnded marks an error that does not pass with time.
var errEnded = errors.New("a program has ended")

// startTimeout is for one step of a start, on a machine that does other things too.
const startTimeout = 5 * time.Minute

// poll polls until the check passes; it fails with the end of the log when the time is over.
func (p *processes) poll(ctx context.Context, log, what string, check func(context.Context) error) error {
	var last error
	err := wait.PollUntilContextTimeout(ctx, 100*time.Millisecond, startTimeout, true, func(ctx context.Context) (bool, error) {
		if last = check(ctx); errors.Is(last, errEnded) {
			return false, last
		}
		return last == nil, nil
	})
	switch {
	case err == nil:
		return nil
	case errors.Is(err, errEnded):
		return err
	}
	return p.failure(log, fmt.Errorf("%s: %w", what, last))
}

// failure adds the last lines of a log to an error.
func (p *processes) failure(name string, err error) error {
	const last = 20
	content, readErr := os.ReadFile(p.log(name))
	if readErr != nil {
		return fmt.Errorf("%w\n%s: %w", err, p.log(name), readErr)
	}
	all := strings.Split(strings.TrimRight(string(content), "\n"), "\n")
	return fmt.Errorf("%w\nthe last lines of %s:\n  %s", err, p.log(name), strings.Join(all[max(0, len(all)-last):], "\n  "))
}

// stop asks all of them to end, and ends those that still run after that time.
func (p *processes) stop(timeout time.Duration, pids ...int) error {
	for _, pid := range pids {
		_ = syscall.Kill(pid, syscall.SIGTERM)
	}
	if p.gone(timeout, pids) {
		return nil
	}
	for _, pid := range pids {
		if p.owns(pid) {
			_ = syscall.Kill(pid, syscall.SIGKILL)
		}
	}
	if !p.gone(time.Minute, pids) {
		return fmt.Errorf("processes %v do not end", pids)
	}
	return nil
}

func (p *processes) gone(timeout time.Duration, pids []int) bool {
	for deadline := time.Now().Add(timeout); slices.ContainsFunc(pids, p.owns); time.Sleep(50 * time.Millisecond) {
		if time.Now().After(deadline) {
			return false
		}
	}
	return true
}

// all returns every process of the cluster: those with a pid file, and those whose start was cut off before it was written.
func (p *processes) all() []int {
	entries, err := os.ReadDir("/proc")
	if err != nil {
		return nil
	}
	var pids []int
	for _, entry := range entries {
		pid, err := strconv.Atoi(entry.Name())
		if err != nil {
			continue
		}
		program, err := os.Readlink(filepath.Join("/proc", entry.Name(), "exe"))
		name := filepath.Base(strings.TrimSuffix(program, " (deleted)"))
		if err == nil && slices.Contains(executables, name) && p.owns(pid) {
			pids = append(pids, pid)
		}
	}
	return pids
}

// stopAll stops all processes of the cluster. It looks again until there are none: one may have been starting another.
func (p *processes) stopAll() error {
	for pids := p.all(); len(pids) > 0; pids = p.all() {
		if err := p.stop(5*time.Second, pids...); err != nil {
			return err
		}
	}
	return nil
}
