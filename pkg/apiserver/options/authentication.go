// Copyright The jobset-apiserver Authors.
// SPDX-License-Identifier: Apache-2.0

package options

import (
	"context"
	"net/http"

	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/util/sets"
	"k8s.io/apiserver/pkg/authentication/authenticator"
	"k8s.io/apiserver/pkg/authentication/user"
	"k8s.io/apiserver/pkg/server"
	"k8s.io/client-go/kubernetes"
)

// publicPaths answer callers without an identity: probes have none.
var publicPaths = sets.New("/healthz", "/livez", "/readyz")

// authenticationAdvice is what to do when the main cluster does not tell how it authenticates.
const authenticationAdvice = "allow its user to read the configmap extension-apiserver-authentication in kube-system"

func (o *Options) applyAuthentication(ctx context.Context, generic *server.RecommendedConfig) error {
	if err := o.checkAuthenticationLookup(ctx); err != nil {
		return err
	}
	err := o.Recommended.Authentication.ApplyTo(&generic.Authentication, generic.SecureServing, generic.OpenAPIConfig)
	if err != nil {
		return blame("authentication-kubeconfig", err, authenticationAdvice)
	}
	generic.Authentication.Authenticator = refuseAnonymous(generic.Authentication.Authenticator)
	return nil
}

// checkAuthenticationLookup reads once what the library goes on reading. The library says more than one line when it cannot.
func (o *Options) checkAuthenticationLookup(ctx context.Context) error {
	authentication := o.Recommended.Authentication
	if authentication.SkipInClusterLookup || authentication.TolerateInClusterLookupFailure {
		return nil
	}
	config, err := loadKubeconfig("authentication-kubeconfig", authentication.RemoteKubeConfigFile)
	if err != nil {
		return err
	}
	config.Timeout = mainTimeout
	client, err := kubernetes.NewForConfig(config)
	if err == nil {
		_, err = client.CoreV1().ConfigMaps(metav1.NamespaceSystem).Get(ctx, "extension-apiserver-authentication", metav1.GetOptions{})
	}
	return blame("authentication-kubeconfig", err, authenticationAdvice)
}

// refuseAnonymous lets callers without an identity pass to public paths only. The library would ask the main cluster
// whether they are authorized, which makes each of them cost a request there.
func refuseAnonymous(next authenticator.Request) authenticator.Request {
	return authenticator.RequestFunc(func(req *http.Request) (*authenticator.Response, bool, error) {
		response, ok, err := next.AuthenticateRequest(req)
		if ok && response.User.GetName() == user.Anonymous && !publicPaths.Has(req.URL.Path) {
			return nil, false, nil
		}
		return response, ok, err
	})
}
