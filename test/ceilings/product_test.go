// Copyright The jobset-apiserver Authors.
// SPDX-License-Identifier: Apache-2.0

// Package ceilings counts what should become less in the product. Each count has a ceiling: who lowers the count lowers the ceiling, and no
// change raises it unseen.
package ceilings

import (
	"fmt"
	"go/ast"
	"go/parser"
	"go/token"
	"io/fs"
	"os"
	"path/filepath"
	"regexp"
	"strings"
	"sync"
	"testing"
)

const root = "../.."

// sourceFile is a hand-written file of the product.
type sourceFile struct {
	// room is the folder of the file, and name its path, both from the root of the repository.
	room, name string
	syntax     *ast.File
	lines      int
}

// generated is a line of generated files.
var generated = regexp.MustCompile(`(?m)^// Code generated .* DO NOT EDIT\.$`)

// positions has the positions of all files.
var positions = token.NewFileSet()

// at returns where something is in the file.
func (f sourceFile) at(pos token.Pos) string {
	return fmt.Sprintf("%s:%d", f.name, positions.Position(pos).Line)
}

var parseOnce = sync.OnceValues(parse)

// product returns all hand-written files of the product, without tests and the packages that only tests use.
func product(t *testing.T) []sourceFile {
	t.Helper()
	files, err := parseOnce()
	if err != nil {
		t.Fatal(err)
	}
	return files
}

func parse() (files []sourceFile, err error) {
	for _, top := range []string{"pkg", "cmd"} {
		err = filepath.WalkDir(filepath.Join(root, top), func(path string, d fs.DirEntry, err error) error {
			name, _ := filepath.Rel(root, path)
			switch {
			case err != nil:
				return err
			case d.IsDir() && (d.Name() == "testdata" || d.Name() == "simulation" || name == "pkg/generated"):
				return filepath.SkipDir
			case d.IsDir() || !strings.HasSuffix(name, ".go") || strings.HasSuffix(name, "_test.go"):
				return nil
			}
			content, err := os.ReadFile(path)
			if err != nil || generated.Match(content) {
				return err
			}
			syntax, err := parser.ParseFile(positions, path, content, parser.SkipObjectResolution)
			if err != nil {
				return err
			}
			files = append(files, sourceFile{filepath.Dir(name), name, syntax, strings.Count(string(content), "\n")})
			return nil
		})
		if err != nil {
			return nil, err
		}
	}
	return files, nil
}

// atMost compares a count with its ceiling. Whoever lowers a count lowers the ceiling, too: go test -v says so.
func atMost(t *testing.T, ceiling, count int, what string, list []string) {
	t.Helper()
	switch {
	case count > ceiling:
		t.Errorf("%d %s, the ceiling is %d:\n%s", count, what, ceiling, strings.Join(list, "\n"))
	case count < ceiling:
		t.Logf("%d %s: lower the ceiling %d", count, what, ceiling)
	}
}
