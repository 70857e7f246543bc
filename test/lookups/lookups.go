// Copyright The jobset-apiserver Authors.
// SPDX-License-Identifier: Apache-2.0

// Package lookups answers the questions with which the plugin finds the kind of a name, for tests with a server of one kind.
package lookups

import (
	"encoding/json"
	"net/http"
	"path"
	"strings"

	apierrors "k8s.io/apimachinery/pkg/api/errors"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/runtime/schema"
)

// Answer answers a request for the metadata of an object, and returns whether it is one. Objects of the resource exist
// under each name, and none of others.
func Answer(w http.ResponseWriter, r *http.Request, resource string) bool {
	if r.Method != http.MethodGet || !strings.Contains(r.Header.Get("Accept"), "as=PartialObjectMetadata;") {
		return false
	}
	code, object := http.StatusOK, any(&metav1.PartialObjectMetadata{
		TypeMeta: metav1.TypeMeta{APIVersion: "meta.k8s.io/v1", Kind: "PartialObjectMetadata"}, ObjectMeta: metav1.ObjectMeta{Name: path.Base(r.URL.Path)},
	})
	if !strings.Contains(r.URL.Path, "/"+resource+"/") {
		status := apierrors.NewNotFound(schema.GroupResource{Resource: path.Base(path.Dir(r.URL.Path))}, path.Base(r.URL.Path)).Status()
		status.TypeMeta = metav1.TypeMeta{APIVersion: "v1", Kind: "Status"}
		code, object = http.StatusNotFound, status
	}
	w.Header().Set("Content-Type", "application/json")
	w.WriteHeader(code)
	_ = json.NewEncoder(w).Encode(object)
	return true
}
