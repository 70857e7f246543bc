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
	"sync"
	"testing"
)

// Bucket is the bucket that exists.
const Bucket = "backups"

// Start starts an object storage that ends with the test, and returns its address.
func Start(t testing.TB) string {
	t.Helper()
	dir, err := build()
	if err != nil {
		t.Fatalf("building the object storage: %v", err)
	}
	server := exec.Command(filepath.Join(dir, "s3"), "-bucket", Bucket)
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

// build builds the object storage, unless the cache has it, and returns its directory. The tests of a package do that once.
var build = sync.OnceValues(func() (string, error) {
	root, err := checkout()
	if err != nil {
		return "", err
	}
	command := exec.Command(filepath.Join(root, "hack", "ensure-s3.sh"))
	command.Stderr = os.Stderr
	dir, err := command.Output()
	return strings.TrimSpace(string(dir)), err
})

// checkout returns the directory of this module, in which the test runs.
func checkout() (string, error) {
	dir, err := os.Getwd()
	for ; err == nil && dir != "/"; dir = filepath.Dir(dir) {
		if _, err := os.Stat(filepath.Join(dir, "go.mod")); err == nil {
			return dir, nil
		}
	}
	return "", errors.Join(err, errors.New("there is no go.mod above the directory of the test"))
}
