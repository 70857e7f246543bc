// Copyright The jobset-apiserver Authors.
// SPDX-License-Identifier: Apache-2.0

package callers

import (
	"net/http"
	"net/http/httptest"
	"testing"

	"k8s.io/apiserver/pkg/authentication/authenticator"
	"k8s.io/apiserver/pkg/authentication/user"
	"k8s.io/apiserver/pkg/server/dynamiccertificates"
)

func TestRefuseAnonymous(t *testing.T) {
	cases := map[string]struct {
		path, name string
		want       bool
	}{
		"a probe without an identity":                {path: "/readyz", name: user.Anonymous, want: true},
		"a detail of a probe":                        {path: "/readyz/etcd", name: user.Anonymous},
		"the API without an identity":                {path: "/apis", name: user.Anonymous},
		"the API with an identity":                   {path: "/apis", name: "alice", want: true},
		"a path that begins like a probe":            {path: "/healthzz", name: user.Anonymous},
		"no identity was found, so none is returned": {path: "/apis"},
	}
	for name, c := range cases {
		t.Run(name, func(t *testing.T) {
			next := authenticator.RequestFunc(func(*http.Request) (*authenticator.Response, bool, error) {
				if c.name == "" {
					return nil, false, nil
				}
				return &authenticator.Response{User: &user.DefaultInfo{Name: c.name}}, true, nil
			})
			_, ok, err := RefuseAnonymous(next).AuthenticateRequest(httptest.NewRequest(http.MethodGet, c.path, nil))
			if ok != c.want || err != nil {
				t.Errorf("authenticated: %t, %v", ok, err)
			}
		})
	}
}

func TestClientCACheck(t *testing.T) {
	const one = "-----BEGIN CERTIFICATE-----\n"
	check := func(current, wanted string) error {
		provider := content{bundle: current}
		return ClientCACheck(provider, []byte(wanted))(nil)
	}
	if err := check("", one); err == nil {
		t.Error("ready before the authority is loaded")
	}
	if err := check("other"+one, one); err != nil {
		t.Errorf("not ready with the authority: %v", err)
	}
	if err := check("", ""); err != nil {
		t.Errorf("not ready where none is expected: %v", err)
	}
}

type content struct {
	dynamiccertificates.CAContentProvider
	bundle string
}

func (c content) CurrentCABundleContent() []byte { return []byte(c.bundle) }
