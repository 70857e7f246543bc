// Copyright The jobset-apiserver Authors.
// SPDX-License-Identifier: Apache-2.0

package backup

import (
	"context"
	"errors"
	"fmt"
	"io/fs"
	"os"
	"path/filepath"
	"syscall"
)

// ErrRunning is returned when another backup is written into the same directory.
var ErrRunning = errors.New("another backup is being written: wait for its end")

// Save writes a backup to a file that does not exist yet.
func Save(ctx context.Context, source Source, path string) (*File, error) {
	switch _, err := os.Lstat(path); {
	case err == nil:
		return nil, fmt.Errorf("%s: %w", path, fs.ErrExist)
	case !errors.Is(err, fs.ErrNotExist):
		return nil, err
	}
	file, err := os.CreateTemp(filepath.Dir(path), filepath.Base(path)+".*.incomplete")
	if err != nil {
		return nil, err
	}
	return publish(ctx, source, file, func(*File) string { return path })
}

// publish writes a backup to an incomplete file and renames that when it was checked. The file goes if anything fails.
func publish(ctx context.Context, source Source, incomplete *os.File, name func(*File) string) (*File, error) {
	defer incomplete.Close()
	saved, err := source.write(ctx, incomplete)
	if err == nil {
		saved.Path = name(saved)
		err = os.Rename(incomplete.Name(), saved.Path)
	}
	if err != nil {
		return nil, errors.Join(err, os.Remove(incomplete.Name()))
	}
	if err := syncDir(filepath.Dir(saved.Path)); err != nil {
		return nil, err
	}
	return saved, nil
}

// lockDir makes sure that one backup at a time is written into a directory. The file stays: removing it would let two
// processes lock two files of one name.
func lockDir(path string) (*os.File, error) {
	file, err := os.OpenFile(filepath.Join(path, lockName), os.O_CREATE|os.O_RDWR, 0o600)
	if err != nil {
		return nil, err
	}
	err = syscall.Flock(int(file.Fd()), syscall.LOCK_EX|syscall.LOCK_NB)
	if errors.Is(err, syscall.EWOULDBLOCK) {
		err = ErrRunning
	}
	if err != nil {
		return nil, errors.Join(fmt.Errorf("locking %s: %w", path, err), file.Close())
	}
	return file, nil
}

func syncDir(path string) (err error) {
	dir, err := os.Open(path)
	if err != nil {
		return err
	}
	defer func() { err = errors.Join(err, dir.Close()) }()
	return dir.Sync()
}
