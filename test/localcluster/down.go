// Copyright The jobset-apiserver Authors.
// SPDX-License-Identifier: Apache-2.0

package localcluster

import (
	"errors"
	"fmt"
	"os"
	"path/filepath"
	"slices"
	"strings"
	"time"
)

func (c *supervisor) status() error {
	if !exists(c.path("created")) {
		return c.noCluster()
	}
	files, err := filepath.Glob(c.path("pids", "*.pid"))
	if err != nil {
		return err
	}
	var stopped []string
	for _, file := range files {
		name := strings.TrimSuffix(filepath.Base(file), ".pid")
		if pid, ok := c.pid(name); ok {
			fmt.Printf("%-26s running  %d\n", name, pid)
		} else {
			fmt.Printf("%-26s stopped\n", name)
			stopped = append(stopped, name)
		}
	}
	if len(stopped) > 0 {
		return fmt.Errorf("not running: %s", strings.Join(stopped, ", "))
	}
	return nil
}

func (c *supervisor) down(args []string) error {
	keep := slices.Equal(args, []string{"--keep-logs"})
	if !keep && len(args) > 0 {
		return fmt.Errorf("down: %q must be --keep-logs or nothing", strings.Join(args, " "))
	}
	if !exists(c.dir) {
		return nil
	}
	if err := errors.Join(c.lock(), c.stopAll(), c.downRealNodes()); err != nil {
		return err
	}
	if keep || exists(c.path("unfinished")) {
		if err := c.keepLogs(); err != nil {
			return err
		}
	}
	if err := c.remove(); err != nil {
		return err
	}
	say("cluster " + c.name + " is down")
	return nil
}

// remove removes the files of the cluster. The marks go last, so that an interrupted removal can be repeated.
func (c *supervisor) remove() error {
	entries, err := os.ReadDir(c.dir)
	if err != nil {
		return err
	}
	var errs []error
	for _, entry := range entries {
		if entry.Name() != ".lock" && entry.Name() != ".is-cluster" {
			errs = append(errs, os.RemoveAll(c.path(entry.Name())))
		}
	}
	if err := errors.Join(errs...); err != nil {
		return err
	}
	for _, file := range []string{".is-cluster", ".lock"} {
		_ = os.Remove(c.path(file))
	}
	_ = os.Remove(c.dir) // unless another command has taken it
	return nil
}

// keepLogs copies the end of every log to where down removes nothing. The last 20 copies stay.
func (c *supervisor) keepLogs() error {
	const most, copies = 20_000_000, 20
	files, err := filepath.Glob(c.path("logs", "*"))
	if err != nil || len(files) == 0 {
		return err
	}
	kept := filepath.Join(c.root, "_output", "failed")
	to := filepath.Join(kept, time.Now().UTC().Format("20060102T150405Z")+"-"+filepath.Base(c.dir))
	if err := os.MkdirAll(to, 0o755); err != nil {
		return err
	}
	for _, file := range files {
		content, err := os.ReadFile(file)
		if err != nil {
			continue // a link to a log that was never written
		}
		content = content[max(0, len(content)-most):]
		if err := os.WriteFile(filepath.Join(to, filepath.Base(file)), content, 0o644); err != nil {
			return err
		}
	}
	entries, err := os.ReadDir(kept)
	for _, old := range entries[:max(0, len(entries)-copies)] {
		err = errors.Join(err, os.RemoveAll(filepath.Join(kept, old.Name())))
	}
	say("logs are kept in " + to)
	return err
}
