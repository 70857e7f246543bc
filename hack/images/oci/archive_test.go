// Copyright The jobset-apiserver Authors.
// SPDX-License-Identifier: Apache-2.0

package oci

import (
	"archive/tar"
	"crypto/x509"
	"encoding/pem"
	"os"
	"path/filepath"
	"strings"
	"testing"
)

func TestReadMistakes(t *testing.T) {
	const layoutFile = `{"imageLayoutVersion":"1.0.0"}`
	const noImages = `{"schemaVersion":2,"manifests":[]}`
	tests := map[string]struct {
		files []tar.Header
		body  string
		want  string
	}{
		"a file outside":      {[]tar.Header{{Name: "../oci-layout"}}, "", `"../oci-layout" must be a file of an OCI layout`},
		"a file of another":   {[]tar.Header{{Name: "manifest.json"}}, "", `"manifest.json" must be a file of an OCI layout`},
		"a link":              {[]tar.Header{{Name: "index.json", Typeflag: tar.TypeSymlink, Linkname: "/tmp"}}, "", `"index.json" must be a file of an OCI layout`},
		"a file twice":        {[]tar.Header{{Name: "index.json"}, {Name: "index.json"}}, noImages, "file exists"},
		"no images":           {[]tar.Header{{Name: "oci-layout"}, {Name: "index.json"}}, noImages, "must have an index of images with a name and a tag; run make images"},
		"an index of nothing": {[]tar.Header{{Name: "oci-layout"}}, layoutFile, "index.json: no such file"},
	}
	for title, test := range tests {
		t.Run(title, func(t *testing.T) {
			archive := filepath.Join(t.TempDir(), "image.tar")
			f, err := os.Create(archive)
			if err != nil {
				t.Fatal(err)
			}
			w := tar.NewWriter(f)
			for _, header := range test.files {
				header.Mode = 0o644
				if header.Typeflag == 0 {
					header.Typeflag, header.Size = tar.TypeReg, int64(len(test.body))
				}
				if err := w.WriteHeader(&header); err != nil {
					t.Fatal(err)
				}
				if _, err := w.Write([]byte(test.body)[:header.Size]); err != nil {
					t.Fatal(err)
				}
			}
			if err := w.Close(); err != nil {
				t.Fatal(err)
			}
			if err := f.Close(); err != nil {
				t.Fatal(err)
			}
			if _, err := Read(archive, t.TempDir()); err == nil || !strings.HasPrefix(err.Error(), "reading "+archive) || !strings.Contains(err.Error(), test.want) {
				t.Errorf("error is %v, want one with %q", err, test.want)
			}
		})
	}
}

// TestRoots checks that the file has the authorities which common registries and cloud providers use, and that all can be read.
func TestRoots(t *testing.T) {
	found := map[string]bool{}
	rest := Roots()
	for len(rest) > 0 {
		var block *pem.Block
		if block, rest = pem.Decode(rest); block == nil {
			t.Fatal("the file must have certificates and nothing else")
		}
		certificate, err := x509.ParseCertificate(block.Bytes)
		if err != nil {
			t.Fatal(err)
		}
		if !certificate.IsCA {
			t.Errorf("%s must be an authority", certificate.Subject)
		}
		found[certificate.Subject.CommonName] = true
	}
	for _, name := range []string{"ISRG Root X1", "Amazon Root CA 1", "GTS Root R1", "DigiCert Global Root G2"} {
		if !found[name] {
			t.Errorf("%s must be one of the authorities", name)
		}
	}
	t.Logf("%d authorities", len(found))
}
