// Copyright The jobset-apiserver Authors.
// SPDX-License-Identifier: Apache-2.0

package framework

import (
	"fmt"
	"io"
	"os"
	"path/filepath"
	"time"
)

// keptBytes is how much of the end of a log is kept.
const keptBytes = 20 << 20

// KeepLogs copies the logs of a control plane that is about to be removed, and further ones, into the checkout and says
// where, so that a failure can be analyzed later.
func (p *ControlPlane) KeepLogs(more ...string) error {
	if p.dir == "" {
		return nil
	}
	logs, err := filepath.Glob(filepath.Join(p.dir, "*.log"))
	if err != nil {
		return err
	}
	parent := filepath.Join(p.root, "_output", "failed")
	if err := os.MkdirAll(parent, 0o755); err != nil {
		return err
	}
	dir, err := os.MkdirTemp(parent, time.Now().UTC().Format("20060102T150405Z")+"-"+filepath.Base(p.dir)+"-")
	if err != nil {
		return err
	}
	for _, log := range append(logs, more...) {
		if err := copyEnd(filepath.Join(dir, filepath.Base(log)), log); err != nil {
			return fmt.Errorf("keeping %s: %w", log, err)
		}
	}
	fmt.Fprintln(os.Stderr, "logs are kept in", dir)
	return nil
}

func copyEnd(to, from string) error {
	source, err := os.Open(from)
	if err != nil {
		return err
	}
	defer source.Close()
	if info, err := source.Stat(); err == nil && info.Size() > keptBytes {
		if _, err := source.Seek(-keptBytes, io.SeekEnd); err != nil {
			return err
		}
	}
	target, err := os.Create(to)
	if err != nil {
		return err
	}
	defer target.Close()
	_, err = io.Copy(target, source)
	return err
}
