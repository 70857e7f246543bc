// Copyright The jobset-apiserver Authors.
// SPDX-License-Identifier: Apache-2.0

package main

import (
	"bytes"
	"encoding/json"
	"os"
	"path/filepath"
	"strings"
	"testing"
)

// TestExceptions checks the file that the repository has.
func TestExceptions(t *testing.T) {
	text, err := os.ReadFile("exceptions.txt")
	if err != nil {
		t.Fatal(err)
	}
	if _, err := parseExceptions("exceptions.txt", string(text)); err != nil {
		t.Error(err)
	}
}

func TestParseExceptions(t *testing.T) {
	for name, test := range map[string]struct{ text, want string }{
		"comments and empty lines":  {text: "# a comment\n\nGO-2026-1234 a reason\n"},
		"no ID":                     {text: "\nCVE-2026-1 a reason\n", want: `f:2: must begin with an ID such as GO-2026-1234, was "CVE-2026-1"`},
		"no reason":                 {text: "GO-2026-1234  \n", want: "f:1: GO-2026-1234 must have a reason"},
		"twice":                     {text: "GO-2026-1234 a\nGO-2026-1234 b\n", want: "f:2: GO-2026-1234 is in the file already"},
		"every wrong line is named": {text: "GO-2026-1234\nx y\n", want: "f:1: GO-2026-1234 must have a reason after the ID\nf:2: must"},
	} {
		t.Run(name, func(t *testing.T) {
			reasons, err := parseExceptions("f", test.text)
			switch {
			case test.want == "" && (err != nil || reasons["GO-2026-1234"] != "a reason"):
				t.Errorf("reasons are %v, error is %v", reasons, err)
			case test.want != "" && (err == nil || !strings.Contains(err.Error(), test.want)):
				t.Errorf("error is %v, want %s", err, test.want)
			}
		})
	}
}

// TestExceptionsOfGo compares with a real entry of the database: it is fixed in Go 1.26.9 and 1.27.2.
func TestExceptionsOfGo(t *testing.T) {
	const id = "GO-2026-6599"
	database, err := databaseDirectory(t.Context())
	if err != nil {
		t.Fatal(err)
	}
	text, err := os.ReadFile(filepath.Join(database, id+".json"))
	if err != nil {
		t.Fatal(err)
	}
	var entry vulnerability
	if err := json.Unmarshal(text, &entry); err != nil {
		t.Fatal(err)
	}
	for name, test := range map[string]struct {
		built, oldest string
		reached       bool
		wantErr       bool
	}{
		"reached":                                      {built: "1.26.8", oldest: "1.26.0", reached: true},
		"not reached with a Go that has it":            {built: "1.26.8", oldest: "1.26.0", wantErr: true},
		"fixed in the Go that built":                   {built: "1.26.9", oldest: "1.26.0"},
		"fixed in a later minor version":               {built: "1.27.2", oldest: "1.26.0"},
		"not fixed yet in the first one of a minor":    {built: "1.27.1", oldest: "1.26.0", wantErr: true},
		"fixed in the oldest Go that go.mod permits":   {built: "1.27.2", oldest: "1.26.9", wantErr: true},
		"oldest Go is of a minor version without fix":  {built: "1.27.2", oldest: "1.27.0"},
		"oldest Go is of a minor version with the fix": {built: "1.28.0", oldest: "1.27.2", wantErr: true},
	} {
		t.Run(name, func(t *testing.T) {
			r := newResults()
			r.known[id], r.goes = entry, []string{test.built}
			if test.reached {
				r.reached[id] = &reach{module: standardLibrary, version: "v" + test.built}
			}
			err := compare(&bytes.Buffer{}, r, map[string]string{id: "reason"}, test.oldest)
			if (err != nil) != test.wantErr {
				t.Errorf("error is %v", err)
			}
		})
	}
}
