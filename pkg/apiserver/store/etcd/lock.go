// Copyright The jobset-apiserver Authors.
// SPDX-License-Identifier: Apache-2.0

package etcd

import (
	"errors"
	"fmt"
	"os"
	"path/filepath"
	"syscall"
)

const lockFile = "lock"

// ErrInUse says that another process works in the data directory.
var ErrInUse = errors.New("is in use by another process")

// directoryLock keeps other processes out of a data directory. The database has a lock of its own, but opening it waits
// for that without end, and the sockets of the other process would be gone by then.
type directoryLock struct {
	file *os.File
}

func lockDirectory(dir string) (*directoryLock, error) {
	if err := ensurePrivate(dir); err != nil {
		return nil, err
	}
	file, err := os.OpenFile(filepath.Join(dir, lockFile), os.O_CREATE|os.O_RDWR, 0o600)
	if err != nil {
		return nil, fmt.Errorf("opening lock: %w", err)
	}
	if err := flock(file); err != nil {
		file.Close()
		return nil, fmt.Errorf("%s %w", dir, err)
	}
	if err := probeDatabase(Database(dir)); err != nil {
		file.Close()
		return nil, fmt.Errorf("%s %w", dir, err)
	}
	return &directoryLock{file: file}, nil
}

// probeDatabase finds an etcd or a tool of etcd that was started on the same files by hand.
func probeDatabase(path string) error {
	file, err := os.OpenFile(path, os.O_RDWR, 0o600)
	if errors.Is(err, os.ErrNotExist) {
		return nil
	}
	if err != nil {
		return fmt.Errorf("cannot be used: %w", err)
	}
	defer file.Close()
	return flock(file)
}

func flock(file *os.File) error {
	err := syscall.Flock(int(file.Fd()), syscall.LOCK_EX|syscall.LOCK_NB)
	if errors.Is(err, syscall.EWOULDBLOCK) {
		return ErrInUse
	}
	if err != nil {
		return fmt.Errorf("cannot be locked: %w", err)
	}
	return nil
}

// release ends the lock. The file stays: removing it would let two processes lock two files of one name.
func (l *directoryLock) release() {
	l.file.Close()
}
