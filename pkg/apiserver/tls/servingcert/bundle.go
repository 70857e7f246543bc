// Copyright The jobset-apiserver Authors.
// SPDX-License-Identifier: Apache-2.0

package servingcert

import (
	"context"
	"crypto/x509"
	"fmt"
	"slices"
	"time"

	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"
	"k8s.io/klog/v2"
)

// mergeBundle returns what a caBundle must become, and whether that is a change. It begins with our authorities.
// Certificates of others stay while they are valid: servers of an earlier installation may still serve with them, and
// kube-apiserver trusts any certificate of the bundle. What cannot be read is dropped.
func mergeBundle(found []byte, authorities []*x509.Certificate, now time.Time) (want []byte, change bool) {
	current, clean := certificates(found)
	keep := slices.Clone(authorities)
	for _, cert := range current {
		if !has(keep, cert) && !retired(cert, authorities) && valid(cert, now) && len(keep) < mostCertificates {
			keep = append(keep, cert)
		}
	}
	same := clean && len(current) == len(keep) && !slices.ContainsFunc(keep, func(cert *x509.Certificate) bool { return !has(current, cert) })
	return encode(keep...), !same
}

// retired returns whether the certificate is one of our authorities that is no longer used. If it is newer than all known authorities,
// another server has just made it, and it is not retired.
func retired(cert *x509.Certificate, authorities []*x509.Certificate) bool {
	if !generated(cert) || has(authorities, cert) {
		return false
	}
	return slices.ContainsFunc(authorities, func(known *x509.Certificate) bool { return !known.NotBefore.Before(cert.NotBefore) })
}

// bundlePolicy says what caBundles must have.
type bundlePolicy struct {
	authorities []*x509.Certificate
	now         time.Time
}

// apply changes the caBundles of an object, and returns whether one has changed.
func (p bundlePolicy) apply(object *unstructured.Unstructured, names []string) (changed bool, err error) {
	by := injector(object)
	for _, config := range clientConfigs(object, names) {
		if config.insecure() {
			// There must be no caBundle then, and there is no need for one.
			continue
		}
		want, change := mergeBundle(config.bundle(), p.authorities, p.now)
		switch {
		case !change:
		case by == "":
			config.setBundle(want)
			changed = true
		case !p.held(config.bundle()):
			return false, fmt.Errorf("it lacks the authority of this server, and the annotation %s makes another program write it: remove the "+
				"annotation, or serve with --tls-cert-file", by)
		}
	}
	return changed, nil
}

// held returns whether a caBundle has all authorities.
func (p bundlePolicy) held(bundle []byte) bool {
	current, _ := certificates(bundle)
	return !slices.ContainsFunc(p.authorities, func(cert *x509.Certificate) bool { return !has(current, cert) })
}

// wrote counts and logs a write.
func (p bundlePolicy) wrote(ctx context.Context, target Target) {
	bundleWrites.Inc()
	klog.FromContext(ctx).Info("Wrote the caBundle of the serving certificate", "object", target.String(), "authorities", len(p.authorities))
}
