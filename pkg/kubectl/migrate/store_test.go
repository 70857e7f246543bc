// Copyright The jobset-apiserver Authors.
// SPDX-License-Identifier: Apache-2.0

package migrate

import (
	"context"
	"io"
	"net/http"
	"strings"
	"testing"
	"testing/synctest"
	"time"

	"k8s.io/apimachinery/pkg/runtime/schema"
	"k8s.io/client-go/kubernetes/scheme"
	"k8s.io/client-go/rest"

	"github.com/jobset-apiserver/jobset-apiserver/pkg/migration"
)

// answers are the status codes of kube-apiserver to one request after another. The last one is repeated.
type answers struct {
	codes []int
	asked int
}

func (a *answers) RoundTrip(*http.Request) (*http.Response, error) {
	code := a.codes[min(a.asked, len(a.codes)-1)]
	a.asked++
	body := "{}"
	if code != http.StatusOK {
		body = "not now"
	}
	return &http.Response{StatusCode: code, Header: http.Header{}, Body: io.NopCloser(strings.NewReader(body))}, nil
}

func (a *answers) store(t *testing.T) *store {
	t.Helper()
	client, err := rest.UnversionedRESTClientFor(&rest.Config{
		Host: "https://kube-apiserver", Transport: a, QPS: -1,
		ContentConfig: rest.ContentConfig{GroupVersion: &schema.GroupVersion{}, NegotiatedSerializer: scheme.Codecs.WithoutConversion()},
	})
	if err != nil {
		t.Fatal(err)
	}
	return &store{client}
}

// TestRequestsBeforeTheyAreForwarded: kube-apiserver says that an APIService is available, and answers some requests after that with 404
// or 503, because another one does, or another part of it does not know yet. A dry run ended so.
func TestRequestsBeforeTheyAreForwarded(t *testing.T) {
	for name, c := range map[string]struct {
		codes []int
		// asked is how often kube-apiserver is asked. Once more at the end of the time is as good.
		asked int
		// err is what the error must say; empty if there must be none.
		err string
		// took is how long the request may take at least.
		took time.Duration
	}{
		"at once":                {[]int{200}, 1, "", 0},
		"after a moment":         {[]int{404, 503, 503, 200}, 4, "", 3 * routePoll},
		"never":                  {[]int{503}, 50, "unable to handle the request", forwardTimeout},
		"without the permission": {[]int{403}, 1, "not now", 0},
		"after an error":         {[]int{500}, 1, "not now", 0},
	} {
		for kind, request := range map[string]func(context.Context, *store) error{
			"import": func(ctx context.Context, s *store) error { _, err := s.send(ctx, migration.ImportSpec{}); return err },
			"inventory": func(ctx context.Context, s *store) error {
				_, err := s.inventory(ctx, "jobsets.jobset.x-k8s.io")
				return err
			},
		} {
			t.Run(name+"/"+kind, func(t *testing.T) {
				synctest.Test(t, func(t *testing.T) {
					a, began := &answers{codes: c.codes}, time.Now()
					err := request(t.Context(), a.store(t))
					if (err == nil) != (c.err == "") || err != nil && !strings.Contains(err.Error(), c.err) {
						t.Errorf("error %v, want %q", err, c.err)
					}
					if took := time.Since(began); took != c.took || a.asked != c.asked && a.asked != c.asked+1 {
						t.Errorf("%d requests in %s, want %d in %s", a.asked, took, c.asked, c.took)
					}
				})
			})
		}
	}
}
