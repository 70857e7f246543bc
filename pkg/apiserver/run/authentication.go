// Copyright The jobset-apiserver Authors.
// SPDX-License-Identifier: Apache-2.0

package run

import (
	"context"
	"fmt"
	"net/http"

	corev1 "k8s.io/api/core/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apiserver/pkg/authentication/authenticatorfactory"
	"k8s.io/apiserver/pkg/server/dynamiccertificates"
	"k8s.io/apiserver/pkg/server/healthz"
	genericoptions "k8s.io/apiserver/pkg/server/options"
	"k8s.io/client-go/kubernetes"
	"k8s.io/utils/clock"

	"github.com/jobset-apiserver/jobset-apiserver/pkg/apiserver"
	"github.com/jobset-apiserver/jobset-apiserver/pkg/apiserver/mainapi"
	"github.com/jobset-apiserver/jobset-apiserver/pkg/apiserver/requests/callers"
	"github.com/jobset-apiserver/jobset-apiserver/pkg/flagerror"
)

// authenticationConfigMap says how the main cluster authenticates.
const authenticationConfigMap = "extension-apiserver-authentication"

// authenticationAdvice is what to do when the authentication configuration of the main cluster cannot be read.
const authenticationAdvice = "allow its user to read the configmap extension-apiserver-authentication in kube-system"

// applyAuthentication finds out who a caller is as the options of the library say. The library trusts the authorities and
// follows them; its client for tokens is replaced by one without a rate limit.
func (r *run) applyAuthentication(ctx context.Context, config *apiserver.Config, hold *mainapi.Hold) error {
	generic := config.Generic
	found, err := r.lookupAuthentication(ctx)
	if err != nil {
		return err
	}
	trusted, err := callers.TrustedAuthorities(r.Recommended.Authentication, found)
	if err != nil {
		return err
	}
	if err := trusted.Check(ctx); err != nil {
		return err
	}
	r.pods.trust(trusted)
	options := *r.Recommended.Authentication
	client, err := mainapi.NewReviewClient("authentication-kubeconfig", options.RemoteKubeConfigFile, 0)
	if err != nil {
		return err
	}
	// The library uses this for what it follows only: its client for tokens is replaced below.
	options.CustomRoundTripperFn = hold.Follower()
	if options.ClientCert.CAContentProvider, err = clientCA(&options, options.CustomRoundTripperFn); err != nil {
		return flagerror.Wrap("client-ca-file", err, "give a file with PEM certificates")
	}
	if err := options.ApplyTo(&generic.Authentication, generic.SecureServing, nil); err != nil {
		return flagerror.Wrap("authentication-kubeconfig", err, authenticationAdvice)
	}
	if err := authenticateRequests(config, &options, client); err != nil {
		return err
	}
	generic.AddReadyzChecks(healthz.NamedCheck("client-ca", callers.ClientCACheck(generic.SecureServing.ClientCA, r.awaitedClientCA(found))))
	return nil
}

// authenticateRequests finds out which user sends a request, through kube-apiserver or directly.
func authenticateRequests(config *apiserver.Config, options *genericoptions.DelegatingAuthenticationOptions,
	client kubernetes.Interface) error {
	generic := config.Generic
	proxies := generic.Authentication.RequestHeaderConfig
	forwarded, err := callers.NewForwarded(proxies)
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
	tokens, err := callers.NewBadTokens(clock.RealClock{})
	if err != nil {
		return fmt.Errorf("setting up authentication: %w", err)
	}
	either := callers.NoteForwarded(forwarded, direct)
	if proxies != nil {
		either = &callers.Expiry{
			Next: either, Headers: proxies.UsernameHeaders.Value, Authority: proxies.CAContentProvider.CurrentCABundleContent,
			Clock: clock.RealClock{},
		}
	}
	generic.OpenAPIConfig.SecurityDefinitions = definitions
	generic.Authentication.Authenticator = tokens.Limit(callers.RefuseAnonymous(either))
	config.Filters.Tokens, config.Filters.Channel = tokens.WithTurns, callers.WithChannel
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
	config, err := mainapi.LoadKubeconfig("authentication-kubeconfig", o.RemoteKubeConfigFile)
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
func (r *run) lookupAuthentication(ctx context.Context) (map[string]string, error) {
	authentication := r.Recommended.Authentication
	if authentication.SkipInClusterLookup || authentication.TolerateInClusterLookupFailure {
		return nil, nil
	}
	config, err := mainapi.LoadKubeconfig("authentication-kubeconfig", authentication.RemoteKubeConfigFile)
	if err != nil {
		return nil, err
	}
	config.Timeout, config.Dial = mainapi.Timeout, mainapi.Dialer(mainapi.DialTimeout)
	client, err := kubernetes.NewForConfig(config)
	if err != nil {
		return nil, flagerror.Wrap("authentication-kubeconfig", err, authenticationAdvice)
	}
	configMap, err := r.awaitAuthenticationConfig(ctx, client)
	if err != nil {
		return nil, flagerror.Wrap("authentication-kubeconfig", err, authenticationAdvice)
	}
	return configMap.Data, nil
}

// awaitedClientCA is the authority of client certificates that the library loads later: the main cluster's.
func (r *run) awaitedClientCA(found map[string]string) []byte {
	if r.Recommended.Authentication.ClientCert.ClientCA != "" {
		return nil
	}
	return []byte(found["client-ca-file"])
}

// awaitAuthenticationConfig reads how the main cluster authenticates. On an installation the permission to read it is
// often not in force yet when the server starts, and on a new cluster the object may not be there yet.
func (r *run) awaitAuthenticationConfig(ctx context.Context, client kubernetes.Interface) (*corev1.ConfigMap, error) {
	var configMap *corev1.ConfigMap
	err := r.wait.Retry(ctx, "ConfigMap "+metav1.NamespaceSystem+"/"+authenticationConfigMap+" of the main cluster",
		func(ctx context.Context) (err error) {
			configMap, err = client.CoreV1().ConfigMaps(metav1.NamespaceSystem).Get(ctx, authenticationConfigMap, metav1.GetOptions{})
			return err
		})
	return configMap, err
}
