// Copyright The jobset-apiserver Authors.
// SPDX-License-Identifier: Apache-2.0

package apiserver

import (
	"mime"
	"net/http"

	"k8s.io/apimachinery/pkg/runtime"

	"github.com/jobset-apiserver/jobset-apiserver/pkg/registry/generic/strategy"
)

// withKnownFields marks requests in protobuf: their clients know all fields. Upstream's types cannot be encoded as protobuf,
// and clients with these types send JSON.
func withKnownFields(next http.Handler) http.Handler {
	return http.HandlerFunc(func(w http.ResponseWriter, req *http.Request) {
		media, _, _ := mime.ParseMediaType(req.Header.Get("Content-Type")) // another filter answers a malformed one
		if media == runtime.ContentTypeProtobuf {
			req = req.WithContext(strategy.WithKnownFields(req.Context()))
		}
		next.ServeHTTP(w, req)
	})
}
