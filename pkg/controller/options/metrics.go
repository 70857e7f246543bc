// Copyright The jobset-apiserver Authors.
// SPDX-License-Identifier: Apache-2.0

package options

import (
	"errors"
	"fmt"
	"net"
	"net/http"
	"os"
	"path/filepath"
	"slices"
	"strings"

	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apiserver/pkg/authentication/authenticatorfactory"
	"k8s.io/apiserver/pkg/authorization/authorizerfactory"
	"k8s.io/apiserver/pkg/endpoints/filters"
	"k8s.io/apiserver/pkg/endpoints/request"
	genericserver "k8s.io/apiserver/pkg/server"
	"k8s.io/apiserver/pkg/server/dynamiccertificates"
	"k8s.io/apiserver/pkg/server/mux"
	genericoptions "k8s.io/apiserver/pkg/server/options"
	"k8s.io/apiserver/pkg/server/routes"
	"k8s.io/client-go/kubernetes"
	"k8s.io/client-go/kubernetes/scheme"
	cliflag "k8s.io/component-base/cli/flag"
	"k8s.io/component-base/metrics/legacyregistry"
)

// validateTLS checks what the library would take although it is not wanted, and what it would refuse without a field.
func (o *Options) validateTLS() error {
	const newest = "VersionTLS13"
	if !slices.Contains([]string{"", "VersionTLS12", newest}, o.TLSMinVersion) {
		return fmt.Errorf("--config: tls.minVersion: must be VersionTLS12 or VersionTLS13, not %q", o.TLSMinVersion)
	}
	if len(o.TLSCipherSuites) > 0 && o.TLSMinVersion == newest {
		return errors.New("--config: tls.cipherSuites: must be left out with VersionTLS13, whose cipher suites cannot be chosen")
	}
	if _, err := cliflag.TLSCipherSuites(o.TLSCipherSuites); err != nil {
		return fmt.Errorf("--config: tls.cipherSuites: %w; known are %s", err, strings.Join(cliflag.TLSCipherPossibleValues(), ", "))
	}
	return nil
}

// secureServing returns the server of the metrics, with a certificate from files, which are followed, or a self-signed one.
func (o *Options) secureServing(listener net.Listener) (*genericserver.SecureServingInfo, error) {
	serving := genericoptions.NewSecureServingOptions()
	serving.Listener, serving.DisableHTTP2Serving = listener, true
	serving.MinTLSVersion, serving.CipherSuites = o.TLSMinVersion, o.TLSCipherSuites
	serving.ServerCert = genericoptions.GeneratableKeyCert{}
	if dir := o.MetricsCertDir; dir != "" {
		serving.ServerCert.CertKey = genericoptions.CertKey{CertFile: filepath.Join(dir, "tls.crt"), KeyFile: filepath.Join(dir, "tls.key")}
	}
	host, err := os.Hostname()
	if err != nil {
		return nil, fmt.Errorf("naming the self-signed certificate: %w", err)
	}
	if err := serving.MaybeDefaultWithSelfSignedCerts(host, nil, nil); err != nil {
		return nil, fmt.Errorf("making a self-signed certificate: %w", err)
	}
	var info *genericserver.SecureServingInfo
	if err := serving.ApplyTo(&info); err != nil {
		return nil, o.flagError("metrics-cert-dir", "must hold tls.crt and tls.key: %w", err)
	}
	return info, nil
}

// guard lets requests through whose token or client certificate the main cluster knows, and whose user may read the URL. The options
// of the library would let requests without either through to the second question, and read the kubeconfig file once more.
func guard(serving *genericserver.SecureServingInfo, client kubernetes.Interface, next http.Handler) (http.Handler, error) {
	clientCA, err := dynamiccertificates.NewDynamicCAFromConfigMapController(
		"client-ca", metav1.NamespaceSystem, "extension-apiserver-authentication", "client-ca-file", client)
	if err != nil {
		return nil, fmt.Errorf("setting up authentication: %w", err)
	}
	serving.ClientCA = clientCA
	authentication, authorization := genericoptions.NewDelegatingAuthenticationOptions(), genericoptions.NewDelegatingAuthorizationOptions()
	authenticator, _, err := authenticatorfactory.DelegatingAuthenticatorConfig{
		TokenAccessReviewClient:            client.AuthenticationV1(),
		TokenAccessReviewTimeout:           authentication.TokenRequestTimeout,
		WebhookRetryBackoff:                authentication.WebhookRetryBackoff,
		CacheTTL:                           authentication.CacheTTL,
		ClientCertificateCAContentProvider: clientCA,
	}.New()
	if err != nil {
		return nil, fmt.Errorf("setting up authentication: %w", err)
	}
	authorizer, err := authorizerfactory.DelegatingAuthorizerConfig{
		SubjectAccessReviewClient: client.AuthorizationV1(),
		AllowCacheTTL:             authorization.AllowCacheTTL,
		DenyCacheTTL:              authorization.DenyCacheTTL,
		WebhookRetryBackoff:       authorization.WebhookRetryBackoff,
	}.New()
	if err != nil {
		return nil, fmt.Errorf("setting up authorization: %w", err)
	}
	handler := filters.WithAuthorization(next, authorizer, scheme.Codecs)
	handler = filters.WithAuthentication(handler, authenticator, filters.Unauthorized(scheme.Codecs), nil, nil)
	return filters.WithCacheControl(filters.WithRequestInfo(handler, &request.RequestInfoFactory{})), nil
}

// metricsHandler serves the metrics, and profiles if they are asked for.
func (o *Options) metricsHandler() http.Handler {
	paths := mux.NewPathRecorderMux("metrics")
	paths.Handle("/metrics", legacyregistry.Handler())
	if o.Profiling {
		routes.Profiling{}.Install(paths)
	}
	return paths
}
