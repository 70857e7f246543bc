// Copyright The jobset-apiserver Authors.
// SPDX-License-Identifier: Apache-2.0

package servingcert

import (
	"bytes"
	"crypto/x509"
	"encoding/base64"
	"fmt"
	"strings"
	"testing"
	"time"

	"github.com/google/go-cmp/cmp"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	certutil "k8s.io/client-go/util/cert"

	"github.com/jobset-apiserver/jobset-apiserver/pkg/authority"
)

// madeBy returns an authority with the name, which begins some time after the begin of the test, and is valid for a day.
func madeBy(t *testing.T, name string, after time.Duration) *x509.Certificate {
	t.Helper()
	pair, err := authority.New(certutil.Config{CommonName: name, NotBefore: begin.Add(after)}, begin.Add(after+24*time.Hour))
	if err != nil {
		t.Fatal(err)
	}
	return pair.Certificate
}

func TestMergeBundle(t *testing.T) {
	older, own, newer := madeBy(t, authorityName+"1", -time.Hour), madeBy(t, authorityName+"2", 0), madeBy(t, authorityName+"3", time.Hour)
	other, ended, named := madeBy(t, "other", -time.Hour), madeBy(t, "ended", -48*time.Hour), madeBy(t, "jobset-apiserver-ca", -time.Hour)
	certs := func(certs ...*x509.Certificate) []*x509.Certificate { return certs }
	for name, c := range map[string]struct {
		found  []byte
		want   []*x509.Certificate
		change bool
	}{
		"nothing":                          {nil, certs(own), true},
		"what must be there":               {encode(own), certs(own), false},
		"garbage":                          {[]byte("garbage"), certs(own), true},
		"garbage behind it":                {append(encode(own), "garbage"...), certs(own), true},
		"a block that is no certificate":   {append([]byte("-----BEGIN CERTIFICATE-----\nAAAA\n-----END CERTIFICATE-----\n"), encode(own)...), certs(own), true},
		"another authority":                {encode(other), certs(own, other), true},
		"another authority beside it":      {encode(other, own), certs(own, other), false},
		"an authority of cert-manager":     {encode(named), certs(own, named), true},
		"one that has ended":               {encode(own, ended), certs(own), true},
		"one that a server made, retired":  {encode(older, own), certs(own), true},
		"one that another server has made": {encode(own, madeBy(t, authorityName+"4", 30*time.Minute)), nil, false},
		"spaces":                           {append(encode(own), "\n\n"...), certs(own), false},
	} {
		t.Run(name, func(t *testing.T) {
			bundle, change := mergeBundle(c.found, certs(own), begin.Add(40*time.Minute))
			if change != c.change {
				t.Errorf("changes: %t, must be %t", change, c.change)
			}
			if c.want != nil && !bytes.Equal(bundle, encode(c.want...)) {
				got, _ := certificates(bundle)
				t.Errorf("%d certificates, must be %d", len(got), len(c.want))
			}
		})
	}
	if _, change := mergeBundle(encode(own, newer), certs(own), begin.Add(2*time.Hour)); change {
		t.Error("a certificate that is newer than the own one is dropped")
	}
}

// TestBundlesAreBounded gives the server more certificates than a caBundle may have.
func TestBundlesAreBounded(t *testing.T) {
	var found []*x509.Certificate
	for i := range 2 * mostCertificates {
		found = append(found, madeBy(t, fmt.Sprintf("other-%d", i), 0))
	}
	own := madeBy(t, authorityName+"1", 0)
	bundle, change := mergeBundle(encode(found...), []*x509.Certificate{own}, begin.Add(time.Hour))
	got, clean := certificates(bundle)
	if !change || !clean || len(got) != mostCertificates || !got[0].Equal(own) {
		t.Errorf("%d certificates", len(got))
	}
	if _, again := mergeBundle(bundle, []*x509.Certificate{own}, begin.Add(time.Hour)); again {
		t.Error("it changes again")
	}
}

// TestOtherObjectsAreLeftAlone has objects with the names that the server writes, which have another owner, or none.
func TestOtherObjectsAreLeftAlone(t *testing.T) {
	local := apiService(jobSets, map[string]any{"group": "jobset.x-k8s.io"})
	insecure := apiService(groupSets, map[string]any{"service": service("jobset-apiserver"), "insecureSkipTLSVerify": true})
	foreign := webhookOf(map[string]any{"service": service("other")}, map[string]any{"url": "https://example.com"})
	c := newCluster(t, local.DeepCopy(), insecure.DeepCopy(), foreign.DeepCopy())
	m := c.manager(DefaultPolicy)
	c.pass(m)
	for target, want := range map[Target]map[string]any{jobSets: local.Object, groupSets: insecure.Object, pods: foreign.Object} {
		if diff := cmp.Diff(want, c.get(target).Object); diff != "" {
			t.Errorf("%s (-want +got):\n%s", target, diff)
		}
	}
	empty := newCluster(t)
	m = empty.manager(DefaultPolicy)
	empty.pass(m)
	if err := m.Check(nil); err != nil {
		t.Errorf("without APIServices: %v", err)
	}
}

// TestInjectedBundles has an APIService whose caBundle cert-manager writes.
func TestInjectedBundles(t *testing.T) {
	injected := apiService(jobSets, map[string]any{"service": service("jobset-apiserver")})
	injected.SetAnnotations(map[string]string{"cert-manager.io/inject-ca-from": "jobset-system/jobset-apiserver"})
	c := newCluster(t, injected)
	m := c.manager(DefaultPolicy)
	err := m.Pass(t.Context())
	want := "caBundle of apiservices/v1alpha2.jobset.x-k8s.io: it lacks the authority of this server, and the annotation cert-manager.io/inject-ca-from makes another program write it: " +
		"remove the annotation, or serve with --tls-cert-file"
	if err == nil || err.Error() != want {
		t.Errorf("error is %v", err)
	}
	if err := m.Check(nil); err == nil {
		t.Error("the server is ready, and kube-apiserver does not trust it")
	}
	if c.bundle(jobSets) != nil {
		t.Error("the caBundle was written")
	}
	object := c.get(jobSets)
	object.SetAnnotations(nil)
	if _, err := c.dynamic.Resource(jobSets.Resource).Update(t.Context(), object, metav1.UpdateOptions{}); err != nil {
		t.Fatal(err)
	}
	c.pass(m)
	if err := m.Check(nil); err != nil {
		t.Error(err)
	}
}

// TestAllEntriesOfWebhooks writes all that name our Service.
func TestAllEntriesOfWebhooks(t *testing.T) {
	c := newCluster(t, webhookOf(
		map[string]any{"service": service("jobset-apiserver"), "caBundle": base64.StdEncoding.EncodeToString([]byte("garbage"))},
		map[string]any{"service": service("jobset-apiserver")}, map[string]any{"service": service("other")}))
	c.pass(c.manager(DefaultPolicy))
	text := fmt.Sprint(c.get(pods).Object)
	if got := strings.Count(text, "caBundle:LS0tLS1CRUdJTi"); got != 2 {
		t.Errorf("%d caBundles in %s", got, text)
	}
}
