// Copyright The jobset-apiserver Authors.
// SPDX-License-Identifier: Apache-2.0

package main

import (
	"errors"
	"fmt"
	"io/fs"
	"os"
	"path/filepath"
	"strconv"
	"strings"

	"golang.org/x/sys/unix"
)

// cgroupRoot is where control groups are mounted.
const cgroupRoot = "/sys/fs/cgroup"

// limitMemory limits the memory of a process as that of a container is limited: by a control group, if this user may make one.
// Otherwise the limit is on the data segment. That counts memory that the process has given back to the system, too, and ends a Go
// program earlier. The function that it returns ends the limit.
func limitMemory(pid int, name string, limit uint64) (end func() error, err error) {
	parent, file := filepath.Join(cgroupRoot, "memory"), "memory.limit_in_bytes" // version 1
	if _, err := os.Stat(filepath.Join(parent, file)); err != nil {
		parent, file = cgroupRoot, "memory.max" // version 2
		controllers, _ := os.ReadFile(filepath.Join(parent, "cgroup.subtree_control"))
		if !strings.Contains(string(controllers), "memory") {
			return limitData(pid, limit)
		}
	}
	dir := filepath.Join(parent, "jobset-"+name)
	if err := os.Mkdir(dir, 0o755); err != nil && !errors.Is(err, fs.ErrExist) {
		return limitData(pid, limit)
	}
	// Version 1 counts what the process has already allocated only if it is asked to.
	_ = os.WriteFile(filepath.Join(dir, "memory.move_charge_at_immigrate"), []byte("1"), 0)
	if err := os.WriteFile(filepath.Join(dir, file), []byte(strconv.FormatUint(limit, 10)), 0); err != nil {
		return nil, fmt.Errorf("limiting memory: %w", err)
	}
	if err := move(pid, dir); err != nil {
		return nil, fmt.Errorf("limiting memory: %w", err)
	}
	return func() error {
		if err := move(pid, parent); err != nil && !errors.Is(err, unix.ESRCH) {
			return fmt.Errorf("ending the limit on memory: %w", err)
		}
		return os.Remove(dir)
	}, nil
}

// move puts a process into a control group.
func move(pid int, dir string) error {
	return os.WriteFile(filepath.Join(dir, "cgroup.procs"), []byte(strconv.Itoa(pid)), 0)
}

func limitData(pid int, limit uint64) (end func() error, err error) {
	if err := unix.Prlimit(pid, unix.RLIMIT_DATA, &unix.Rlimit{Cur: limit, Max: limit}, nil); err != nil {
		return nil, fmt.Errorf("limiting memory: %w", err)
	}
	return func() error { return nil }, nil
}
