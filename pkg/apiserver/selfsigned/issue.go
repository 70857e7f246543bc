// Copyright The jobset-apiserver Authors.
// SPDX-License-Identifier: Apache-2.0

package selfsigned

import (
	"crypto"
	"crypto/ecdsa"
	"crypto/elliptic"
	"crypto/rand"
	"crypto/x509"
	"crypto/x509/pkix"
	"encoding/pem"
	"fmt"
	"math/big"
	"os"
	"path/filepath"
	"time"

	certutil "k8s.io/client-go/util/cert"
	"k8s.io/client-go/util/keyutil"
)

// backdate tolerates clocks that are a little behind ours.
const backdate = 5 * time.Minute

func (d *Directory) issueAuthority() (*x509.Certificate, crypto.Signer, error) {
	template, err := d.template("jobset-apiserver-ca", authorityLifetime)
	if err != nil {
		return nil, nil, err
	}
	template.IsCA = true
	template.BasicConstraintsValid = true
	template.KeyUsage = x509.KeyUsageCertSign | x509.KeyUsageDigitalSignature
	return d.issue(template, nil, nil, d.CAFile(), d.caKeyFile())
}

func (d *Directory) issueServing(ca *x509.Certificate, caKey crypto.Signer) error {
	template, err := d.template("jobset-apiserver", servingLifetime)
	if err != nil {
		return err
	}
	template.DNSNames, template.IPAddresses = splitNames(d.names)
	template.KeyUsage = x509.KeyUsageDigitalSignature
	template.ExtKeyUsage = []x509.ExtKeyUsage{x509.ExtKeyUsageServerAuth}
	_, _, err = d.issue(template, ca, caKey, d.CertFile(), d.KeyFile())
	return err
}

func (d *Directory) template(name string, lifetime time.Duration) (*x509.Certificate, error) {
	serial, err := rand.Int(rand.Reader, new(big.Int).Lsh(big.NewInt(1), 120))
	if err != nil {
		return nil, fmt.Errorf("drawing a serial number: %w", err)
	}
	now := d.now()
	return &x509.Certificate{
		SerialNumber: serial,
		// Authorities of different installations must not share a name, or clients that know both pick the wrong one.
		Subject:   pkix.Name{CommonName: fmt.Sprintf("%s@%d", name, now.Unix())},
		NotBefore: now.Add(-backdate),
		NotAfter:  now.Add(lifetime),
	}, nil
}

// issue signs the template, by itself when no authority is given, and writes the pair: the key first, so that a reader
// that is told of a new certificate finds its key.
func (d *Directory) issue(template, ca *x509.Certificate, caKey crypto.Signer, certFile, keyFile string) (*x509.Certificate, crypto.Signer, error) {
	key, err := ecdsa.GenerateKey(elliptic.P256(), rand.Reader)
	if err != nil {
		return nil, nil, fmt.Errorf("generating a key: %w", err)
	}
	if ca == nil {
		ca, caKey = template, key
	}
	der, err := x509.CreateCertificate(rand.Reader, template, ca, key.Public(), caKey)
	if err != nil {
		return nil, nil, fmt.Errorf("signing %s: %w", certFile, err)
	}
	cert, err := x509.ParseCertificate(der)
	if err != nil {
		return nil, nil, fmt.Errorf("reading back %s: %w", certFile, err)
	}
	keyPEM, err := keyutil.MarshalPrivateKeyToPEM(key)
	if err != nil {
		return nil, nil, fmt.Errorf("encoding %s: %w", keyFile, err)
	}
	if err := replaceFile(keyFile, keyPEM, 0o600); err != nil {
		return nil, nil, err
	}
	certPEM := pem.EncodeToMemory(&pem.Block{Type: certutil.CertificateBlockType, Bytes: der})
	return cert, key, replaceFile(certFile, certPEM, 0o644)
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
