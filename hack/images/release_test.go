// Copyright The jobset-apiserver Authors.
// SPDX-License-Identifier: Apache-2.0

package main

import (
	"fmt"
	"io"
	"os"
	"path/filepath"
	"regexp"
	"strings"
	"testing"

	"github.com/jobset-apiserver/jobset-apiserver/hack/images/sbom"
)

const root = "../.."

func digest(content []byte) string { return sbom.Digest(content) }

// TestProgramsAreThere compares the list of programs with the tree: each has a package, and the manifests use no other image.
func TestProgramsAreThere(t *testing.T) {
	images := map[string]bool{}
	for _, p := range imagePrograms {
		images[p.Name] = true
		if _, err := os.Stat(filepath.Join(root, p.Package, "main.go")); err != nil {
			t.Errorf("%s: %v", p.Name, err)
		}
	}
	image := regexp.MustCompile(`(?m)^ +image: (jobset-[a-z-]+)$`)
	manifests, err := filepath.Glob(filepath.Join(root, "artifacts/base/*.yaml"))
	if err != nil {
		t.Fatal(err)
	}
	found := 0
	for _, manifest := range manifests {
		content, err := os.ReadFile(manifest)
		if err != nil {
			t.Fatal(err)
		}
		for _, match := range image.FindAllSubmatch(content, -1) {
			found++
			if !images[string(match[1])] {
				t.Errorf("%s: image %s must be in the list of programs", manifest, match[1])
			}
			if !strings.Contains(string(content), "runAsUser: 65532") {
				t.Errorf("%s: must run as the user of the image, 65532", manifest)
			}
		}
	}
	if found == 0 {
		t.Error("no manifest with an image found")
	}
}

func TestReleaseMistakes(t *testing.T) {
	valid := map[string]string{"source": ".", "output": ".", "version": "v1.2.3", "revision": commit, "created": "1700000000"}
	tests := map[string]struct {
		flag, value string
		want        string
	}{
		"no directory":                 {"output", "", "--source and --output are required"},
		"a version without v":          {"version", "1.2.3", `is "1.2.3"`},
		"a version of two numbers":     {"version", "v1.2", "--version must be a semantic version such as v1.2.3 or v1.2.3-rc.1"},
		"a version that is no tag":     {"version", "v1.2.3+build", "--version must be a semantic version"},
		"a version that is too long":   {"version", "v1.2.3-" + strings.Repeat("a", 128), "of at most 128 characters"},
		"a commit that is abbreviated": {"revision", "0123456789ab", `--revision must be a commit of 40 hexadecimal digits, is "0123456789ab"`},
		"no time":                      {"created", "0", "--created must be a number of seconds since 1970, is 0"},
		"a time that is no number":     {"created", "today", `invalid value "today" for flag -created`},
	}
	for title, test := range tests {
		t.Run(title, func(t *testing.T) {
			for _, command := range []string{"build", "plugin"} {
				args := []string{command}
				for name, value := range valid {
					if name == test.flag {
						value = test.value
					}
					args = append(args, "--"+name+"="+value)
				}
				err := run(t.Context(), args, io.Discard)
				if err == nil || !strings.Contains(err.Error(), test.want) {
					t.Errorf("%s: error is %v, want one with %q", command, err, test.want)
				}
			}
		})
	}
}

func TestPlatforms(t *testing.T) {
	tests := map[string]struct {
		list, want, wantErr string
	}{
		"all by default":      {"", "[linux-amd64 linux-arm64]", ""},
		"one":                 {"linux/arm64", "[linux-arm64]", ""},
		"in another order":    {"linux/arm64,linux/amd64", "[linux-amd64 linux-arm64]", ""},
		"one that is unknown": {"linux/amd64,linux/s390x", "", `--platforms must be of linux/amd64,linux/arm64, is "linux/amd64,linux/s390x"`},
		"an empty name":       {"linux/amd64,", "", "--platforms must be of linux/amd64,linux/arm64"},
	}
	for title, test := range tests {
		t.Run(title, func(t *testing.T) {
			got, err := parsePlatforms(test.list)
			if test.wantErr != "" {
				if err == nil || !strings.Contains(err.Error(), test.wantErr) {
					t.Errorf("error is %v, want one with %q", err, test.wantErr)
				}
				return
			}
			if err != nil || fmt.Sprint(got) != test.want {
				t.Errorf("platforms are %v (%v), want %s", got, err, test.want)
			}
		})
	}
}

func TestCommandMistakes(t *testing.T) {
	tests := map[string]struct {
		args []string
		want string
	}{
		"no command":        {nil, "a command is required: build, push, plugin"},
		"another command":   {[]string{"pull"}, `the command must be build, push, plugin`},
		"an argument":       {[]string{"push", "tiny"}, `push takes no arguments, has ["tiny"]`},
		"a flag of another": {[]string{"push", "--version=v1.2.3"}, "flag provided but not defined: -version"},
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

func TestBuildFailureHasOutputOfGo(t *testing.T) {
	r := tinyRelease(t, "a")
	main := filepath.Join(r.Source.Dir, "cmd/tiny/main.go")
	if err := os.WriteFile(main, []byte("package main\n\nfunc main() { missing() }\n"), 0o644); err != nil {
		t.Fatal(err)
	}
	err := buildImages(t.Context(), r, []program{tiny}, imageOptions{Platforms: imagePlatforms}, io.Discard)
	if err == nil || !strings.Contains(err.Error(), "building ./cmd/tiny for linux-amd64") || !strings.Contains(err.Error(), "undefined: missing") {
		t.Errorf("error is %v, want the program and the message of the compiler", err)
	}
	if entries, _ := os.ReadDir(r.Output); len(entries) > 0 {
		t.Errorf("%v must not be left", entries)
	}
}
