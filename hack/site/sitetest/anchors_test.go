// Copyright The jobset-apiserver Authors.
// SPDX-License-Identifier: Apache-2.0

package sitetest

import (
	"os"
	"os/exec"
	"path/filepath"
	"regexp"
	"slices"
	"strings"
	"testing"
)

// TestAnchors compares the anchors of Hugo with the list that test/docs has, whose rule checks the sources without Hugo.
func TestAnchors(t *testing.T) {
	cmd := exec.Command(filepath.Join(root, "hack", "ensure-hugo.sh"))
	cmd.Stderr = os.Stderr
	bin, err := cmd.Output()
	if err != nil {
		t.Fatal(err)
	}
	project := t.TempDir()
	for name, content := range map[string]string{
		"config/_default/hugo.yaml":   "disableKinds: [taxonomy, term, rss, sitemap]\n",
		"config/_default/markup.yaml": read(t, "hack/site/theme/config/_default/markup.yaml"),
		"content/_index.md":           read(t, "test/docs/testdata/anchors.md"),
		"layouts/home.html":           "{{ .Content }}",
	} {
		path := filepath.Join(project, name)
		if err := os.MkdirAll(filepath.Dir(path), 0o755); err != nil {
			t.Fatal(err)
		}
		if err := os.WriteFile(path, []byte(content), 0o644); err != nil {
			t.Fatal(err)
		}
	}
	hugo := exec.Command(filepath.Join(strings.TrimSpace(string(bin)), "hugo"), "--source", project)
	hugo.Env = append(os.Environ(), "HUGO_CACHEDIR="+filepath.Join(project, "cache"))
	if out, err := hugo.CombinedOutput(); err != nil {
		t.Fatalf("%v\n%s", err, out)
	}
	page, err := os.ReadFile(filepath.Join(project, "public", "index.html"))
	if err != nil {
		t.Fatal(err)
	}
	var got []string
	for _, match := range regexp.MustCompile(`<h\d id="([^"]*)"`).FindAllStringSubmatch(string(page), -1) {
		got = append(got, match[1])
	}
	if want := strings.Fields(read(t, "test/docs/testdata/anchors.txt")); !slices.Equal(got, want) {
		t.Errorf("got  %q\nwant %q", got, want)
	}
}

// read returns a file of the repository.
func read(t *testing.T, name string) string {
	t.Helper()
	content, err := os.ReadFile(filepath.Join(root, name))
	if err != nil {
		t.Fatal(err)
	}
	return string(content)
}
