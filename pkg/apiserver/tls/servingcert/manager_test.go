// Copyright The jobset-apiserver Authors.
// SPDX-License-Identifier: Apache-2.0

package servingcert

import (
	"crypto/x509"
	"errors"
	"math/rand/v2"
	"strings"
	"sync"
	"testing"
	"time"

	"github.com/google/go-cmp/cmp"
	corev1 "k8s.io/api/core/v1"
	apierrors "k8s.io/apimachinery/pkg/api/errors"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/runtime"
	"k8s.io/apimachinery/pkg/runtime/schema"
	clienttesting "k8s.io/client-go/testing"
)

// TestFirstServersShareOneCertificate starts three servers on an empty Secret at the same time.
func TestFirstServersShareOneCertificate(t *testing.T) {
	for range 5 {
		c := newCluster(t, installed()...)
		managers := []*Manager{c.manager(DefaultPolicy), c.manager(DefaultPolicy), c.manager(DefaultPolicy)}
		var passes sync.WaitGroup
		errs := make([]error, len(managers))
		for i, m := range managers {
			passes.Go(func() { errs[i] = m.Pass(t.Context()) })
		}
		passes.Wait()
		if err := errors.Join(errs...); err != nil {
			t.Fatal(err)
		}
		for _, m := range managers {
			c.accepted(m)
			if !c.served(m).Certificate.Equal(c.served(managers[0]).Certificate) {
				t.Error("two servers have different certificates")
			}
			if err := m.Check(nil); err != nil {
				t.Error(err)
			}
		}
		if got := len(c.bundle(jobSets)); got != 1 {
			t.Errorf("the caBundle has %d certificates, must be one", got)
		}
	}
}

// TestClientsAlwaysAccept lets three servers live through several authorities. They look at the cluster in any order,
// and one of them looks seldom. Once, an administrator replaces the authority.
func TestClientsAlwaysAccept(t *testing.T) {
	const step, hours, seldom = 2 * time.Minute, 15, 8
	policy := Policy{Authority: 5 * time.Hour, Serving: time.Hour}
	r := rand.New(rand.NewPCG(1, 2)) //nolint:gosec // the same numbers in each run
	c := newCluster(t, installed()...)
	managers := []*Manager{c.manager(policy), c.manager(policy), c.manager(policy)}
	for _, m := range managers {
		c.pass(m)
	}
	certs, authorities, late := map[string]bool{}, map[string]bool{}, 0
	for i := range int(hours * time.Hour / step) {
		c.clock.Step(step)
		if i == 45 {
			c.setSecret(func(s *corev1.Secret) {
				metav1.SetMetaDataAnnotation(&s.ObjectMeta, ReplaceBeforeAnnotation, c.clock.Now().Format(time.RFC3339))
			})
		}
		if i%seldom == 0 {
			late = r.IntN(len(managers))
		}
		for _, number := range r.Perm(len(managers)) {
			if number != late || i%seldom == seldom-1 {
				c.pass(managers[number])
			}
		}
		for _, m := range managers {
			c.accepted(m)
		}
		certs[string(c.served(managers[0]).Certificate.Raw)] = true
		authorities[string(c.bundle(jobSets)[0].Raw)] = true
		if got := len(c.bundle(jobSets)); got > 3 {
			t.Fatalf("the caBundle has %d certificates", got)
		}
	}
	t.Logf("%d serving certificates and %d authorities in %d hours", len(certs), len(authorities), hours)
	if len(certs) < 15 || len(authorities) < 4 {
		t.Error("they were not replaced in time")
	}
}

// TestDamagedSecret checks what servers make of a Secret whose content is damaged, while they run and when they start.
func TestDamagedSecret(t *testing.T) {
	all := []string{authoritiesKey, authorityKeyKey, corev1.TLSCertKey, corev1.TLSPrivateKeyKey}
	for name, c := range map[string]struct {
		keys []string
		// kept says that a server that starts later keeps the serving certificate.
		kept bool
	}{
		"the serving certificate":         {[]string{corev1.TLSCertKey}, false},
		"the key":                         {[]string{corev1.TLSPrivateKeyKey}, false},
		"the authority":                   {[]string{authoritiesKey}, true},
		"the key of the authority":        {[]string{authorityKeyKey}, true},
		"the authority and both its keys": {[]string{authoritiesKey, authorityKeyKey}, true},
		"everything":                      {all, false},
	} {
		for _, value := range []string{"", "garbage", "-----BEGIN CERTIFICATE-----\nAAAA\n-----END CERTIFICATE-----\n"} {
			for _, running := range []bool{true, false} {
				t.Run(name, func(t *testing.T) { damage(t, c.keys, value, running, c.kept) })
			}
		}
	}
}

func damage(t *testing.T, keys []string, value string, running, kept bool) {
	c := newCluster(t, installed()...)
	first := c.manager(DefaultPolicy)
	c.pass(first)
	before, data := c.served(first).Certificate, c.secret().Data
	c.setSecret(func(s *corev1.Secret) {
		for _, key := range keys {
			s.Data[key] = []byte(value)
		}
	})
	m := first
	if !running {
		m = c.manager(DefaultPolicy)
	}
	c.clock.Step(time.Minute)
	for range 3 {
		c.pass(m)
		c.accepted(m)
	}
	same := c.served(m).Certificate.Equal(before)
	if running && (!same || cmp.Diff(data, c.secret().Data) != "") {
		t.Errorf("the certificate is the same: %t; the Secret must be what it was (-want +got):\n%s", same, cmp.Diff(data, c.secret().Data))
	}
	if !running && same != kept {
		t.Errorf("the certificate is the same: %t, must be: %t", same, kept)
	}
	c.clock.Step(time.Hour)
	c.pass(m)
	c.pass(m)
	c.accepted(m)
	if got := parse(c.secret().Data); len(got.damaged) > 0 || got.signer == nil || got.next != nil {
		t.Errorf("the Secret is not repaired: %v is damaged", got.damaged)
	}
}

// TestFailures checks what the server says, and that it goes on with what it has.
func TestFailures(t *testing.T) {
	for name, tc := range map[string]struct {
		change func(*cluster, *Manager)
		want   string
		// serves says that a server that has just started has a certificate.
		serves bool
	}{
		"the Secret is gone": {
			change: func(c *cluster, _ *Manager) { c.deleteSecret() },
			want:   `secret jobset-system/certs: secrets "certs" not found: apply the manifests of the installation, which create it`,
		},
		"the Secret may not be read": {
			change: func(c *cluster, _ *Manager) { c.kube.PrependReactor("get", "secrets", forbid) },
			want:   `secret jobset-system/certs: secrets "certs" is forbidden: no`,
		},
		"the Secret may not be written": {
			change: func(c *cluster, _ *Manager) { c.kube.PrependReactor("update", "secrets", forbid) },
			want:   `secret jobset-system/certs: secrets "certs" is forbidden: no`,
		},
		"an APIService may not be read": {
			change: func(c *cluster, _ *Manager) { c.dynamic.PrependReactor("get", "apiservices", forbid) },
			want:   "caBundle of apiservices/v1alpha2.jobset.x-k8s.io: apiservices \"certs\" is forbidden: no", serves: true,
		},
		"a webhook may not be written": {
			change: func(c *cluster, _ *Manager) { c.dynamic.PrependReactor("update", pods.Resource.Resource, forbid) },
			want:   "caBundle of mutatingwebhookconfigurations/jobset-apiserver-pods: mutatingwebhookconfigurations \"certs\" is forbidden: no", serves: true,
		},
		"the clock is wrong": {
			change: func(_ *cluster, m *Manager) { m.Skew = func() time.Duration { return -3 * time.Hour } },
			want:   "a certificate is due, but the clock of this machine differs by 3h0m0s from that of the main cluster, more than 5m0s: correct the clock",
		},
	} {
		t.Run(name, func(t *testing.T) {
			c := newCluster(t, installed()...)
			m := c.manager(DefaultPolicy)
			tc.change(c, m)
			err := m.Pass(t.Context())
			if err == nil || !strings.Contains(err.Error(), tc.want) {
				t.Errorf("error is %v, must contain %s", err, tc.want)
			}
			if cert, _ := m.CurrentCertKeyContent(); len(cert) > 0 != tc.serves {
				t.Errorf("has a certificate: %t", !tc.serves)
			}
			if err := m.Check(nil); err == nil || !strings.Contains(err.Error(), tc.want) {
				t.Errorf("readiness is %v", err)
			}
		})
	}
}

func (c *cluster) deleteSecret() {
	c.Helper()
	if err := c.kube.CoreV1().Secrets("jobset-system").Delete(c.Context(), "certs", metav1.DeleteOptions{}); err != nil {
		c.Fatal(err)
	}
}

func forbid(action clienttesting.Action) (bool, runtime.Object, error) {
	return true, nil, apierrors.NewForbidden(schema.GroupResource{Resource: action.GetResource().Resource}, "certs", errors.New("no"))
}

// TestRunningServerStaysReady takes the Secret away from a server that runs.
func TestRunningServerStaysReady(t *testing.T) {
	c := newCluster(t, installed()...)
	m := c.manager(DefaultPolicy)
	c.pass(m)
	c.kube.PrependReactor("*", "secrets", forbid)
	c.dynamic.PrependReactor("*", "*", forbid)
	if err := m.Pass(t.Context()); err == nil {
		t.Error("no error")
	}
	if err := m.Check(nil); err != nil {
		t.Error(err)
	}
	c.clock.Step(366 * 24 * time.Hour)
	if err := m.Check(nil); err == nil || !strings.Contains(err.Error(), "the serving certificate ended at 2027-01-01T00:00:00Z: ") {
		t.Errorf("readiness is %v", err)
	}
}

func TestNamesChange(t *testing.T) {
	c := newCluster(t, installed()...)
	m := c.manager(DefaultPolicy)
	c.pass(m)
	first := c.bundle(jobSets)
	m = c.manager(DefaultPolicy)
	m.Names = append(m.Names, "127.0.0.1", "other.example.com")
	c.pass(m)
	if err := c.served(m).Certificate.VerifyHostname("other.example.com"); err != nil {
		t.Error(err)
	}
	if !cmp.Equal(first, c.bundle(jobSets), cmp.Comparer((*x509.Certificate).Equal)) {
		t.Error("the authority has changed")
	}
}
