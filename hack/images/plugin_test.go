// Copyright The jobset-apiserver Authors.
// SPDX-License-Identifier: Apache-2.0

package main

import (
	"archive/tar"
	"archive/zip"
	"bytes"
	"compress/gzip"
	"debug/elf"
	"debug/macho"
	"debug/pe"
	"fmt"
	"io"
	"os"
	"path/filepath"
	"strings"
	"testing"

	"github.com/jobset-apiserver/jobset-apiserver/hack/images/krew"
)

func TestPlugin(t *testing.T) {
	first, second := tinyRelease(t, "a"), tinyRelease(t, "a/longer/path")
	for _, r := range []*release{first, second} {
		if err := buildPlugin(t.Context(), r, tiny, pluginOptions{URL: "https://example.com/v1.2.3/"}, io.Discard); err != nil {
			t.Fatal(err)
		}
	}
	files := []string{"checksums.txt", "jobset.yaml"}
	for _, platform := range krew.Platforms {
		files = append(files, krew.ArchiveName(tiny.Name, platform), sbomName(tiny, platform))
	}
	expectSame(t, first, second, files)

	manifest, err := krew.Read(filepath.Join(first.Output, "jobset.yaml"))
	if err != nil {
		t.Fatal(err)
	}
	if err := krew.Validate(manifest, first.Output, krew.Platforms); err != nil {
		t.Error(err)
	}
	var checksums strings.Builder
	machines := map[string]string{}
	for _, download := range manifest.Spec.Platforms {
		labels := download.Selector.MatchLabels
		archive := "tiny-" + labels.OS + "-" + labels.Arch + map[bool]string{true: ".zip", false: ".tar.gz"}[labels.OS == "windows"]
		if want := "https://example.com/v1.2.3/" + archive; download.URI != want {
			t.Errorf("uri is %s, want %s", download.URI, want)
		}
		content, err := os.ReadFile(filepath.Join(first.Output, archive))
		if err != nil {
			t.Fatal(err)
		}
		fmt.Fprintf(&checksums, "%s  %s\n", strings.TrimPrefix(digest(content), "sha256:"), archive)
		machines[labels.OS+"/"+labels.Arch] = machine(t, unpack(t, content, labels.OS, download.Bin))
		if notices := unpack(t, content, labels.OS, licensesFile); !bytes.Contains(notices, []byte("std go1.")) {
			t.Errorf("%s has no licenses of its modules: %q", archive, notices)
		}
	}
	got, err := os.ReadFile(filepath.Join(first.Output, "checksums.txt"))
	if err != nil {
		t.Fatal(err)
	}
	if string(got) != checksums.String() {
		t.Errorf("checksums are\n%swant\n%s", got, checksums.String())
	}
	for platform, want := range map[string]string{
		"darwin/amd64": "CpuAmd64", "darwin/arm64": "CpuArm64",
		"linux/amd64": "EM_X86_64", "linux/arm64": "EM_AARCH64",
		"windows/amd64": "0x8664", "windows/arm64": "0xaa64",
	} {
		if machines[platform] != want {
			t.Errorf("the program for %s is for %q, want %q", platform, machines[platform], want)
		}
	}
}

// unpack returns a file of an archive.
func unpack(t *testing.T, archive []byte, system, file string) []byte {
	t.Helper()
	var content io.Reader
	if system == "windows" {
		r, err := zip.NewReader(bytes.NewReader(archive), int64(len(archive)))
		if err != nil {
			t.Fatal(err)
		}
		f, err := r.Open(file)
		if err != nil {
			t.Fatal(err)
		}
		defer f.Close()
		content = f
	} else {
		compressed, err := gzip.NewReader(bytes.NewReader(archive))
		if err != nil {
			t.Fatal(err)
		}
		r := tar.NewReader(compressed)
		for header := (&tar.Header{}); header.Name != file; {
			if header, err = r.Next(); err != nil {
				t.Fatalf("looking for %s: %v", file, err)
			}
		}
		content = r
	}
	out, err := io.ReadAll(content)
	if err != nil {
		t.Fatal(err)
	}
	return out
}

// machine says what a program runs on, in the words of its format.
func machine(t *testing.T, program []byte) string {
	t.Helper()
	if f, err := elf.NewFile(bytes.NewReader(program)); err == nil {
		return f.Machine.String()
	}
	if f, err := macho.NewFile(bytes.NewReader(program)); err == nil {
		return f.Cpu.String()
	}
	f, err := pe.NewFile(bytes.NewReader(program))
	if err != nil {
		t.Fatal(err)
	}
	return fmt.Sprintf("%#x", f.Machine)
}
