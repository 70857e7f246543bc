// Copyright The jobset-apiserver Authors.
// SPDX-License-Identifier: Apache-2.0

package callers

import (
	"context"
	"fmt"
	"net/http"
	"sync/atomic"

	"k8s.io/apiserver/pkg/authentication/authenticator"
	"k8s.io/apiserver/pkg/authentication/authenticatorfactory"
	"k8s.io/apiserver/pkg/authorization/authorizer"
)

// channel is how a request came here. It is found out by authentication, and matters to authorization: kube-apiserver
// has authorized a moment ago what it forwards.
type channel struct{ forwarded atomic.Bool }

type channelKey struct{}

// WithChannel makes room for what authentication finds out.
func WithChannel(next http.Handler) http.Handler {
	return http.HandlerFunc(func(w http.ResponseWriter, req *http.Request) {
		next.ServeHTTP(w, req.WithContext(context.WithValue(req.Context(), channelKey{}, &channel{})))
	})
}

// wasForwarded returns whether kube-apiserver has forwarded the request of a context. What is not known was not.
func wasForwarded(ctx context.Context) bool {
	c, _ := ctx.Value(channelKey{}).(*channel)
	return c != nil && c.forwarded.Load()
}

// NewForwarded recognizes what kube-apiserver forwards; nil if nothing is accepted from it.
func NewForwarded(config *authenticatorfactory.RequestHeaderConfig) (authenticator.Request, error) {
	if config == nil {
		return nil, nil
	}
	forwarded, _, err := authenticatorfactory.DelegatingAuthenticatorConfig{RequestHeaderConfig: config}.New()
	if err != nil {
		return nil, fmt.Errorf("setting up authentication of what kube-apiserver forwards: %w", err)
	}
	return forwarded, nil
}

// NoteForwarded asks one authenticator after the other, as the library would, and notes that the first one knew the user.
func NoteForwarded(forwarded, direct authenticator.Request) authenticator.Request {
	if forwarded == nil {
		return direct
	}
	return authenticator.RequestFunc(func(req *http.Request) (*authenticator.Response, bool, error) {
		response, ok, err := forwarded.AuthenticateRequest(req)
		if !ok || err != nil {
			return direct.AuthenticateRequest(req)
		}
		if c, _ := req.Context().Value(channelKey{}).(*channel); c != nil {
			c.forwarded.Store(true)
		}
		return response, ok, nil
	})
}

// ByChannel authorizes what kube-apiserver forwards by one authorizer, and anything else by another.
func ByChannel(forwarded, direct authorizer.Authorizer) authorizer.Authorizer {
	return authorizer.AuthorizerFunc(func(ctx context.Context, a authorizer.Attributes) (authorizer.Decision, string, error) {
		if wasForwarded(ctx) {
			return forwarded.Authorize(ctx, a)
		}
		return direct.Authorize(ctx, a)
	})
}
