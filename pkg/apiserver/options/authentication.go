// Copyright The jobset-apiserver Authors.
// SPDX-License-Identifier: Apache-2.0

package options

import (
	"bytes"
	"context"
	"errors"
	"fmt"
	"net/http"
	"sync/atomic"

	corev1 "k8s.io/api/core/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/util/sets"
	"k8s.io/apiserver/pkg/authentication/authenticator"
	"k8s.io/apiserver/pkg/authentication/authenticatorfactory"
	"k8s.io/apiserver/pkg/authentication/user"
	"k8s.io/apiserver/pkg/server/dynamiccertificates"
	"k8s.io/apiserver/pkg/server/healthz"
	genericoptions "k8s.io/apiserver/pkg/server/options"
	"k8s.io/client-go/kubernetes"
	"k8s.io/utils/clock"

	"github.com/jobset-apiserver/jobset-apiserver/pkg/apiserver"
)

// publicPaths answer callers without an identity: probes have none.
var publicPaths = sets.New("/healthz", "/livez", "/readyz")

// authenticationConfigMap says how the main cluster authenticates.
const authenticationConfigMap = "extension-apiserver-authentication"

// authenticationAdvice is what to do when the authentication configuration of the main cluster cannot be read.
const authenticationAdvice = "allow its user to read the configmap extension-apiserver-authentication in kube-system"

// applyAuthentication finds out who a caller is as the options of the library say. The library trusts the authorities and
// follows them; its client for tokens is replaced by one without a rate limit.
func (o *Options) applyAuthentication(ctx context.Context, config *apiserver.Config, hold *hold) error {
	generic := config.Generic
	found, err := o.lookupAuthentication(ctx)
	if err != nil {
		return err
	}
	trusted, err := o.trustedAuthorities(found)
	if err != nil {
		return err
	}
	if err := trusted.check(ctx); err != nil {
		return err
	}
	o.pods.trust(trusted)
	options := *o.Recommended.Authentication
	client, err := newReviewClient("authentication-kubeconfig", options.RemoteKubeConfigFile, 0)
	if err != nil {
		return err
	}
	// The library uses this for what it follows only: its client for tokens is replaced below.
	options.CustomRoundTripperFn = hold.follower()
	if options.ClientCert.CAContentProvider, err = clientCA(&options, options.CustomRoundTripperFn); err != nil {
		return wrapFlagError("client-ca-file", err, "give a file with PEM certificates")
	}
	if err := options.ApplyTo(&generic.Authentication, generic.SecureServing, nil); err != nil {
		return wrapFlagError("authentication-kubeconfig", err, authenticationAdvice)
	}
	if err := authenticateRequests(config, &options, client); err != nil {
		return err
	}
	generic.AddReadyzChecks(healthz.NamedCheck("client-ca", clientCACheck(generic.SecureServing.ClientCA, o.awaitedClientCA(found))))
	return nil
}

// authenticateRequests finds out which user sends a request, through kube-apiserver or directly.
func authenticateRequests(config *apiserver.Config, options *genericoptions.DelegatingAuthenticationOptions,
	client kubernetes.Interface) error {
	generic := config.Generic
	proxies := generic.Authentication.RequestHeaderConfig
	forwarded, err := newForwarded(proxies)
	if err != nil {
		return err
	}
	direct, definitions, err := authenticatorfactory.DelegatingAuthenticatorConfig{
		Anonymous:                          options.Anonymous,
		TokenAccessReviewClient:            client.AuthenticationV1(),
		TokenAccessReviewTimeout:           options.TokenRequestTimeout,
		WebhookRetryBackoff:                options.WebhookRetryBackoff,
		CacheTTL:                           options.CacheTTL,
		ClientCertificateCAContentProvider: options.ClientCert.CAContentProvider,
	}.New()
	if err != nil {
		return fmt.Errorf("setting up authentication: %w", err)
	}
	tokens, err := newBadTokens(clock.RealClock{})
	if err != nil {
		return fmt.Errorf("setting up authentication: %w", err)
	}
	either := noteForwarded(forwarded, direct)
	if proxies != nil {
		either = &expiry{
			next: either, headers: proxies.UsernameHeaders.Value, authority: proxies.CAContentProvider.CurrentCABundleContent,
			clock: clock.RealClock{},
		}
	}
	generic.OpenAPIConfig.SecurityDefinitions = definitions
	generic.Authentication.Authenticator = tokens.limit(refuseAnonymous(either))
	config.Filters.Tokens, config.Filters.Channel = tokens.withTurns, withChannel
	return nil
}

// clientCA provides the authority of client certificates: that of the flag, or else that of the main cluster, which is
// followed. It is nil when neither is wanted.
func clientCA(o *genericoptions.DelegatingAuthenticationOptions, follower func(http.RoundTripper) http.RoundTripper) (
	dynamiccertificates.CAContentProvider, error) {
	if o.ClientCert.ClientCA != "" {
		return o.ClientCert.GetClientCAContentProvider()
	}
	if o.SkipInClusterLookup {
		return nil, nil
	}
	config, err := loadKubeconfig("authentication-kubeconfig", o.RemoteKubeConfigFile)
	if err != nil {
		return nil, err
	}
	config.Wrap(follower)
	client, err := kubernetes.NewForConfig(config)
	if err != nil {
		return nil, err
	}
	return dynamiccertificates.NewDynamicCAFromConfigMapController(
		"client-ca", metav1.NamespaceSystem, authenticationConfigMap, "client-ca-file", client)
}

// lookupAuthentication reads once what the library goes on reading: it says more than one line when it cannot. The result
// is empty when the look-up is switched off.
func (o *Options) lookupAuthentication(ctx context.Context) (map[string]string, error) {
	authentication := o.Recommended.Authentication
	if authentication.SkipInClusterLookup || authentication.TolerateInClusterLookupFailure {
		return nil, nil
	}
	config, err := loadKubeconfig("authentication-kubeconfig", authentication.RemoteKubeConfigFile)
	if err != nil {
		return nil, err
	}
	config.Timeout, config.Dial = mainTimeout, dialer(dialTimeout)
	client, err := kubernetes.NewForConfig(config)
	if err != nil {
		return nil, wrapFlagError("authentication-kubeconfig", err, authenticationAdvice)
	}
	configMap, err := o.awaitAuthenticationConfig(ctx, client)
	if err != nil {
		return nil, wrapFlagError("authentication-kubeconfig", err, authenticationAdvice)
	}
	return configMap.Data, nil
}

// awaitedClientCA is the authority of client certificates that the library loads later: the main cluster's.
func (o *Options) awaitedClientCA(found map[string]string) []byte {
	if o.Recommended.Authentication.ClientCert.ClientCA != "" {
		return nil
	}
	return []byte(found["client-ca-file"])
}

// awaitAuthenticationConfig reads how the main cluster authenticates. On an installation the permission to read it is
// often not in force yet when the server starts, and on a new cluster the object may not be there yet.
func (o *Options) awaitAuthenticationConfig(ctx context.Context, client kubernetes.Interface) (*corev1.ConfigMap, error) {
	var configMap *corev1.ConfigMap
	err := o.retryMain(ctx, "ConfigMap "+metav1.NamespaceSystem+"/"+authenticationConfigMap+" of the main cluster",
		func(ctx context.Context) (err error) {
			configMap, err = client.CoreV1().ConfigMaps(metav1.NamespaceSystem).Get(ctx, authenticationConfigMap, metav1.GetOptions{})
			return err
		})
	return configMap, err
}

// clientCACheck fails until the authority that was there at start is in use. The library loads it after it began to
// serve, and until then takes a client with a certificate for anonymous.
func clientCACheck(current dynamiccertificates.CAContentProvider, wanted []byte) func(*http.Request) error {
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
