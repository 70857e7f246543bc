// Copyright The jobset-apiserver Authors.
// SPDX-License-Identifier: Apache-2.0

package chart

import (
	"archive/tar"
	"bytes"
	"compress/gzip"
	"os"
	"path/filepath"
	"strings"
	"testing"

	"github.com/google/go-cmp/cmp"
)

// chartDir is the directory of the chart of this repository.
var chartDir = filepath.Join("..", "..", "..", "charts", "jobset-apiserver")

func load(t *testing.T, dir string) *Chart {
	t.Helper()
	c, err := Load(dir)
	if err != nil {
		t.Fatal(err)
	}
	return c
}

func pack(t *testing.T, c *Chart) []byte {
	t.Helper()
	archive, err := c.Pack()
	if err != nil {
		t.Fatal(err)
	}
	return archive
}

// TestPack checks that the archive depends on the content of the chart only, and has all files in the order that Helm expects.
func TestPack(t *testing.T) {
	first := pack(t, load(t, chartDir))
	copied := filepath.Join(t.TempDir(), "copy")
	if err := os.CopyFS(copied, os.DirFS(chartDir)); err != nil {
		t.Fatal(err)
	}
	if second := pack(t, load(t, copied)); !bytes.Equal(first, second) {
		t.Errorf("archives of %d and %d bytes must be equal", len(first), len(second))
	}
	compressed, err := gzip.NewReader(bytes.NewReader(first))
	if err != nil {
		t.Fatal(err)
	}
	if header, err := tar.NewReader(compressed).Next(); err != nil || header.Name != "jobset-apiserver/Chart.yaml" {
		t.Errorf("the first file is %+v (%v)", header, err)
	}
	unpacked, err := Unpack(first)
	if err != nil {
		t.Fatal(err)
	}
	if diff := cmp.Diff(load(t, chartDir).files, unpacked.files); diff != "" {
		t.Errorf("(-directory +archive):\n%s", diff)
	}
	file, err := unpacked.Write(filepath.Join(t.TempDir(), "new"))
	if err != nil || filepath.Base(file) != "jobset-apiserver-0.1.0.tgz" {
		t.Errorf("%s: %v", file, err)
	}
}

// TestRelease checks that a release changes Chart.yaml only.
func TestRelease(t *testing.T) {
	c := load(t, chartDir)
	if err := c.Release("v1.2.3-rc.1", map[string]string{"a": "sha256:1"}); err != nil {
		t.Fatal(err)
	}
	if err := c.Publish("registry.example.com/team"); err != nil {
		t.Fatal(err)
	}
	before, err := load(t, chartDir).Metadata()
	if err != nil {
		t.Fatal(err)
	}
	want := before
	want.Version, want.AppVersion = "1.2.3-rc.1", "v1.2.3-rc.1"
	want.Annotations = map[string]string{
		"artifacthub.io/license": "Apache-2.0", "jobset-apiserver.io/digest.a": "sha256:1", "jobset-apiserver.io/registry": "registry.example.com/team",
	}
	got, err := c.Metadata()
	if err != nil {
		t.Fatal(err)
	}
	if diff := cmp.Diff(want, got); diff != "" {
		t.Errorf("metadata (-want +got):\n%s", diff)
	}
	for name, content := range load(t, chartDir).files {
		if name != metadataFile && !bytes.Equal(content, c.files[name]) {
			t.Errorf("%s must not change", name)
		}
	}
	if !strings.Contains(string(c.files[metadataFile]), "kubeVersion: '>=1.34.0-0'") {
		t.Errorf("Chart.yaml must keep what a release does not set:\n%s", c.files[metadataFile])
	}
}

func TestMistakes(t *testing.T) {
	nameless := t.TempDir()
	if err := os.WriteFile(filepath.Join(nameless, metadataFile), []byte("name: a\n"), 0o644); err != nil {
		t.Fatal(err)
	}
	for dir, want := range map[string]string{"missing": "reading the chart: ", nameless: "Chart.yaml: name and version are required"} {
		if _, err := Load(dir); err == nil || !strings.Contains(err.Error(), want) {
			t.Errorf("error is %v, want one with %q", err, want)
		}
	}
	var archive bytes.Buffer
	compressed := gzip.NewWriter(&archive)
	w := tar.NewWriter(compressed)
	if err := w.WriteHeader(&tar.Header{Name: "a/link", Typeflag: tar.TypeSymlink, Linkname: "/tmp"}); err != nil {
		t.Fatal(err)
	}
	w.Close()
	compressed.Close()
	if _, err := Unpack(archive.Bytes()); err == nil || !strings.Contains(err.Error(), "a/link must be a file of at most") {
		t.Errorf("error is %v", err)
	}
}
