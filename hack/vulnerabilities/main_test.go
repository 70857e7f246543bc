// Copyright The jobset-apiserver Authors.
// SPDX-License-Identifier: Apache-2.0

package main

import (
	"bytes"
	"os"
	"os/exec"
	"path/filepath"
	"strings"
	"testing"
)

// vulnerableID is in golang.org/x/text before v0.3.8, of which testdata has a version.
const vulnerableID = "GO-2022-1059"

// TestScan scans two real programs that contain an old module, and compares the result with exceptions.
func TestScan(t *testing.T) {
	reaches, links := build(t, "reaches", "-w"), build(t, "links", "-w")
	found := newResults()
	database, err := databaseDirectory(t.Context())
	if err != nil {
		t.Fatal(err)
	}
	if err := found.scan(t.Context(), database, reaches); err != nil {
		t.Fatal(err)
	}
	// What the standard library has depends on the Go that runs this test.
	ofGo := ""
	for id, r := range found.reached {
		if r.module == standardLibrary {
			ofGo += id + " depends on Go\n"
		}
	}
	for name, test := range map[string]struct {
		programs   []string
		exceptions string
		wantErr    []string
		wantOutput string
	}{
		"a vulnerable function in a program is a problem": {
			programs: []string{links, reaches},
			wantErr: []string{vulnerableID + ": ", "golang.org/x/text v0.3.7", "fixed in v0.3.8, go get golang.org/x/text@v0.3.8",
				"programs: reaches\n", "functions: golang.org/x/text/language.ParseAcceptLanguage\n"},
			wantOutput: "of which",
		},
		"a vulnerable function with an exception is none": {
			programs:   []string{links, reaches},
			exceptions: vulnerableID + " for the test\n",
			wantOutput: "not reached: GO-2026-5970 in golang.org/x/text v0.3.7",
		},
		"a vulnerable module without its functions is none": {
			programs:   []string{links},
			wantOutput: "not reached: " + vulnerableID,
		},
		"an exception that nothing needs is a problem": {
			programs:   []string{links},
			exceptions: vulnerableID + " for the test\n",
			wantErr:    []string{vulnerableID + ": no program reaches it; remove the exception"},
		},
		"an exception of a module that no program contains is a problem": {
			programs:   []string{links},
			exceptions: "GO-2020-0001 for the test\n",
			wantErr:    []string{"GO-2020-0001: no program reaches it"},
		},
		"an exception without a reason is a problem": {
			programs:   []string{links},
			exceptions: vulnerableID + "\n",
			wantErr:    []string{vulnerableID + " must have a reason"},
		},
		"a program that is missing is a problem": {
			programs: []string{"absent"},
			wantErr:  []string{"reading absent"},
		},
	} {
		t.Run(name, func(t *testing.T) {
			file := filepath.Join(t.TempDir(), "exceptions.txt")
			if err := os.WriteFile(file, []byte(ofGo+test.exceptions), 0o600); err != nil {
				t.Fatal(err)
			}
			var output bytes.Buffer
			err := run(t.Context(), &output, file, "1.20.0", test.programs)
			if (err != nil) != (len(test.wantErr) > 0) {
				t.Fatalf("error is %v, output:\n%s", err, &output)
			}
			for _, want := range test.wantErr {
				if !strings.Contains(err.Error(), want) {
					t.Errorf("error lacks %q:\n%v", want, err)
				}
			}
			if !strings.Contains(output.String(), test.wantOutput) {
				t.Errorf("output lacks %q:\n%s", test.wantOutput, &output)
			}
		})
	}
}

// TestScanNeedsSymbols checks that a program whose functions are unknown is refused: it would seem to reach everything.
func TestScanNeedsSymbols(t *testing.T) {
	err := newResults().scan(t.Context(), t.TempDir(), build(t, "links", "-s -w"))
	if err == nil || !strings.Contains(err.Error(), "build it without -ldflags=-s") {
		t.Errorf("error is %v", err)
	}
}

// build links a program of testdata with flags of the linker.
func build(t *testing.T, program, flags string) string {
	t.Helper()
	file := filepath.Join(t.TempDir(), program)
	command := exec.Command("go", "build", "-C", filepath.Join("testdata", "vulnerable"), "-trimpath", "-buildvcs=false", "-ldflags="+flags,
		"-o", file, "./"+program)
	command.Env = append(os.Environ(), "GOFLAGS=-mod=readonly", "GOWORK=off", "CGO_ENABLED=0")
	if output, err := command.CombinedOutput(); err != nil {
		t.Fatalf("building %s: %v\n%s", program, err, output)
	}
	return file
}
