// Copyright The jobset-apiserver Authors.
// SPDX-License-Identifier: Apache-2.0

package callers

import (
	"bytes"
	"errors"
	"net/http"
	"sync/atomic"

	"k8s.io/apimachinery/pkg/util/sets"
	"k8s.io/apiserver/pkg/authentication/authenticator"
	"k8s.io/apiserver/pkg/authentication/user"
	"k8s.io/apiserver/pkg/server/dynamiccertificates"
)

// publicPaths answer callers without an identity: probes have none.
var publicPaths = sets.New("/healthz", "/livez", "/readyz")

// RefuseAnonymous lets callers without an identity pass to public paths only. The library would ask the main cluster
// whether they are authorized, which makes each of them cost a request there.
func RefuseAnonymous(next authenticator.Request) authenticator.Request {
	return authenticator.RequestFunc(func(req *http.Request) (*authenticator.Response, bool, error) {
		response, ok, err := next.AuthenticateRequest(req)
		if ok && response.User.GetName() == user.Anonymous && !publicPaths.Has(req.URL.Path) {
			return nil, false, nil
		}
		return response, ok, err
	})
}

// ClientCACheck fails until the authority that was there at start is in use. The library loads it after it began to
// serve, and until then takes a client with a certificate for anonymous.
func ClientCACheck(current dynamiccertificates.CAContentProvider, wanted []byte) func(*http.Request) error {
	var loaded atomic.Bool
	return func(*http.Request) error {
		if current == nil || len(wanted) == 0 || loaded.Load() {
			return nil
		}
		if !bytes.Contains(current.CurrentCABundleContent(), bytes.TrimSpace(wanted)) {
			return errors.New("the authority of client certificates is not loaded yet")
		}
		loaded.Store(true)
		return nil
	}
}
