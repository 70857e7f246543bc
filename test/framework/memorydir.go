// Copyright The jobset-apiserver Authors.
// SPDX-License-Identifier: Apache-2.0

package framework

import (
	"os"
	"syscall"
)

const (
	// memoryRoot is a file system in memory, on which nothing waits for a disk.
	memoryRoot = "/dev/shm"
	// roomyMemory is how many bytes must be free there. An etcd allocates more than 64 MiB when it starts.
	roomyMemory = 4 << 30
)

// memoryDir makes a directory in memory, or with other temporary files where there is too little.
func memoryDir(pattern string) (string, error) {
	var stat syscall.Statfs_t
	if syscall.Statfs(memoryRoot, &stat) != nil || stat.Bavail*uint64(stat.Bsize) < roomyMemory {
		return os.MkdirTemp("", pattern)
	}
	return os.MkdirTemp(memoryRoot, pattern)
}
