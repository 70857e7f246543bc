// Copyright The jobset-apiserver Authors.
// SPDX-License-Identifier: Apache-2.0

package main

import (
	"archive/tar"
	"bytes"
	"compress/gzip"
	"errors"
	"fmt"
	"io/fs"
	"os"
	"path"
	"path/filepath"
	"time"

	"sigs.k8s.io/yaml"
)

// pack writes the chart as an archive into a directory, and returns its name. The archive depends on the content of the
// chart only: files have no time, owner or mode of their own, and are sorted.
func pack(chart, to string) (string, error) {
	content, err := os.ReadFile(filepath.Join(chart, "Chart.yaml"))
	if err != nil {
		return "", err
	}
	var metadata struct{ Name, Version string }
	if err := yaml.Unmarshal(content, &metadata); err != nil {
		return "", err
	}
	var archive bytes.Buffer
	compressed := gzip.NewWriter(&archive)
	files := tar.NewWriter(compressed)
	// Helm wants this file first; the walk would come to it later.
	err = add(files, path.Join(metadata.Name, "Chart.yaml"), content)
	err = errors.Join(err, filepath.WalkDir(chart, func(file string, entry fs.DirEntry, err error) error {
		if err != nil || entry.IsDir() || filepath.Base(file) == "Chart.yaml" {
			return err
		}
		content, err := os.ReadFile(file)
		if err != nil {
			return err
		}
		name, err := filepath.Rel(chart, file)
		if err != nil {
			return err
		}
		return add(files, path.Join(metadata.Name, filepath.ToSlash(name)), content)
	}))
	if err := errors.Join(err, files.Close(), compressed.Close(), os.MkdirAll(to, 0o755)); err != nil {
		return "", err
	}
	name := filepath.Join(to, fmt.Sprintf("%s-%s.tgz", metadata.Name, metadata.Version))
	return name, os.WriteFile(name, archive.Bytes(), 0o644)
}

func add(files *tar.Writer, name string, content []byte) error {
	// The start of 1980: some tools refuse the year 1970.
	header := &tar.Header{Name: name, Mode: 0o644, Size: int64(len(content)), ModTime: time.Unix(315532800, 0), Format: tar.FormatUSTAR}
	if err := files.WriteHeader(header); err != nil {
		return err
	}
	_, err := files.Write(content)
	return err
}
