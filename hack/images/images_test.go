// Copyright The jobset-apiserver Authors.
// SPDX-License-Identifier: Apache-2.0

package main

import (
	"archive/tar"
	"bytes"
	"crypto/x509"
	"debug/elf"
	"errors"
	"io"
	"io/fs"
	"os"
	"path/filepath"
	"regexp"
	"strings"
	"testing"
	"time"

	"github.com/google/go-cmp/cmp"
	v1 "github.com/google/go-containerregistry/pkg/v1"
	"github.com/google/go-containerregistry/pkg/v1/mutate"
	"github.com/google/go-containerregistry/pkg/v1/validate"

	"github.com/jobset-apiserver/jobset-apiserver/hack/images/golang"
	"github.com/jobset-apiserver/jobset-apiserver/hack/images/oci"
)

func TestImages(t *testing.T) {
	first, second := tinyRelease(t, "a"), tinyRelease(t, "a/longer/path")
	for _, r := range []*release{first, second} {
		var out bytes.Buffer
		if err := buildImages(t.Context(), r, []program{tiny}, imageOptions{Platforms: imagePlatforms}, &out); err != nil {
			t.Fatal(err)
		}
		if !regexp.MustCompile(`^tiny\.tar: [0-9.]+ MiB, tiny:v1\.2\.3, sha256:[0-9a-f]{64}, in [0-9]+s\n$`).MatchString(out.String()) {
			t.Errorf("printed %q", out.String())
		}
	}
	expectSame(t, first, second, []string{"digests.txt", "tiny.tar", "tiny-linux-amd64.cdx.json", "tiny-linux-arm64.cdx.json"})

	archive, err := oci.Read(filepath.Join(first.Output, "tiny.tar"), t.TempDir())
	if err != nil {
		t.Fatal(err)
	}
	if err := validate.Index(archive.Index); err != nil {
		t.Errorf("the archive does not have what its manifests name: %v", err)
	}
	if archive.Name != "docker.io/library/tiny:v1.2.3" || archive.Tag != "v1.2.3" {
		t.Errorf("name and tag of the image are %q and %q", archive.Name, archive.Tag)
	}
	index, err := archive.Index.IndexManifest()
	if err != nil {
		t.Fatal(err)
	}
	labels, err := first.labels(tiny)
	if err != nil {
		t.Fatal(err)
	}
	if diff := cmp.Diff(labels, index.Annotations); diff != "" {
		t.Errorf("annotations of the index (-want +got):\n%s", diff)
	}
	if len(index.Manifests) != 2 || len(archive.Documents) != 2 {
		t.Fatalf("%d images and %d documents, want 2 and 2", len(index.Manifests), len(archive.Documents))
	}
	for i, arch := range []string{"amd64", "arm64"} {
		img, err := archive.Index.Image(index.Manifests[i].Digest)
		if err != nil {
			t.Fatal(err)
		}
		if platform := index.Manifests[i].Platform; platform.OS != "linux" || platform.Architecture != arch {
			t.Errorf("image %d is for %v, want linux/%s", i, platform, arch)
		}
		expectConfig(t, img, arch, labels)
		expectFiles(t, img, arch)
	}
	for _, arch := range []string{"amd64", "arm64"} {
		expectModules(t, filepath.Join(first.Output, "tiny-linux-"+arch+".cdx.json"))
	}
	t.Run("push", func(t *testing.T) { expectPush(t, first.Output, archive) })
}

// expectModules checks that a bill of materials has what is in the program and beside it.
func expectModules(t *testing.T, file string) {
	t.Helper()
	content, err := os.ReadFile(file)
	if err != nil {
		t.Fatal(err)
	}
	for _, want := range []string{
		`"pkg:golang/example.com/tiny@v1.2.3#cmd/tiny"`, `"pkg:golang/example.com/word"`, `"pkg:golang/std@1.`, `"pkg:golang/golang.org/x/crypto/x509roots/fallback@v`,
	} {
		if !bytes.Contains(content, []byte(want)) {
			t.Errorf("%s does not have %s", filepath.Base(file), want)
		}
	}
}

// TestRegistryIsInNamesOnly checks that the registry is part of the name under which nodes import an image, and not of the image.
func TestRegistryIsInNamesOnly(t *testing.T) {
	digests := map[string]bool{}
	for registry, want := range map[string]string{
		"":                          "docker.io/library/tiny:v1.2.3",
		"registry.example.com/team": "registry.example.com/team/tiny:v1.2.3",
	} {
		r := tinyRelease(t, "a")
		if err := buildImages(t.Context(), r, []program{tiny}, imageOptions{Registry: registry, Platforms: imagePlatforms[:1]}, io.Discard); err != nil {
			t.Fatal(err)
		}
		archive, err := oci.Read(filepath.Join(r.Output, "tiny.tar"), t.TempDir())
		if err != nil {
			t.Fatal(err)
		}
		if archive.Name != want {
			t.Errorf("with the registry %q, the image is %s, want %s", registry, archive.Name, want)
		}
		digests[outputs(t, r)["digests.txt"]] = true
	}
	if len(digests) != 1 {
		t.Error("the digest must not depend on the registry")
	}
}

func expectConfig(t *testing.T, img v1.Image, arch string, labels map[string]string) {
	t.Helper()
	got, err := img.ConfigFile()
	if err != nil {
		t.Fatal(err)
	}
	if got.OS != "linux" || got.Architecture != arch || !got.Created.Equal(time.Unix(1700000000, 0)) {
		t.Errorf("the configuration is for %s/%s of %s, want linux/%s of 2023-11-14T22:13:20Z", got.OS, got.Architecture, got.Created, arch)
	}
	want := v1.Config{
		User:         "65532:65532",
		Env:          []string{"PATH=/"}, // kubectl exec finds the program by its name
		Entrypoint:   []string{"/tiny"},
		ExposedPorts: map[string]struct{}{"8443/tcp": {}},
		Labels:       labels,
	}
	if diff := cmp.Diff(want, got.Config); diff != "" {
		t.Errorf("configuration (-want +got):\n%s", diff)
	}
	for key, want := range map[string]string{
		"org.opencontainers.image.revision": commit,
		"org.opencontainers.image.version":  "v1.2.3",
		"org.opencontainers.image.created":  "2023-11-14T22:13:20Z",
		"org.opencontainers.image.licenses": "Apache-2.0",
		"io.jobset-apiserver.build.go":      golang.Version(),
	} {
		if got.Config.Labels[key] != want {
			t.Errorf("label %s is %q, want %q", key, got.Config.Labels[key], want)
		}
	}
	if module, version, _ := strings.Cut(got.Config.Labels["io.jobset-apiserver.build.roots"], "@"); module == "" || version == "" {
		t.Errorf("the label of the certificate authorities must have a module and a version, has %q and %q", module, version)
	}
}

// expectFiles checks the whole file system of an image.
func expectFiles(t *testing.T, img v1.Image, arch string) {
	t.Helper()
	files := map[string][]byte{}
	modes := map[string]fs.FileMode{}
	content := mutate.Extract(img)
	defer content.Close()
	r := tar.NewReader(content)
	for {
		header, err := r.Next()
		if errors.Is(err, io.EOF) {
			break
		}
		if err != nil {
			t.Fatal(err)
		}
		name := strings.TrimSuffix(header.Name, "/")
		modes[name] = header.FileInfo().Mode()
		if header.Uid != 0 || header.Gid != 0 || header.ModTime.Unix() != 0 {
			t.Errorf("%s: belongs to %d:%d since %s, must belong to root and have no time", name, header.Uid, header.Gid, header.ModTime)
		}
		if files[name], err = io.ReadAll(r); err != nil {
			t.Fatal(err)
		}
	}
	want := map[string]fs.FileMode{
		"tiny": 0o755, "etc": fs.ModeDir | 0o755, "etc/ssl": fs.ModeDir | 0o755, "etc/ssl/certs": fs.ModeDir | 0o755, "etc/ssl/certs/ca-certificates.crt": 0o644,
	}
	if diff := cmp.Diff(want, modes); diff != "" {
		t.Errorf("files (-want +got):\n%s", diff)
	}
	if !x509.NewCertPool().AppendCertsFromPEM(files["etc/ssl/certs/ca-certificates.crt"]) {
		t.Error("the image has no certificate authorities")
	}
	expectStatic(t, files["tiny"], arch)
}

func expectStatic(t *testing.T, content []byte, arch string) {
	t.Helper()
	binary, err := elf.NewFile(bytes.NewReader(content))
	if err != nil {
		t.Fatal(err)
	}
	want := map[string]elf.Machine{"amd64": elf.EM_X86_64, "arm64": elf.EM_AARCH64}[arch]
	if binary.Machine != want {
		t.Errorf("the program is for %s, want %s", binary.Machine, want)
	}
	for _, segment := range binary.Progs {
		if segment.Type == elf.PT_INTERP {
			t.Error("the program must be static, needs a dynamic linker")
		}
	}
	if !bytes.Contains(content, []byte("v1.2.3")) {
		t.Error("the program does not have the version that the linker flags set")
	}
}
