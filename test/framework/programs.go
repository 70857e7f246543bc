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
	"strings"
	"syscall"
)

// stampedVersion is the version of programs that are built here, so that they look like a release. Without it, the library reports the
// version of Kubernetes.
const stampedVersion = "v0.13.0-test"

// programsVariable names a directory with our programs, as `make build` leaves them in bin/.
const programsVariable = "CLUSTER_BIN"

// ownPrograms are the names with which our programs run, by their package below cmd.
var ownPrograms = map[string]string{
	"apiserver": "jobset-apiserver", "controller": "jobset-controller", "kubectl-jobset": "kubectl-jobset",
}

// providePrograms puts copies of our programs into a directory, which do not change when they are built again while tests run them. It
// builds them unless the environment names those to use.
func providePrograms(ctx context.Context, root, to string) error {
	if from := os.Getenv(programsVariable); from != "" {
		var err error
		for _, name := range ownPrograms {
			err = errors.Join(err, copyProgram(filepath.Join(from, name), filepath.Join(to, name)))
		}
		return err
	}
	return buildPrograms(ctx, root, to)
}

// buildPrograms builds our programs. Linking them takes longer than most tests, so the packages share what is linked: the first one that
// asks builds, and go leaves alone what is up to date.
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
	args := []string{"build", "-trimpath", "-buildvcs=false", "-ldflags", "-s -w -X k8s.io/component-base/version.gitVersion=" + stampedVersion,
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

// versionOf asks one of our programs for its version.
func versionOf(ctx context.Context, program string) (string, error) {
	out, err := output(ctx, "", program, "--version")
	if err != nil {
		return "", err
	}
	_, version, found := strings.Cut(out, " ")
	if !found {
		return "", fmt.Errorf("%s --version prints %q", program, out)
	}
	return version, nil
}
