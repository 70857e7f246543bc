// Copyright The jobset-apiserver Authors.
// SPDX-License-Identifier: Apache-2.0

package framework

import (
	"errors"
	"fmt"
	"os"
	"path/filepath"
	"strconv"
	"strings"
	"syscall"
)

const (
	// memoryRoot is a file system in memory, on which nothing waits for a disk.
	memoryRoot = "/dev/shm"
	// roomyMemory is how many bytes must be free there. An etcd allocates more than 64 MiB when it starts.
	roomyMemory = 4 << 30
	// memoryPrefix begins the names of directories there. The number of the process follows that made it.
	memoryPrefix = "js-"
)

// memoryDir makes a directory in memory, or with other temporary files where there is too little.
func memoryDir() (string, error) {
	var stat syscall.Statfs_t
	if syscall.Statfs(memoryRoot, &stat) != nil || stat.Bavail*uint64(stat.Bsize) < roomyMemory {
		return os.MkdirTemp("", memoryPrefix)
	}
	return os.MkdirTemp(memoryRoot, fmt.Sprintf("%s%d-", memoryPrefix, os.Getpid()))
}

// sweepMemory removes the directories of processes that were killed before they did, if this user may.
func sweepMemory() {
	dirs, _ := filepath.Glob(filepath.Join(memoryRoot, memoryPrefix+"*-*")) // the pattern is right
	for _, dir := range dirs {
		number, _, _ := strings.Cut(strings.TrimPrefix(filepath.Base(dir), memoryPrefix), "-")
		if pid, failed := strconv.Atoi(number); failed == nil && errors.Is(syscall.Kill(pid, 0), syscall.ESRCH) {
			_ = os.RemoveAll(dir)
		}
	}
}
