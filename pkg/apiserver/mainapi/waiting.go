// Copyright The jobset-apiserver Authors.
// SPDX-License-Identifier: Apache-2.0

package mainapi

import (
	"context"
	"crypto/tls"
	"crypto/x509"
	"errors"
	"net"
	"time"

	"k8s.io/apimachinery/pkg/util/wait"

	"github.com/jobset-apiserver/jobset-apiserver/pkg/apiserver/startup"
)

const (
	// Timeout bounds each question that is asked before the server serves, and answerTimeout the first one, which is small.
	Timeout, answerTimeout = 10 * time.Second, 3 * time.Second
	// retryPause is between two questions; at most twice as long. The server serves within two seconds of the return of the main API, so
	// neither the pause nor DialTimeout, which bounds a connection that is not answered, may be longer than a second.
	retryPause         = 300 * time.Millisecond
	DialTimeout        = time.Second
	dialTimeoutServing = 3 * time.Second
	keepAlive          = 30 * time.Second
)

// ErrLeft is returned when the process was asked to end while it waited.
var ErrLeft = errors.New("the server was asked to end while it waited")

// Waiter asks the main API until it answers. The zero value reports nothing, and does nothing else meanwhile.
type Waiter struct {
	// Startup answers while the server waits, and says what it waits for.
	Startup *startup.Server
	// Meanwhile does work that needs no other server, once.
	Meanwhile func() error
}

// Retry asks the main API until it gives what is waited for. Both may start at the same time, kube-apiserver may be away for hours, and
// what an installation applies is in force a moment later. Errors that waiting does not cure are returned at once.
func (w *Waiter) Retry(ctx context.Context, what string, ask func(context.Context) error) error {
	for {
		err := func() error {
			bounded, cancel := context.WithTimeout(ctx, Timeout)
			defer cancel()
			return ask(bounded)
		}()
		switch {
		case err == nil:
			w.Startup.Proceed(ctx)
			return nil
		case permanent(err):
			return err
		case ctx.Err() != nil:
			return ErrLeft
		}
		w.Startup.Wait(ctx, what, err)
		if w.Meanwhile != nil {
			if err := w.Meanwhile(); err != nil {
				return err
			}
		}
		select {
		case <-ctx.Done():
			return ErrLeft
		case <-time.After(wait.Jitter(retryPause, 1)):
		}
	}
}

// permanent returns whether waiting does not cure an error: a server whose certificate the file does not vouch for is
// another one, or the file is wrong. A certificate that is not valid yet, or not any more, is another matter: clocks
// are set, and certificates renewed.
func permanent(err error) bool {
	if !errors.As(err, new(*tls.CertificateVerificationError)) {
		return false
	}
	var invalid x509.CertificateInvalidError
	return !errors.As(err, &invalid) || invalid.Reason != x509.Expired
}

// Dialer connects within a time, so that an address from which nothing comes back does not delay the next attempt.
func Dialer(timeout time.Duration) func(ctx context.Context, network, address string) (net.Conn, error) {
	return (&net.Dialer{Timeout: timeout, KeepAlive: keepAlive}).DialContext
}
