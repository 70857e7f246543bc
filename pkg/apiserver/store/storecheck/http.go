// Copyright The jobset-apiserver Authors.
// SPDX-License-Identifier: Apache-2.0

package storecheck

import (
	"encoding/json"
	"errors"
	"net/http"
	"path"
	"slices"
	"strings"

	apierrors "k8s.io/apimachinery/pkg/api/errors"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"

	"github.com/jobset-apiserver/jobset-apiserver/pkg/migration"
	"github.com/jobset-apiserver/jobset-apiserver/pkg/selfcheck"
	"github.com/jobset-apiserver/jobset-apiserver/pkg/witness"
)

// CheckName is the name of the check of /readyz.
const CheckName = "store-witness"

// Name implements healthz.HealthChecker.
func (g *Guard) Name() string { return CheckName }

// Check implements healthz.HealthChecker: the server must serve, and its watch caches must have been filled.
func (g *Guard) Check(*http.Request) error {
	if !g.Serving() {
		return g.unavailable()
	}
	g.mu.Lock()
	defer g.mu.Unlock()
	for len(g.stores) > 0 {
		if err := g.stores[0](); err != nil {
			return errors.New("the watch caches are not filled yet")
		}
		g.stores = g.stores[1:]
	}
	return nil
}

// unavailable is the answer while the server does not serve. It has no time after which clients should try again,
// because clients would then repeat the request in place, and the garbage collector's workers with them. Not all
// callers may know more than where to look.
func (g *Guard) unavailable() *apierrors.StatusError {
	message := "the server does not serve its store"
	if reason := g.Reason(); reason != "" {
		message += " (" + string(reason) + ")"
	}
	return apierrors.NewServiceUnavailable(message + "; " + recordName + " in the main cluster says why")
}

// WithGate answers everything under /apis with 503 while the server does not serve. /apis itself is included: a document without our
// groups would say that there are no such resources. What the server says about itself is not, because it is about no object: it
// says what is wrong. While only objects of custom resources are missing, what imports them is not refused either. Watches end when
// the server stops serving.
func (g *Guard) WithGate(next http.Handler) http.Handler {
	return http.HandlerFunc(func(w http.ResponseWriter, req *http.Request) {
		if !underAPIs(req.URL.Path) || isSelfCheck(req) {
			next.ServeHTTP(w, req)
			return
		}
		if !g.Serving() && (g.Reason() != witness.ReasonCustomResources || !isMigration(req)) {
			refuseRequest(w, g.unavailable())
			return
		}
		if group, objects := groupOf(req); objects {
			if reason := g.Closed(group); reason != "" {
				refuseRequest(w, apierrors.NewServiceUnavailable(unservedGroup(group, reason)))
				return
			}
		}
		if isWatch(req) {
			ctx, cancel := g.left.until(req.Context())
			defer cancel()
			req = req.WithContext(ctx)
		}
		next.ServeHTTP(w, req)
	})
}

func underAPIs(requested string) bool {
	clean := path.Clean("/" + requested)
	return clean == "/apis" || strings.HasPrefix(clean, "/apis/")
}

// isSelfCheck returns whether a request is for /apis/<group>/<version>/serverhealth and nothing else.
func isSelfCheck(req *http.Request) bool {
	elements := strings.Split(req.URL.Path, "/")
	return req.Method == http.MethodGet && len(elements) == 5 && elements[4] == selfcheck.Resource && path.Clean(req.URL.Path) == req.URL.Path
}

// groupOf returns the API group of a request, and whether it may be about objects. What discovery and the documents of the group say does
// not depend on the store, and an APIService whose group does not answer would be out of service for longer than the group.
func groupOf(req *http.Request) (group string, objects bool) {
	elements := strings.Split(path.Clean("/"+req.URL.Path), "/")
	if len(elements) < 5 {
		return "", false
	}
	document := req.Method == http.MethodGet && len(elements) == 5 && elements[4] == selfcheck.FeatureGates
	return elements[2], !document
}

// isMigration returns whether a request is for the API of migrations and nothing else.
func isMigration(req *http.Request) bool {
	return migration.Covers(req.URL.Path) && path.Clean(req.URL.Path) == req.URL.Path
}

// isWatch may also be true for other requests, which then end a little earlier.
func isWatch(req *http.Request) bool {
	return req.URL.Query().Has("watch") || slices.Contains(strings.Split(req.URL.Path, "/"), "watch")
}

// refuseRequest answers before authentication, so that nothing turns the answer into another code.
func refuseRequest(w http.ResponseWriter, reason *apierrors.StatusError) {
	status := reason.Status()
	status.TypeMeta = metav1.TypeMeta{APIVersion: "v1", Kind: "Status"}
	w.Header().Set("Content-Type", "application/json")
	w.WriteHeader(http.StatusServiceUnavailable)
	_ = json.NewEncoder(w).Encode(status)
}
