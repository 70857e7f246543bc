// Copyright The jobset-apiserver Authors.
// SPDX-License-Identifier: Apache-2.0

package mismatch

import (
	"bytes"
	"io"
	"net/http"
	"reflect"
	"strings"

	autoscalingv1 "k8s.io/api/autoscaling/v1"
	"k8s.io/apimachinery/pkg/api/errors"
	"k8s.io/apimachinery/pkg/api/meta"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/runtime"
	"k8s.io/apimachinery/pkg/runtime/schema"
	"k8s.io/apiserver/pkg/endpoints/handlers/responsewriters"
	"k8s.io/apiserver/pkg/endpoints/request"
	"k8s.io/apiserver/pkg/endpoints/responsewriter"

	"github.com/jobset-apiserver/jobset-apiserver/pkg/registry/generic/bounds"
)

// Handler replaces the answer to a body that could not be decoded by one that names its fields.
type Handler struct {
	next   http.Handler
	scheme *runtime.Scheme
	codecs runtime.NegotiatedSerializer
}

// NewHandler returns a handler before the next one. Bodies that reach it are bounded. The scheme knows the kinds that are sent.
func NewHandler(next http.Handler, scheme *runtime.Scheme, codecs runtime.NegotiatedSerializer) *Handler {
	return &Handler{next: next, scheme: scheme, codecs: codecs}
}

// ServeHTTP holds back answers that may be about a body which does not fit.
func (h *Handler) ServeHTTP(w http.ResponseWriter, req *http.Request) {
	info, ok := request.RequestInfoFrom(req.Context())
	if !ok || !info.IsResourceRequest || !writes(req) {
		h.next.ServeHTTP(w, req)
		return
	}
	data, err := io.ReadAll(req.Body)
	if err != nil {
		responsewriters.ErrorNegotiated(errors.NewBadRequest("reading the body: "+err.Error()), h.codecs, schema.GroupVersion{Version: "v1"}, w,
			req)
		return
	}
	passed := req.Clone(req.Context())
	passed.Body = io.NopCloser(bytes.NewReader(data))
	answer := &holder{ResponseWriter: w, patch: req.Method == http.MethodPatch}
	h.next.ServeHTTP(responsewriter.WrapForHTTP1Or2(answer), passed)
	if answer.code == 0 {
		return
	}
	if err := h.explain(req, data, info, answer); err != nil {
		w.Header().Del("Content-Encoding")
		responsewriters.ErrorNegotiated(err, h.codecs, schema.GroupVersion{Version: "v1"}, w, req)
		return
	}
	answer.release()
}

func writes(req *http.Request) bool {
	switch req.Method {
	case http.MethodPost, http.MethodPut, http.MethodPatch:
		return req.Body != nil && req.Body != http.NoBody
	}
	return false
}

// explain returns an error with what does not fit, or nil if everything does. Its code is 400 where that was the answer.
func (h *Handler) explain(req *http.Request, data []byte, info *request.RequestInfo, answer *holder) error {
	gvk, t, ok := h.expects(info)
	if !ok {
		return nil
	}
	b := body{media: mediaType(req), data: data, kind: gvk, t: t}
	b.strict = strings.Contains(b.media, "apply-patch") || req.URL.Query().Get("fieldValidation") == metav1.FieldValidationStrict
	errs, name := b.mismatches()
	if len(errs) == 0 {
		return b.inapplicable(answer)
	}
	if name == "" {
		name = info.Name
	}
	err := errors.NewInvalid(gvk.GroupKind(), name, bounds.Causes(errs))
	if answer.code == http.StatusBadRequest {
		err.ErrStatus.Code, err.ErrStatus.Reason = http.StatusBadRequest, metav1.StatusReasonBadRequest
	}
	return err
}

func mediaType(req *http.Request) string {
	media, _, _ := strings.Cut(req.Header.Get("Content-Type"), ";")
	return strings.ToLower(strings.TrimSpace(media))
}

// expects returns the kind of the bodies that are sent to a resource, and its type. The kind of actions is named like their
// path.
func (h *Handler) expects(info *request.RequestInfo) (schema.GroupVersionKind, reflect.Type, bool) {
	if info.Subresource == "scale" {
		return autoscalingv1.SchemeGroupVersion.WithKind("Scale"), reflect.TypeFor[autoscalingv1.Scale](), true
	}
	version := schema.GroupVersion{Group: info.APIGroup, Version: info.APIVersion}
	for kind, t := range h.scheme.KnownTypes(version) {
		if plural, _ := meta.UnsafeGuessKindToResource(version.WithKind(kind)); plural.Resource != info.Resource {
			continue
		}
		if info.Subresource == "" || info.Subresource == "status" {
			return version.WithKind(kind), t, true
		}
		return h.action(kind + info.Subresource)
	}
	return schema.GroupVersionKind{}, nil, false
}

// action returns the kind of an action. Its name consists of the parent kind and the action.
func (h *Handler) action(name string) (schema.GroupVersionKind, reflect.Type, bool) {
	for gvk, t := range h.scheme.AllKnownTypes() {
		if gvk.Version != runtime.APIVersionInternal && strings.EqualFold(gvk.Kind, name) {
			return gvk, t, true
		}
	}
	return schema.GroupVersionKind{}, nil, false
}

// holder holds back answers that may be about a body which does not fit. Only decoders answer creates and replacements with
// 400; patches are answered with 422, and those of server-side apply with 500.
type holder struct {
	http.ResponseWriter
	patch bool
	code  int // of the answer that is held back
	body  bytes.Buffer
}

var _ responsewriter.UserProvidedDecorator = &holder{}

// Unwrap returns the writer of the answer.
func (a *holder) Unwrap() http.ResponseWriter { return a.ResponseWriter }

// WriteHeader holds back the answer if its code says so.
func (a *holder) WriteHeader(code int) {
	if code == http.StatusBadRequest || a.patch && (code == http.StatusUnprocessableEntity || code == http.StatusInternalServerError) {
		a.code = code
		return
	}
	a.ResponseWriter.WriteHeader(code)
}

// Write keeps the body of an answer that is held back.
func (a *holder) Write(data []byte) (int, error) {
	if a.code != 0 {
		return a.body.Write(data)
	}
	return a.ResponseWriter.Write(data)
}

// release sends what was held back.
func (a *holder) release() {
	a.ResponseWriter.WriteHeader(a.code)
	_, _ = a.ResponseWriter.Write(a.body.Bytes())
}
