// Copyright The jobset-apiserver Authors.
// SPDX-License-Identifier: Apache-2.0

package options

import (
	"context"
	"crypto/tls"
	"crypto/x509"
	"errors"
	"fmt"
	"net"
	"net/http"
	"time"

	"k8s.io/apimachinery/pkg/util/wait"
	certutil "k8s.io/client-go/util/cert"
	cliflag "k8s.io/component-base/cli/flag"

	"github.com/jobset-apiserver/jobset-apiserver/pkg/apiserver/startup"
)

const (
	// mainTimeout bounds each question that is asked before the server serves, and answerTimeout the first one, which is small.
	mainTimeout, answerTimeout = 10 * time.Second, 3 * time.Second
	// mainPause is between two questions; at most twice as long. The server serves within two seconds of the return of the main API, so that
	// neither the pause nor a connection that is not answered may take longer than a second.
	mainPause          = 300 * time.Millisecond
	dialTimeout        = time.Second
	dialTimeoutServing = 3 * time.Second
	keepAlive          = 30 * time.Second
)

// errLeft is returned when the process was asked to end while it waited.
var errLeft = errors.New("the server was asked to end while it waited")

// startWaiting answers on the port until the server serves: pods are completed from then on.
func (o *Options) startWaiting(listener net.Listener) (*startup.Server, error) {
	tcp, ok := listener.(*net.TCPListener)
	if !ok {
		return nil, fmt.Errorf("listening on %s: the listener is a %T", listener.Addr(), listener)
	}
	config, err := o.waitingTLS()
	if err != nil {
		return nil, err
	}
	s := startup.Start(tcp, config, func(next http.Handler) http.Handler { return o.pods.handler(next, o.PodWebhookClientNames) })
	o.Recommended.SecureServing.Listener = s.Listener()
	return s, nil
}

// waitingTLS has the certificate of the server, if it is there: from its files, or from the Secret, once it was read. Until then it has a
// temporary certificate. The kubelet does not verify it. kube-apiserver refuses it, as it would refuse a server that is away.
func (o *Options) waitingTLS() (*tls.Config, error) {
	serving := o.Recommended.SecureServing
	minimum, err := cliflag.TLSVersion(serving.MinTLSVersion)
	if err != nil {
		return nil, wrapFlagError("tls-min-version", err, "correct the version")
	}
	ciphers, err := cliflag.TLSCipherSuites(serving.CipherSuites)
	if err != nil {
		return nil, wrapFlagError("tls-cipher-suites", err, "correct the list")
	}
	var current func() (tls.Certificate, error)
	if files := serving.ServerCert.CertKey; files.CertFile != "" {
		current = func() (tls.Certificate, error) { return tls.LoadX509KeyPair(files.CertFile, files.KeyFile) }
	} else if current, err = o.managedOrTemporary(); err != nil {
		return nil, err
	}
	if _, err := current(); err != nil {
		return nil, wrapFlagError("tls-cert-file", err, "give a certificate and in --tls-private-key-file its key, both PEM")
	}
	return &tls.Config{
		MinVersion: minimum, CipherSuites: ciphers, ClientAuth: tls.RequestClientCert,
		GetCertificate: func(*tls.ClientHelloInfo) (*tls.Certificate, error) {
			pair, err := current()
			return &pair, err
		},
	}, nil
}

func (o *Options) managedOrTemporary() (func() (tls.Certificate, error), error) {
	cert, key, err := certutil.GenerateSelfSignedCertKey(componentName, nil, nil)
	if err != nil {
		return nil, fmt.Errorf("making a temporary certificate: %w", err)
	}
	temporary, err := tls.X509KeyPair(cert, key)
	return func() (tls.Certificate, error) {
		if manager := o.ManagedCert.manager.Load(); manager != nil {
			if cert, key := manager.CurrentCertKeyContent(); len(cert) > 0 {
				return tls.X509KeyPair(cert, key)
			}
		}
		return temporary, nil
	}, err
}

// retryMain asks the main API until it gives what is waited for. Both may start at the same time, kube-apiserver may be away for hours, and
// what an installation applies is in force a moment later. Errors that waiting does not cure are returned at once.
func (o *Options) retryMain(ctx context.Context, what string, ask func(context.Context) error) error {
	for {
		err := func() error {
			bounded, cancel := context.WithTimeout(ctx, mainTimeout)
			defer cancel()
			return ask(bounded)
		}()
		switch {
		case err == nil:
			o.startup.Proceed(ctx)
			return nil
		case permanent(err):
			return err
		case ctx.Err() != nil:
			return errLeft
		}
		o.startup.Wait(ctx, what, err)
		if o.meanwhile != nil {
			if err := o.meanwhile(); err != nil {
				return err
			}
		}
		select {
		case <-ctx.Done():
			return errLeft
		case <-time.After(wait.Jitter(mainPause, 1)):
		}
	}
}

// permanent returns whether waiting does not cure an error: a server whose certificate the file does not vouch for is
// another one, or the file is wrong. A certificate that is not valid yet, or not any more, is another matter: clocks
// are set, and certificates renewed.
func permanent(err error) bool {
	if !errors.As(err, new(*tls.CertificateVerificationError)) {
		return errors.As(err, new(*fatalError))
	}
	var invalid x509.CertificateInvalidError
	return !errors.As(err, &invalid) || invalid.Reason != x509.Expired
}

// dialer connects within a time, so that an address from which nothing comes back does not delay the next attempt.
func dialer(timeout time.Duration) func(ctx context.Context, network, address string) (net.Conn, error) {
	return (&net.Dialer{Timeout: timeout, KeepAlive: keepAlive}).DialContext
}
