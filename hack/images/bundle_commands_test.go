// Copyright The jobset-apiserver Authors.
// SPDX-License-Identifier: Apache-2.0

package main

import (
	"bytes"
	"io"
	"path/filepath"
	"strings"
	"testing"
)

func TestReleaseCommandMistakes(t *testing.T) {
	valid := []string{"--source=.", "--version=v1.2.3", "--revision=" + commit, "--created=1700000000"}
	tests := map[string]struct {
		args []string
		want string
	}{
		"release without an output":          {append([]string{"release"}, valid...), "--source and --output are required"},
		"release for another platform":       {append([]string{"release", "--output=x", "--platforms=linux/s390x"}, valid...), "--platforms must be of linux/amd64,linux/arm64"},
		"release with a password and no key": {append([]string{"release", "--output=x", "--signing-password-file=x"}, valid...), "SIGNING_PASSWORD_FILE is set, and SIGNING_KEY must be, too"},
		"release with a key that is missing": {append([]string{"release", "--output=x", "--signing-key=missing"}, valid...), "reading the signing key: open missing"},
		"verify without a key":               {[]string{"verify", "--release=x"}, "a public key is required: make verify-release PUBLIC_KEY=jobset-apiserver.pub"},
		"publish without a registry":         {[]string{"publish", "--release=x", "--output=y"}, "a registry is required: make publish REGISTRY=registry.example.com/team"},
		"publish without a release":          {[]string{"publish", "--release=missing", "--output=y", "--registry=r.example.com"}, "missing/SHA256SUMS: no such file or directory: run make release first"},
		"publish without an output":          {[]string{"publish", "--release=x", "--registry=r.example.com"}, "--release and --output are required"},
		"render without a registry":          {[]string{"render", "--source=x", "--images=x", "--output=y"}, "a registry is required: make install-from-source REGISTRY=registry.example.com/team"},
		"render without images":              {[]string{"render", "--source=x", "--images=missing", "--output=y", "--registry=r.example.com"}, "missing/digests.txt: no such file or directory: run make images first"},
		"render without a source":            {[]string{"render", "--images=x", "--output=y"}, "--source, --images and --output are required"},
		"chart without an output":            {[]string{"chart", "--source=."}, "--source and --output are required"},
		"licenses without a policy":          {[]string{"licenses", "--source=."}, "--source and --policy are required"},
	}
	for title, test := range tests {
		t.Run(title, func(t *testing.T) {
			err := run(t.Context(), test.args, io.Discard)
			if err == nil || !strings.Contains(err.Error(), test.want) {
				t.Errorf("error is %v, want one with %q", err, test.want)
			}
		})
	}
}

func TestRender(t *testing.T) {
	dir := t.TempDir()
	sum := "sha256:" + strings.Repeat("a", 64)
	writeFile(t, filepath.Join(dir, digestsFile), sum+"  jobset-apiserver:v1.2.3\n"+sum+"  jobset-controller:v1.2.3\n")
	args := []string{"render", "--source=" + root, "--images=" + dir, "--registry=r.example.com/team", "--output=" + filepath.Join(dir, "install.yaml")}
	var out bytes.Buffer
	if err := run(t.Context(), args, &out); err != nil {
		t.Fatal(err)
	}
	if text := readFile(t, dir, "install.yaml"); !strings.Contains(text, "image: r.example.com/team/jobset-controller@"+sum+"\n") {
		t.Error("the manifests must have the image of the registry with the digest")
	}
	err := run(t.Context(), append(args, "--overlay=external"), &out)
	if want := `the overlay must be one of [embedded embedded-archive `; err == nil || !strings.Contains(err.Error(), want) || !strings.Contains(err.Error(), `is "external"`) {
		t.Errorf("error is %v, want one with %q", err, want)
	}
	writeFile(t, filepath.Join(dir, digestsFile), "latest  jobset-apiserver:v1.2.3\n")
	if err := run(t.Context(), args, &out); err == nil || !strings.Contains(err.Error(), "must be a digest and an image; run make images") {
		t.Errorf("error is %v", err)
	}
}
