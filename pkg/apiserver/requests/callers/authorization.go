// Copyright The jobset-apiserver Authors.
// SPDX-License-Identifier: Apache-2.0

package callers

import (
	"context"
	"fmt"
	"strings"
	"time"

	"k8s.io/apiserver/pkg/authorization/authorizer"
	"k8s.io/apiserver/pkg/authorization/authorizerfactory"
	"k8s.io/apiserver/pkg/authorization/path"
	"k8s.io/apiserver/pkg/authorization/union"
	genericoptions "k8s.io/apiserver/pkg/server/options"

	"github.com/jobset-apiserver/jobset-apiserver/pkg/apiserver/mainapi"
	"github.com/jobset-apiserver/jobset-apiserver/pkg/flagerror"
)

const (
	// forwardedTTL is how long the answer to a SubjectAccessReview that allows a request is cached for requests that
	// kube-apiserver forwards. The name of the object is a part of each review, so that without a cache nearly every
	// status write would cause one. A caller that loses a permission loses it immediately, because kube-apiserver
	// authorizes each of these requests first. For those that connect directly it is
	// --authorization-webhook-cache-authorized-ttl.
	forwardedTTL = time.Minute
	// maxImpersonationReviews bounds the reviews of impersonation that are under way at a time.
	maxImpersonationReviews = 10
)

// NewAuthorizer returns the authorizer that the options of the library describe, with a client that has no rate limit.
// Requests are authorized after priority and fairness has admitted them, which bounds the reviews that are under way.
func NewAuthorizer(o *genericoptions.DelegatingAuthorizationOptions) (authorizer.Authorizer, error) {
	client, err := mainapi.NewReviewClient("authorization-kubeconfig", o.RemoteKubeConfigFile, o.ClientTimeout)
	if err != nil {
		return nil, err
	}
	paths, err := path.NewAuthorizer(o.AlwaysAllowPaths)
	if err != nil {
		return nil, flagerror.Wrap("authorization-always-allow-paths", err, "correct the paths")
	}
	config := authorizerfactory.DelegatingAuthorizerConfig{
		SubjectAccessReviewClient: client.AuthorizationV1(),
		AllowCacheTTL:             o.AllowCacheTTL,
		DenyCacheTTL:              o.DenyCacheTTL,
		WebhookRetryBackoff:       o.WebhookRetryBackoff,
	}
	direct, err := config.New()
	if err != nil {
		return nil, fmt.Errorf("setting up authorization: %w", err)
	}
	config.AllowCacheTTL = max(o.AllowCacheTTL, forwardedTTL)
	forwarded, err := config.New()
	if err != nil {
		return nil, fmt.Errorf("setting up authorization: %w", err)
	}
	return union.New(
		union.NamedAuthorizer{AuthorizerName: "kubernetes.io/always-allow-groups",
			Authorizer: authorizerfactory.NewPrivilegedGroups(o.AlwaysAllowGroups...)},
		union.NamedAuthorizer{AuthorizerName: "kubernetes.io/always-allow-paths", Authorizer: paths},
		union.NamedAuthorizer{AuthorizerName: "kubernetes.io/webhook", Authorizer: limitImpersonation(ByChannel(forAnyName(forwarded), direct))},
	)
}

// limitImpersonation bounds the reviews of impersonation. They are sent before priority and fairness, and a caller may
// impersonate another user with each request, so that nothing else bounds them.
func limitImpersonation(next authorizer.Authorizer) authorizer.Authorizer {
	slots := make(chan struct{}, maxImpersonationReviews)
	return authorizer.AuthorizerFunc(func(ctx context.Context, a authorizer.Attributes) (authorizer.Decision, string, error) {
		if !strings.HasPrefix(a.GetVerb(), "impersonate") {
			return next.Authorize(ctx, a)
		}
		select {
		case slots <- struct{}{}:
			defer func() { <-slots }()
			return next.Authorize(ctx, a)
		case <-ctx.Done():
			return authorizer.DecisionNoOpinion, "", ctx.Err()
		}
	})
}
