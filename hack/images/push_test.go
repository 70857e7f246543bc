// Copyright The jobset-apiserver Authors.
// SPDX-License-Identifier: Apache-2.0

package main

import (
	"bytes"
	"io"
	"log"
	"net/http"
	"net/http/httptest"
	"os"
	"path/filepath"
	"strings"
	"testing"

	"github.com/google/go-containerregistry/pkg/name"
	"github.com/google/go-containerregistry/pkg/registry"
	v1 "github.com/google/go-containerregistry/pkg/v1"
	"github.com/google/go-containerregistry/pkg/v1/remote"

	"github.com/jobset-apiserver/jobset-apiserver/hack/images/oci"
	"github.com/jobset-apiserver/jobset-apiserver/hack/images/sbom"
)

func serve(t *testing.T, handler http.Handler) string {
	t.Helper()
	server := httptest.NewServer(handler)
	t.Cleanup(server.Close)
	return strings.TrimPrefix(server.URL, "http://")
}

// expectPush pushes an archive to a registry that lists referrers itself, and to one that does not and so needs a tag for them.
func expectPush(t *testing.T, output string, archive *oci.Archive) {
	want, err := archive.Index.Digest()
	if err != nil {
		t.Fatal(err)
	}
	for title, referrers := range map[string]bool{"a registry that lists referrers": true, "a registry that does not": false} {
		t.Run(title, func(t *testing.T) {
			host := serve(t, registry.New(registry.WithReferrersSupport(referrers), registry.Logger(log.New(io.Discard, "", 0))))
			var out bytes.Buffer
			if err := pushImages(t.Context(), output, []program{tiny}, oci.Registry{Prefix: host + "/team"}, &out); err != nil {
				t.Fatal(err)
			}
			pushed := host + "/team/tiny:v1.2.3@" + want.String() + "\n"
			if out.String() != pushed {
				t.Errorf("printed %q, want %q", out.String(), pushed)
			}
			tag, err := name.NewTag(host + "/team/tiny:v1.2.3")
			if err != nil {
				t.Fatal(err)
			}
			index, err := remote.Index(tag)
			if err != nil {
				t.Fatal(err)
			}
			if got, err := index.Digest(); err != nil || got != want {
				t.Errorf("the registry has %s (%v), want %s", got, err, want)
			}
			expectDocuments(t, tag.Context(), index, output)
		})
	}
}

// expectDocuments asks the registry for the bills of materials of each image and compares them with the files.
func expectDocuments(t *testing.T, repository name.Repository, index v1.ImageIndex, output string) {
	t.Helper()
	manifest, err := index.IndexManifest()
	if err != nil {
		t.Fatal(err)
	}
	for _, image := range manifest.Manifests {
		referrers, err := remote.Referrers(repository.Digest(image.Digest.String()))
		if err != nil {
			t.Fatal(err)
		}
		listed, err := referrers.IndexManifest()
		if err != nil {
			t.Fatal(err)
		}
		if len(listed.Manifests) != 1 || listed.Manifests[0].ArtifactType != sbom.MediaType {
			t.Fatalf("referrers of %s are %+v, want one of type %s", image.Digest, listed.Manifests, sbom.MediaType)
		}
		document, err := remote.Image(repository.Digest(listed.Manifests[0].Digest.String()))
		if err != nil {
			t.Fatal(err)
		}
		layers, err := document.Layers()
		if err != nil {
			t.Fatal(err)
		}
		content, err := layers[0].Compressed()
		if err != nil {
			t.Fatal(err)
		}
		got, err := io.ReadAll(content)
		if err != nil {
			t.Fatal(err)
		}
		want, err := os.ReadFile(filepath.Join(output, "tiny-linux-"+image.Platform.Architecture+".cdx.json"))
		if err != nil {
			t.Fatal(err)
		}
		if !bytes.Equal(got, want) {
			t.Errorf("the bill of materials for %s differs from the file", image.Platform.Architecture)
		}
	}
}

func TestPushMistakes(t *testing.T) {
	refuses := serve(t, http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) { w.WriteHeader(http.StatusForbidden) }))
	empty, broken := t.TempDir(), t.TempDir()
	for _, p := range imagePrograms {
		if err := os.WriteFile(filepath.Join(broken, archiveName(p)), []byte(strings.Repeat("x", 1024)), 0o644); err != nil {
			t.Fatal(err)
		}
	}
	built := tinyRelease(t, "a")
	if err := buildImages(t.Context(), built, []program{tiny}, imageOptions{Platforms: imagePlatforms}, io.Discard); err != nil {
		t.Fatal(err)
	}
	tests := map[string]struct {
		push func() error
		want string
	}{
		"no registry": {
			push: func() error { return run(t.Context(), []string{"push", "--output", empty}, io.Discard) },
			want: "a registry is required: make push REGISTRY=registry.example.com/team",
		},
		"nothing was built": {
			push: func() error {
				return run(t.Context(), []string{"push", "--output", empty, "--registry", refuses}, io.Discard)
			},
			want: "jobset-apiserver.tar: no such file or directory: run make images first",
		},
		"a file that is no archive": {
			push: func() error {
				return run(t.Context(), []string{"push", "--output", broken, "--registry", refuses}, io.Discard)
			},
			want: "jobset-apiserver.tar: archive/tar: invalid tar header",
		},
		"a name that is none": {
			push: func() error {
				return pushImages(t.Context(), built.Output, []program{tiny}, oci.Registry{Prefix: "registry.example.com/Team"}, io.Discard)
			},
			want: "naming the image: repository can only contain the characters",
		},
		"a registry that refuses": {
			push: func() error {
				return pushImages(t.Context(), built.Output, []program{tiny}, oci.Registry{Prefix: refuses + "/team"}, io.Discard)
			},
			want: "pushing " + refuses + "/team/tiny:v1.2.3: ",
		},
	}
	for title, test := range tests {
		t.Run(title, func(t *testing.T) {
			err := test.push()
			if err == nil || !strings.Contains(err.Error(), test.want) {
				t.Errorf("error is %v, want one with %q", err, test.want)
			}
		})
	}
}
