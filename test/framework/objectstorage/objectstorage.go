// Copyright The jobset-apiserver Authors.
// SPDX-License-Identifier: Apache-2.0

// Package objectstorage runs an S3-compatible object storage for tests, which hack/s3 pins.
package objectstorage

import (
	"bufio"
	"errors"
	"os"
	"os/exec"
	"path/filepath"
	"strings"
	"testing"
)

// Bucket is the bucket that exists.
const Bucket = "backups"

// Start starts an object storage that ends with the test, and returns its address.
func Start(t testing.TB) string {
	t.Helper()
	build := exec.CommandContext(t.Context(), filepath.Join(checkout(t), "hack", "ensure-s3.sh"))
	build.Stderr = os.Stderr
	dir, err := build.Output()
	if err != nil {
		t.Fatalf("building the object storage: %v", err)
	}
	server := exec.Command(filepath.Join(strings.TrimSpace(string(dir)), "s3"), "-bucket", Bucket)
	input, err1 := server.StdinPipe()
	output, err2 := server.StdoutPipe()
	server.Stderr = os.Stderr
	if err := errors.Join(err1, err2, server.Start()); err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() { _, _ = input.Close(), server.Wait() })
	address, err := bufio.NewReader(output).ReadString('\n')
	if err != nil {
		t.Fatalf("the object storage has no address: %v", err)
	}
	return strings.TrimSpace(address)
}

// checkout returns the directory of this module, in which the test runs.
func checkout(t testing.TB) string {
	t.Helper()
	dir, err := os.Getwd()
	for ; err == nil && dir != "/"; dir = filepath.Dir(dir) {
		if _, err := os.Stat(filepath.Join(dir, "go.mod")); err == nil {
			return dir
		}
	}
	t.Fatal("there is no go.mod above the directory of the test")
	return ""
}
