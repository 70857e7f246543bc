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
	"strings"
	"syscall"
	"time"

	"github.com/jobset-apiserver/jobset-apiserver/test/localcluster"
)

// Inject makes system calls of a program fail or take long, until the returned function is called. It needs root.
func Inject(ctx context.Context, logFile string, process *Process, calls, how string) (release func() error, err error) {
	root, err := localcluster.Root()
	if err != nil {
		return nil, err
	}
	out, err := exec.Command(filepath.Join(root, "hack", "ensure-strace.sh")).Output()
	if err != nil {
		return nil, fmt.Errorf("finding strace: %w", err)
	}
	tracer, err := StartProcess(logFile, strings.TrimSpace(string(out)), "-f", "-qq", "-o", os.DevNull, "-p", fmt.Sprint(process.PID()),
		"-e", "trace="+calls, "-e", "inject="+calls+":"+how)
	if err != nil {
		return nil, err
	}
	release = func() error {
		_ = tracer.Signal(os.Interrupt) // it may have ended with the program
		select {
		case <-tracer.Done():
			return nil
		case <-time.After(StepTimeout()):
			tracer.Kill()
			return fmt.Errorf("strace does not end: %s", tracer.Log())
		}
	}
	err = tracer.Await(ctx, "traces all threads", func(context.Context) error {
		select {
		case <-process.Done(): // so soon
			return nil
		default:
			return traced(process.PID(), tracer.PID())
		}
	})
	if err != nil {
		select {
		case <-process.Done():
			return release, nil //nolint:nilerr // strace has ended with it, or a moment earlier
		case <-time.After(StepTimeout()):
		}
		return nil, errors.Join(err, release())
	}
	return release, nil
}

// traced returns an error unless all threads of a process are traced.
func traced(pid, tracer int) error {
	threads, err := filepath.Glob(fmt.Sprintf("/proc/%d/task/*/status", pid))
	if err != nil || len(threads) == 0 {
		return errors.Join(errors.New("the program has no threads"), err)
	}
	for _, thread := range threads {
		status, err := os.ReadFile(thread)
		if err == nil && !strings.Contains(string(status), fmt.Sprintf("TracerPid:\t%d\n", tracer)) {
			return fmt.Errorf("%s is not traced", thread)
		}
	}
	return nil
}

// Fill writes a file until its file system has no space.
func Fill(name string) error {
	file, err := os.Create(name)
	if err != nil {
		return err
	}
	defer file.Close()
	for block := make([]byte, 4096); err == nil; {
		_, err = file.Write(block)
	}
	if errors.Is(err, syscall.ENOSPC) {
		return nil
	}
	return err
}
