// Copyright The jobset-apiserver Authors.
// SPDX-License-Identifier: Apache-2.0

package localcluster

import (
	"os"
	"path/filepath"
	"strings"
	"testing"
)

func readRecorded(t *testing.T) string {
	t.Helper()
	recorded, err := os.ReadFile(filepath.Join("testdata", "kwok-controller.log"))
	if err != nil {
		t.Fatal(err)
	}
	return string(recorded)
}

func TestKwokDeletions(t *testing.T) {
	recorded := readRecorded(t)
	lines := strings.SplitAfter(recorded, "\n")
	for name, test := range map[string]struct {
		log  string
		want kwokDeletions
	}{
		"no line": {},
		"deletions, failures of deletions, and other lines":    {recorded, kwokDeletions{done: 2, missing: 1, refused: 2}},
		"a line that is not JSON":                              {"panic: x\n" + recorded, kwokDeletions{done: 2, missing: 1, refused: 2}},
		"a line that is being written":                         {lines[2] + strings.TrimSuffix(lines[3], "\n"), kwokDeletions{done: 1}},
		"a pod that is gone when another stage changes it":     {find(t, lines, "failed to patch pod", "not found"), kwokDeletions{}},
		"a pod that is not deleted because the API is not up":  {find(t, lines, "failed to delete pod", "refused"), kwokDeletions{}},
		"a pod that is gone when it is deleted":                {find(t, lines, "failed to delete pod", "not found"), kwokDeletions{missing: 1}},
		"a pod that is not being deleted when KWOK deletes it": {find(t, lines, "failed to delete pod", "denied"), kwokDeletions{refused: 1}},
	} {
		t.Run(name, func(t *testing.T) {
			got, err := readKwokDeletions(strings.NewReader(test.log))
			if err != nil {
				t.Fatal(err)
			}
			if got != test.want {
				t.Errorf("got %+v, want %+v", got, test.want)
			}
		})
	}
}

// find returns the first of the lines with all words.
func find(t *testing.T, lines []string, words ...string) string {
	t.Helper()
next:
	for _, line := range lines {
		for _, word := range words {
			if !strings.Contains(line, word) {
				continue next
			}
		}
		return line
	}
	t.Fatalf("no line has %q", words)
	return ""
}

func TestLateKwokDeletions(t *testing.T) {
	for name, test := range map[string]struct {
		deletions kwokDeletions
		want      bool
	}{
		"none":                             {kwokDeletions{}, true},
		"as many as a small cluster has":   {kwokDeletions{done: 5, missing: 12, refused: 8}, true},
		"more":                             {kwokDeletions{done: 5, missing: 12, refused: 9}, false},
		"every tenth":                      {kwokDeletions{done: 1000, missing: 99, refused: 1}, true},
		"more than every tenth":            {kwokDeletions{done: 1000, missing: 100, refused: 1}, false},
		"the rounds that showed the fault": {kwokDeletions{done: 980, missing: 567}, false},
		"the same rounds without it":       {kwokDeletions{done: 430, missing: 3}, true},
	} {
		t.Run(name, func(t *testing.T) {
			if err := test.deletions.check(); (err == nil) != test.want {
				t.Errorf("%+v: got %v", test.deletions, err)
			}
		})
	}
}

// TestClusterWithLateDeletions stops a cluster with a script that writes its arguments down.
func TestClusterWithLateDeletions(t *testing.T) {
	root := t.TempDir()
	c := &Cluster{Root: root, Dir: filepath.Join(root, "cluster")}
	calls := filepath.Join(root, "calls")
	for _, dir := range []string{filepath.Join(root, "hack"), filepath.Join(c.Dir, "logs")} {
		if err := os.MkdirAll(dir, 0o755); err != nil {
			t.Fatal(err)
		}
	}
	script := "#!/bin/sh\necho \"$*\" >>" + calls + "\n"
	if err := os.WriteFile(filepath.Join(root, "hack", "cluster.sh"), []byte(script), 0o755); err != nil {
		t.Fatal(err)
	}
	late := find(t, strings.SplitAfter(readRecorded(t), "\n"), "failed to delete pod", "not found")
	if err := writeFile(filepath.Join(c.Dir, "logs", "kwok-controller.log"), strings.Repeat(late, 30)); err != nil {
		t.Fatal(err)
	}
	if err := c.Stop(true); err != nil {
		t.Errorf("a cluster of an earlier run was stopped: %v", err)
	}
	if err := c.Script("up"); err != nil {
		t.Fatal(err)
	}
	if err := c.Stop(true); err == nil || !strings.Contains(err.Error(), "found 30 gone") {
		t.Errorf("a cluster with late deletions was stopped: got %v", err)
	}
	got, err := os.ReadFile(calls)
	if err != nil {
		t.Fatal(err)
	}
	if want := "down\nup\ndown --keep-logs\n"; string(got) != want {
		t.Errorf("the script was called with %q, want %q", got, want)
	}
}
