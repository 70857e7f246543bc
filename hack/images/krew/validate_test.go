// Copyright The jobset-apiserver Authors.
// SPDX-License-Identifier: Apache-2.0

package krew

import (
	"os"
	"path/filepath"
	"strings"
	"testing"

	"github.com/jobset-apiserver/jobset-apiserver/hack/images/golang"
)

// packed returns a manifest without mistakes, whose archives are in a directory.
func packed(t *testing.T) (*Plugin, string) {
	t.Helper()
	dir := t.TempDir()
	program := filepath.Join(dir, "program")
	if err := os.WriteFile(program, []byte("program"), 0o644); err != nil {
		t.Fatal(err)
	}
	p := Describe("jobset", Spec{
		Version: "v1.2.3", Homepage: "https://example.com", ShortDescription: "Do a thing", Description: "Does a thing.",
	})
	for _, platform := range Platforms {
		files := []File{
			{Name: platform.Executable("kubectl-jobset"), Mode: 0o755, Path: program},
			{Name: "LICENSE", Mode: 0o644, Path: program},
		}
		archive := filepath.Join(dir, ArchiveName("kubectl-jobset", platform))
		if err := Pack(archive, platform, files); err != nil {
			t.Fatal(err)
		}
		if err := p.Add(archive, "https://example.com/v1.2.3", platform, files, files[0].Name); err != nil {
			t.Fatal(err)
		}
	}
	return &p, dir
}

func TestManifestIsValidAfterItWasRead(t *testing.T) {
	p, dir := packed(t)
	path := filepath.Join(dir, "jobset.yaml")
	if err := p.Write(path); err != nil {
		t.Fatal(err)
	}
	read, err := Read(path)
	if err != nil {
		t.Fatal(err)
	}
	if err := Validate(read, dir, Platforms); err != nil {
		t.Error(err)
	}
}

func TestReadRejectsUnknownFields(t *testing.T) {
	path := filepath.Join(t.TempDir(), "jobset.yaml")
	if err := os.WriteFile(path, []byte("apiVersion: x\nspec:\n  versions: v1.2.3\n"), 0o644); err != nil {
		t.Fatal(err)
	}
	if _, err := Read(path); err == nil || !strings.Contains(err.Error(), `unknown field "versions"`) {
		t.Errorf("error is %v, want one that names the field", err)
	}
}

func TestValidateMistakes(t *testing.T) {
	tests := map[string]struct {
		change func(p *Plugin)
		want   string
	}{
		"another version of Krew": {
			func(p *Plugin) { p.APIVersion = "v1" },
			`apiVersion: must be krew.googlecontainertools.github.com/v1alpha2, is "v1"`,
		},
		"another kind": {
			func(p *Plugin) { p.Kind = "Plug" },
			`kind: must be Plugin, is "Plug"`,
		},
		"a name with capitals": {
			func(p *Plugin) { p.Metadata.Name = "JobSet" },
			`metadata.name: must be lower-case letters, digits and dashes, is "JobSet"`,
		},
		"a version without v": {
			func(p *Plugin) { p.Spec.Version = "1.2.3" },
			`spec.version: must be a semantic version such as v1.2.3, is "1.2.3"`,
		},
		"a version of two numbers": {
			func(p *Plugin) { p.Spec.Version = "v1.2" },
			`spec.version: must be a semantic version such as v1.2.3, is "v1.2"`,
		},
		"no homepage": {
			func(p *Plugin) { p.Spec.Homepage = "" },
			`spec.homepage: must be an address that begins with https://, is ""`,
		},
		"a long short description": {
			func(p *Plugin) { p.Spec.ShortDescription = strings.Repeat("x", 51) },
			"spec.shortDescription: must have 1 to 50 characters, has 51",
		},
		"no description": {
			func(p *Plugin) { p.Spec.Description = " " },
			"spec.description: must not be empty",
		},
		"a platform that is missing": {
			func(p *Plugin) { p.Spec.Platforms = p.Spec.Platforms[1:] },
			"spec.platforms: must have darwin-amd64",
		},
		"a platform that is there twice": {
			func(p *Plugin) { p.Spec.Platforms[1].Selector = p.Spec.Platforms[0].Selector },
			"spec.platforms[1].selector: darwin-amd64 must be there once only",
		},
		"a platform that is unknown": {
			func(p *Plugin) { p.Spec.Platforms[2].Selector.MatchLabels.Arch = "s390x" },
			"spec.platforms: linux-s390x must be one of the platforms of the plugin",
		},
		"an address without TLS": {
			func(p *Plugin) { p.Spec.Platforms[0].URI = "http://example.com/kubectl-jobset-darwin-amd64.tar.gz" },
			`spec.platforms[0].uri: must be an address that begins with https://`,
		},
		"an archive that is missing": {
			func(p *Plugin) { p.Spec.Platforms[0].URI += ".xz" },
			"spec.platforms[0].uri: must end with the name of an archive",
		},
		"an archive of another system": {
			func(p *Plugin) { p.Spec.Platforms[0].URI = p.Spec.Platforms[4].URI },
			"kubectl-jobset-windows-amd64.zip must be an archive for darwin-amd64",
		},
		"a checksum of another archive": {
			func(p *Plugin) { p.Spec.Platforms[0].SHA256 = p.Spec.Platforms[5].SHA256 },
			"spec.platforms[0].sha256: must be ",
		},
		"a file that is not there": {
			func(p *Plugin) { p.Spec.Platforms[3].Files[1].From = "NOTICE" },
			"spec.platforms[3].files: NOTICE must be in kubectl-jobset-linux-arm64.tar.gz",
		},
		"a file that goes elsewhere": {
			func(p *Plugin) { p.Spec.Platforms[0].Files[1].To = "../x" },
			`files: LICENSE must be copied to the directory of the plugin, which is ".", is copied to "../x"`,
		},
		"a program that is not copied": {
			func(p *Plugin) { p.Spec.Platforms[5].Bin = "kubectl-jobset" },
			`spec.platforms[5].bin: must be one of the files and executable, is "kubectl-jobset"`,
		},
		"a program that does not run": {
			func(p *Plugin) { p.Spec.Platforms[4].Bin = "LICENSE" },
			`spec.platforms[4].bin: must be one of the files and executable, is "LICENSE"`,
		},
	}
	for title, test := range tests {
		t.Run(title, func(t *testing.T) {
			p, dir := packed(t)
			test.change(p)
			if err := Validate(p, dir, Platforms); err == nil || !strings.Contains(err.Error(), test.want) {
				t.Errorf("error is %v, want one with %q", err, test.want)
			}
		})
	}
}

func TestPackFailureLeavesNothing(t *testing.T) {
	dir := t.TempDir()
	for _, platform := range []golang.Platform{{OS: "linux", Arch: "amd64"}, {OS: "windows", Arch: "amd64"}} {
		archive := filepath.Join(dir, ArchiveName("kubectl-jobset", platform))
		err := Pack(archive, platform, []File{{Name: "kubectl-jobset", Mode: 0o755, Path: filepath.Join(dir, "missing")}})
		if err == nil || !strings.Contains(err.Error(), "writing "+archive) {
			t.Errorf("error is %v, want one that names %s", err, archive)
		}
	}
	if entries, _ := os.ReadDir(dir); len(entries) > 0 {
		t.Errorf("%v must not be left", entries)
	}
}
