// Copyright The jobset-apiserver Authors.
// SPDX-License-Identifier: Apache-2.0

package localcluster

import (
	"os"
	"path/filepath"
	"testing"
	"time"
)

// TestPortsAreReserved gives a port to no other program for a while, although nothing listens on it.
func TestPortsAreReserved(t *testing.T) {
	t.Setenv("TMPDIR", t.TempDir())
	ports, err := FreePorts(3)
	if err != nil || len(ports) != 3 {
		t.Fatalf("ports %v, error %v; want three", ports, err)
	}
	for _, port := range ports {
		if reserve(port) {
			t.Errorf("port %s is given away a second time", port)
		}
	}
	old := time.Now().Add(-reservation - time.Minute)
	if err := os.Chtimes(filepath.Join(os.TempDir(), "jobset-apiserver-ports", ports[0]), old, old); err != nil {
		t.Fatal(err)
	}
	if !reserve(ports[0]) {
		t.Errorf("port %s is reserved longer than %s", ports[0], reservation)
	}
	t.Setenv("TMPDIR", "/dev/null")
	if !reserve(ports[1]) {
		t.Error("no port is free where reservations cannot be written")
	}
}
