// Copyright The jobset-apiserver Authors.
// SPDX-License-Identifier: Apache-2.0

package apiserver_test

import (
	"net/http"
	"net/http/httptest"
	"strings"
	"testing"

	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"

	"github.com/jobset-apiserver/jobset-apiserver/pkg/migration"
)

func TestRefusals(t *testing.T) {
	f := newMigrationFixture(t)
	head := `"apiVersion": "migration.jobset-apiserver.io/v1alpha1", "kind": "Import"`
	many := `{` + head + `, "spec": {"objects": [` + strings.Repeat("{},", migration.MaxObjects) + `{}]}}`
	for name, tc := range map[string]struct {
		method, path, body string
		code               int32
		message            string
	}{
		"no objects": {http.MethodPost, "/imports", `{` + head + `}`, http.StatusUnprocessableEntity,
			`Import.migration.jobset-apiserver.io "" is invalid: spec.objects: Required value: there must be at least one object, here or in spec.removed`},
		"too many objects": {http.MethodPost, "/imports", many, http.StatusUnprocessableEntity,
			`Import.migration.jobset-apiserver.io "" is invalid: spec: Invalid value: 101: objects and removed must have at most 100 items together`},
		"a removal without a name": {http.MethodPost, "/imports", `{` + head + `, "spec": {"removed": [{"resource": "pods", "namespace": "a/b", "name": ".."}]}}`,
			http.StatusUnprocessableEntity, `Import.migration.jobset-apiserver.io "" is invalid: [` +
				`spec.removed[0].resource: Unsupported value: "pods": supported values: "disaggregatedsetrolescalers.disaggregatedset.x-k8s.io", ` +
				`"disaggregatedsets.disaggregatedset.x-k8s.io", "jobsets.jobset.x-k8s.io", "leaderworkersets.leaderworkerset.x-k8s.io", ` +
				`"podreadinessgroups.batch.jobset-apiserver.io", "sequentialjobs.batch.jobset-apiserver.io", ` +
				`spec.removed[0].namespace: Invalid value: "a/b": must be the name of a namespace, ` +
				`spec.removed[0].name: Invalid value: "..": must be the name of an object, ` +
				`spec.removed[0].uid: Required value: only the object with this UID is removed]`},
		"another kind": {http.MethodPost, "/imports", `{"spec": {"objects": [{}]}}`, http.StatusUnprocessableEntity,
			`Import.migration.jobset-apiserver.io "" is invalid: [apiVersion: Unsupported value: "": supported values: "migration.jobset-apiserver.io/v1alpha1", kind: Unsupported value: "": supported values: "Import"]`},
		"a field that does not exist": {http.MethodPost, "/imports", `{"speck": {}}`, http.StatusBadRequest,
			`the body must be an Import of migration.jobset-apiserver.io/v1alpha1: json: unknown field "speck"`},
		"two objects": {http.MethodPost, "/imports", `{` + head + `} {}`, http.StatusBadRequest,
			`the body must be an Import of migration.jobset-apiserver.io/v1alpha1: nothing may follow the object`},
		"a large body": {http.MethodPost, "/imports", `{"kind": "` + strings.Repeat("x", migration.MaxBytes) + `"}`, http.StatusRequestEntityTooLarge,
			"Request entity too large: an import must have at most 16777216 bytes: send fewer objects at once"},
		"reading imports": {http.MethodGet, "/imports", "", http.StatusMethodNotAllowed, "get is not supported on resources of kind \"imports.migration.jobset-apiserver.io\""},
		"an unknown kind": {http.MethodGet, "/inventories/pods", "", http.StatusNotFound, `inventories.migration.jobset-apiserver.io "pods" not found`},
		"a wrong page":    {http.MethodGet, "/inventories/" + jobSets + "?continue=!", "", http.StatusBadRequest, "continue: must be the value of the page before, or empty for the first page"},
		"a page of elsewhere": {http.MethodGet, "/inventories/" + jobSets + "?continue=" + "Li4vLi4v", "", http.StatusBadRequest,
			"continue: must be the value of the page before, or empty for the first page"},
		"another path": {http.MethodGet, "/others", "", http.StatusNotFound, "the server could not find the requested resource"},
	} {
		t.Run(name, func(t *testing.T) {
			var status metav1.Status
			code := f.call(tc.method, versionPath+tc.path, tc.body, &status)
			if int32(code) != tc.code || status.Code != tc.code || status.Message != tc.message {
				t.Errorf("got %d %q\nwant %d %q", status.Code, status.Message, tc.code, tc.message)
			}
		})
	}
}

func TestContentTypes(t *testing.T) {
	f := newMigrationFixture(t)
	body := `{"apiVersion": "migration.jobset-apiserver.io/v1alpha1", "kind": "Import", "spec": {"dryRun": true, "objects": [{}]}}`
	for media, code := range map[string]int{
		"": http.StatusOK, "application/json; charset=utf-8": http.StatusOK, "application/yaml": http.StatusUnsupportedMediaType, ";": http.StatusUnsupportedMediaType,
	} {
		req := httptest.NewRequestWithContext(t.Context(), http.MethodPost, versionPath+"/imports", strings.NewReader(body))
		if media != "" {
			req.Header.Set("Content-Type", media)
		}
		recorder := httptest.NewRecorder()
		f.handler.ServeHTTP(recorder, req)
		want := "the body must be JSON (Content-Type: application/json)"
		if recorder.Code != code || code != http.StatusOK && !strings.Contains(recorder.Body.String(), want) {
			t.Errorf("%q: %d %s", media, recorder.Code, recorder.Body)
		}
	}
}
