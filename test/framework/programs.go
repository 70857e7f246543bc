// Copyright The jobset-apiserver Authors.
// SPDX-License-Identifier: Apache-2.0

package framework

import (
	"context"
	"errors"
	"fmt"
	"io"
	"os"
	"path/filepath"
	"syscall"
)

// Version is stamped into our programs, so that they look like a release. Without it, the library reports the version of Kubernetes,
// which only such a program shows.
const Version = "v0.13.0-test"

// ownPrograms are the names with which our programs run, by their package below cmd.
var ownPrograms = map[string]string{
	"apiserver": "jobset-apiserver", "controller": "jobset-controller", "kubectl-jobset": "kubectl-jobset",
}

// buildPrograms puts our programs into a directory. Linking them takes longer than most tests, so the packages share what is linked:
// the first one that asks builds, and go leaves alone what is up to date.
func buildPrograms(ctx context.Context, root, to string) (err error) {
	built := filepath.Join(root, "_output", "tests")
	if err := os.MkdirAll(built, 0o755); err != nil {
		return err
	}
	lock, err := os.OpenFile(filepath.Join(built, ".lock"), os.O_CREATE|os.O_RDWR, 0o644)
	if err != nil {
		return err
	}
	defer lock.Close() // which also unlocks it
	if err := syscall.Flock(int(lock.Fd()), syscall.LOCK_EX); err != nil {
		return fmt.Errorf("locking %s: %w", lock.Name(), err)
	}
	args := []string{"build", "-trimpath", "-buildvcs=false", "-ldflags", "-s -w -X k8s.io/component-base/version.gitVersion=" + Version,
		"-o", built + string(filepath.Separator)}
	for name := range ownPrograms {
		args = append(args, "./cmd/"+name)
	}
	if _, err := output(ctx, root, "go", args...); err != nil {
		return err
	}
	for name, as := range ownPrograms {
		err = errors.Join(err, copyProgram(filepath.Join(built, name), filepath.Join(to, as)))
	}
	return err
}

// copyProgram makes a copy, which does not change when the program is built again while tests run it.
func copyProgram(from, to string) (err error) {
	source, err := os.Open(from)
	if err != nil {
		return err
	}
	defer source.Close()
	target, err := os.OpenFile(to, os.O_CREATE|os.O_WRONLY|os.O_TRUNC, 0o755)
	if err != nil {
		return err
	}
	defer func() { err = errors.Join(err, target.Close()) }()
	_, err = io.Copy(target, source)
	return err
}
