// Copyright The jobset-apiserver Authors.
// SPDX-License-Identifier: Apache-2.0

// Package chart packs the Helm chart, and writes into it which images it installs.
package chart

import (
	"archive/tar"
	"bytes"
	"compress/gzip"
	"errors"
	"fmt"
	"io"
	"io/fs"
	"maps"
	"os"
	"path"
	"path/filepath"
	"slices"
	"strings"
	"time"

	"sigs.k8s.io/yaml"
)

const (
	metadataFile = "Chart.yaml"

	// RegistryAnnotation of the chart has the registry of the images, and the path in it.
	RegistryAnnotation = "jobset-apiserver.io/registry"
	// digestAnnotation, with the name of a program behind it, has the digest of an image.
	digestAnnotation = "jobset-apiserver.io/digest."

	// maxFile bounds what is read from an archive.
	maxFile = 16 << 20
)

// packed is the time of the files in an archive, the start of 1980: some tools refuse the year 1970.
var packed = time.Unix(315532800, 0)

// Chart is a chart in memory.
type Chart struct {
	// files are the contents by their paths, which have slashes.
	files map[string][]byte
}

// Metadata is what Chart.yaml says.
type Metadata struct {
	Name        string            `json:"name"`
	Version     string            `json:"version"`
	AppVersion  string            `json:"appVersion"`
	Description string            `json:"description"`
	Annotations map[string]string `json:"annotations"`
}

// Load reads a chart from a directory.
func Load(dir string) (*Chart, error) {
	c := &Chart{files: map[string][]byte{}}
	err := filepath.WalkDir(dir, func(file string, entry fs.DirEntry, err error) error {
		if err != nil || entry.IsDir() {
			return err
		}
		name, err := filepath.Rel(dir, file)
		if err != nil {
			return err
		}
		c.files[filepath.ToSlash(name)], err = os.ReadFile(file)
		return err
	})
	if err != nil {
		return nil, fmt.Errorf("reading the chart: %w", err)
	}
	_, err = c.Metadata()
	return c, err
}

// Unpack reads a chart from an archive that Pack has made.
func Unpack(archive []byte) (*Chart, error) {
	compressed, err := gzip.NewReader(bytes.NewReader(archive))
	if err != nil {
		return nil, fmt.Errorf("reading the archive of the chart: %w", err)
	}
	c := &Chart{files: map[string][]byte{}}
	for r := tar.NewReader(compressed); ; {
		header, err := r.Next()
		if errors.Is(err, io.EOF) {
			break
		}
		if err != nil {
			return nil, fmt.Errorf("reading the archive of the chart: %w", err)
		}
		_, name, below := strings.Cut(header.Name, "/")
		if !below || header.Typeflag != tar.TypeReg || header.Size > maxFile {
			return nil, fmt.Errorf("reading the archive of the chart: %s must be a file of at most %d bytes in the directory of the chart",
				header.Name, maxFile)
		}
		if c.files[name], err = io.ReadAll(r); err != nil {
			return nil, fmt.Errorf("reading the archive of the chart: %w", err)
		}
	}
	_, err = c.Metadata()
	return c, err
}

// Metadata returns what Chart.yaml says.
func (c *Chart) Metadata() (Metadata, error) {
	var m Metadata
	if err := yaml.Unmarshal(c.files[metadataFile], &m); err != nil {
		return m, fmt.Errorf("%s: %w", metadataFile, err)
	}
	if m.Name == "" || m.Version == "" {
		return m, fmt.Errorf("%s: name and version are required", metadataFile)
	}
	return m, nil
}

// Config returns Chart.yaml in JSON, which is the configuration of a chart in a registry.
func (c *Chart) Config() ([]byte, error) {
	return yaml.YAMLToJSON(c.files[metadataFile])
}

// Release writes the version, such as v1.2.3, and the digests of the images, by the names of their programs, into Chart.yaml.
func (c *Chart) Release(version string, digests map[string]string) error {
	return c.edit(func(metadata, annotations map[string]any) {
		metadata["version"] = strings.TrimPrefix(version, "v")
		metadata["appVersion"] = version
		for program, digest := range digests {
			annotations[digestAnnotation+program] = digest
		}
	})
}

// Publish writes the registry of the images into Chart.yaml.
func (c *Chart) Publish(registry string) error {
	return c.edit(func(_, annotations map[string]any) { annotations[RegistryAnnotation] = registry })
}

func (c *Chart) edit(change func(metadata, annotations map[string]any)) error {
	metadata := map[string]any{}
	if err := yaml.Unmarshal(c.files[metadataFile], &metadata); err != nil {
		return fmt.Errorf("%s: %w", metadataFile, err)
	}
	annotations, ok := metadata["annotations"].(map[string]any)
	if !ok {
		annotations = map[string]any{}
	}
	metadata["annotations"] = annotations
	change(metadata, annotations)
	content, err := yaml.Marshal(metadata)
	if err != nil {
		return fmt.Errorf("%s: %w", metadataFile, err)
	}
	c.files[metadataFile] = content
	return nil
}

// FileName returns the name that Helm gives to the archive.
func (c *Chart) FileName() (string, error) {
	m, err := c.Metadata()
	return m.Name + "-" + m.Version + ".tgz", err
}

// Pack returns the chart as an archive, which depends on the content of the chart only: files have no time, owner or mode of their own, and
// are sorted.
func (c *Chart) Pack() ([]byte, error) {
	m, err := c.Metadata()
	if err != nil {
		return nil, err
	}
	var archive bytes.Buffer
	compressed := gzip.NewWriter(&archive)
	w := tar.NewWriter(compressed)
	names := slices.Sorted(maps.Keys(c.files))
	// Helm expects this file first.
	names = append([]string{metadataFile}, slices.DeleteFunc(names, func(name string) bool { return name == metadataFile })...)
	for _, name := range names {
		header := &tar.Header{
			Name: path.Join(m.Name, name), Mode: 0o644, Size: int64(len(c.files[name])), ModTime: packed, Format: tar.FormatUSTAR,
		}
		err = errors.Join(err, w.WriteHeader(header))
		_, failed := w.Write(c.files[name])
		err = errors.Join(err, failed)
	}
	if err := errors.Join(err, w.Close(), compressed.Close()); err != nil {
		return nil, fmt.Errorf("packing the chart: %w", err)
	}
	return archive.Bytes(), nil
}

// Write packs the chart into a directory, and returns the file.
func (c *Chart) Write(dir string) (string, error) {
	name, err := c.FileName()
	if err != nil {
		return "", err
	}
	archive, err := c.Pack()
	if err != nil {
		return "", err
	}
	if err := os.MkdirAll(dir, 0o755); err != nil {
		return "", err
	}
	file := filepath.Join(dir, name)
	return file, os.WriteFile(file, archive, 0o644)
}
