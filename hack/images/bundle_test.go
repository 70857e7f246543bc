// Copyright The jobset-apiserver Authors.
// SPDX-License-Identifier: Apache-2.0

package main

import (
	"encoding/json"
	"io"
	"os"
	"path/filepath"
	"regexp"
	"strings"
	"testing"

	"aead.dev/minisign"
	"github.com/google/go-cmp/cmp"

	"github.com/jobset-apiserver/jobset-apiserver/hack/images/checksums"
	"github.com/jobset-apiserver/jobset-apiserver/hack/images/golang"
	"github.com/jobset-apiserver/jobset-apiserver/hack/images/signature"
)

var linux = []golang.Platform{{OS: "linux", Arch: "amd64"}}

// tinyBundle is a release of the tiny program under our names, with our manifests and our chart.
func tinyBundle(t *testing.T, below string) *bundle {
	t.Helper()
	r := tinyRelease(t, below)
	for _, dir := range []string{"artifacts", "charts"} {
		if err := os.CopyFS(filepath.Join(r.Source.Dir, dir), os.DirFS(filepath.Join(root, dir))); err != nil {
			t.Fatal(err)
		}
	}
	writeFile(t, filepath.Join(r.Source.Dir, "CHANGELOG.md"), "# Changelog\n\n## v1.2.3 (2026-11-28)\n\nA word is printed, see [tiny](docs/release.md#provenance).\n\n## v1.2.2\n\nNothing.\n")
	writeFile(t, filepath.Join(r.Source.Dir, "word", "LICENSE"), "Anybody may read it.\n")
	b := &bundle{release: *r, Plugin: tiny, ImagePlatforms: linux, PluginPlatforms: linux}
	for _, name := range []string{"jobset-apiserver", "jobset-controller"} {
		p := tiny
		p.Name = name
		b.Images = append(b.Images, p)
	}
	return b
}

func writeFile(t *testing.T, file, content string) {
	t.Helper()
	if err := os.WriteFile(file, []byte(content), 0o644); err != nil {
		t.Fatal(err)
	}
}

func readFile(t *testing.T, names ...string) string {
	t.Helper()
	content, err := os.ReadFile(filepath.Join(names...))
	if err != nil {
		t.Fatal(err)
	}
	return string(content)
}

// keys returns a private key of minisign, and the file with the public one.
func keys(t *testing.T) (key *signature.Key, public string) {
	t.Helper()
	publicKey, privateKey, err := minisign.GenerateKey(nil)
	if err != nil {
		t.Fatal(err)
	}
	dir := t.TempDir()
	text, err := privateKey.MarshalText()
	if err != nil {
		t.Fatal(err)
	}
	writeFile(t, filepath.Join(dir, "key"), string(text))
	public = filepath.Join(dir, "key.pub")
	writeFile(t, public, publicKey.String())
	if key, err = signature.ReadKey(filepath.Join(dir, "key"), ""); err != nil {
		t.Fatal(err)
	}
	return key, public
}

func TestBundle(t *testing.T) {
	key, public := keys(t)
	first, second := tinyBundle(t, "a"), tinyBundle(t, "a/longer/path")
	for _, b := range []*bundle{first, second} {
		target := b.Output
		b.Key = key
		if err := b.build(t.Context(), io.Discard); err != nil {
			t.Fatal(err)
		}
		b.Output = target
	}
	sums, err := checksums.Read(first.Output)
	if err != nil {
		t.Fatal(err)
	}
	other, err := checksums.Read(second.Output)
	if err != nil {
		t.Fatal(err)
	}
	if diff := cmp.Diff(sums, other); diff != "" {
		t.Errorf("built in another directory (-first +second):\n%s", diff)
	}
	for _, name := range []string{
		"images/jobset-apiserver.tar", "images/jobset-controller-linux-amd64.cdx.json", "images/digests.txt", "install.yaml", "manifests/external-etcd.yaml",
		"chart/jobset-apiserver-1.2.3.tgz", "chart/jobset-apiserver-1.2.3.oci.tar", "plugin/tiny-linux-amd64.tar.gz", "plugin/jobset.yaml",
		"licenses.txt", "notes.md", "provenance.json", "SHA256SUMS", "SHA256SUMS.minisig",
	} {
		if sums[name] == "" {
			t.Errorf("the release must have %s", name)
		}
	}
	if len(sums) < 20 {
		t.Errorf("the release has %d files", len(sums))
	}
	t.Run("notes", func(t *testing.T) {
		want := "# v1.2.3\n\nA word is printed, see [tiny](" + homepage + "/blob/v1.2.3/docs/release.md#provenance).\n"
		if got := readFile(t, first.Output, notesFile); got != want {
			t.Errorf("notes are %q, want %q", got, want)
		}
	})
	t.Run("licenses", func(t *testing.T) {
		text := readFile(t, first.Output, licensesFile)
		for _, want := range []string{"\nexample.com/word v1.2.3, LICENSE\n\nAnybody may read it.\n", "    std go1.", "    golang.org/x/crypto/x509roots/fallback v"} {
			if !strings.Contains(text, want) {
				t.Errorf("the licenses must contain %q", want)
			}
		}
	})
	t.Run("manifests", func(t *testing.T) { expectManifests(t, first.Output, placeholder) })
	t.Run("provenance", func(t *testing.T) { expectProvenance(t, first.Output, sums) })
	t.Run("signature", func(t *testing.T) {
		comment, n, err := verifyDirectory(first.Output, public)
		if err != nil || n != len(sums)-2 || comment != "jobset-apiserver v1.2.3, SHA256SUMS" {
			t.Errorf("%d files, %q, %v", n, comment, err)
		}
	})
	t.Run("publish", func(t *testing.T) { expectPublication(t, first, key, public) })
}

// expectManifests checks the images in the manifests of a directory.
func expectManifests(t *testing.T, dir, registry string) {
	t.Helper()
	d, err := readDigests(filepath.Join(dir, imagesDir, digestsFile))
	if err != nil {
		t.Fatal(err)
	}
	files, err := filepath.Glob(filepath.Join(dir, manifestsDir, "*.yaml"))
	if err != nil || len(files) < 6 {
		t.Fatalf("%d files (%v)", len(files), err)
	}
	for _, file := range append(files, filepath.Join(dir, installFile)) {
		text := readFile(t, file)
		images := regexp.MustCompile(`(?m)^ +image: (.*)$`).FindAllStringSubmatch(text, -1)
		got := map[string]bool{}
		for _, image := range images {
			got[image[1]] = true
		}
		want := map[string]bool{}
		for name, digest := range d.Images {
			want[registry+"/"+name+"@"+digest] = true
		}
		if diff := cmp.Diff(want, got); diff != "" {
			t.Errorf("images in %s (-want +got):\n%s", file, diff)
		}
		if head := "# jobset-apiserver v1.2.3, overlay "; !strings.HasPrefix(text, head) || !strings.Contains(text, "with images from "+registry+".\n") {
			t.Errorf("%s must begin with %q", file, head)
		}
	}
	if readFile(t, dir, installFile) != readFile(t, dir, manifestsDir, "embedded.yaml") {
		t.Error("install.yaml must be the overlay embedded")
	}
}

func expectProvenance(t *testing.T, dir string, sums map[string]string) {
	t.Helper()
	var statement struct {
		Type          string `json:"_type"`
		PredicateType string
		Subject       []struct {
			Name   string
			Digest map[string]string
		}
		Predicate struct {
			BuildDefinition struct {
				ExternalParameters   map[string]string
				ResolvedDependencies []struct{ Digest map[string]string }
			}
			RunDetails struct{ Builder struct{ ID string } }
		}
	}
	if err := json.Unmarshal([]byte(readFile(t, dir, provenanceFile)), &statement); err != nil {
		t.Fatal(err)
	}
	if statement.Type != "https://in-toto.io/Statement/v1" || statement.PredicateType != "https://slsa.dev/provenance/v1" {
		t.Errorf("types are %q and %q", statement.Type, statement.PredicateType)
	}
	got := map[string]string{}
	for _, s := range statement.Subject {
		got[s.Name] = s.Digest["sha256"]
	}
	want := map[string]string{}
	for name, sum := range sums {
		if name != provenanceFile && !strings.HasPrefix(name, checksums.File) {
			want[name] = sum
		}
	}
	d, err := readDigests(filepath.Join(dir, imagesDir, digestsFile))
	if err != nil {
		t.Fatal(err)
	}
	for name, digest := range d.Images {
		want[name] = strings.TrimPrefix(digest, "sha256:")
	}
	if diff := cmp.Diff(want, got); diff != "" {
		t.Errorf("subjects (-want +got):\n%s", diff)
	}
	definition := statement.Predicate.BuildDefinition
	if definition.ExternalParameters["version"] != "v1.2.3" || len(definition.ResolvedDependencies) == 0 ||
		definition.ResolvedDependencies[0].Digest["gitCommit"] != commit || !strings.Contains(statement.Predicate.RunDetails.Builder.ID, commit) {
		t.Errorf("the predicate is %+v", statement.Predicate)
	}
}

func TestBundleMistakes(t *testing.T) {
	tests := map[string]struct {
		spoil func(t *testing.T, b *bundle)
		want  string
	}{
		"a tree with changes": {func(_ *testing.T, b *bundle) { b.Revision += "-dirty" }, "a release is built from a commit, and the tree has changes that are not in one: commit or stash them"},
		"no notes": {
			func(t *testing.T, b *bundle) {
				writeFile(t, filepath.Join(b.Source.Dir, "CHANGELOG.md"), "# Changelog\n\n## v1.2.2\n\nNothing.\n")
			},
			`the changelog must have changes under the heading "## v1.2.3" or "## Unreleased"`,
		},
		"an image that is not built": {func(_ *testing.T, b *bundle) { b.Images = b.Images[:1] }, "image jobset-controller has no digest: add its program to those that get an image"},
	}
	for title, test := range tests {
		t.Run(title, func(t *testing.T) {
			b := tinyBundle(t, "a")
			if err := os.MkdirAll(b.Output, 0o755); err != nil {
				t.Fatal(err)
			}
			writeFile(t, filepath.Join(b.Output, "earlier"), "")
			output := b.Output
			test.spoil(t, b)
			if err := b.build(t.Context(), io.Discard); err == nil || !strings.Contains(err.Error(), test.want) {
				t.Errorf("error is %v, want one with %q", err, test.want)
			}
			entries, err := os.ReadDir(filepath.Dir(output))
			if err != nil || len(entries) != 2 {
				t.Errorf("%v must be the source and the output (%v)", entries, err)
			}
			readFile(t, output, "earlier")
		})
	}
}
