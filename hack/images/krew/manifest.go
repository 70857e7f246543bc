// Copyright The jobset-apiserver Authors.
// SPDX-License-Identifier: Apache-2.0

package krew

import (
	"fmt"
	"os"
	"path/filepath"
	"strings"

	"sigs.k8s.io/yaml"

	"github.com/jobset-apiserver/jobset-apiserver/hack/images/golang"
)

const (
	apiVersion = "krew.googlecontainertools.github.com/v1alpha2"
	kind       = "Plugin"
)

// Platforms are the platforms that the plugin is built for.
var Platforms = []golang.Platform{
	{OS: "darwin", Arch: "amd64"}, {OS: "darwin", Arch: "arm64"},
	{OS: "linux", Arch: "amd64"}, {OS: "linux", Arch: "arm64"},
	{OS: "windows", Arch: "amd64"}, {OS: "windows", Arch: "arm64"},
}

// Plugin is the manifest that Krew reads.
type Plugin struct {
	APIVersion string   `json:"apiVersion"`
	Kind       string   `json:"kind"`
	Metadata   Metadata `json:"metadata"`
	Spec       Spec     `json:"spec"`
}

// Metadata names a plugin: kubectl NAME runs it.
type Metadata struct {
	Name string `json:"name"`
}

// Spec says what a plugin is and where it is downloaded.
type Spec struct {
	Version          string     `json:"version"`
	Homepage         string     `json:"homepage"`
	ShortDescription string     `json:"shortDescription"`
	Description      string     `json:"description"`
	Platforms        []Download `json:"platforms"`
}

// Download is the archive for one platform.
type Download struct {
	Selector Selector `json:"selector"`
	URI      string   `json:"uri"`
	SHA256   string   `json:"sha256"`
	// Files are copied from the archive into the directory of the plugin.
	Files []Copy `json:"files"`
	// Bin is the program among them.
	Bin string `json:"bin"`
}

// Selector selects the platform.
type Selector struct {
	MatchLabels Labels `json:"matchLabels"`
}

// Labels are the labels that Krew gives to the machine that it runs on.
type Labels struct {
	OS   string `json:"os"`
	Arch string `json:"arch"`
}

// Copy names a file in an archive and the directory that it is copied to.
type Copy struct {
	From string `json:"from"`
	To   string `json:"to"`
}

// Describe returns the manifest of a plugin without its downloads.
func Describe(name string, spec Spec) Plugin {
	return Plugin{APIVersion: apiVersion, Kind: kind, Metadata: Metadata{Name: name}, Spec: spec}
}

// Add adds an archive that is downloaded from below a base.
func (p *Plugin) Add(archive, base string, platform golang.Platform, files []File, bin string) error {
	sum, err := Checksum(archive)
	if err != nil {
		return fmt.Errorf("reading %s: %w", archive, err)
	}
	download := Download{
		Selector: Selector{MatchLabels: Labels{OS: platform.OS, Arch: platform.Arch}},
		URI:      strings.TrimSuffix(base, "/") + "/" + filepath.Base(archive),
		SHA256:   sum,
		Bin:      bin,
	}
	for _, file := range files {
		download.Files = append(download.Files, Copy{From: file.Name, To: "."})
	}
	p.Spec.Platforms = append(p.Spec.Platforms, download)
	return nil
}

// Write writes the manifest.
func (p *Plugin) Write(path string) error {
	out, err := yaml.Marshal(p)
	if err != nil {
		return fmt.Errorf("encoding the manifest: %w", err)
	}
	return os.WriteFile(path, out, 0o644)
}

// Read reads a manifest. Fields that Krew does not know are errors.
func Read(path string) (*Plugin, error) {
	content, err := os.ReadFile(path)
	if err != nil {
		return nil, err
	}
	p := &Plugin{}
	if err := yaml.UnmarshalStrict(content, p); err != nil {
		return nil, fmt.Errorf("reading %s: %w", path, err)
	}
	return p, nil
}
