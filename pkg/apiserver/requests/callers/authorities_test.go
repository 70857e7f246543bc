// Copyright The jobset-apiserver Authors.
// SPDX-License-Identifier: Apache-2.0

package callers

import (
	"os"
	"path/filepath"
	"strings"
	"testing"
	"time"

	"github.com/go-logr/logr/funcr"
	genericoptions "k8s.io/apiserver/pkg/server/options"
	certutil "k8s.io/client-go/util/cert"
	"k8s.io/klog/v2"

	"github.com/jobset-apiserver/jobset-apiserver/pkg/authority"
)

// newAuthority returns the certificate of a new authority as PEM.
func newAuthority(t *testing.T) string {
	t.Helper()
	now := time.Now()
	ca, err := authority.New(certutil.Config{CommonName: "authority", NotBefore: now}, now.Add(time.Hour))
	if err != nil {
		t.Fatal(err)
	}
	encoded, _, err := ca.PEM()
	if err != nil {
		t.Fatal(err)
	}
	return string(encoded)
}

func TestFrontProxies(t *testing.T) {
	one, two := newAuthority(t), newAuthority(t)
	file := filepath.Join(t.TempDir(), "one.crt")
	if err := os.WriteFile(file, []byte(one), 0o600); err != nil {
		t.Fatal(err)
	}
	cluster := func(client, proxy, names string) map[string]string {
		return map[string]string{"client-ca-file": client, "requestheader-client-ca-file": proxy, "requestheader-allowed-names": names}
	}
	byFlags := func(names ...string) func(*genericoptions.DelegatingAuthenticationOptions) {
		return func(a *genericoptions.DelegatingAuthenticationOptions) {
			a.RequestHeader.ClientCAFile, a.RequestHeader.AllowedNames = file, names
		}
	}
	cases := map[string]struct {
		found   map[string]string
		flags   func(*genericoptions.DelegatingAuthenticationOptions)
		want    string
		wantLog bool
	}{
		"two authorities and a name":                 {found: cluster(one, two, `["front-proxy-client"]`)},
		"two authorities without names":              {found: cluster(one, two, `[]`), wantLog: true},
		"one authority and a name":                   {found: cluster(one, one, `["front-proxy-client"]`)},
		"one authority without names":                {found: cluster(one, one, `[]`), want: "--requestheader-allowed-names: is empty"},
		"one authority, and nothing about names":     {found: cluster(one, one, ""), want: "--requestheader-allowed-names: is empty"},
		"one authority among two":                    {found: cluster(one+two, two, `[]`), want: "--requestheader-allowed-names: is empty"},
		"no authority of front proxies":              {found: cluster(one, "", "")},
		"nothing was looked up":                      {},
		"names that are no list":                     {found: cluster(one, two, `front-proxy-client`), want: "--authentication-kubeconfig: "},
		"flags name the authority, but no proxy":     {found: cluster(one, two, `["front-proxy-client"]`), flags: byFlags(), want: "--requestheader-allowed-names: is empty"},
		"flags name the authority and the proxy":     {found: cluster(one, one, `[]`), flags: byFlags("front-proxy-client")},
		"flags name another authority without names": {found: cluster(two, two, `["front-proxy-client"]`), flags: byFlags(), wantLog: true},
	}
	for name, c := range cases {
		t.Run(name, func(t *testing.T) {
			authentication := genericoptions.NewDelegatingAuthenticationOptions()
			if c.flags != nil {
				c.flags(authentication)
			}
			lines := 0
			ctx := klog.NewContext(t.Context(), funcr.New(func(string, string) { lines++ }, funcr.Options{}))
			trusted, err := TrustedAuthorities(authentication, c.found)
			if err == nil {
				err = trusted.Check(ctx)
			}
			if c.want == "" && err != nil || c.want != "" && (err == nil || !strings.HasPrefix(err.Error(), c.want)) {
				t.Errorf("error is %v, not one of %q", err, c.want)
			}
			if want := map[bool]int{true: 1}[c.wantLog]; lines != want {
				t.Errorf("%d lines were logged, not %d", lines, want)
			}
		})
	}
}
