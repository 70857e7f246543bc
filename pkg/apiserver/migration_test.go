// Copyright The jobset-apiserver Authors.
// SPDX-License-Identifier: Apache-2.0

package apiserver_test

import (
	"bytes"
	"encoding/json"
	"fmt"
	"net/http"
	"net/http/httptest"
	"slices"
	"strings"
	"testing"

	"github.com/google/go-cmp/cmp"
	clientv3 "go.etcd.io/etcd/client/v3"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/types"

	"github.com/jobset-apiserver/jobset-apiserver/pkg/apiserver/store/etcd/etcdtest"
	"github.com/jobset-apiserver/jobset-apiserver/pkg/apiserver/store/importer"
	storemigration "github.com/jobset-apiserver/jobset-apiserver/pkg/apiserver/store/migration"
	"github.com/jobset-apiserver/jobset-apiserver/pkg/migration"
)

const (
	jobSets     = "jobsets.jobset.x-k8s.io"
	versionPath = migration.Path + "/" + migration.Version
)

// jobSet is a set as a custom resource definition serves it; more are further fields of its spec.
func jobSet(name, uid, version, more string) json.RawMessage {
	return json.RawMessage(fmt.Sprintf(`{
		"apiVersion": "jobset.x-k8s.io/v1alpha2", "kind": "JobSet",
		"metadata": {"namespace": "ns", "name": %q, "uid": %q, "resourceVersion": %q, "generation": 3, "creationTimestamp": "2026-01-02T03:04:05Z"},
		"spec": {%s "replicatedJobs": [{"name": "w", "template": {"spec": {"template": {"spec": {"restartPolicy": "Never", "containers": [{"name": "main", "image": "i"}]}}}}}]},
		"status": {"restarts": 2}
	}`, name, uid, version, more))
}

// migrationFixture is the handler of migrations on a real etcd. What is not for it is answered with 418.
type migrationFixture struct {
	*testing.T
	client  *clientv3.Client
	handler http.Handler
}

func newMigrationFixture(t *testing.T) *migrationFixture {
	t.Helper()
	client := etcdtest.Start(t)
	kinds, err := importer.NewKinds("")
	if err != nil {
		t.Fatal(err)
	}
	next := http.HandlerFunc(func(w http.ResponseWriter, _ *http.Request) { w.WriteHeader(http.StatusTeapot) })
	return &migrationFixture{T: t, client: client, handler: storemigration.NewHandler(kinds, &importer.Store{KV: client, Prefix: "/registry/test"}).Filter(next)}
}

// call sends a request, and decodes the answer.
func (f *migrationFixture) call(method, path string, body, into any) int {
	f.Helper()
	var content bytes.Buffer
	switch b := body.(type) {
	case nil:
	case string:
		content.WriteString(b)
	default:
		if err := json.NewEncoder(&content).Encode(b); err != nil {
			f.Fatal(err)
		}
	}
	req := httptest.NewRequestWithContext(f.Context(), method, path, &content)
	req.Header.Set("Content-Type", "application/json")
	recorder := httptest.NewRecorder()
	f.handler.ServeHTTP(recorder, req)
	if into != nil {
		if err := json.Unmarshal(recorder.Body.Bytes(), into); err != nil {
			f.Fatalf("%s %s: %v: %s", method, path, err, recorder.Body)
		}
	}
	return recorder.Code
}

// importAll imports objects, and returns what became of each as "name verdict: message".
func (f *migrationFixture) importAll(spec migration.ImportSpec) (lines []string, hashes map[string]string) {
	f.Helper()
	request := migration.Import{TypeMeta: metav1.TypeMeta{APIVersion: migration.GroupVersion.String(), Kind: migration.KindImport}, Spec: spec}
	var answer migration.Import
	if code := f.call(http.MethodPost, versionPath+"/imports", request, &answer); code != http.StatusOK {
		f.Fatalf("code %d", code)
	}
	hashes = map[string]string{}
	for _, r := range answer.Status.Results {
		lines = append(lines, strings.TrimSuffix(fmt.Sprintf("%s/%s %s: %s", r.Namespace, r.Name, r.Verdict, r.Message), ": "))
		hashes[r.Name] = r.Hash
		if r.Name != "" && r.Resource != jobSets {
			f.Errorf("%s: resource %q", r.Name, r.Resource)
		}
	}
	return lines, hashes
}

// inventory returns all that the store has, with the number of pages.
func (f *migrationFixture) inventory() (items []migration.Item, pages int) {
	f.Helper()
	next := ""
	for {
		var page migration.Inventory
		if code := f.call(http.MethodGet, versionPath+"/inventories/"+jobSets+"?continue="+next, nil, &page); code != http.StatusOK {
			f.Fatalf("code %d", code)
		}
		items, pages, next = append(items, page.Items...), pages+1, page.Continue
		if next == "" {
			return items, pages
		}
	}
}

func TestImport(t *testing.T) {
	f := newMigrationFixture(t)
	objects := []json.RawMessage{
		jobSet("a", "uid-a", "10", ""), jobSet("b", "uid-b", "11", ""), jobSet("bad", "uid-bad", "12", `"suspend": 3,`),
		jobSet("newer", "uid-newer", "13", `"fromTheFuture": true,`), json.RawMessage(`{"kind": "JobSet"}`),
	}
	steps := []struct {
		name string
		spec migration.ImportSpec
		want []string
	}{
		{"a dry run", migration.ImportSpec{DryRun: true, Objects: objects[:2]}, []string{"ns/a Created", "ns/b Created"}},
		{"objects of which some are rejected", migration.ImportSpec{Objects: objects}, []string{
			"ns/a Created", "ns/b Created",
			"ns/bad Rejected: json: cannot unmarshal number into Go struct field JobSetSpec.spec.suspend of type bool",
			`ns/newer Rejected: this version would lose fields: strict decoding error: unknown field "spec.fromTheFuture"`,
			"/ Rejected: apiVersion and kind must be set, as in the output of kubectl get -o json",
		}},
		{"the same again", migration.ImportSpec{Objects: objects[:2]}, []string{"ns/a Unchanged", "ns/b Unchanged"}},
		{"a comparison", migration.ImportSpec{DryRun: true, Objects: objects[:2]}, []string{"ns/a Unchanged", "ns/b Unchanged"}},
		{"an object that has changed", migration.ImportSpec{Objects: []json.RawMessage{jobSet("a", "uid-a", "20", `"suspend": true,`)}}, []string{"ns/a Updated"}},
		{"another object of the name", migration.ImportSpec{Objects: []json.RawMessage{jobSet("b", "uid-c", "21", "")}}, []string{
			"ns/b Conflict: the store has another object of this name: its UID must be uid-c, not uid-b; delete one of the two",
		}},
		{"without what this version does not know", migration.ImportSpec{DropUnknownFields: true, Objects: objects[3:4]}, []string{"ns/newer Created"}},
	}
	for _, step := range steps {
		got, _ := f.importAll(step.spec)
		if diff := cmp.Diff(step.want, got); diff != "" {
			t.Errorf("%s (-want +got):\n%s", step.name, diff)
		}
	}
	_, hashes := f.importAll(migration.ImportSpec{DryRun: true, DropUnknownFields: true, Objects: objects[:4]})
	items, _ := f.inventory()
	var got []string
	for _, item := range items {
		got = append(got, fmt.Sprintf("%s/%s %s %t", item.Namespace, item.Name, item.UID, item.Hash == hashes[item.Name]))
	}
	if diff := cmp.Diff([]string{"ns/a uid-a false", "ns/b uid-b true", "ns/newer uid-newer true"}, got); diff != "" {
		t.Errorf("inventory with equal hashes (-want +got):\n%s", diff)
	}
}

// TestRemove removes what was imported, and nothing else.
func TestRemove(t *testing.T) {
	f := newMigrationFixture(t)
	f.importAll(migration.ImportSpec{Objects: []json.RawMessage{jobSet("a", "uid-a", "10", ""), jobSet("b", "uid-b", "11", ""), jobSet("c", "uid-c", "12", "")}})
	key := "/registry/test/jobset.x-k8s.io/jobsets/ns/c"
	content, err := f.client.Get(t.Context(), key)
	if err == nil {
		_, err = f.client.Put(t.Context(), key, string(content.Kvs[0].Value)) // as jobset-apiserver writes
	}
	if err != nil {
		t.Fatal(err)
	}
	var removed []migration.Reference
	for name, uid := range map[string]types.UID{"a": "uid-a", "b": "another", "c": "uid-c", "none": "uid-none"} {
		removed = append(removed, migration.Reference{Resource: jobSets, Namespace: "ns", Name: name, UID: uid})
	}
	for _, step := range []struct {
		dryRun bool
		first  string
		left   int
	}{{true, "Removed", 3}, {false, "Removed", 2}, {false, "Unchanged", 2}} {
		got, _ := f.importAll(migration.ImportSpec{DryRun: step.dryRun, Removed: removed})
		slices.Sort(got)
		want := []string{
			"ns/a " + step.first,
			"ns/b Conflict: the store has another object of this name: its UID must be another, not uid-b",
			"ns/c Conflict: jobset-apiserver has written it since it was imported, or it was not imported; delete it with kubectl",
			"ns/none Unchanged",
		}
		if diff := cmp.Diff(want, got); diff != "" {
			t.Errorf("(-want +got):\n%s", diff)
		}
		if items, _ := f.inventory(); len(items) != step.left {
			t.Errorf("%d objects are left, want %d", len(items), step.left)
		}
	}
	got, _ := f.importAll(migration.ImportSpec{Force: true, Removed: removed})
	slices.Sort(got)
	want := []string{
		"ns/a Unchanged", "ns/b Conflict: the store has another object of this name: its UID must be another, not uid-b", "ns/c Removed", "ns/none Unchanged",
	}
	if diff := cmp.Diff(want, got); diff != "" {
		t.Errorf("forced (-want +got):\n%s", diff)
	}
}

// TestForce checks that objects of the source are right whatever the store has, if that is asked for.
func TestForce(t *testing.T) {
	const key = "/registry/test/jobset.x-k8s.io/jobsets/ns/a"
	for name, tc := range map[string]struct {
		change  func(f *migrationFixture) error
		object  json.RawMessage
		refused string
		forced  string
	}{
		"another object": {
			func(*migrationFixture) error { return nil }, jobSet("a", "uid-b", "11", ""),
			"Conflict: the store has another object of this name: its UID must be uid-b, not uid-a; delete one of the two", "Updated",
		},
		"an older source": {
			func(*migrationFixture) error { return nil }, jobSet("a", "uid-a", "9", `"suspend": true,`),
			"Conflict: the source must not be older than what was imported: its resource version must be at least 10, not 9", "Updated",
		},
		"deleted since": {
			func(f *migrationFixture) error { _, err := f.client.Delete(t.Context(), key); return err }, jobSet("a", "uid-a", "11", ""),
			"Conflict: it was imported before, and has been deleted from the store since", "Created",
		},
		"written since": {
			func(f *migrationFixture) error {
				content, err := f.client.Get(t.Context(), key)
				if err == nil {
					_, err = f.client.Put(t.Context(), key, string(content.Kvs[0].Value))
				}
				return err
			}, jobSet("a", "uid-a", "11", `"suspend": true,`),
			"Conflict: the store has the same object in another form, which jobset-apiserver has written", "Updated",
		},
	} {
		t.Run(name, func(t *testing.T) {
			f := newMigrationFixture(t)
			f.importAll(migration.ImportSpec{Objects: []json.RawMessage{jobSet("a", "uid-a", "10", "")}})
			if err := tc.change(f); err != nil {
				t.Fatal(err)
			}
			for _, step := range []struct {
				force bool
				want  string
			}{{false, tc.refused}, {true, tc.forced}, {false, "Unchanged"}} {
				got, _ := f.importAll(migration.ImportSpec{Force: step.force, Objects: []json.RawMessage{tc.object}})
				if diff := cmp.Diff([]string{"ns/a " + step.want}, got); diff != "" {
					t.Errorf("force %v (-want +got):\n%s", step.force, diff)
				}
			}
		})
	}
}

func TestInventoryHasPages(t *testing.T) {
	f := newMigrationFixture(t)
	const all = migration.PageSize + 20
	for first := 0; first < all; first += migration.MaxObjects {
		var objects []json.RawMessage
		for i := first; i < min(all, first+migration.MaxObjects); i++ {
			objects = append(objects, jobSet(fmt.Sprintf("s-%04d", i), fmt.Sprint("uid-", i), "1", ""))
		}
		f.importAll(migration.ImportSpec{Objects: objects})
	}
	items, pages := f.inventory()
	if len(items) != all || pages != 2 || items[all-1].Name != fmt.Sprintf("s-%04d", all-1) {
		t.Errorf("%d objects on %d pages, want %d on 2", len(items), pages, all)
	}
}

func TestDiscovery(t *testing.T) {
	f := newMigrationFixture(t)
	var group metav1.APIGroup
	var list metav1.APIResourceList
	if code := f.call(http.MethodGet, migration.Path, nil, &group); code != http.StatusOK || group.PreferredVersion.GroupVersion != migration.GroupVersion.String() {
		t.Errorf("%d %+v", code, group)
	}
	if code := f.call(http.MethodGet, versionPath, nil, &list); code != http.StatusOK || len(list.APIResources) != 2 {
		t.Errorf("%d %+v", code, list)
	}
	if code := f.call(http.MethodGet, "/apis/jobset.x-k8s.io", nil, nil); code != http.StatusTeapot {
		t.Errorf("another group: %d", code)
	}
}
