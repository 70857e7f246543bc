// Copyright The jobset-apiserver Authors.
// SPDX-License-Identifier: Apache-2.0

package backup

import (
	"cmp"
	"context"
	"errors"
	"fmt"
	"io/fs"
	"os"
	"path/filepath"
	"regexp"
	"slices"
	"strconv"
	"time"
)

const (
	timeFormat     = "20060102T150405Z"
	incompleteName = "incomplete"
	lockName       = "lock"
)

var namePattern = regexp.MustCompile(`^jobset-apiserver-([0-9]{8}T[0-9]{6}Z)-([0-9]{1,19})\.db$`)

// Directory is where backups are kept.
type Directory struct {
	Path string
	// Keep is how many backups are kept, at least 1.
	Keep int
	// Now returns the time.
	Now func() time.Time
}

// Kept is a backup in a directory, as its name describes it.
type Kept struct {
	Name     string
	Time     time.Time
	Revision int64
}

// List returns the backups, the newest first. Other files are left alone.
func (d Directory) List() ([]Kept, error) {
	entries, err := os.ReadDir(d.Path)
	if errors.Is(err, fs.ErrNotExist) {
		return nil, nil
	}
	if err != nil {
		return nil, err
	}
	var kept []Kept
	for _, entry := range entries {
		if k, ok := ParseName(entry.Name()); ok && entry.Type().IsRegular() {
			kept = append(kept, k)
		}
	}
	slices.SortFunc(kept, Newest)
	return kept, nil
}

// Newest orders backups, the newest first.
func Newest(a, b Kept) int {
	return -cmp.Or(a.Time.Compare(b.Time), cmp.Compare(a.Revision, b.Revision))
}

// Name returns the name of a backup.
func Name(at time.Time, revision int64) string {
	return fmt.Sprintf("jobset-apiserver-%s-%d.db", at.UTC().Format(timeFormat), revision)
}

// ParseName reads the name of a backup, and returns whether it is one.
func ParseName(name string) (Kept, bool) {
	parts := namePattern.FindStringSubmatch(name)
	if parts == nil {
		return Kept{}, false
	}
	at, err := time.Parse(timeFormat, parts[1])
	revision, err2 := strconv.ParseInt(parts[2], 10, 64)
	return Kept{Name: name, Time: at, Revision: revision}, err == nil && err2 == nil
}

// Save adds a backup, and then deletes the oldest ones beyond those that are kept.
func (d Directory) Save(ctx context.Context, source Source) (*File, error) {
	if err := os.MkdirAll(d.Path, 0o700); err != nil {
		return nil, fmt.Errorf("creating the directory: %w", err)
	}
	lock, err := lockDir(d.Path)
	if err != nil {
		return nil, err
	}
	defer lock.Close()
	file, err := os.OpenFile(filepath.Join(d.Path, incompleteName), os.O_CREATE|os.O_RDWR|os.O_TRUNC, 0o600)
	if err != nil {
		return nil, err
	}
	saved, err := publish(ctx, source, file, func(f *File) string {
		return filepath.Join(d.Path, Name(d.Now(), f.Revision))
	})
	if err != nil {
		return nil, err
	}
	return saved, d.prune(filepath.Base(saved.Path))
}

// prune never deletes the newest backup, even if the clock was set back and others seem to be newer.
func (d Directory) prune(newest string) error {
	kept, err := d.List()
	if err != nil {
		return fmt.Errorf("looking for old backups: %w", err)
	}
	kept = slices.DeleteFunc(kept, func(k Kept) bool { return k.Name == newest })
	var errs []error
	for _, old := range kept[min(len(kept), d.Keep-1):] {
		if err := os.Remove(filepath.Join(d.Path, old.Name)); err != nil && !errors.Is(err, fs.ErrNotExist) {
			errs = append(errs, fmt.Errorf("deleting an old backup: %w", err))
		}
	}
	return errors.Join(errs...)
}

// Clean deletes what a killed process has left, unless a backup is being written.
func (d Directory) Clean() error {
	path := filepath.Join(d.Path, incompleteName)
	if _, err := os.Lstat(path); errors.Is(err, fs.ErrNotExist) {
		return nil
	}
	lock, err := lockDir(d.Path)
	if errors.Is(err, ErrRunning) {
		return nil
	}
	if err != nil {
		return err
	}
	return errors.Join(os.Remove(path), lock.Close())
}
