// Copyright The jobset-apiserver Authors.
// SPDX-License-Identifier: Apache-2.0

package importer

import (
	"fmt"
	"io"
	"os"
	"path/filepath"
	"strings"
	"testing"

	"k8s.io/apiserver/pkg/server/options/encryptionconfig"

	"github.com/jobset-apiserver/jobset-apiserver/pkg/apiserver/requests/payload"
)

// TestRefusals: what this version does not accept is named with its cause, and nothing else.
func TestRefusals(t *testing.T) {
	kinds := newKinds(t)
	valid := lws("a", "uid-a", "70")
	for name, tc := range map[string]struct{ old, new, want string }{
		"an invalid spec":         {`"size": 2`, `"size": 0`, "spec.leaderWorkerTemplate.size: Invalid value: "},
		"an unknown field":        {`"replicas": 2, "startupPolicy"`, `"replicas": 2, "color": 1, "startupPolicy"`, `this version would lose fields: strict decoding error: unknown field "spec.color"`},
		"a field of another type": {`"size": 2`, `"size": "2"`, "json: cannot unmarshal string"},
		"no UID":                  {`"uid": "uid-a"`, `"uid": ""`, "metadata.uid: Required value: must be set: children refer to it"},
		"a long UID":              {`"uid": "uid-a"`, fmt.Sprintf(`"uid": %q`, strings.Repeat("u", maxUID+1)), "metadata.uid: Too long: may not be more than 128 bytes"},
		"no creation time":        {`"creationTimestamp": "2026-01-02T03:04:05Z"`, `"creationTimestamp": null`, "metadata.creationTimestamp: Required value: must be set"},
		"no generation":           {`"generation": 3`, `"generation": 0`, "metadata.generation: Invalid value: 0: must be at least 1"},
		"no resource version":     {`"resourceVersion": "70"`, `"resourceVersion": ""`, `metadata.resourceVersion: must be a number, as of an object that was read from a cluster, not ""`},
		"no namespace":            {`"namespace": "ns", `, ``, "metadata.namespace: Required value"},
		"a name with a slash":     {`"name": "a"`, `"name": "a/b"`, "metadata.name: Invalid value: "},
		"a bad finalizer":         {`"example.com/keep"`, `"-"`, "metadata.finalizers"},
		"bad managed fields":      {`"FieldsV1"`, `"FieldsV2"`, "metadata.managedFields"},
		"another kind":            {`"kind": "LeaderWorkerSet"`, `"kind": "Thing"`, "this version does not serve it: no kind \"Thing\" is registered for version \"leaderworkerset.x-k8s.io/v1\""},
		"an action":               {`"apiVersion": "leaderworkerset.x-k8s.io/v1", "kind": "LeaderWorkerSet"`, `"apiVersion": "autoscaling/v1", "kind": "Scale"`, ""},
		"no kind":                 {`"kind": "LeaderWorkerSet",`, ``, "apiVersion and kind must be set, as in the output of kubectl get -o json"},
		"no version":              {`"apiVersion": "leaderworkerset.x-k8s.io/v1", "kind"`, `"kind"`, "apiVersion and kind must be set, as in the output of kubectl get -o json"},
		"too many bytes":          {`"c": "d"`, fmt.Sprintf(`"c": %q`, strings.Repeat("d", payload.MaxBytes)), "it must have at most 1572864 bytes, not "},
		"large annotations":       {`"c": "d"`, fmt.Sprintf(`"c": %q`, strings.Repeat("d", 300<<10)), "metadata.annotations: Too long"},
		"deep":                    {`"status": {`, `"status": {"x": ` + strings.Repeat("[", 200) + strings.Repeat("]", 200) + `, `, "the body must have no more than 100 levels"},
	} {
		text := strings.Replace(valid, tc.old, tc.new, 1)
		if text == valid {
			t.Errorf("%s: the object is not changed", name)
		}
		if _, err := kinds.decode(t.Context(), []byte(text), false); err == nil || !strings.Contains(err.Error(), tc.want) {
			t.Errorf("%s: the error is %.300v, want one with %q", name, err, tc.want)
		}
	}
	if _, err := kinds.decode(t.Context(), []byte(valid), false); err != nil {
		t.Error("the valid object:", err)
	}
}

func TestUnknownFieldsAreDropped(t *testing.T) {
	f := newFixture(t)
	text := strings.Replace(lws("a", "uid-a", "70"), `"replicas": 2, "startupPolicy"`, `"replicas": 2, "color": 1, "startupPolicy"`, 1)
	if got := f.run(list(text)); len(got.lines) != 1 || len(f.dump()) != 0 {
		t.Errorf("%+v", got)
	}
	if got := f.run(list(text), func(i *Import) { i.DropUnknown = true }); len(got.lines) != 0 || got.counts[Created] != 1 {
		t.Errorf("%+v", got)
	}
	bad := strings.Replace(text, `"size": 2`, `"size": 0`, 1)
	if got := f.run(list(bad), func(i *Import) { i.DropUnknown = true }); len(got.lines) != 1 || !strings.Contains(got.lines[0], "spec.leaderWorkerTemplate.size") {
		t.Errorf("%+v", got)
	}
}

// TestNamesOfRefused: whatever it is, a line names it, and the line is short.
func TestNamesOfRefused(t *testing.T) {
	kinds := newKinds(t)
	for text, want := range map[string]string{
		lws("a", "u", "1"): "leaderworkersets.leaderworkerset.x-k8s.io ns/a",
		`{"kind": "Thing", "metadata": {"namespace": "ns", "name": "a\u001b"}}`: `Thing ns/a\x1b`,
		`{"kind": "Thing"}`: "an object without a name",
		`7`:                 "an object without a name",
		`{"kind": "Thing", "metadata": {"name": "` + strings.Repeat("a", 1000) + `"}}`: "Thing /" + strings.Repeat("a", 393),
	} {
		if _, got, _ := kinds.name([]byte(text)); got != want {
			t.Errorf("%.80s: %q, want %q", text, got, want)
		}
	}
}

func TestFiles(t *testing.T) {
	f := newFixture(t)
	item := lws("a", "uid-a", "70")
	for text, want := range map[string]string{
		``:                              "ends before the list does",
		`{`:                             "ends before the list does",
		`{}`:                            errNoList.Error(),
		`[]`:                            errNoList.Error(),
		`7`:                             errNoList.Error(),
		item:                            errNoList.Error(),
		`{"items": {}}`:                 errNoList.Error(),
		`{"items": []} {"items": []}`:   "must have one list, and nothing after it",
		`{"items": [], "items": []}`:    `must have "items" once, not twice`,
		`{"items": [}`:                  "invalid character '}'",
		`{"items": [` + item:            "ends before the list does",
		`{"items": [], "x": [[1], {}]}`: "",
		`{"x": "` + strings.Repeat("x", budget) + `", "items": []}`:          errTooLong.Error(),
		`{"items": [{"metadata": {"name": "` + strings.Repeat("x", 2*budget): errTooLong.Error(),
	} {
		got := f.run(FromFile(strings.NewReader(text)))
		if want == "" && got.err == nil {
			continue
		}
		if got.err == nil || want == "" || !strings.Contains(got.err.Error(), want) {
			t.Errorf("%.60s: the error is %v, want %q", text, got.err, want)
		}
	}
	if got := f.run(list(item, item)); len(got.lines) != 1 || !strings.HasSuffix(got.lines[0], "the source must have it once, not twice") {
		t.Errorf("%+v", got)
	}
}

// endless is a list without an end.
type endless struct{ text string }

func (e *endless) Read(p []byte) (int, error) {
	n := copy(p, e.text)
	if e.text = e.text[n:]; e.text == "" {
		e.text = "," + lws("a", "uid-a", "70")
	}
	return n, nil
}

// TestLongFilesEnd: what a file may hold is bounded, since all of it is kept until it is written.
func TestLongFilesEnd(t *testing.T) {
	f := newFixture(t)
	i := &Import{Kinds: f.kinds, Store: f.store, Report: func(string, error, bool) {}, bytes: maxBytes - 10}
	var source io.Reader = &endless{`{"items": [` + lws("a", "uid-a", "70")}
	if err := i.Read(t.Context(), FromFile(source)); err == nil || !strings.HasPrefix(err.Error(), "the source must have at most 134217728 bytes") {
		t.Error(err)
	}
}

// TestEncrypted: objects are encrypted as the server does, and without its configuration nothing is written.
func TestEncrypted(t *testing.T) {
	f := newFixture(t)
	path := filepath.Join(t.TempDir(), "encryption.yaml")
	const config = `{"apiVersion": "apiserver.config.k8s.io/v1", "kind": "EncryptionConfiguration", "resources": [{"resources": ["leaderworkersets.leaderworkerset.x-k8s.io"],
		"providers": [{"secretbox": {"keys": [{"name": "a", "secret": "MDEyMzQ1Njc4OTAxMjM0NTY3ODkwMTIzNDU2Nzg5MDE="}]}}]}]}`
	if err := os.WriteFile(path, []byte(config), 0o600); err != nil {
		t.Fatal(err)
	}
	loaded, err := encryptionconfig.LoadEncryptionConfig(t.Context(), path, false, "")
	if err != nil {
		t.Fatal(err)
	}
	source := func() Source { return list(lws("a", "uid-a", "70")) }
	f.store.Transformers = loaded.Transformers
	for _, verdict := range []Verdict{Created, Unchanged} {
		if got := f.run(source()); got.counts[verdict] != 1 || len(got.lines) != 0 {
			t.Errorf("%+v, want 1 %s", got, verdict)
		}
	}
	if data := f.dump()[keyOfA]; !strings.HasPrefix(data, "k8s:enc:secretbox:v1:a:") {
		t.Errorf("the object is not encrypted: %.40q", data)
	}
	f.store.Transformers = nil
	if got := f.run(source()); len(got.lines) != 1 || !strings.HasSuffix(got.lines[0], errEncrypted.Error()) {
		t.Errorf("without the configuration: %+v", got)
	}
}

// TestAllKinds: every kind that stores objects can be imported.
func TestAllKinds(t *testing.T) {
	kinds := newKinds(t)
	found := map[string]bool{}
	for _, resource := range kinds.Resources() {
		found[resource.String()] = true
	}
	for _, resource := range []string{lwsResource.String(), jobSets.String(), "disaggregatedsets.disaggregatedset.x-k8s.io"} {
		if !found[resource] {
			t.Errorf("%s cannot be imported", resource)
		}
	}
	if _, err := NewKinds("NoSuchGate=true"); err == nil || !strings.HasPrefix(err.Error(), "--feature-gates: ") || !strings.HasSuffix(err.Error(), ": give those of the server") {
		t.Error(err)
	}
}
