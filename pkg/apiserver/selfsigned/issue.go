// Copyright The jobset-apiserver Authors.
// SPDX-License-Identifier: Apache-2.0

package selfsigned

import (
	"crypto/x509"
	"fmt"
	"os"
	"path/filepath"
	"time"

	certutil "k8s.io/client-go/util/cert"

	"github.com/jobset-apiserver/jobset-apiserver/pkg/authority"
)

// backdate tolerates clocks that are a little behind ours.
const backdate = 5 * time.Minute

func (d *Directory) issueAuthority() (*authority.Pair, error) {
	ca, err := authority.New(d.config("jobset-apiserver-ca"), d.now().Add(authorityLifetime))
	if err != nil {
		return nil, err
	}
	return ca, writePair(ca, d.CAFile(), d.caKeyFile())
}

func (d *Directory) issueServing(ca *authority.Pair) error {
	config := d.config("jobset-apiserver")
	config.AltNames = authority.AltNames(d.names)
	config.Usages = []x509.ExtKeyUsage{x509.ExtKeyUsageServerAuth}
	serving, err := ca.Issue(config, d.now().Add(servingLifetime))
	if err != nil {
		return err
	}
	return writePair(serving, d.CertFile(), d.KeyFile())
}

// config names the certificate after the time too: authorities of different installations must not share a name, or
// clients that know both pick the wrong one.
func (d *Directory) config(name string) certutil.Config {
	now := d.now()
	return certutil.Config{CommonName: fmt.Sprintf("%s@%d", name, now.Unix()), NotBefore: now.Add(-backdate)}
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
