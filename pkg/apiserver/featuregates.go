// Copyright The jobset-apiserver Authors.
// SPDX-License-Identifier: Apache-2.0

package apiserver

import (
	"encoding/json"
	"net/http"
	"path"

	"k8s.io/apimachinery/pkg/runtime"
	"k8s.io/apimachinery/pkg/runtime/schema"
	"k8s.io/apimachinery/pkg/util/sets"
	"k8s.io/component-base/version"

	"github.com/jobset-apiserver/jobset-apiserver/pkg/selfcheck"
)

// featureGatesResource is the last element of the path of the document. Authorization takes a GET of the path for a list
// of a resource of this name, which discovery does not show.
const featureGatesResource = "featuregates"

// withFeatureGates serves at /apis/<group>/<version>/featuregates which feature gates are on, and the version of this program.
// kube-apiserver passes on only what is below a group and version, so that there is one such path for each of them.
func withFeatureGates(next http.Handler, states map[string]bool, served []schema.GroupVersion) http.Handler {
	document, _ := json.Marshal(map[string]any{"featureGates": states,
		"version": version.Get().GitVersion}) // strings and booleans cannot fail
	paths := sets.New[string]()
	for _, of := range served {
		paths.Insert(path.Join("/apis", of.String(), featureGatesResource))
	}
	return http.HandlerFunc(func(w http.ResponseWriter, req *http.Request) {
		if req.Method != http.MethodGet || !paths.Has(req.URL.Path) {
			next.ServeHTTP(w, req)
			return
		}
		w.Header().Set("Content-Type", runtime.ContentTypeJSON)
		_, _ = w.Write(document) // the client went away
	})
}

// withSelfCheck serves at /apis/<group>/<version>/serverhealth what the server knows about itself.
func withSelfCheck(next, document http.Handler, served []schema.GroupVersion) http.Handler {
	paths := sets.New[string]()
	for _, of := range served {
		paths.Insert(path.Join("/apis", of.String(), selfcheck.Resource))
	}
	return http.HandlerFunc(func(w http.ResponseWriter, req *http.Request) {
		if req.Method != http.MethodGet || !paths.Has(req.URL.Path) {
			next.ServeHTTP(w, req)
			return
		}
		document.ServeHTTP(w, req)
	})
}
