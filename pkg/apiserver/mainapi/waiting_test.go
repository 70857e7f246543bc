// Copyright The jobset-apiserver Authors.
// SPDX-License-Identifier: Apache-2.0

package mainapi

import (
	"context"
	"crypto/tls"
	"crypto/x509"
	"errors"
	"fmt"
	"net/http"
	"net/http/httptest"
	"net/url"
	"path/filepath"
	"syscall"
	"testing"
	"testing/synctest"
	"time"

	apierrors "k8s.io/apimachinery/pkg/api/errors"
	"k8s.io/apimachinery/pkg/runtime/schema"
	"k8s.io/client-go/rest"
	clientcmdapi "k8s.io/client-go/tools/clientcmd/api"

	"github.com/jobset-apiserver/jobset-apiserver/test/framework/kubeconfig"
)

func awaitMain(t *testing.T, server string) error {
	t.Helper()
	_, err := (&Waiter{}).await(t.Context(), kubeconfig.For(t, server))
	return err
}

// TestServerIsServedWithinASecond has the main API come back after hours.
func TestServerIsServedWithinASecond(t *testing.T) {
	for _, away := range []time.Duration{0, time.Second, time.Minute, 3 * time.Hour} {
		synctest.Test(t, func(t *testing.T) {
			begin, meanwhile := time.Now(), 0
			w := &Waiter{Meanwhile: func() error { meanwhile++; return nil }}
			err := w.Retry(t.Context(), "it", func(context.Context) error {
				if time.Since(begin) < away {
					return syscall.ECONNREFUSED
				}
				return nil
			})
			if late := time.Since(begin) - away; err != nil || late > time.Second {
				t.Errorf("after %s: %s late, %v", away, late, err)
			}
			if (meanwhile > 0) != (away > 0) {
				t.Errorf("after %s: what needs nobody else was begun %d times", away, meanwhile)
			}
		})
	}
}

func TestWaitEndsWithTheProcess(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		ctx, cancel := context.WithTimeout(t.Context(), time.Minute)
		defer cancel()
		begin := time.Now()
		err := (&Waiter{}).Retry(ctx, "it", func(context.Context) error { return syscall.ECONNREFUSED })
		if took := time.Since(begin); took != time.Minute || !errors.Is(err, ErrLeft) {
			t.Errorf("after %s: %v", took, err)
		}
	})
}

func TestWaitEndsWhenTheEmbeddedStoreFails(t *testing.T) {
	damaged := errors.New("damaged")
	w := &Waiter{Meanwhile: func() error { return damaged }}
	if err := w.Retry(t.Context(), "it", func(context.Context) error { return syscall.ECONNREFUSED }); !errors.Is(err, damaged) {
		t.Error(err)
	}
}

func TestWhatWaitingCures(t *testing.T) {
	unverified := func(err error) error {
		return &url.Error{Op: "Get", URL: "https://10.0.0.1", Err: &tls.CertificateVerificationError{Err: err}}
	}
	configMaps := schema.GroupResource{Resource: "configmaps"}
	for name, c := range map[string]struct {
		err       error
		permanent bool
	}{
		"a refused connection":               {err: &url.Error{Err: syscall.ECONNREFUSED}},
		"no answer in time":                  {err: context.DeadlineExceeded},
		"a server that starts":               {err: apierrors.NewServiceUnavailable("starting")},
		"permissions that are not in force":  {err: apierrors.NewForbidden(configMaps, "x", errors.New("no"))},
		"users that are not known":           {err: apierrors.NewUnauthorized("who?")},
		"objects that are not there":         {err: apierrors.NewNotFound(configMaps, "x")},
		"a certificate of another time":      {err: unverified(x509.CertificateInvalidError{Reason: x509.Expired})},
		"a certificate of another authority": {err: unverified(x509.UnknownAuthorityError{}), permanent: true},
		"a certificate of another name":      {err: unverified(x509.HostnameError{Certificate: &x509.Certificate{}}), permanent: true},
		"a certificate for another use":      {err: unverified(x509.CertificateInvalidError{Reason: x509.IncompatibleUsage}), permanent: true},
	} {
		if got := permanent(c.err); got != c.permanent {
			t.Errorf("%s: permanent is %t", name, got)
		}
	}
}

// TestCredentialsMayBeReplacedWhileWaiting has an administrator correct the file.
func TestCredentialsMayBeReplacedWhileWaiting(t *testing.T) {
	path := filepath.Join(t.TempDir(), "kubeconfig")
	server := httptest.NewUnstartedServer(nil)
	server.Config.Handler = http.HandlerFunc(func(w http.ResponseWriter, req *http.Request) {
		if req.Header.Get("Authorization") == "Bearer good" {
			fmt.Fprintln(w, `{"major":"1","minor":"36"}`)
			return
		}
		kubeconfig.Write(t, path, &clientcmdapi.Cluster{Server: server.URL, InsecureSkipTLSVerify: true}, "good")
		w.WriteHeader(http.StatusUnauthorized)
	})
	server.StartTLS()
	defer server.Close()
	kubeconfig.Write(t, path, &clientcmdapi.Cluster{Server: server.URL, InsecureSkipTLSVerify: true}, "bad")
	config, err := (&Waiter{}).await(t.Context(), path)
	if err != nil || config.BearerToken != "good" {
		t.Errorf("%v, %v", config, err)
	}
}

// answers are the answers of a transport, by the time since it was made.
type answers struct {
	begin    time.Time
	requests int
	answer   func(since time.Duration) (int, error)
}

func (a *answers) RoundTrip(*http.Request) (*http.Response, error) {
	a.requests++
	code, err := a.answer(time.Since(a.begin))
	if err != nil {
		return nil, err
	}
	return &http.Response{StatusCode: code, Status: http.StatusText(code), Body: http.NoBody}, nil
}

// TestInformersWaitForMainAPI asks at the begin of an outage.
func TestInformersWaitForMainAPI(t *testing.T) {
	away := func(until time.Duration, code int) func(time.Duration) (int, error) {
		return func(since time.Duration) (int, error) {
			switch {
			case since >= until:
				return http.StatusOK, nil
			case code == 0:
				return 0, syscall.ECONNREFUSED
			}
			return code, nil
		}
	}
	for name, c := range map[string]struct {
		method   string
		answer   func(time.Duration) (int, error)
		wantCode int
		// wantAfter is when the answer comes, at most wantLate later.
		wantAfter, wantLate time.Duration
	}{
		"it is there":                      {answer: away(0, 0), wantCode: http.StatusOK},
		"it is away":                       {answer: away(time.Minute, 0), wantCode: http.StatusOK, wantAfter: time.Minute, wantLate: time.Second},
		"it starts":                        {answer: away(time.Minute, http.StatusInternalServerError), wantCode: http.StatusOK, wantAfter: time.Minute, wantLate: time.Second},
		"its permissions are not in force": {answer: away(time.Minute, http.StatusForbidden), wantCode: http.StatusOK, wantAfter: time.Minute, wantLate: 4 * time.Second},
		"it never comes back":              {answer: away(time.Hour, 0), wantAfter: holdTimeout - time.Second, wantLate: 2 * time.Second},
		"the token has expired":            {answer: away(time.Hour, http.StatusUnauthorized), wantCode: http.StatusUnauthorized},
		"the version is gone":              {answer: away(time.Hour, http.StatusGone), wantCode: http.StatusGone},
		"it is a write":                    {method: http.MethodPost, answer: away(time.Hour, http.StatusServiceUnavailable), wantCode: http.StatusServiceUnavailable},
	} {
		t.Run(name, func(t *testing.T) {
			synctest.Test(t, func(t *testing.T) {
				next := &answers{begin: time.Now(), answer: c.answer}
				req, err := http.NewRequestWithContext(t.Context(), c.method, "https://10.0.0.1/api/v1/namespaces", nil)
				if err != nil {
					t.Fatal(err)
				}
				response, err := NewHold(t.Context()).wrap(next).RoundTrip(req)
				took, code := time.Since(next.begin), 0
				if err == nil {
					code = response.StatusCode
					response.Body.Close()
				}
				if code != c.wantCode || took < c.wantAfter || took > c.wantAfter+c.wantLate {
					t.Errorf("%d (%v) after %s, want %d after %s and at most %s more", code, err, took, c.wantCode, c.wantAfter, c.wantLate)
				}
			})
		})
	}
}

func TestHeldRequestsEnd(t *testing.T) {
	for name, ends := range map[string]func(process, request context.CancelFunc){
		"the process ends": func(process, _ context.CancelFunc) { process() },
		"the request ends": func(_, request context.CancelFunc) { request() },
	} {
		t.Run(name, func(t *testing.T) {
			synctest.Test(t, func(t *testing.T) {
				process, endProcess := context.WithCancel(t.Context())
				request, endRequest := context.WithCancel(t.Context())
				defer endRequest()
				time.AfterFunc(time.Minute, func() { ends(endProcess, endRequest) })
				next := &answers{begin: time.Now(), answer: func(time.Duration) (int, error) { return 0, syscall.ECONNREFUSED }}
				req, err := http.NewRequestWithContext(request, http.MethodGet, "https://10.0.0.1/api/v1/namespaces", nil)
				if err != nil {
					t.Fatal(err)
				}
				response, err := NewHold(process).wrap(next).RoundTrip(req)
				if err == nil {
					response.Body.Close()
				}
				if took := time.Since(next.begin); took != time.Minute || !errors.Is(err, context.Canceled) {
					t.Errorf("after %s: %v", took, err)
				}
			})
		})
	}
}

var _ http.RoundTripper = &holding{}

// TestHeldConfigLeavesOthersAlone checks that only clients of informers wait.
func TestHeldConfigLeavesOthersAlone(t *testing.T) {
	config := &rest.Config{Host: "https://10.0.0.1"}
	if held := NewHold(t.Context()).Config(config); held.WrapTransport == nil || config.WrapTransport != nil {
		t.Error("the wrong configuration was changed")
	}
}
