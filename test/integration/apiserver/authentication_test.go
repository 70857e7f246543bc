// Copyright The jobset-apiserver Authors.
// SPDX-License-Identifier: Apache-2.0

package apiserver

import (
	"context"
	"net/http"
	"testing"

	authenticationv1 "k8s.io/api/authentication/v1"
	corev1 "k8s.io/api/core/v1"
	rbacv1 "k8s.io/api/rbac/v1"
	apierrors "k8s.io/apimachinery/pkg/api/errors"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/client-go/rest"

	"github.com/jobset-apiserver/jobset-apiserver/test/framework"
	"github.com/jobset-apiserver/jobset-apiserver/test/framework/tier"
)

func TestIdentities(t *testing.T) {
	tier.Safety(t)
	server := plane.StartServer(t, framework.Embedded(framework.ShortDir(t))...)
	plane.Aggregate(t, server)
	cases := map[string]func(*testing.T, *env){
		"without an identity only health answers":                       testAnonymous,
		"users with a token get what RBAC gives them":                   testToken,
		"users with a client certificate get what RBAC gives them":      testClientCertificate,
		"users keep their identity through kube-apiserver":              testThroughProxy,
		"only the front proxy may speak for others":                     testRequestHeader,
		"a new authority of the front proxy is trusted without restart": testNewFrontProxy,
	}
	for name, test := range cases {
		t.Run(name, func(t *testing.T) { test(t, newEnv(t, server, server.Config(t))) })
	}
}

func testAnonymous(t *testing.T, e *env) {
	want := map[string]int{
		"/healthz": http.StatusOK, "/livez": http.StatusOK, "/readyz": http.StatusOK,
		"/livez/etcd": http.StatusUnauthorized, "/metrics": http.StatusUnauthorized, "/version": http.StatusUnauthorized,
		"/apis": http.StatusUnauthorized, "/openapi/v2": http.StatusUnauthorized, "/debug/pprof/": http.StatusUnauthorized,
		"/apis/jobset.x-k8s.io/v1alpha2/jobsets": http.StatusUnauthorized, "/mutate--v1-pod": http.StatusMethodNotAllowed,
	}
	for path, code := range want {
		if got, body := e.server.Get(t, path); got != code {
			t.Errorf("%s answers %d, not %d: %s", path, got, code, body)
		}
	}
}

// grant lets a subject read JobSets in the namespace.
func (e *env) grant(t testing.TB, subject rbacv1.Subject) {
	t.Helper()
	e.allow(t, []rbacv1.PolicyRule{{APIGroups: []string{"jobset.x-k8s.io"}, Resources: []string{"jobsets"}, Verbs: []string{"get", "list"}}}, subject)
}

// allow lets a subject do more in the namespace.
func (e *env) allow(t testing.TB, rules []rbacv1.PolicyRule, subject rbacv1.Subject) {
	t.Helper()
	role := &rbacv1.Role{ObjectMeta: metav1.ObjectMeta{Name: "role"}, Rules: rules}
	if _, err := plane.Kube.RbacV1().Roles(e.namespace).Create(t.Context(), role, metav1.CreateOptions{}); err != nil {
		t.Fatal(err)
	}
	binding := &rbacv1.RoleBinding{
		ObjectMeta: metav1.ObjectMeta{Name: "role"},
		RoleRef:    rbacv1.RoleRef{APIGroup: rbacv1.GroupName, Kind: "Role", Name: "role"},
		Subjects:   []rbacv1.Subject{subject},
	}
	if _, err := plane.Kube.RbacV1().RoleBindings(e.namespace).Create(t.Context(), binding, metav1.CreateOptions{}); err != nil {
		t.Fatal(err)
	}
}

// canList reports whether the user of the environment may list JobSets yet.
func (e *env) canList(ctx context.Context) error {
	_, err := e.typed.List(ctx, metav1.ListOptions{Limit: 1})
	return err
}

// checkReader wants a configuration that may list JobSets in this namespace and do nothing else.
func (e *env) checkReader(t *testing.T, config *rest.Config) {
	t.Helper()
	client := clientset(t, config)
	framework.Eventually(t, "the permission is known", func(ctx context.Context) error {
		_, err := client.JobSets(e.namespace).List(ctx, metav1.ListOptions{})
		return err
	})
	if _, err := client.JobSets(e.namespace).Create(t.Context(), jobSet("a"), metav1.CreateOptions{}); !apierrors.IsForbidden(err) {
		t.Errorf("creating without permission: %v", err)
	}
	if _, err := client.JobSets("default").List(t.Context(), metav1.ListOptions{}); !apierrors.IsForbidden(err) {
		t.Errorf("listing in another namespace: %v", err)
	}
}

func testToken(t *testing.T, e *env) {
	account := &corev1.ServiceAccount{ObjectMeta: metav1.ObjectMeta{Name: "reader"}}
	if _, err := plane.Kube.CoreV1().ServiceAccounts(e.namespace).Create(t.Context(), account, metav1.CreateOptions{}); err != nil {
		t.Fatal(err)
	}
	request, err := plane.Kube.CoreV1().ServiceAccounts(e.namespace).CreateToken(t.Context(), account.Name, &authenticationv1.TokenRequest{}, metav1.CreateOptions{})
	if err != nil {
		t.Fatal(err)
	}
	e.grant(t, rbacv1.Subject{Kind: rbacv1.ServiceAccountKind, Name: account.Name, Namespace: e.namespace})
	config := e.server.Anonymous(t)
	config.BearerToken = request.Status.Token
	e.checkReader(t, config)

	config.BearerToken += "x"
	if _, err := clientset(t, config).JobSets(e.namespace).List(t.Context(), metav1.ListOptions{}); !apierrors.IsUnauthorized(err) {
		t.Errorf("with a forged token: %v", err)
	}
}

func testClientCertificate(t *testing.T, e *env) {
	user, err := plane.AddUser("alice", "team")
	if err != nil {
		t.Fatal(err)
	}
	e.grant(t, rbacv1.Subject{Kind: rbacv1.GroupKind, APIGroup: rbacv1.GroupName, Name: "team"})
	e.checkReader(t, e.server.ConfigOf(t, user))

	cert, key, err := newAuthority(t).Client("alice", "system:masters")
	if err != nil {
		t.Fatal(err)
	}
	config := e.server.Anonymous(t)
	config.CertData, config.KeyData = cert, key
	if _, err := clientset(t, config).JobSets(e.namespace).List(t.Context(), metav1.ListOptions{}); !apierrors.IsUnauthorized(err) {
		t.Errorf("with a certificate of a strange authority: %v", err)
	}
}

func testThroughProxy(t *testing.T, e *env) {
	user, err := plane.AddUser("bob")
	if err != nil {
		t.Fatal(err)
	}
	e.grant(t, rbacv1.Subject{Kind: rbacv1.UserKind, APIGroup: rbacv1.GroupName, Name: "bob"})
	e.checkReader(t, user.Config())
}

// proxied speaks for carol with a certificate of the authority.
func (e *env) proxied(t *testing.T, authority *framework.Authority, commonName string) error {
	t.Helper()
	cert, key, err := authority.Client(commonName)
	if err != nil {
		t.Fatal(err)
	}
	config := e.server.Anonymous(t)
	config.CertData, config.KeyData = cert, key
	config.Wrap(func(next http.RoundTripper) http.RoundTripper {
		return roundTripper(func(req *http.Request) (*http.Response, error) {
			req = req.Clone(req.Context())
			req.Header.Set("X-Remote-User", "carol")
			return next.RoundTrip(req)
		})
	})
	_, err = clientset(t, config).JobSets(e.namespace).List(t.Context(), metav1.ListOptions{})
	return err
}

type roundTripper func(*http.Request) (*http.Response, error)

func (f roundTripper) RoundTrip(req *http.Request) (*http.Response, error) { return f(req) }

func testRequestHeader(t *testing.T, e *env) {
	e.grant(t, rbacv1.Subject{Kind: rbacv1.UserKind, APIGroup: rbacv1.GroupName, Name: "carol"})
	framework.Eventually(t, "the front proxy is believed", func(context.Context) error {
		return e.proxied(t, plane.FrontProxy, "front-proxy-client")
	})
	if err := e.proxied(t, plane.FrontProxy, "somebody"); !apierrors.IsUnauthorized(err) {
		t.Errorf("with a name that is not allowed: %v", err)
	}
	if err := e.proxied(t, newAuthority(t), "front-proxy-client"); !apierrors.IsUnauthorized(err) {
		t.Errorf("with a strange authority: %v", err)
	}
}

func testNewFrontProxy(t *testing.T, e *env) {
	e.grant(t, rbacv1.Subject{Kind: rbacv1.UserKind, APIGroup: rbacv1.GroupName, Name: "carol"})
	authority := newAuthority(t)
	if err := e.proxied(t, authority, "front-proxy-client"); !apierrors.IsUnauthorized(err) {
		t.Fatalf("before the authority is known: %v", err)
	}
	const key = "requestheader-client-ca-file"
	framework.Eventually(t, "the authority is published", func(ctx context.Context) error {
		configMap, err := plane.Kube.CoreV1().ConfigMaps("kube-system").Get(ctx, "extension-apiserver-authentication", metav1.GetOptions{})
		if err != nil {
			return err
		}
		configMap.Data[key] += string(authority.CA())
		_, err = plane.Kube.CoreV1().ConfigMaps("kube-system").Update(ctx, configMap, metav1.UpdateOptions{})
		return err
	})
	framework.Eventually(t, "the new front proxy is believed", func(context.Context) error {
		return e.proxied(t, authority, "front-proxy-client")
	})
}
