// Copyright The jobset-apiserver Authors.
// SPDX-License-Identifier: Apache-2.0

package options

import (
	"context"
	"crypto/sha256"
	"net/http"
	"strings"
	"time"

	authenticationv1 "k8s.io/api/authentication/v1"
	authorizationv1 "k8s.io/api/authorization/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/util/cache"
	"k8s.io/client-go/kubernetes"
	"k8s.io/klog/v2"
)

const (
	// verdictTTL is how long the answer for a token holds, as in the API server's own delegation.
	verdictTTL = 10 * time.Second
	// reviewTimeout bounds the questions to the main API for one request.
	reviewTimeout = 10 * time.Second
)

// guard lets those requests through whose bearer token the main API knows and allows to read the URL.
type guard struct {
	client   kubernetes.Interface
	next     http.Handler
	verdicts *cache.Expiring
}

func newGuard(client kubernetes.Interface, next http.Handler) http.Handler {
	return &guard{client: client, next: next, verdicts: cache.NewExpiring()}
}

func (g *guard) ServeHTTP(w http.ResponseWriter, r *http.Request) {
	token, found := strings.CutPrefix(r.Header.Get("Authorization"), "Bearer ")
	if !found || token == "" {
		http.Error(w, "a bearer token is required", http.StatusUnauthorized)
		return
	}
	code, err := g.verdict(r.Context(), token, r.URL.Path)
	switch {
	case err != nil:
		klog.FromContext(r.Context()).Error(err, "Asking who may read metrics")
		http.Error(w, "the main API did not say whether the token is allowed", http.StatusInternalServerError)
	case code != http.StatusOK:
		http.Error(w, http.StatusText(code), code)
	default:
		g.next.ServeHTTP(w, r)
	}
}

// verdict returns the status code that the token deserves. The token itself is not kept.
func (g *guard) verdict(ctx context.Context, token, path string) (int, error) {
	key := sha256.Sum256([]byte(path + "\x00" + token))
	if code, found := g.verdicts.Get(key); found {
		return code.(int), nil
	}
	ctx, cancel := context.WithTimeout(ctx, reviewTimeout)
	defer cancel()
	code, err := g.ask(ctx, token, path)
	if err == nil {
		g.verdicts.Set(key, code, verdictTTL)
	}
	return code, err
}

func (g *guard) ask(ctx context.Context, token, path string) (int, error) {
	who, err := g.client.AuthenticationV1().TokenReviews().Create(ctx,
		&authenticationv1.TokenReview{Spec: authenticationv1.TokenReviewSpec{Token: token}}, metav1.CreateOptions{})
	if err != nil {
		return 0, err
	}
	if !who.Status.Authenticated {
		return http.StatusUnauthorized, nil
	}
	user := who.Status.User
	extra := map[string]authorizationv1.ExtraValue{}
	for key, value := range user.Extra {
		extra[key] = authorizationv1.ExtraValue(value)
	}
	may, err := g.client.AuthorizationV1().SubjectAccessReviews().Create(ctx, &authorizationv1.SubjectAccessReview{
		Spec: authorizationv1.SubjectAccessReviewSpec{
			User: user.Username, UID: user.UID, Groups: user.Groups, Extra: extra,
			NonResourceAttributes: &authorizationv1.NonResourceAttributes{Path: path, Verb: "get"},
		},
	}, metav1.CreateOptions{})
	if err != nil {
		return 0, err
	}
	if !may.Status.Allowed {
		return http.StatusForbidden, nil
	}
	return http.StatusOK, nil
}
