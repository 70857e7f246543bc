// Copyright The jobset-apiserver Authors.
// SPDX-License-Identifier: Apache-2.0

package localcluster

import (
	"bufio"
	"errors"
	"fmt"
	"os"
	"path/filepath"
	"slices"
	"strconv"
	"strings"
	"syscall"
	"time"
)

// contained returns the processes that run in containers of the cluster. Such a process has its own view of the file system, with a mount
// that names a path below the directory of the cluster.
func (c *supervisor) contained() []int {
	own, err := os.Readlink("/proc/self/ns/mnt")
	entries, readErr := os.ReadDir("/proc")
	if err != nil || readErr != nil {
		return nil
	}
	var pids []int
	for _, entry := range entries {
		pid, err := strconv.Atoi(entry.Name())
		if err != nil || !lives(pid) {
			continue
		}
		if other, err := os.Readlink(filepath.Join("/proc", entry.Name(), "ns", "mnt")); err != nil || other == own {
			continue
		}
		mounts, err := os.ReadFile(filepath.Join("/proc", entry.Name(), "mountinfo"))
		if err == nil && strings.Contains(string(mounts), c.dir+"/") {
			pids = append(pids, pid)
		}
	}
	return pids
}

// endContainers kills what runs in containers. It looks again until there is nothing left.
func (c *supervisor) endContainers(timeout time.Duration) error {
	for deadline := time.Now().Add(timeout); ; time.Sleep(50 * time.Millisecond) {
		pids := c.contained()
		if len(pids) == 0 {
			return nil
		}
		if time.Now().After(deadline) {
			return fmt.Errorf("processes %v in containers do not end", pids)
		}
		for _, pid := range pids {
			_ = syscall.Kill(pid, syscall.SIGKILL)
		}
	}
}

// mountsBelow returns the mount points below a directory, the innermost first. The octal escapes of
// /proc/self/mountinfo do not occur in our paths.
func mountsBelow(dir string) ([]string, error) {
	file, err := os.Open("/proc/self/mountinfo")
	if err != nil {
		return nil, err
	}
	defer file.Close()
	var mounts []string
	for s := bufio.NewScanner(file); s.Scan(); {
		if fields := strings.Fields(s.Text()); len(fields) > 4 && strings.HasPrefix(fields[4], dir+"/") {
			mounts = append(mounts, fields[4])
		}
	}
	slices.Reverse(mounts)
	return mounts, nil
}

// unmount removes all mounts below the directory of the cluster.
func (c *supervisor) unmount() error {
	for range 5 {
		mounts, err := mountsBelow(c.dir)
		if err != nil || len(mounts) == 0 {
			return err
		}
		for _, mount := range mounts {
			_ = syscall.Unmount(mount, syscall.MNT_DETACH)
		}
	}
	mounts, err := mountsBelow(c.dir)
	if err == nil && len(mounts) > 0 {
		err = fmt.Errorf("%d mounts cannot be removed, the first is %s", len(mounts), mounts[0])
	}
	return err
}

// removeControlGroups removes those of containers that were killed. Their names are the ids of the containers, of which
// containerd keeps directories.
func (c *supervisor) removeControlGroups() error {
	containers, err := filepath.Glob(c.path("*", "state", "io.containerd.runtime.v2.task", "k8s.io", "*"))
	if err != nil {
		return err
	}
	var errs []error
	deadline := time.Now().Add(30 * time.Second)
	for _, container := range containers {
		groups, err := filepath.Glob(filepath.Join("/sys/fs/cgroup", "*", "k8s.io", filepath.Base(container)))
		errs = append(errs, err)
		for _, group := range groups {
			errs = append(errs, removeControlGroup(group, deadline))
		}
	}
	return errors.Join(errs...)
}

// removeControlGroup removes one. It is busy until its last process is gone, which takes a moment after that was killed.
func removeControlGroup(group string, deadline time.Time) error {
	for {
		err := syscall.Rmdir(group)
		switch {
		case err == nil, errors.Is(err, syscall.ENOENT):
			return nil
		case !errors.Is(err, syscall.EBUSY) || time.Now().After(deadline):
			return fmt.Errorf("%s: %w", group, err)
		}
		time.Sleep(100 * time.Millisecond)
	}
}
