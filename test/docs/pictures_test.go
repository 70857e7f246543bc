// Copyright The jobset-apiserver Authors.
// SPDX-License-Identifier: Apache-2.0

package docs

import (
	"encoding/xml"
	"errors"
	"io"
	"path/filepath"
	"regexp"
	"strings"
	"testing"
)

// picture is a picture with its text for those who do not see it.
var picture = regexp.MustCompile(`!\[([^\]]*)\]\(([^)]+)\)`)

// TestPicturesAreWellFormed decodes every SVG file to its end.
func TestPicturesAreWellFormed(t *testing.T) {
	files, err := filepath.Glob(filepath.Join(root, "docs", "*.svg"))
	if err != nil || len(files) < 3 {
		t.Fatalf("found %v, want at least three pictures (%v)", files, err)
	}
	for _, file := range files {
		name, err := filepath.Rel(root, file)
		if err != nil {
			t.Fatal(err)
		}
		decoder := xml.NewDecoder(strings.NewReader(read(t, name)))
		elements := 0
		for {
			token, err := decoder.Token()
			if errors.Is(err, io.EOF) {
				break
			}
			if err != nil {
				t.Errorf("%s: %v", name, err)
				break
			}
			if element, ok := token.(xml.StartElement); ok {
				elements++
				if elements == 1 && (element.Name.Local != "svg" || element.Name.Space != "http://www.w3.org/2000/svg") {
					t.Errorf("%s begins with %v", name, element.Name)
				}
			}
		}
		if elements < 10 {
			t.Errorf("%s has %d elements", name, elements)
		}
	}
}

// TestPicturesOfReadme checks that the pictures of README.md can be read in light and dark mode and without seeing them, and need nothing
// from elsewhere.
func TestPicturesOfReadme(t *testing.T) {
	pictures := picture.FindAllStringSubmatch(read(t, "README.md"), -1)
	if len(pictures) < 2 {
		t.Errorf("README.md has %d pictures, want at least 2", len(pictures))
	}
	for _, found := range pictures {
		content := read(t, found[2])
		if len(found[1]) < 20 {
			t.Errorf("%s: README.md describes it by %q only", found[2], found[1])
		}
		var svg struct {
			ViewBox string `xml:"viewBox,attr"`
			Title   string `xml:"title"`
			Desc    string `xml:"desc"`
		}
		if err := xml.Unmarshal([]byte(content), &svg); err != nil {
			t.Errorf("%s: %v", found[2], err)
		}
		if svg.ViewBox == "" || svg.Title == "" || svg.Desc == "" {
			t.Errorf("%s: must have viewBox, title and desc: %+v", found[2], svg)
		}
		if !strings.Contains(content, "@media (prefers-color-scheme: dark)") {
			t.Errorf("%s has no colors for dark mode", found[2])
		}
		rest := strings.ReplaceAll(content, `xmlns="http://www.w3.org/2000/svg"`, "")
		if outside := regexp.MustCompile(`https?:|@import|@font-face|<image|<script|url\([^#]`).FindString(rest); outside != "" {
			t.Errorf("%s needs something from elsewhere: %s", found[2], outside)
		}
	}
}

// TestReadmeStatesCosts compares the sizes in README.md with the manifests, and keeps the page short.
func TestReadmeStatesCosts(t *testing.T) {
	readme := read(t, "README.md")
	for claim, manifest := range map[string]string{"volume of 10 GiB": "overlays/embedded/statefulset.yaml", "30 GiB more": "components/backup/claim.yaml"} {
		size := strings.ReplaceAll(regexp.MustCompile(`\d+ GiB`).FindString(claim), " GiB", "Gi")
		if !strings.Contains(readme, claim) || !strings.Contains(read(t, "artifacts/"+manifest), "storage: "+size+"\n") {
			t.Errorf("README.md must say %q, and artifacts/%s must ask for %s", claim, manifest, size)
		}
	}
	if !strings.Contains(readme, "**One replica by default.**") || !strings.Contains(read(t, "artifacts/base/apiserver.yaml"), "\n  replicas: 1\n") {
		t.Error("README.md must say how many replicas of the server there are by default")
	}
	if lines := strings.Count(readme, "\n"); lines > 120 {
		t.Errorf("README.md has %d lines, want at most 120", lines)
	}
}
