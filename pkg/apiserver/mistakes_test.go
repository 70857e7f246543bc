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
	"regexp"
	"strconv"
	"strings"
	"testing"

	"github.com/google/go-cmp/cmp"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/runtime"
	"sigs.k8s.io/yaml"
)

var update = flag.Bool("update", false, "write the answers to mistakes into the golden file")

// mistake is a change of the base that a user should not make.
type mistake struct {
	// Name says what the user did.
	Name string `json:"name"`
	// Gates are switched on.
	Gates []string `json:"gates"`
	// On is "create", which is the default, "update", "status", or a type of patch: "json", "merge", "strategic" or "apply".
	On string `json:"on"`
	// At is a prefix of the paths in Set.
	At string `json:"at"`
	// Set holds values by their path in the base. A null removes the field.
	Set map[string]any `json:"set"`
	// Patch is the body of a patch.
	Patch any `json:"patch"`
}

// TestMistakes compares what users are told about a mistake with the golden file.
func TestMistakes(t *testing.T) {
	base := readBase(t)
	servers := map[string]*inProcess{}
	var got strings.Builder
	got.WriteString("What the server answers to each mistake in this directory, as kubectl prints it. Written by go test -run TestMistakes -update.\n")
	count := 0
	for _, topic := range readMistakes(t) {
		fmt.Fprintf(&got, "\n# %s\n", topic.name)
		for _, m := range topic.mistakes {
			count++
			key := strings.Join(m.Gates, ",")
			if servers[key] == nil {
				servers[key] = newInProcess(t, m.Gates...)
				servers[key].hold(t, base)
			}
			fmt.Fprintf(&got, "\n%s\n%s", m.Name, answer(m.send(t, servers[key], base)))
		}
	}
	if count < 100 {
		t.Errorf("%d mistakes, want 100 or more", count)
	}
	golden := filepath.Join("testdata", "mistakes", "answers.txt")
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

func readBase(t *testing.T) []byte {
	t.Helper()
	data, err := os.ReadFile(filepath.Join("testdata", "mistakes", "base.yaml"))
	if err == nil {
		data, err = yaml.YAMLToJSON(data)
	}
	if err != nil {
		t.Fatal(err)
	}
	return data
}

type topic struct {
	name     string
	mistakes []mistake
}

func readMistakes(t *testing.T) []topic {
	t.Helper()
	files, err := filepath.Glob(filepath.Join("testdata", "mistakes", "in_*.yaml"))
	if err != nil || len(files) == 0 {
		t.Fatalf("no mistakes: %v", err)
	}
	var topics []topic
	for _, file := range files {
		data, err := os.ReadFile(file)
		if err != nil {
			t.Fatal(err)
		}
		next := topic{name: strings.TrimSuffix(strings.TrimPrefix(filepath.Base(file), "in_"), ".yaml")}
		if err := yaml.UnmarshalStrict(data, &next.mistakes); err != nil {
			t.Fatalf("%s: %v", file, err)
		}
		topics = append(topics, next)
	}
	return topics
}

var patchMedia = map[string]string{
	"json": "application/json-patch+json", "merge": "application/merge-patch+json",
	"strategic": "application/strategic-merge-patch+json", "apply": "application/apply-patch+yaml",
}

// send makes the request with the mistake, with strict validation of fields.
func (m mistake) send(t *testing.T, s *inProcess, base []byte) (*httptest.ResponseRecorder, *metav1.Status) {
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
		return s.send(t, http.MethodPatch, jobsetsPath+"/train"+query+"&fieldManager=user"+force, media, body)
	}
	method, path := http.MethodPost, jobsetsPath
	if m.On == "update" || m.On == "status" {
		method, path = http.MethodPut, jobsetsPath+"/train"
		base = s.storedJSON(t)
	}
	if m.On == "status" {
		path += "/status"
	}
	return s.send(t, method, path+query, mediaJSON, m.apply(t, base))
}

// storedJSON returns what the store holds, as clients read it.
func (s *inProcess) storedJSON(t *testing.T) []byte {
	t.Helper()
	w, status := s.send(t, http.MethodGet, jobsetsPath+"/train", mediaJSON, nil)
	if status != nil {
		t.Fatal(status.Message)
	}
	return w.Body.Bytes()
}

// apply sets the values in the base.
func (m mistake) apply(t *testing.T, base []byte) []byte {
	t.Helper()
	var object any
	if err := json.Unmarshal(base, &object); err != nil {
		t.Fatal(err)
	}
	for path, value := range m.Set {
		if m.At != "" {
			path = strings.TrimSuffix(m.At+"."+path, ".")
		}
		object = set(object, steps.FindAllString(path, -1), runtime.DeepCopyJSONValue(value))
	}
	out, err := json.Marshal(object)
	if err != nil {
		t.Fatal(err)
	}
	return out
}

var steps = regexp.MustCompile(`[^.\[\]]+|\[[^\]]*\]`)

// set returns the object with the value at the path. A step is the name of a field, an index, or the key of a map in
// brackets; an index that is the length of its list adds an item.
func set(object any, path []string, value any) any {
	if len(path) == 0 {
		return value
	}
	step := strings.Trim(path[0], "[]")
	if i, err := strconv.Atoi(step); err == nil {
		items, _ := object.([]any)
		if i == len(items) {
			items = append(items, nil)
		}
		items[i] = set(items[i], path[1:], value)
		return items
	}
	fields, ok := object.(map[string]any)
	if !ok {
		fields = map[string]any{}
	}
	if len(path) == 1 && value == nil {
		delete(fields, step)
	} else {
		fields[step] = set(fields[step], path[1:], value)
	}
	return fields
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
