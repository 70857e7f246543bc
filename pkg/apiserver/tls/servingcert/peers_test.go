// Copyright The jobset-apiserver Authors.
// SPDX-License-Identifier: Apache-2.0

package servingcert

import (
	"crypto/x509"
	"os"
	"path/filepath"
	"testing"
	"time"

	certutil "k8s.io/client-go/util/cert"
)

// peer is a member of an embedded etcd, which reads its authorities when it starts, and its pair for each connection.
type peer struct {
	*Manager
	trusts *x509.CertPool
}

func (p *peer) restart(t *testing.T) {
	t.Helper()
	var err error
	if p.trusts, err = certutil.NewPool(filepath.Join(p.Dir, "ca.crt")); err != nil {
		t.Fatal(err)
	}
}

// accepts checks that another peer may connect, and be connected to.
func (p *peer) accepts(t *testing.T, other *peer, now time.Time) {
	t.Helper()
	pair, err := readPair(filepath.Join(other.Dir, "tls.crt"), filepath.Join(other.Dir, "tls.key"))
	if err != nil {
		t.Fatal(err)
	}
	for _, usage := range []x509.ExtKeyUsage{x509.ExtKeyUsageServerAuth, x509.ExtKeyUsageClientAuth} {
		options := x509.VerifyOptions{Roots: p.trusts, DNSName: host, CurrentTime: now, KeyUsages: []x509.ExtKeyUsage{usage}}
		if _, err := pair.Certificate.Verify(options); err != nil {
			t.Fatalf("after %s: %v", now.Sub(begin), err)
		}
	}
}

// TestPeersAlwaysAcceptEachOther lets three peers live through several authorities. Each restarts from time to time.
func TestPeersAlwaysAcceptEachOther(t *testing.T) {
	for name, policy := range map[string]Policy{
		"by default":             {Authority: 10 * time.Hour, Serving: time.Hour},
		"the shortest authority": {Authority: 5 * time.Hour, Serving: time.Hour},
	} {
		t.Run(name, func(t *testing.T) {
			const step = 5 * time.Minute
			c := newCluster(t)
			peers := []*peer{{Manager: c.manager(policy)}, {Manager: c.manager(policy)}, {Manager: c.manager(policy)}}
			for _, p := range peers {
				p.Targets, p.bundles.targets, p.Dir = nil, nil, filepath.Join(t.TempDir(), "peers")
				c.pass(p.Manager)
				p.restart(t)
			}
			pairs := map[string]bool{}
			for i := range int(3 * policy.Authority / step) {
				c.clock.Step(step)
				for n, p := range peers {
					c.pass(p.Manager)
					if (i+n)%5 == 0 {
						p.restart(t)
					}
				}
				for _, p := range peers {
					for _, other := range peers {
						p.accepts(t, other, c.clock.Now())
					}
				}
				pair, err := os.ReadFile(filepath.Join(peers[0].Dir, "tls.crt"))
				if err != nil {
					t.Fatal(err)
				}
				pairs[string(pair)] = true
			}
			if most := int(3 * policy.Authority / policy.Serving); len(pairs) < most/2 || len(pairs) > 3*most {
				t.Errorf("%d pairs", len(pairs))
			}
		})
	}
}
