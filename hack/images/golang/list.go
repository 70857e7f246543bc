// Copyright The jobset-apiserver Authors.
// SPDX-License-Identifier: Apache-2.0

package golang

import (
	"bytes"
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"os/exec"
	"strings"
)

// Module is a Go module, and where its files are.
type Module struct {
	Path    string
	Version string
	Dir     string
	// Main is true for the module that is built.
	Main bool
	// Replace is the module in place of this one, if there is any.
	Replace *Module
}

// Package is a Go package that a program contains.
type Package struct {
	ImportPath string
	Dir        string
	// Module is nil for packages of the standard library.
	Module *Module
}

// Packages returns the packages that programs contain on a platform.
func (s Source) Packages(ctx context.Context, platform Platform, programs []string) ([]Package, error) {
	args := append([]string{"list", "-deps", "-json=ImportPath,Dir,Module"}, programs...)
	out, err := s.output(ctx, platform, args...)
	if err != nil {
		return nil, fmt.Errorf("listing the packages of %s for %s: %w", strings.Join(programs, ", "), platform, err)
	}
	var packages []Package
	for decoder := json.NewDecoder(bytes.NewReader(out)); ; {
		var p Package
		if err := decoder.Decode(&p); errors.Is(err, io.EOF) {
			return packages, nil
		} else if err != nil {
			return nil, fmt.Errorf("listing the packages of %s for %s: %w", strings.Join(programs, ", "), platform, err)
		}
		packages = append(packages, p)
	}
}

// Root returns the directory of the Go distribution that builds the programs.
func (s Source) Root(ctx context.Context) (string, error) {
	out, err := s.output(ctx, Platform{}, "env", "GOROOT")
	return strings.TrimSpace(string(out)), err
}

// Download returns a module at a version, which is downloaded if the module cache lacks it.
func (s Source) Download(ctx context.Context, module, version string) (Module, error) {
	out, err := s.output(ctx, Platform{}, "mod", "download", "-json", module+"@"+version)
	if err != nil {
		return Module{}, fmt.Errorf("downloading %s@%s: %w", module, version, err)
	}
	var m Module
	return m, json.Unmarshal(out, &m)
}

// output runs the go command in the module, and returns what it prints.
func (s Source) output(ctx context.Context, platform Platform, args ...string) ([]byte, error) {
	cmd := exec.CommandContext(ctx, "go", args...)
	cmd.Dir = s.Dir
	cmd.Env = environment(platform)
	var out, messages bytes.Buffer
	cmd.Stdout, cmd.Stderr = &out, &messages
	if err := cmd.Run(); err != nil {
		return nil, fmt.Errorf("%w\n%s", err, bytes.TrimSpace(messages.Bytes()))
	}
	return out.Bytes(), nil
}
