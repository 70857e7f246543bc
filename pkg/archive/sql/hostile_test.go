// Copyright The jobset-apiserver Authors.
// SPDX-License-Identifier: Apache-2.0

package archivesql

import (
	"fmt"
	"math/rand"
	"strings"
	"testing"

	"github.com/google/go-cmp/cmp"
	"k8s.io/apimachinery/pkg/labels"
	"k8s.io/apimachinery/pkg/types"

	"github.com/jobset-apiserver/jobset-apiserver/pkg/apis/archive"
	api "github.com/jobset-apiserver/jobset-apiserver/pkg/archive"
)

// hostile are values that have meant harm to databases and programs.
var hostile = map[string]string{
	"metacharacters of SQL":        `'; DROP TABLE archive_runs; --`,
	"quotes and backslashes":       `"\'` + "`" + `\\`,
	"parameters":                   `? $1 :name @name %s {int}`,
	"wildcards":                    `%_*`,
	"NUL":                          "before\x00after",
	"invalid UTF-8":                "\xff\xfe\xc3\x28",
	"a mebibyte":                   strings.Repeat("ä", 1<<19),
	"line ends":                    "a\r\nb\u2028",
	"nothing":                      "",
	"other directions of writing":  "\u202etxt.exe",
	"the end of a surrogate range": "\ufffd\U0010ffff",
}

func testHostile(t *testing.T, s *Store) {
	put(t, s, newRun(1))
	for name, value := range hostile {
		t.Run(name, func(t *testing.T) {
			run := newRun(2, func(run *archive.Run) {
				run.Labels = map[string]string{"label": value, "key" + value: "value"}
				run.Namespace, run.User, run.Queue, run.Object.Kind = value, value, value, value
				run.Object.UID, run.Object.NamespaceUID, run.Reason, run.Message = types.UID(value), types.UID(value), value, value
				run.Object.Name = "x" + value
				run.Failures = []archive.RunFailure{{Reason: value, Node: value}}
			})
			put(t, s, run)
			for query, q := range map[string]api.Query{
				"label":  {Labels: labels.SelectorFromSet(labels.Set{"label": value, "key" + value: "value"})},
				"name":   {Fields: []api.Requirement{{Field: api.FieldName, Value: run.Name}}},
				"user":   {Fields: []api.Requirement{{Field: api.FieldUser, Value: value}}},
				"queue":  {Fields: []api.Requirement{{Field: api.FieldQueue, Value: value}, {Field: api.FieldObject, Value: run.Object.Name}}},
				"kind":   {Fields: []api.Requirement{{Field: api.FieldKind, Value: value}}},
				"object": {Fields: []api.Requirement{{Field: api.FieldObject, Value: run.Object.Name}}},
				"cause":  {Fields: []api.Requirement{{Field: api.FieldCause, Value: value}, {Field: api.FieldUser, Value: value}}},
				"node":   {Fields: []api.Requirement{{Field: api.FieldNode, Value: value}, {Field: api.FieldUser, Value: value}}},
			} {
				page, err := s.List(t.Context(), q)
				if err != nil {
					t.Errorf("by %s: %v", query, err)
				} else if len(page.Runs) != 1 || page.Runs[0].UID != run.UID {
					t.Errorf("by %s: want the run, got %d runs", query, len(page.Runs))
				}
			}
			if !has(t, s, run) {
				t.Error("the run is not found by its name")
			}
			remove(t, s, run)
			if diff := cmp.Diff([]string{"train-1"}, listed(t, s, api.Query{})); diff != "" {
				t.Errorf("other runs are left (-want +got):\n%s", diff)
			}
		})
	}
}

func testDamaged(t *testing.T, s *Store) {
	put(t, s, runsFrom(1, 6, withDetails(`{"suspend":true}`))...)
	whole, err := s.Get(t.Context(), "team", newRun(1).Name)
	if err != nil {
		t.Fatal(err)
	}
	random := make([]byte, 100)
	rand.New(rand.NewSource(1)).Read(random)
	encoder := newEncoder()
	other, _ := encoder.compress(map[string]any{"endTime": 7})
	bomb, _ := encoder.compress(strings.Repeat("x", maxRecord-100))
	bomb = append(bomb, bomb...) // two members of a gzip file are one after the other
	for n, record := range [][]byte{1: random, 2: {}, 3: other, 4: bomb} {
		if n > 0 {
			execute(t, s, `UPDATE archive_runs SET record = ? WHERE object = ?`, record, fmt.Sprintf("train-%d", n))
		}
	}
	execute(t, s, `UPDATE archive_details SET details = ? WHERE run = (SELECT id FROM archive_runs WHERE object = 'train-5')`, random)
	page, err := s.List(t.Context(), api.Query{})
	if err != nil {
		t.Fatal(err)
	}
	if diff := cmp.Diff([]string{"train-6", "train-5", "train-4", "train-3", "train-2", "train-1"}, namesOf(page.Runs)); diff != "" {
		t.Errorf("other runs are listed (-want +got):\n%s", diff)
	}
	want := newRun(1, func(run *archive.Run) {
		run.Labels, run.Reason, run.Message, run.Pods, run.Attempts = nil, "", damagedMessage, 0, 0
	})
	if diff := cmp.Diff(want, page.Runs[5]); diff != "" {
		t.Errorf("the damaged run is another (-want +got):\n%s", diff)
	}
	want.Details = whole.Details
	got, err := s.Get(t.Context(), "team", newRun(1).Name)
	if err != nil {
		t.Fatal(err)
	}
	if diff := cmp.Diff(want, *got); diff != "" {
		t.Errorf("Get returned another run (-want +got):\n%s", diff)
	}
	if got, err = s.Get(t.Context(), "team", newRun(5).Name); err != nil {
		t.Fatal(err)
	}
	if diff := cmp.Diff(newRun(5, func(run *archive.Run) { run.Message = damagedDetails + " jobset completed successfully" }), *got); diff != "" {
		t.Errorf("the run with damaged details is another (-want +got):\n%s", diff)
	}
	// An index with a run that does not exist, or that ended at another time, finds nothing for it.
	execute(t, s, `DELETE FROM archive_runs WHERE object = 'train-6'`)
	execute(t, s, `UPDATE archive_runs SET ended = ended + 1 WHERE object = 'train-5'`)
	if diff := cmp.Diff([]string{"train-4", "train-3", "train-2", "train-1"}, listed(t, s, api.Query{})); diff != "" {
		t.Errorf("other runs are listed (-want +got):\n%s", diff)
	}
	execute(t, s, `UPDATE archive_runs SET ended = ended - 1 WHERE object = 'train-5'`)
	put(t, s, newRun(2), newRun(6))
	if got, err = s.Get(t.Context(), "team", newRun(2).Name); err != nil || cmp.Diff(newRun(2), *got) != "" {
		t.Errorf("storing the run again has not mended it: %v, %+v", err, got)
	}
	remove(t, s, newRun(3))
	if diff := cmp.Diff([]int{5}, prune(t, s, at(100).Time, 0, 10)); diff != "" {
		t.Errorf("other numbers of runs are removed (-want +got):\n%s", diff)
	}
	if diff := cmp.Diff([]string{}, listed(t, s, api.Query{})); diff != "" {
		t.Errorf("runs are left (-want +got):\n%s", diff)
	}
}
