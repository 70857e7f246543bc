// Copyright The jobset-apiserver Authors.
// SPDX-License-Identifier: Apache-2.0

// Package golang compiles static Go programs. What it produces depends on the sources, the version of Go, the platform and the linker
// flags, and on nothing else: not on the directory, the time, the user or the machine.
package golang

import (
	"bytes"
	"context"
	"fmt"
	"os"
	"os/exec"
	"path/filepath"
	"runtime"
	"strings"
)

// Flags are the flags of every build, apart from the linker flags.
const Flags = "-trimpath -buildvcs=false"

// Platform is what a program runs on. It uses Go's names, which OCI and Krew use, too.
type Platform struct {
	OS   string
	Arch string
}

// String returns the platform as it is in names of files: linux-amd64.
func (p Platform) String() string { return p.OS + "-" + p.Arch }

// Executable returns the name that the file of a program has on the platform.
func (p Platform) Executable(program string) string {
	if p.OS == "windows" {
		return program + ".exe"
	}
	return program
}

// Source is a Go module whose programs are built.
type Source struct {
	// Dir is the root of the module.
	Dir string
	// LDFlags are given to the linker.
	LDFlags string
}

// Build compiles the program in a package, such as ./cmd/apiserver, and writes it to a file.
func (s Source) Build(ctx context.Context, pkg string, platform Platform, file string) error {
	target, err := filepath.Abs(file)
	if err != nil {
		return fmt.Errorf("building %s for %s: %w", pkg, platform, err)
	}
	args := append([]string{"build"}, strings.Fields(Flags)...)
	args = append(args, "-ldflags="+s.LDFlags, "-o", target, pkg)
	cmd := exec.CommandContext(ctx, "go", args...)
	cmd.Dir = s.Dir
	cmd.Env = environment(platform)
	var output bytes.Buffer
	cmd.Stdout, cmd.Stderr = &output, &output
	if err := cmd.Run(); err != nil {
		return fmt.Errorf("building %s for %s: %w\n%s", pkg, platform, err, bytes.TrimSpace(output.Bytes()))
	}
	return nil
}

// environment sets everything that changes what go build produces to a value that does not depend on the caller.
// The version of Go is the exception; it is in the labels of the images.
func environment(platform Platform) []string {
	return append(os.Environ(),
		"CGO_ENABLED=0",
		"GOOS="+platform.OS,
		"GOARCH="+platform.Arch,
		"GOAMD64=v1",
		"GOARM64=v8.0",
		"GOEXPERIMENT=",
		"GOFIPS140=off",
		"GOFLAGS=-mod=readonly",
		"GOWORK=off",
	)
}

// Version returns the version of Go that builds the programs, such as go1.26.8. It is the one that has built this program, because
// both run in modules that ask for the same.
func Version() string { return runtime.Version() }
