// Copyright The jobset-apiserver Authors.
// SPDX-License-Identifier: Apache-2.0

package etcd

import (
	"fmt"
	"os"
	"path/filepath"
	"strings"
	"syscall"
)

// File systems that live in memory, by the magic number of statfs(2).
const (
	tmpfsMagic = 0x01021994
	ramfsMagic = 0x858458f6
)

// CheckPersistent refuses directories that do not outlive a restart of the machine: the store holds the owners of
// running Jobs, and the garbage collector deletes the Jobs of owners that are gone.
func CheckPersistent(dir string) error {
	resolved, err := resolve(dir)
	if err != nil {
		return err
	}
	for _, temporary := range []string{os.TempDir(), "/tmp", "/var/tmp", "/dev/shm", "/run", "/var/run"} {
		if within(temporary, resolved) {
			return fmt.Errorf("%s is below %s, which is a temporary directory", dir, temporary)
		}
	}
	existing := nearestExisting(resolved)
	var stat syscall.Statfs_t
	if err := syscall.Statfs(existing, &stat); err != nil {
		return fmt.Errorf("looking at the file system of %s: %w", existing, err)
	}
	if livesInMemory(int64(stat.Type)) {
		return fmt.Errorf("%s is on a file system that lives in memory", dir)
	}
	return nil
}

// CheckApart refuses a directory for backups within the data directory, which is moved away or lost as a whole.
func CheckApart(dataDir, dir string) error {
	data, err := resolve(dataDir)
	if err != nil {
		return err
	}
	resolved, err := resolve(dir)
	if err != nil {
		return err
	}
	if within(data, resolved) {
		return fmt.Errorf("%s is within the data directory %s", dir, dataDir)
	}
	return nil
}

// livesInMemory reports whether a file system, known by its magic number, is lost in a restart.
func livesInMemory(magic int64) bool {
	return magic == tmpfsMagic || magic == ramfsMagic
}

// resolve follows the links of the part of the path that exists.
func resolve(dir string) (string, error) {
	abs, err := filepath.Abs(dir)
	if err != nil {
		return "", fmt.Errorf("resolving %s: %w", dir, err)
	}
	existing := nearestExisting(abs)
	real, err := filepath.EvalSymlinks(existing)
	if err != nil {
		return "", fmt.Errorf("resolving %s: %w", dir, err)
	}
	return filepath.Join(real, strings.TrimPrefix(abs, existing)), nil
}

func nearestExisting(path string) string {
	for path != "/" {
		if _, err := os.Stat(path); err == nil {
			return path
		}
		path = filepath.Dir(path)
	}
	return path
}

func within(parent, path string) bool {
	if real, err := filepath.EvalSymlinks(parent); err == nil {
		parent = real
	}
	rel, err := filepath.Rel(parent, path)
	return err == nil && rel != ".." && !strings.HasPrefix(rel, "../")
}
