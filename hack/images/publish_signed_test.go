// Copyright The jobset-apiserver Authors.
// SPDX-License-Identifier: Apache-2.0

package main

import (
	"io"
	"os"
	"path/filepath"
	"strings"
	"testing"

	"github.com/jobset-apiserver/jobset-apiserver/hack/images/checksums"
	"github.com/jobset-apiserver/jobset-apiserver/hack/images/oci"
	"github.com/jobset-apiserver/jobset-apiserver/hack/images/signature"
)

// TestPublishWithKey checks that a key signs only what it has signed before.
func TestPublishWithKey(t *testing.T) {
	key, _ := keys(t)
	other, _ := keys(t)
	another := signedRelease(t, other)
	changed := signedRelease(t, key)
	writeFile(t, filepath.Join(changed, "install.yaml"), "image: registry.invalid/another\n")
	lie := signedRelease(t, key)
	changeWithChecksum(t, lie)
	const must = "the release must be signed by SIGNING_KEY: "
	unsigned := smallRelease(t, nil)
	tests := map[string]struct{ release, want string }{
		"nothing was changed":                   {signedRelease(t, key), "jobset-apiserver.tar: no such file or directory"},
		"a file was changed":                    {changed, "install.yaml: was changed, its checksum is "},
		"a file and its checksum were changed":  {lie, must + lie + "/SHA256SUMS or its signature was changed: the signature does not match"},
		"a release that another key has signed": {another, must + another + "/SHA256SUMS is signed by the key "},
		"a release that no key has signed": {
			unsigned, must + unsigned + "/SHA256SUMS has no signature; run make release with SIGNING_KEY, or make publish without it",
		},
	}
	for title, test := range tests {
		t.Run(title, func(t *testing.T) {
			p := &publication{
				Release: test.release, Output: filepath.Join(t.TempDir(), "published"), Registry: oci.Registry{Prefix: "registry.invalid"},
				Images: imagePrograms, Key: key,
			}
			if err := p.publish(t.Context(), io.Discard); err == nil || !strings.Contains(err.Error(), test.want) {
				t.Errorf("error is %v, want one with %q", err, test.want)
			}
		})
	}
}

// signedRelease is a small release whose checksums a key has signed.
func signedRelease(t *testing.T, key *signature.Key) string {
	t.Helper()
	dir := smallRelease(t, nil)
	if err := key.Sign(filepath.Join(dir, checksums.File), "v1.2.3"); err != nil {
		t.Fatal(err)
	}
	return dir
}

// changeWithChecksum changes a file of a signed release and the list of checksums, and leaves the signature.
func changeWithChecksum(t *testing.T, dir string) {
	t.Helper()
	signed := readFile(t, dir, checksums.File+signature.Suffix)
	for _, name := range []string{checksums.File, checksums.File + signature.Suffix} {
		if err := os.Remove(filepath.Join(dir, name)); err != nil {
			t.Fatal(err)
		}
	}
	writeFile(t, filepath.Join(dir, "install.yaml"), "image: registry.invalid/another\n")
	if err := checksums.Write(dir); err != nil {
		t.Fatal(err)
	}
	writeFile(t, filepath.Join(dir, checksums.File+signature.Suffix), signed)
}
