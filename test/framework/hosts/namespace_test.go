// Copyright The jobset-apiserver Authors.
// SPDX-License-Identifier: Apache-2.0

package hosts

import (
	"os"
	"testing"
	"time"

	"github.com/jobset-apiserver/jobset-apiserver/test/framework/tier"
)

// TestNamespacesEndNoThread makes namespaces, and looks for threads that have ended: each would kill the programs that it has started,
// because those of a test must not outlive it.
func TestNamespacesEndNoThread(t *testing.T) {
	tier.OnRequest(t, "makes network namespaces")
	if os.Geteuid() != 0 {
		t.Skip("only root can make network namespaces")
	}
	before := threads(t)
	for range 20 {
		n, err := newNamespace()
		if err != nil {
			t.Fatal(err)
		}
		for thread := range threads(t) {
			before[thread] = true
		}
		n.file.Close()
	}
	time.Sleep(100 * time.Millisecond) // a thread ends after its goroutine
	now := threads(t)
	for thread := range before {
		if !now[thread] {
			t.Errorf("thread %s has ended", thread)
		}
	}
}

// threads returns the IDs of the threads of this process.
func threads(t *testing.T) map[string]bool {
	t.Helper()
	entries, err := os.ReadDir("/proc/self/task")
	if err != nil {
		t.Fatal(err)
	}
	all := map[string]bool{}
	for _, entry := range entries {
		all[entry.Name()] = true
	}
	return all
}
