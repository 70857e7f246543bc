// Copyright The jobset-apiserver Authors.
// SPDX-License-Identifier: Apache-2.0

package payload

import (
	"bytes"
	"fmt"
	"io"
	"net/http"
	"strings"

	"golang.org/x/sync/semaphore"
	"k8s.io/apimachinery/pkg/api/errors"
	"k8s.io/apimachinery/pkg/runtime"
	"k8s.io/apimachinery/pkg/runtime/schema"
	"k8s.io/apiserver/pkg/endpoints/handlers/responsewriters"
)

const (
	// largeBody is the number of objects in lists from which on a body is one of the large ones.
	largeBody = 500
	// maxLargeObjects bounds the objects in lists of all large bodies that are handled at the same time; one that has more is
	// handled alone. A write takes several times the memory of its objects.
	maxLargeObjects = MaxObjects / 3
)

// Handler passes on requests whose bodies are within the bounds, and refuses others with 413.
type Handler struct {
	next   http.Handler
	codecs runtime.NegotiatedSerializer
	scan   protobufScanner
	large  *semaphore.Weighted
}

// NewHandler returns a handler before the next one. The scheme knows the kinds that are sent as protobuf.
func NewHandler(next http.Handler, scheme *runtime.Scheme, codecs runtime.NegotiatedSerializer) *Handler {
	return &Handler{next: next, codecs: codecs, scan: protobufScanner{scheme: scheme}, large: semaphore.NewWeighted(maxLargeObjects)}
}

// ServeHTTP reads the body, counts what it holds, and lets the next handler read it again.
func (h *Handler) ServeHTTP(w http.ResponseWriter, req *http.Request) {
	if !hasBody(req) {
		h.next.ServeHTTP(w, req)
		return
	}
	data, err := read(req)
	var objects int
	if err == nil {
		objects, err = h.count(req.Header.Get("Content-Type"), data)
	}
	if err == nil && objects > largeBody {
		weight := min(int64(objects), maxLargeObjects)
		if err = h.large.Acquire(req.Context(), weight); err == nil {
			defer h.large.Release(weight)
		} else {
			err = errors.NewTimeoutError("too many large requests at the same time", 1)
		}
	}
	if err != nil {
		responsewriters.ErrorNegotiated(err, h.codecs, schema.GroupVersion{Version: "v1"}, w, req)
		return
	}
	passed := req.Clone(req.Context())
	passed.Body = io.NopCloser(bytes.NewReader(data))
	h.next.ServeHTTP(w, passed)
}

// hasBody leaves out reads: their connections may be taken over for streams.
func hasBody(req *http.Request) bool {
	switch req.Method {
	case http.MethodPost, http.MethodPut, http.MethodPatch, http.MethodDelete:
		return req.Body != nil && req.Body != http.NoBody
	}
	return false
}

func read(req *http.Request) ([]byte, error) {
	defer req.Body.Close()
	limit := int64(MaxBytes)
	if req.ContentLength > limit {
		return nil, tooLarge(req.ContentLength)
	}
	buffer := bytes.NewBuffer(make([]byte, 0, max(req.ContentLength, 0)+bytes.MinRead))
	if _, err := buffer.ReadFrom(io.LimitReader(req.Body, limit+1)); err != nil {
		return nil, errors.NewBadRequest("reading the body: " + err.Error())
	}
	if int64(buffer.Len()) > limit {
		return nil, tooLarge(int64(buffer.Len()))
	}
	return buffer.Bytes(), nil
}

func tooLarge(size int64) error {
	return errors.NewRequestEntityTooLargeError(fmt.Sprintf("the body must have no more than %d bytes (1.5 MiB), it has %d or more", MaxBytes,
		size))
}

// count counts the objects in lists of a body. It leaves a media type without a decoder to the next handler.
func (h *Handler) count(contentType string, data []byte) (objects int, err error) {
	media, _, _ := strings.Cut(contentType, ";")
	media = strings.ToLower(strings.TrimSpace(media))
	merged := strings.Contains(media, "apply-patch") || strings.Contains(media, "strategic-merge-patch")
	switch {
	case strings.HasSuffix(media, "yaml"):
		return scanYAML(data, merged)
	case strings.HasSuffix(media, "cbor"):
		return scanCBOR(data, merged)
	case media == runtime.ContentTypeProtobuf:
		return h.scan.scan(data, nil)
	}
	return scanJSON(data, merged)
}
