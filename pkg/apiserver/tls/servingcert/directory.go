// Copyright The jobset-apiserver Authors.
// SPDX-License-Identifier: Apache-2.0

package servingcert

import (
	"context"
	"crypto/x509"
	"errors"
	"fmt"
	"os"
	"path/filepath"
	"time"

	"k8s.io/apimachinery/pkg/util/wait"
	certutil "k8s.io/client-go/util/cert"
	"k8s.io/klog/v2"

	"github.com/jobset-apiserver/jobset-apiserver/pkg/authority"
)

const (
	// renewBefore is how long before its end the serving certificate in a directory is replaced.
	renewBefore = 30 * 24 * time.Hour
	renewPeriod = 12 * time.Hour
)

// ErrIncomplete reports that a file of the authority is missing, so that it can sign nothing and must not be replaced.
var ErrIncomplete = errors.New("is missing")

// Directory has a self-signed authority and a serving certificate that it signed, which are valid as long as DefaultPolicy says. The
// certificate of the authority is copied into the APIService by an administrator, who has to copy it again when it changes. The serving
// certificate is renewed at start and while the server runs; servers that watch the files pick the new one up.
type Directory struct {
	path  string
	names []string
	now   func() time.Time
}

// NewDirectory returns the directory at path, whose pair is valid for the names: DNS names and IP addresses.
func NewDirectory(path string, names []string) *Directory {
	return &Directory{path: path, names: names, now: time.Now}
}

// CAFile is the certificate of the authority, which clients (and the caBundle of the APIService) need.
func (d *Directory) CAFile() string { return filepath.Join(d.path, "ca.crt") }

// CertFile is the serving certificate.
func (d *Directory) CertFile() string { return filepath.Join(d.path, "tls.crt") }

// KeyFile is the key of the serving certificate.
func (d *Directory) KeyFile() string { return filepath.Join(d.path, "tls.key") }

func (d *Directory) caKeyFile() string { return filepath.Join(d.path, "ca.key") }

// Ensure writes what is missing, ends soon, does not belong together or does not cover the names. It is idempotent. It
// never replaces an authority of which a part is missing: clients trust that one, and would refuse the new one.
func (d *Directory) Ensure() error {
	if err := os.MkdirAll(d.path, 0o700); err != nil {
		return fmt.Errorf("creating directory for certificates: %w", err)
	}
	if d.isGood() {
		return nil
	}
	ca, err := d.ensureAuthority()
	if err != nil {
		return err
	}
	return d.issueServing(ca)
}

// isGood does not ask for the key of the authority, so that an operator may keep it elsewhere.
func (d *Directory) isGood() bool {
	cas, err := certutil.CertsFromFile(d.CAFile())
	return err == nil && d.endsLaterThan(cas[0], renewBefore) && d.servingIsGood(cas[0])
}

// Usable reports whether the pair can be served although Ensure failed: it is valid now, covers the names and, as far as
// that can be seen, belongs to the authority.
func (d *Directory) Usable() bool {
	pair, err := readPair(d.CertFile(), d.KeyFile())
	if err != nil || !d.endsLaterThan(pair.Certificate, 0) || !authority.Covers(pair.Certificate, d.names) {
		return false
	}
	cas, err := certutil.CertsFromFile(d.CAFile())
	return err != nil || pair.Certificate.CheckSignatureFrom(cas[0]) == nil
}

// Run renews the serving certificate in time until the context ends.
func (d *Directory) Run(ctx context.Context) {
	wait.UntilWithContext(ctx, func(ctx context.Context) {
		if err := d.Ensure(); err != nil {
			klog.FromContext(ctx).Error(err, "Renewing the self-signed serving certificate", "directory", d.path)
		}
	}, renewPeriod)
}

func (d *Directory) ensureAuthority() (*authority.Pair, error) {
	hasCA, hasKey, hasPair := exists(d.CAFile()), exists(d.caKeyFile()), exists(d.CertFile())
	switch {
	case hasCA && !hasKey:
		return nil, d.incomplete(d.caKeyFile())
	case !hasCA && hasKey && hasPair:
		return nil, d.incomplete(d.CAFile())
	case !hasCA:
		// Without a pair, the process that wrote the key ended before anybody could trust it.
		return d.issueAuthority()
	}
	ca, err := readPair(d.CAFile(), d.caKeyFile())
	if err != nil {
		return nil, fmt.Errorf("reading the self-signed authority: %w: repair or remove %s and %s", err, d.CAFile(), d.caKeyFile())
	}
	if d.endsLaterThan(ca.Certificate, DefaultPolicy.Serving) {
		return ca, nil
	}
	return d.issueAuthority()
}

func (d *Directory) incomplete(missing string) error {
	return fmt.Errorf("a new serving certificate is due, but %s %w: put it back; or remove %s and %s, which makes a new authority "+
		"whose certificate must be copied to everybody who trusts the old one", missing, ErrIncomplete, d.CAFile(), d.caKeyFile())
}

// exists reports true for files that cannot be looked at: reading them says why.
func exists(path string) bool {
	_, err := os.Stat(path)
	return !errors.Is(err, os.ErrNotExist)
}

func (d *Directory) servingIsGood(ca *x509.Certificate) bool {
	pair, err := readPair(d.CertFile(), d.KeyFile())
	if err != nil || !d.endsLaterThan(pair.Certificate, renewBefore) || pair.Certificate.CheckSignatureFrom(ca) != nil {
		return false
	}
	return authority.Covers(pair.Certificate, d.names)
}

func (d *Directory) endsLaterThan(cert *x509.Certificate, left time.Duration) bool {
	return cert.NotAfter.After(d.now().Add(left))
}

func readPair(certFile, keyFile string) (*authority.Pair, error) {
	certificate, err := os.ReadFile(certFile)
	if err != nil {
		return nil, err
	}
	key, err := os.ReadFile(keyFile)
	if err != nil {
		return nil, err
	}
	pair, err := authority.Parse(certificate, key)
	if err != nil {
		return nil, fmt.Errorf("%s and %s: %w", certFile, keyFile, err)
	}
	return pair, nil
}

func (d *Directory) issueAuthority() (*authority.Pair, error) {
	ca, err := newAuthority("jobset-apiserver-ca@", d.now(), DefaultPolicy.Authority)
	if err != nil {
		return nil, err
	}
	return ca, writePair(ca, d.CAFile(), d.caKeyFile())
}

func (d *Directory) issueServing(ca *authority.Pair) error {
	now := d.now()
	serving, err := newServing(ca, "jobset-apiserver@", d.names, now, now.Add(DefaultPolicy.Serving), x509.ExtKeyUsageServerAuth)
	if err != nil {
		return err
	}
	return writePair(serving, d.CertFile(), d.KeyFile())
}

// writePair replaces the files of a pair: the key first, so that a reader that finds a new certificate finds its key.
func writePair(pair *authority.Pair, certFile, keyFile string) error {
	cert, key, err := pair.PEM()
	if err != nil {
		return err
	}
	if err := replaceFile(keyFile, key, 0o600); err != nil {
		return err
	}
	return replaceFile(certFile, cert, 0o644)
}

// replaceFile never lets a reader see half a file.
func replaceFile(path string, content []byte, mode os.FileMode) error {
	file, err := os.CreateTemp(filepath.Dir(path), ".new-*")
	if err != nil {
		return fmt.Errorf("writing %s: %w", path, err)
	}
	defer os.Remove(file.Name())
	_, err = file.Write(content)
	if err == nil {
		err = file.Chmod(mode)
	}
	if closeErr := file.Close(); err == nil {
		err = closeErr
	}
	if err == nil {
		err = os.Rename(file.Name(), path)
	}
	if err != nil {
		return fmt.Errorf("writing %s: %w", path, err)
	}
	return nil
}
