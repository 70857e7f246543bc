// Copyright The jobset-apiserver Authors.
// SPDX-License-Identifier: Apache-2.0

package checksums

import (
	"os"
	"os/exec"
	"path/filepath"
	"strings"
	"testing"
)

// directory returns a directory with two files and their checksums.
func directory(t *testing.T) string {
	t.Helper()
	dir := t.TempDir()
	if err := os.Mkdir(filepath.Join(dir, "below"), 0o755); err != nil {
		t.Fatal(err)
	}
	for _, name := range []string{"a.txt", "below/b-1.tar.gz"} {
		write(t, filepath.Join(dir, name), name)
	}
	if err := Write(dir); err != nil {
		t.Fatal(err)
	}
	return dir
}

func write(t *testing.T, file, content string) {
	t.Helper()
	if err := os.WriteFile(file, []byte(content), 0o644); err != nil {
		t.Fatal(err)
	}
}

func TestVerify(t *testing.T) {
	tests := map[string]struct {
		spoil func(t *testing.T, dir string)
		want  string
	}{
		"nothing is changed":  {func(*testing.T, string) {}, ""},
		"a file is changed":   {func(t *testing.T, dir string) { write(t, filepath.Join(dir, "below/b-1.tar.gz"), "x") }, "below/b-1.tar.gz: was changed, its checksum is 2d711642b726b04401627ca9fbac32f5c8530fb1903cc4db02258717921a4881, must be "},
		"a file is missing":   {func(t *testing.T, dir string) { os.Remove(filepath.Join(dir, "a.txt")) }, "a.txt: is missing"},
		"a file is added":     {func(t *testing.T, dir string) { write(t, filepath.Join(dir, "c"), "x") }, "c: is not in SHA256SUMS"},
		"a file is excepted":  {func(t *testing.T, dir string) { write(t, filepath.Join(dir, "except"), "x") }, ""},
		"a link is added":     {func(t *testing.T, dir string) { os.Symlink("a.txt", filepath.Join(dir, "c")) }, "c: must be a regular file"},
		"the list is missing": {func(t *testing.T, dir string) { os.Remove(filepath.Join(dir, File)) }, "SHA256SUMS: no such file"},
		"the list is empty":   {func(t *testing.T, dir string) { write(t, filepath.Join(dir, File), "") }, "SHA256SUMS: is empty"},
		"the list has a file outside": {
			func(t *testing.T, dir string) {
				write(t, filepath.Join(dir, File), strings.Repeat("a", 64)+"  ../a.txt\n")
			}, `"` + strings.Repeat("a", 64) + `  ../a.txt" must be a checksum and the name of a file`,
		},
	}
	for title, test := range tests {
		t.Run(title, func(t *testing.T) {
			dir := directory(t)
			test.spoil(t, dir)
			n, err := Verify(dir, "except")
			if test.want == "" && (err != nil || n != 2) || test.want != "" && (err == nil || !strings.Contains(err.Error(), test.want)) {
				t.Errorf("%d files, error is %v, want one with %q", n, err, test.want)
			}
		})
	}
}

// TestFormat checks the list with the program that users have.
func TestFormat(t *testing.T) {
	program, err := exec.LookPath("sha256sum")
	if err != nil {
		t.Fatalf("sha256sum must be installed: %v", err)
	}
	cmd := exec.Command(program, "--check", "--strict", File)
	cmd.Dir = directory(t)
	if out, err := cmd.CombinedOutput(); err != nil || string(out) != "a.txt: OK\nbelow/b-1.tar.gz: OK\n" {
		t.Errorf("%v: %s", err, out)
	}
}

func TestNames(t *testing.T) {
	dir := directory(t)
	write(t, filepath.Join(dir, "with space"), "")
	if err := Write(dir); err == nil || !strings.Contains(err.Error(), `"with space": names of files must consist of letters`) {
		t.Errorf("error is %v", err)
	}
}
