// Copyright The jobset-apiserver Authors.
// SPDX-License-Identifier: Apache-2.0

package servingcert

import (
	"crypto/x509"
	"fmt"
	"time"

	certutil "k8s.io/client-go/util/cert"

	"github.com/jobset-apiserver/jobset-apiserver/pkg/authority"
)

// Policy says how long certificates are valid.
type Policy struct {
	// Authority and Serving are the lifetimes. In a Secret, an authority is replaced in the last fifth of its life, a serving
	// certificate in the last third.
	Authority, Serving time.Duration
}

// DefaultPolicy is the policy of installations: ten years and one year.
var DefaultPolicy = Policy{Authority: 10 * 365 * 24 * time.Hour, Serving: 365 * 24 * time.Hour}

// Validate returns an error if certificates could not be replaced in time.
func (p Policy) Validate() error {
	if p.Serving < 10*time.Second || p.Authority < 5*p.Serving {
		return fmt.Errorf("the serving certificate must be valid for at least 10s, not %s, and the authority for at least five times as long, "+
			"not %s", p.Serving, p.Authority)
	}
	return nil
}

// propagation is how long all caBundles must have had an authority before it signs. In this time, every kube-apiserver
// of the cluster notices.
func (p Policy) propagation() time.Duration { return min(5*time.Minute, p.Serving/20) }

// restarts is the time in which every member of an embedded etcd has been restarted since an authority was made.
func (p Policy) restarts() time.Duration { return min(p.Serving, p.Authority/10) }

// retire is how long an authority that signs no more stays in the caBundles. In this time, every server takes the
// certificate of the next one.
func (p Policy) retire() time.Duration { return min(24*time.Hour, p.Serving/3) }

// pass is how often everything is checked without a reason.
func (p Policy) pass() time.Duration { return min(time.Minute, p.Serving/20) }

// backdate tolerates clocks that are behind the clock of this server.
const backdate = 10 * time.Minute

// newAuthority returns an authority whose name begins with the prefix.
func newAuthority(prefix string, now time.Time, lifetime time.Duration) (*authority.Pair, error) {
	return authority.New(newConfig(prefix, now), now.Add(lifetime))
}

// newServing returns a serving certificate for the names that the authority signed. Its own name begins with the prefix.
func newServing(signer *authority.Pair, prefix string, names []string, now, end time.Time,
	usages ...x509.ExtKeyUsage) (*authority.Pair, error) {
	config := newConfig(prefix, now)
	config.AltNames, config.Usages = authority.AltNames(names), usages
	return signer.Issue(config, end)
}

// newConfig names a certificate after its time, because clients that know two authorities of one name may pick the wrong one.
func newConfig(prefix string, now time.Time) certutil.Config {
	return certutil.Config{CommonName: fmt.Sprintf("%s%d", prefix, now.UnixNano()), NotBefore: now.Add(-backdate)}
}

// made returns when we have made a certificate.
func made(cert *x509.Certificate) time.Time { return cert.NotBefore.Add(backdate) }
