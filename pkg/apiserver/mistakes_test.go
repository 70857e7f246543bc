// Copyright The jobset-apiserver Authors.
// SPDX-License-Identifier: Apache-2.0

package apiserver_test

import (
	"encoding/json"
	"flag"
	"fmt"
	"net/http"
	"net/http/httptest"
	"os"
	"path/filepath"
	"strconv"
	"strings"
	"testing"

	"github.com/google/go-cmp/cmp"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"

	"github.com/jobset-apiserver/jobset-apiserver/test/mistakes"
)

var update = flag.Bool("update", false, "write the answers to mistakes into the golden file")

// TestMistakes compares what users are told about a mistake with the golden file of the kind.
func TestMistakes(t *testing.T) {
	for name, kind := range map[string]struct {
		resource resource
		dir      string
		enough   int
	}{
		"JobSet":          {resource{jobsetsPath, "train"}, "mistakes", 100},
		"SequentialJob":   {resource{sequentialJobsPath, "nightly"}, "mistakes-sequentialjob", 80},
		"LeaderWorkerSet": {resource{leaderWorkerSetsPath, "vllm"}, "mistakes-leaderworkerset", 45},
	} {
		t.Run(name, func(t *testing.T) { testMistakes(t, kind.resource, filepath.Join("testdata", kind.dir), kind.enough) })
	}
}

func testMistakes(t *testing.T, kind resource, dir string, enough int) {
	base, topics, err := mistakes.Read(dir)
	if err != nil {
		t.Fatal(err)
	}
	servers := map[string]*inProcess{}
	var got strings.Builder
	got.WriteString("What the server answers to each mistake in this directory, as kubectl prints it. Written by go test -run TestMistakes -update.\n")
	count := 0
	for _, topic := range topics {
		fmt.Fprintf(&got, "\n# %s\n", topic.Name)
		for _, m := range topic.Mistakes {
			count++
			key := strings.Join(m.Gates, ",")
			if servers[key] == nil {
				servers[key] = newInProcess(t, kind, m.Gates...)
				servers[key].hold(t, base)
			}
			fmt.Fprintf(&got, "\n%s\n%s", m.Name, answer(makeMistake(t, servers[key], m, base)))
		}
	}
	if count < enough {
		t.Errorf("%d mistakes, want %d or more", count, enough)
	}
	golden := filepath.Join(dir, "answers.txt")
	if *update {
		if err := os.WriteFile(golden, []byte(got.String()), 0o644); err != nil {
			t.Fatal(err)
		}
	}
	want, err := os.ReadFile(golden)
	if err != nil {
		t.Fatal(err)
	}
	if diff := cmp.Diff(strings.Split(string(want), "\n"), strings.Split(got.String(), "\n")); diff != "" {
		t.Errorf("answers (-want +got), run with -update if they are as they should be:\n%s", diff)
	}
}

var patchMedia = map[string]string{
	"json": "application/json-patch+json", "merge": "application/merge-patch+json",
	"strategic": "application/strategic-merge-patch+json", "apply": "application/apply-patch+yaml",
}

// makeMistake makes the request with the mistake, with strict validation of fields.
func makeMistake(t *testing.T, s *inProcess, m mistakes.Mistake, base []byte) (*httptest.ResponseRecorder, *metav1.Status) {
	t.Helper()
	const query = "?fieldValidation=Strict"
	if media, ok := patchMedia[m.On]; ok {
		body, err := json.Marshal(m.Patch)
		if err != nil {
			t.Fatal(err)
		}
		force := ""
		if m.On == "apply" {
			force = "&force=true"
		}
		return s.send(t, http.MethodPatch, s.object()+query+"&fieldManager=user"+force, media, body)
	}
	method, path := http.MethodPost, s.path
	if m.On == "update" || m.On == "status" {
		method, path = http.MethodPut, s.object()
		base = s.storedJSON(t)
	}
	if m.On == "status" {
		path += "/status"
	}
	body, err := m.Apply(base)
	if err != nil {
		t.Fatal(err)
	}
	return s.send(t, method, path+query, mediaJSON, body)
}

// storedJSON returns what the store holds, as clients read it.
func (s *inProcess) storedJSON(t *testing.T) []byte {
	t.Helper()
	w, status := s.send(t, http.MethodGet, s.object(), mediaJSON, nil)
	if status != nil {
		t.Fatal(status.Message)
	}
	return w.Body.Bytes()
}

// answer writes an answer as kubectl prints it.
func answer(w *httptest.ResponseRecorder, status *metav1.Status) string {
	var b strings.Builder
	for _, warning := range w.Header().Values("Warning") {
		text, err := strconv.Unquote(strings.TrimSpace(strings.TrimPrefix(warning, "299 -")))
		if err != nil {
			text = warning
		}
		fmt.Fprintf(&b, "    Warning: %s\n", text)
	}
	switch {
	case status == nil:
		b.WriteString("    accepted\n")
	case status.Reason != metav1.StatusReasonInvalid || status.Details == nil || len(status.Details.Causes) == 0:
		fmt.Fprintf(&b, "    Error from server (%s): %s\n", status.Reason, status.Message)
		for _, cause := range causes(status) {
			fmt.Fprintf(&b, "        field: %s\n", cause.Field)
		}
	default:
		fmt.Fprintf(&b, "    The %s %q is invalid:\n", status.Details.Kind, status.Details.Name)
		for _, cause := range status.Details.Causes {
			fmt.Fprintf(&b, "    * %s: %s\n", cause.Field, cause.Message)
		}
	}
	return b.String()
}

func causes(status *metav1.Status) []metav1.StatusCause {
	if status.Details == nil {
		return nil
	}
	return status.Details.Causes
}
