// Copyright The jobset-apiserver Authors.
// SPDX-License-Identifier: Apache-2.0

// Package checksums writes and checks the SHA-256 of all files in a directory, in the format of sha256sum --check.
package checksums

import (
	"bufio"
	"bytes"
	"crypto/sha256"
	"encoding/hex"
	"errors"
	"fmt"
	"io"
	"io/fs"
	"maps"
	"os"
	"path/filepath"
	"regexp"
	"slices"
)

// File is the name of the list.
const File = "SHA256SUMS"

// line is the checksum and the name of a file. Names are relative, and have no parent directories.
var line = regexp.MustCompile(`^([0-9a-f]{64})  ([A-Za-z0-9_][A-Za-z0-9._+-]*(?:/[A-Za-z0-9_][A-Za-z0-9._+-]*)*)$`)

// Read returns the checksums of all files below a directory by their names, which have slashes. Some names can be left out.
func Read(dir string, except ...string) (map[string]string, error) {
	sums := map[string]string{}
	err := filepath.WalkDir(dir, func(file string, entry fs.DirEntry, err error) error {
		if err != nil || entry.IsDir() {
			return err
		}
		name, err := filepath.Rel(dir, file)
		if err != nil {
			return err
		}
		name = filepath.ToSlash(name)
		if slices.Contains(except, name) {
			return nil
		}
		if !entry.Type().IsRegular() {
			return fmt.Errorf("%s: must be a regular file", name)
		}
		sums[name], err = Sum(file)
		return err
	})
	return sums, err
}

// Sum returns the SHA-256 of a file in hexadecimal.
func Sum(file string) (string, error) {
	f, err := os.Open(file)
	if err != nil {
		return "", err
	}
	defer f.Close()
	h := sha256.New()
	if _, err := io.Copy(h, f); err != nil {
		return "", fmt.Errorf("reading %s: %w", file, err)
	}
	return hex.EncodeToString(h.Sum(nil)), nil
}

// Write writes the list of all files into a directory.
func Write(dir string) error {
	sums, err := Read(dir, File)
	if err != nil {
		return err
	}
	var out bytes.Buffer
	for _, name := range slices.Sorted(maps.Keys(sums)) {
		entry := sums[name] + "  " + name
		if !line.MatchString(entry) {
			return fmt.Errorf("%q: names of files must consist of letters, digits, dots, dashes and underscores", name)
		}
		out.WriteString(entry + "\n")
	}
	return os.WriteFile(filepath.Join(dir, File), out.Bytes(), 0o644)
}

// Verify compares a directory with its list, and returns how many files it has. Files that are changed, missing, or not in the list are
// errors, except the files of some names.
func Verify(dir string, except ...string) (int, error) {
	want, err := list(dir)
	if err != nil {
		return 0, err
	}
	got, err := Read(dir, append(except, File)...)
	if err != nil {
		return 0, err
	}
	var errs []error
	for _, name := range slices.Sorted(maps.Keys(want)) {
		switch sum, found := got[name]; {
		case !found:
			errs = append(errs, fmt.Errorf("%s: is missing", name))
		case sum != want[name]:
			errs = append(errs, fmt.Errorf("%s: was changed, its checksum is %s, must be %s", name, sum, want[name]))
		}
	}
	for _, name := range slices.Sorted(maps.Keys(got)) {
		if want[name] == "" {
			errs = append(errs, fmt.Errorf("%s: is not in %s", name, File))
		}
	}
	return len(want), errors.Join(errs...)
}

func list(dir string) (map[string]string, error) {
	content, err := os.ReadFile(filepath.Join(dir, File))
	if err != nil {
		return nil, err
	}
	sums := map[string]string{}
	for scanner := bufio.NewScanner(bytes.NewReader(content)); scanner.Scan(); {
		match := line.FindStringSubmatch(scanner.Text())
		if match == nil {
			return nil, fmt.Errorf("%s: %q must be a checksum and the name of a file", File, scanner.Text())
		}
		sums[match[2]] = match[1]
	}
	if len(sums) == 0 {
		return nil, fmt.Errorf("%s: is empty", File)
	}
	return sums, nil
}
