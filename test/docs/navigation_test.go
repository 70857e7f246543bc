// Copyright The jobset-apiserver Authors.
// SPDX-License-Identifier: Apache-2.0

package docs

import (
	"io/fs"
	"os"
	"path/filepath"
	"slices"
	"strings"
	"testing"

	"sigs.k8s.io/yaml"
)

const siteConfig = "hack/site/theme/config/_default/hugo.yaml"

// TestPagesAreInTheNavigation finds pages that a reader of the site would not find, without Hugo, which refuses to build them.
func TestPagesAreInTheNavigation(t *testing.T) {
	var config struct {
		Module struct {
			Mounts []struct{ Source string }
		}
		Params struct {
			Navigation []struct {
				Pages     []string
				Directory string
			}
		}
	}
	if err := yaml.Unmarshal([]byte(read(t, siteConfig)), &config); err != nil {
		t.Fatal(err)
	}
	var mounts, pages, directories []string
	for _, mount := range config.Module.Mounts {
		mounts = append(mounts, strings.TrimPrefix(mount.Source, "../../../"))
	}
	for _, group := range config.Params.Navigation {
		pages = append(pages, group.Pages...)
		directories = append(directories, group.Directory)
	}
	found := 0
	err := fs.WalkDir(os.DirFS(root), "docs", func(name string, _ fs.DirEntry, err error) error {
		if err != nil || filepath.Ext(name) != ".md" {
			return err
		}
		found++
		page := strings.TrimSuffix(name, ".md")
		switch {
		case filepath.Base(name) == "README.md" && !slices.Contains(mounts, name):
			t.Errorf("%s is no page of the site: mount it as _index.md in %s, as docs/README.md", name, siteConfig)
		case filepath.Base(name) != "README.md" && !slices.Contains(pages, page) && !slices.Contains(directories, filepath.Dir(name)):
			t.Errorf("%s is in no group of the navigation: add it to %s", name, siteConfig)
		}
		return nil
	})
	if err != nil || found < 50 {
		t.Errorf("found %d pages, want at least 50 (%v)", found, err)
	}
	for _, page := range pages {
		if _, err := os.Stat(filepath.Join(root, page)); err == nil {
			page = filepath.Join(page, "README")
		}
		if _, err := os.Stat(filepath.Join(root, page+".md")); err != nil {
			t.Errorf("%s names %s.md in the navigation, which does not exist", siteConfig, page)
		}
	}
}

// TestUsersBeginWithAFirstObject checks the index of the documentation: users find a first object of their kind before anything else.
func TestUsersBeginWithAFirstObject(t *testing.T) {
	for group, first := range map[string]string{
		"newcomers": "jobset.md", "users of JobSets": "jobset.md", "users of LeaderWorkerSets": "first-leaderworkerset.md",
	} {
		if want := "| " + group + " | [" + first + "]("; !strings.Contains(read(t, "docs/README.md"), want) {
			t.Errorf("docs/README.md does not have %q", want)
		}
	}
}
