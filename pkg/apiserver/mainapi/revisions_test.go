// Copyright The jobset-apiserver Authors.
// SPDX-License-Identifier: Apache-2.0

package mainapi

import (
	"encoding/json"
	"fmt"
	"net/http"
	"net/http/httptest"
	"strconv"
	"strings"
	"testing"

	appsv1 "k8s.io/api/apps/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/runtime"
	typedappsv1 "k8s.io/client-go/kubernetes/typed/apps/v1"
	"k8s.io/client-go/rest"
)

// serveRevisions answers lists with so many revisions of the size, page by page, and counts those that it sent.
func serveRevisions(t *testing.T, total, size int) (reader RevisionReader, sent *int) {
	t.Helper()
	sent = new(int)
	data := []byte(`"` + strings.Repeat("a", size-2) + `"`)
	server := httptest.NewServer(http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
		query := r.URL.Query()
		if r.URL.Path != "/apis/apps/v1/namespaces/ml/controllerrevisions" || query.Get("labelSelector") != "example.com/name=llm" {
			t.Errorf("the request is %s", r.URL)
		}
		limit, _ := strconv.Atoi(query.Get("limit"))
		start, _ := strconv.Atoi(query.Get("continue"))
		list := appsv1.ControllerRevisionList{TypeMeta: metav1.TypeMeta{APIVersion: "apps/v1", Kind: "ControllerRevisionList"}}
		for n := start; n < min(start+limit, total); n++ {
			*sent++
			list.Items = append(list.Items, appsv1.ControllerRevision{
				ObjectMeta: metav1.ObjectMeta{Name: fmt.Sprint(n), ManagedFields: []metav1.ManagedFieldsEntry{{Manager: "lws"}}}, Revision: int64(n), Data: runtime.RawExtension{Raw: data},
			})
		}
		if start+limit < total {
			list.Continue = strconv.Itoa(start + limit)
		}
		w.Header().Set("Content-Type", "application/json")
		_ = json.NewEncoder(w).Encode(list)
	}))
	t.Cleanup(server.Close)
	client, err := typedappsv1.NewForConfig(&rest.Config{Host: server.URL, QPS: -1})
	if err != nil {
		t.Fatal(err)
	}
	return RevisionReader{Client: client}, sent
}

func TestRevisionsAreReadByPage(t *testing.T) {
	reader, _ := serveRevisions(t, 25, 100)
	all, err := reader.List(t.Context(), "ml", "example.com/name", "llm")
	if err != nil || len(all) != 25 {
		t.Fatalf("%d revisions, %v, want 25", len(all), err)
	}
	if all[24].Revision != 24 || len(all[24].Data.Raw) != 100 || all[24].ManagedFields != nil {
		t.Errorf("the last revision is %d with %d bytes and the managed fields %v", all[24].Revision, len(all[24].Data.Raw), all[24].ManagedFields)
	}
}

// TestRevisionsAreBounded checks that what others store in the main cluster does not fill the memory of the server.
func TestRevisionsAreBounded(t *testing.T) {
	for name, tc := range map[string]struct{ total, size, most int }{
		"many":  {100_000, 10, 520},
		"large": {100, 1 << 20, 30},
	} {
		t.Run(name, func(t *testing.T) {
			reader, sent := serveRevisions(t, tc.total, tc.size)
			_, err := reader.List(t.Context(), "ml", "example.com/name", "llm")
			const want = "namespace ml has more than 500 ControllerRevisions with the label example.com/name=llm, or they hold more than 16 MiB: delete those that are not needed"
			if err == nil || err.Error() != want {
				t.Errorf("the error is %v", err)
			}
			if *sent > tc.most {
				t.Errorf("%d revisions were read, want at most %d", *sent, tc.most)
			}
		})
	}
}
