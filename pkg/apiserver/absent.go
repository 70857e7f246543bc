// Copyright The jobset-apiserver Authors.
// SPDX-License-Identifier: Apache-2.0

package apiserver

import (
	"encoding/json"
	"fmt"
	"net/http"
	"path"
	"slices"
	"strings"

	apierrors "k8s.io/apimachinery/pkg/api/errors"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/runtime"
	"k8s.io/apimachinery/pkg/runtime/schema"
)

// withAbsent answers 503 for versions and resources of our groups that are switched off. If an APIService routes one here all the same, for
// example until the last server with other flags has ended, a 404 would tell the garbage collector that the owners of all children are
// gone.
func withAbsent(next http.Handler, versions []schema.GroupVersion, resources []schema.GroupVersionResource) http.Handler {
	return http.HandlerFunc(func(w http.ResponseWriter, req *http.Request) {
		elements := strings.Split(strings.TrimPrefix(path.Clean("/"+req.URL.Path), "/"), "/")
		if len(elements) < 3 || elements[0] != "apis" {
			next.ServeHTTP(w, req)
			return
		}
		version := schema.GroupVersion{Group: elements[1], Version: elements[2]}
		resource := resourceIn(elements[3:])
		switch {
		case slices.Contains(versions, version):
			unavailable(w, fmt.Sprintf("%s is switched off in this server: delete its APIService, or switch it on with --runtime-config and "+
				"--feature-gates", version))
		case slices.Contains(resources, version.WithResource(resource)):
			unavailable(w, fmt.Sprintf("%s of %s are switched off in this server: switch them on with --runtime-config", resource, version))
		default:
			next.ServeHTTP(w, req)
		}
	})
}

// resourceIn returns the resource that a request names below the version of a group; it is empty if it names none.
func resourceIn(elements []string) string {
	if len(elements) > 0 && elements[0] == "watch" {
		elements = elements[1:]
	}
	if len(elements) > 2 && elements[0] == "namespaces" {
		elements = elements[2:]
	}
	if len(elements) == 0 {
		return ""
	}
	return elements[0]
}

func unavailable(w http.ResponseWriter, message string) {
	status := apierrors.NewServiceUnavailable(message).Status()
	status.TypeMeta = metav1.TypeMeta{APIVersion: "v1", Kind: "Status"}
	w.Header().Set("Content-Type", runtime.ContentTypeJSON)
	w.WriteHeader(http.StatusServiceUnavailable)
	_ = json.NewEncoder(w).Encode(status) // the client went away
}
