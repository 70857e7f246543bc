// Copyright The jobset-apiserver Authors.
// SPDX-License-Identifier: Apache-2.0

package memory

import (
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"net/http"
	"slices"
	"strconv"
	"strings"
	"time"

	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"
	"k8s.io/apimachinery/pkg/runtime/schema"
	"k8s.io/apimachinery/pkg/types"
	"k8s.io/utils/ptr"
)

var errBroken = errors.New("read: connection reset by peer")

// RoundTrip implements http.RoundTripper.
func (s *Server) RoundTrip(r *http.Request) (*http.Response, error) {
	request, err := parse(r)
	if err != nil {
		return nil, err
	}
	s.mu.Lock()
	request.At, request.Number, request.Client = time.Now(), s.counts[request.Verb], r.UserAgent()
	s.counts[request.Verb]++
	s.mu.Unlock()
	var trouble Trouble
	if s.Trouble != nil {
		trouble = s.Trouble(request)
	}
	response, err := s.answer(r.Context(), request, trouble)
	if err == nil {
		request.Code = response.StatusCode
		response.Request = r
	}
	if s.Seen != nil {
		s.Seen(*request)
	}
	return response, err
}

func (s *Server) answer(ctx context.Context, r *Request, trouble Trouble) (*http.Response, error) {
	switch {
	case trouble.Hang:
		if err := pause(ctx, hangs); err != nil {
			return nil, err
		}
		return refusal(r, http.StatusGatewayTimeout), nil
	case trouble.Broken && trouble.Lost:
		s.carryOutUnheard(r)
		return nil, errBroken
	case trouble.Broken && trouble.Late > 0:
		go func() {
			time.Sleep(trouble.Late)
			s.carryOutUnheard(r)
		}()
		return nil, errBroken
	case trouble.Broken:
		return nil, errBroken
	case trouble.Code != 0:
		return refusal(r, trouble.Code), nil
	}
	return s.carryOut(ctx, r), nil
}

// parse returns what a request asks for.
func parse(r *http.Request) (*Request, error) {
	parts := strings.Split(strings.Trim(r.URL.Path, "/"), "/")
	if len(parts) == 1 && parts[0] == "version" {
		return &Request{Verb: "version"}, nil
	}
	if len(parts) > 1 && parts[0] == "api" {
		parts = slices.Insert(parts, 1, "") // the group without a name
		parts[0] = "apis"
	}
	if len(parts) < 3 || parts[0] != "apis" {
		return nil, fmt.Errorf("a path that this server does not know: %s", r.URL.Path)
	}
	out := &Request{Verb: "discovery", Resource: schema.GroupVersionResource{Group: parts[1], Version: parts[2]}}
	rest := parts[3:]
	if len(rest) == 0 {
		return out, nil
	}
	if rest[0] == "namespaces" && len(rest) > 2 {
		out.Namespace, rest = rest[1], rest[2:]
	}
	rest = append(rest, "", "")
	out.Resource.Resource, out.Name, out.Subresource = rest[0], rest[1], rest[2]
	if r.Body != nil {
		body, err := io.ReadAll(r.Body)
		if err != nil {
			return nil, err
		}
		out.Body, out.Type = body, types.PatchType(r.Header.Get("Content-Type"))
	}
	out.Verb = verbOf(r, out.Name)
	query := r.URL.Query()
	out.From, out.Selector, out.Initial = query.Get("resourceVersion"), query.Get("labelSelector"), query.Get("sendInitialEvents") == "true"
	seconds, _ := strconv.Atoi(query.Get("timeoutSeconds"))
	out.Timeout = time.Duration(seconds) * time.Second
	return out, nil
}

func verbOf(r *http.Request, name string) string {
	switch r.Method {
	case http.MethodPost:
		return "create"
	case http.MethodDelete:
		return "delete"
	case http.MethodPut:
		return "update"
	case http.MethodPatch:
		if strings.HasPrefix(r.Header.Get("Content-Type"), string(types.ApplyPatchType)[:len("application/apply-patch")]) {
			return "apply"
		}
		return "patch"
	}
	switch {
	case name != "":
		return "get"
	case r.URL.Query().Get("watch") != "":
		return "watch"
	}
	return "list"
}

// carryOutUnheard does what a request asks for whose sender does not get the answer.
func (s *Server) carryOutUnheard(r *Request) {
	if response := s.carryOut(context.Background(), r); response != nil {
		_ = response.Body.Close()
	}
}

// carryOut does what a request asks for.
func (s *Server) carryOut(ctx context.Context, r *Request) *http.Response {
	s.mu.Lock()
	defer s.mu.Unlock()
	if r.Verb == "version" {
		return answer(http.StatusOK, map[string]any{"major": "1", "minor": "36", "gitVersion": "v1.36.0"})
	}
	version := r.Resource.GroupVersion()
	kinds, served := s.served[version]
	if r.Verb == "discovery" && served {
		resources := []any{}
		for name, kind := range kinds {
			resources = append(resources, map[string]any{"name": name, "kind": kind, "namespaced": true, "singularName": "", "verbs": []any{"list", "watch"}})
		}
		return answer(http.StatusOK, map[string]any{"kind": "APIResourceList", "apiVersion": "v1", "groupVersion": version.String(), "resources": resources})
	}
	kind := kinds[r.Resource.Resource]
	if kind == "" {
		return refusal(r, http.StatusNotFound)
	}
	resource := r.Resource.GroupResource()
	switch r.Verb {
	case "list":
		items := []any{}
		for _, object := range s.list(resource) {
			if r.selects(object) {
				items = append(items, in(version, kind, object))
			}
		}
		return answer(http.StatusOK, map[string]any{
			"kind": kind + "List", "apiVersion": version.String(), "metadata": map[string]any{"resourceVersion": strconv.Itoa(s.version)}, "items": items,
		})
	case "watch":
		return s.watch(ctx, r, kind)
	}
	after, code := s.one(r)
	if code != 0 {
		return refusal(r, code)
	}
	return answer(http.StatusOK, in(version, kind, after))
}

// selects returns whether an object carries the label that a request asks for.
func (r *Request) selects(object *unstructured.Unstructured) bool {
	_, carried := object.GetLabels()[r.Selector]
	return carried || r.Selector == ""
}

// one carries out a request about one object, and returns the object, or the status of a refusal.
func (s *Server) one(r *Request) (*unstructured.Unstructured, int) {
	resource := r.Resource.GroupResource()
	if r.Verb == "create" {
		return s.createFor(r)
	}
	live := s.objects[resource][types.NamespacedName{Namespace: r.Namespace, Name: r.Name}]
	var next *unstructured.Unstructured
	var code int
	switch {
	case live == nil:
		return nil, notThere
	case r.Verb == "get":
		return live, 0
	case r.Verb == "delete":
		next, code = r.deleted(live)
	default:
		next, code = r.patched(live)
	}
	if code != 0 {
		return nil, code
	}
	if r.Verb != "delete" && equal(live, next) {
		return live, 0
	}
	stored := s.put(resource, "MODIFIED", next)
	s.wrote(r, live, stored)
	return next, 0
}

// createFor creates the object of a request.
func (s *Server) createFor(r *Request) (*unstructured.Unstructured, int) {
	object := &unstructured.Unstructured{}
	if json.Unmarshal(r.Body, &object.Object) != nil {
		return nil, http.StatusBadRequest
	}
	object.SetNamespace(r.Namespace)
	created := s.create(r.Resource.GroupResource(), object)
	if created == nil {
		return nil, http.StatusConflict
	}
	s.wrote(r, nil, created)
	return created, 0
}

// deleted returns an object that is being deleted, unless it is another one than the request means.
func (r *Request) deleted(live *unstructured.Unstructured) (*unstructured.Unstructured, int) {
	var options metav1.DeleteOptions
	if json.Unmarshal(r.Body, &options) != nil {
		return nil, http.StatusBadRequest
	}
	means := ptr.Deref(options.Preconditions, metav1.Preconditions{})
	if ptr.Deref(means.UID, live.GetUID()) != live.GetUID() || ptr.Deref(means.ResourceVersion, live.GetResourceVersion()) != live.GetResourceVersion() {
		return nil, changed
	}
	next, now := live.DeepCopy(), metav1.NewTime(time.Now())
	next.SetDeletionTimestamp(&now)
	return next, 0
}

func (s *Server) wrote(r *Request, before, after *unstructured.Unstructured) {
	if s.Written != nil {
		s.Written(r, before, after)
	}
}
