// Copyright The jobset-apiserver Authors.
// SPDX-License-Identifier: Apache-2.0

package options

import (
	"context"
	"fmt"
	"strings"
	"time"

	"k8s.io/apimachinery/pkg/runtime"
	"k8s.io/apiserver/pkg/authorization/authorizer"
	"k8s.io/apiserver/pkg/authorization/authorizerfactory"
	"k8s.io/apiserver/pkg/authorization/path"
	"k8s.io/apiserver/pkg/authorization/union"
	genericoptions "k8s.io/apiserver/pkg/server/options"
	"k8s.io/client-go/kubernetes"
)

// maxImpersonationReviews bounds the questions about impersonation that are under way at a time.
const maxImpersonationReviews = 10

// newReviewClient returns a client for the decisions that the main API takes for us. It has no rate limit: a limit would
// be shared by all callers, and one of them could keep the others waiting. What bounds the questions is said where they
// are asked.
func newReviewClient(flag, kubeconfig string, timeout time.Duration) (kubernetes.Interface, error) {
	config, err := loadKubeconfig(flag, kubeconfig)
	if err != nil {
		return nil, err
	}
	config.QPS = -1
	config.Timeout = timeout
	config.ContentType = runtime.ContentTypeProtobuf
	config.AcceptContentTypes = runtime.ContentTypeProtobuf + "," + runtime.ContentTypeJSON
	client, err := kubernetes.NewForConfig(config)
	return client, wrapFlagError(flag, err, "give a valid kubeconfig for the main cluster")
}

// newAuthorizer decides as the options of the library say, with a client that has no rate limit. Requests are authorized
// after priority and fairness has let them in, so that no more questions are under way than requests may be.
func newAuthorizer(o *genericoptions.DelegatingAuthorizationOptions) (authorizer.Authorizer, error) {
	client, err := newReviewClient("authorization-kubeconfig", o.RemoteKubeConfigFile, o.ClientTimeout)
	if err != nil {
		return nil, err
	}
	paths, err := path.NewAuthorizer(o.AlwaysAllowPaths)
	if err != nil {
		return nil, wrapFlagError("authorization-always-allow-paths", err, "correct the paths")
	}
	main, err := authorizerfactory.DelegatingAuthorizerConfig{
		SubjectAccessReviewClient: client.AuthorizationV1(),
		AllowCacheTTL:             o.AllowCacheTTL,
		DenyCacheTTL:              o.DenyCacheTTL,
		WebhookRetryBackoff:       o.WebhookRetryBackoff,
	}.New()
	if err != nil {
		return nil, fmt.Errorf("setting up authorization: %w", err)
	}
	return union.New(
		union.NamedAuthorizer{AuthorizerName: "kubernetes.io/always-allow-groups", Authorizer: authorizerfactory.NewPrivilegedGroups(o.AlwaysAllowGroups...)},
		union.NamedAuthorizer{AuthorizerName: "kubernetes.io/always-allow-paths", Authorizer: paths},
		union.NamedAuthorizer{AuthorizerName: "kubernetes.io/webhook", Authorizer: limitImpersonation(main)},
	)
}

// limitImpersonation bounds the questions whether a caller may act as somebody else. They come before priority and
// fairness, and a caller may name somebody else each time, so nothing else would bound them.
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
