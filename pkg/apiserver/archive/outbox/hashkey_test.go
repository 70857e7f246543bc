// Copyright The jobset-apiserver Authors.
// SPDX-License-Identifier: Apache-2.0

package outbox

import (
	"bytes"
	"testing"
)

// TestHashKey checks that all servers get the same key, and that a damaged one is not used.
func TestHashKey(t *testing.T) {
	f := newFixture(t)
	first, err := f.open().HashKey(t.Context())
	if err != nil || len(first) != hashKeySize {
		t.Fatalf("the first server gets %d bytes: %v", len(first), err)
	}
	second, err := f.open().HashKey(t.Context())
	if err != nil || !bytes.Equal(first, second) {
		t.Errorf("the second server gets another key: %v", err)
	}
	const name = "/registry/test/archive-hash-key"
	if _, err := f.client.Put(t.Context(), name, "short"); err != nil {
		t.Fatal(err)
	}
	want := "reading " + name + " from etcd: it must have 32 bytes: remove it, and the next server makes another one"
	if _, err := f.open().HashKey(t.Context()); err == nil || err.Error() != want {
		t.Errorf("a damaged key: %v, want %s", err, want)
	}
}
