// Copyright The jobset-apiserver Authors.
// SPDX-License-Identifier: Apache-2.0

package apiserver

import (
	"encoding/json"
	"net/http"
	"path"
	"slices"

	"k8s.io/apimachinery/pkg/runtime"
	"k8s.io/apimachinery/pkg/runtime/schema"
	"k8s.io/apimachinery/pkg/util/sets"
	"k8s.io/apiserver/pkg/server"
	"k8s.io/component-base/version"

	"github.com/jobset-apiserver/jobset-apiserver/pkg/apiserver/requests/mismatch"
	"github.com/jobset-apiserver/jobset-apiserver/pkg/apiserver/requests/payload"
	"github.com/jobset-apiserver/jobset-apiserver/pkg/apiserver/requests/watches"
	"github.com/jobset-apiserver/jobset-apiserver/pkg/features"
	"github.com/jobset-apiserver/jobset-apiserver/pkg/selfcheck"
)

// Filter answers a request, or passes it on to the next handler.
type Filter = func(next http.Handler) http.Handler

// handlerChain puts the API behind authentication, audit, priority and fairness, and authorization.
type handlerChain = func(http.Handler, *server.Config) http.Handler

// Filters are the filters that depend on options. A filter that is nil is left out.
type Filters struct {
	// Leaving asks clients to open another connection before the server ends, and while it is unable to reach its store.
	Leaving Filter
	// Webhooks answers what kube-apiserver asks about pods.
	Webhooks Filter
	// StoreCheck refuses requests while it is not known that the store is the right one.
	StoreCheck Filter
	// Tokens lets requests with an unknown token wait for their turn. The authenticator counts on it.
	Tokens Filter
	// Channel lets authentication note for authorization that kube-apiserver has forwarded the request.
	Channel Filter
	// Space says in /readyz?verbose how much space the store has left.
	Space Filter
	// Migration imports objects with their UIDs.
	Migration Filter
	// Routing ends watches of groups that kube-apiserver does not forward to this server any more.
	Routing Filter
}

// handlers returns the API behind everything that a request passes: the filters of the options, the chain of the library, and what
// depends on the groups that are served. The list begins with the outermost filter.
func (c *Config) handlers(api http.Handler, generic *server.Config, library handlerChain) http.Handler {
	served := c.APIGroups.Served(c.Generic.MergedResourceConfig)
	filters := []Filter{
		// Every response can ask the client to move.
		c.Filters.Leaving,
		// kube-apiserver calls webhooks without credentials unless it is configured to send some, and the answers do not
		// depend on the store.
		c.Filters.Webhooks,
		// Nothing is asked of the main cluster for a request that the store cannot answer.
		c.Filters.StoreCheck,
		func(next http.Handler) http.Handler {
			return withAbsent(next, c.APIGroups.Absent(served), c.APIGroups.AbsentResources(c.Generic.MergedResourceConfig))
		},
		// These two are around authentication and authorization.
		c.Filters.Tokens,
		c.Filters.Channel,
		func(next http.Handler) http.Handler { return library(next, generic) },
		c.Filters.Space,
		// It has bounds of its own for bodies, and answers while the groups are not served.
		c.Filters.Migration,
		// Bodies and watches are bounded for users who are known and allowed to send the request.
		func(next http.Handler) http.Handler { return payload.NewHandler(next, c.Scheme, c.Codecs) },
		func(next http.Handler) http.Handler { return mismatch.NewHandler(next, c.Scheme, c.Codecs) },
		func(next http.Handler) http.Handler {
			return watches.NewHandler(next, c.Codecs, c.Memory, generic.DrainedNotify())
		},
		c.Filters.Routing,
		// Updates keep what their clients may not know.
		withKnownFields,
		// These two serve documents beside the resources of each group.
		c.selfCheck(served),
		func(next http.Handler) http.Handler { return withFeatureGates(next, features.States(c.Gates), served) },
	}
	for _, filter := range slices.Backward(filters) {
		if filter != nil {
			api = filter(api)
		}
	}
	return api
}

// selfCheck serves what the server knows about itself, if it is to be served.
func (c *Config) selfCheck(served []schema.GroupVersion) Filter {
	if c.SelfCheck == nil {
		return nil
	}
	return func(next http.Handler) http.Handler { return withSelfCheck(next, c.SelfCheck, served) }
}

// withFeatureGates serves at /apis/<group>/<version>/featuregates which feature gates are on, and the version of this program.
// kube-apiserver passes on only what is below a group and version, so that there is one such path for each of them.
func withFeatureGates(next http.Handler, states map[string]bool, served []schema.GroupVersion) http.Handler {
	document, _ := json.Marshal(map[string]any{"featureGates": states,
		"version": version.Get().GitVersion}) // strings and booleans cannot fail
	return withDocument(next, selfcheck.FeatureGates, served, http.HandlerFunc(func(w http.ResponseWriter, _ *http.Request) {
		w.Header().Set("Content-Type", runtime.ContentTypeJSON)
		_, _ = w.Write(document) // the client went away
	}))
}

// withSelfCheck serves at /apis/<group>/<version>/serverhealth what the server knows about itself.
func withSelfCheck(next, document http.Handler, served []schema.GroupVersion) http.Handler {
	return withDocument(next, selfcheck.Resource, served, document)
}

// withDocument serves a document below each group and version.
func withDocument(next http.Handler, name string, served []schema.GroupVersion, document http.Handler) http.Handler {
	paths := sets.New[string]()
	for _, of := range served {
		paths.Insert(path.Join("/apis", of.String(), name))
	}
	return http.HandlerFunc(func(w http.ResponseWriter, req *http.Request) {
		if req.Method != http.MethodGet || !paths.Has(req.URL.Path) {
			next.ServeHTTP(w, req)
			return
		}
		document.ServeHTTP(w, req)
	})
}
