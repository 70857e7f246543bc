// Copyright The jobset-apiserver Authors.
// SPDX-License-Identifier: Apache-2.0

package servingcert

import (
	"crypto/x509"
	"fmt"
	"slices"
	"strings"
	"time"

	"github.com/jobset-apiserver/jobset-apiserver/pkg/authority"
)

// planner decides what has to change in the Secret.
type planner struct {
	now   time.Time
	names []string
	Policy
	// trusted says that all caBundles have had the next authority for long enough.
	trusted bool
	// usages are what serving certificates are for.
	usages []x509.ExtKeyUsage
	// replaceBefore is a time of the past. An authority that was made earlier is replaced.
	replaceBefore time.Time
}

// plan returns what the content of the Secret must become, and what changes; nothing if it may stay.
func (p planner) plan(found *content) (*content, []string, error) {
	next := &content{authorities: slices.Clone(found.authorities), signer: found.signer, next: found.next, serving: found.serving}
	var changes []string
	for _, step := range []func(*content) (string, error){p.dropNext, p.makeAuthority, p.promote, p.issue, p.retireAuthorities} {
		change, err := step(next)
		if err != nil {
			return nil, nil, err
		}
		if change != "" {
			changes = append(changes, change)
		}
	}
	if len(found.damaged) > 0 {
		changes = append(changes, "repaired "+strings.Join(found.damaged, ", "))
	}
	return next, changes, nil
}

func (p planner) signs(pair *authority.Pair) bool {
	return pair != nil && valid(pair.Certificate, p.now)
}

// dropNext forgets an authority that was to sign next and has ended meanwhile.
func (p planner) dropNext(c *content) (string, error) {
	if c.next == nil || p.signs(c.next) {
		return "", nil
	}
	c.next = nil
	return "dropped an authority that was never used", nil
}

// makeAuthority makes the first authority, and the next one when the first is old or cannot sign.
func (p planner) makeAuthority(c *content) (string, error) {
	if p.signs(c.signer) && !p.isOld(c.signer.Certificate) || c.next != nil {
		return "", nil
	}
	made, err := newAuthority(authorityName, p.now, p.Authority)
	if err != nil {
		return "", err
	}
	c.authorities = append(c.authorities, made.Certificate)
	if p.signs(c.signer) || c.usable(p.now, p.names) {
		c.next = made
		return "made the next authority", nil
	}
	c.signer = made
	return "made an authority", nil
}

// isOld returns whether the authority must be replaced.
func (p planner) isOld(cert *x509.Certificate) bool {
	return cert.NotAfter.Sub(p.now) < p.Authority/5 || !p.replaceBefore.After(p.now) && made(cert).Before(p.replaceBefore)
}

// promote lets the next authority sign as soon as everybody trusts it, and before that if there is nothing that could be served otherwise.
func (p planner) promote(c *content) (string, error) {
	stuck := !p.signs(c.signer) && !c.usable(p.now, p.names)
	if c.next == nil || !p.trusted && !stuck {
		return "", nil
	}
	c.signer, c.next = c.next, nil
	return "the next authority signs from now on", nil
}

// issue makes a serving certificate if there is none, or if it ends soon, has other names or is of another authority.
func (p planner) issue(c *content) (string, error) {
	if !p.signs(c.signer) {
		return "", nil
	}
	end := p.now.Add(p.Serving)
	if last := c.signer.Certificate.NotAfter; end.After(last) {
		end = last
	}
	if c.usable(p.now, p.names) && c.serving.Certificate.CheckSignatureFrom(c.signer.Certificate) == nil &&
		!p.isDue(c.serving.Certificate, end) {
		return "", nil
	}
	serving, err := newServing(c.signer, "jobset-apiserver-serving@", p.names, p.now, end, p.usages...)
	if err != nil {
		return "", err
	}
	c.serving = serving
	return "made a serving certificate, which is valid until " + end.UTC().Format(time.RFC3339), nil
}

// isDue returns whether a serving certificate that is valid until the end is to replace this one.
func (p planner) isDue(cert *x509.Certificate, end time.Time) bool {
	return cert.NotAfter.Sub(p.now) < p.Serving/3 && end.Sub(cert.NotAfter) > p.Serving/10
}

// retireAuthorities drops authorities that have ended, or that have not signed for a while. The one that signs becomes the first.
func (p planner) retireAuthorities(c *content) (string, error) {
	if c.signer == nil || c.serving == nil {
		return "", nil
	}
	retired := c.serving.Certificate.CheckSignatureFrom(c.signer.Certificate) == nil && p.now.Sub(made(c.serving.Certificate)) >= p.retire()
	keep := []*x509.Certificate{c.signer.Certificate}
	if c.next != nil {
		keep = append(keep, c.next.Certificate)
	}
	dropped := 0
	for _, cert := range c.authorities {
		switch {
		case has(keep, cert):
		case retired || !valid(cert, p.now) || len(keep) == mostCertificates:
			dropped++
		default:
			keep = append(keep, cert)
		}
	}
	c.authorities = keep
	if dropped == 0 {
		return "", nil
	}
	return fmt.Sprintf("dropped %d authorities that sign no more", dropped), nil
}
