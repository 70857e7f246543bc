// Copyright The jobset-apiserver Authors.
// SPDX-License-Identifier: Apache-2.0

package options

import (
	"crypto/tls"
	"fmt"
	"os"
	"path/filepath"
	"sync"
	"time"

	certutil "k8s.io/client-go/util/cert"
)

// reloadAfter is the age at which a certificate read from files is looked at again.
const reloadAfter = 10 * time.Second

// certificates is the serving certificate of the metrics endpoint: from files, read again as they change, or made up.
type certificates struct {
	dir string

	mu      sync.Mutex
	current *tls.Certificate
	read    time.Time
}

func newCertificates(dir string) (*certificates, error) {
	c := &certificates{dir: dir}
	if dir != "" {
		return c, c.load()
	}
	host, err := os.Hostname()
	if err != nil {
		return nil, fmt.Errorf("naming the self-signed certificate: %w", err)
	}
	cert, key, err := certutil.GenerateSelfSignedCertKey(host, nil, []string{"localhost"})
	if err != nil {
		return nil, fmt.Errorf("making a self-signed certificate: %w", err)
	}
	pair, err := tls.X509KeyPair(cert, key)
	if err != nil {
		return nil, fmt.Errorf("making a self-signed certificate: %w", err)
	}
	c.current = &pair
	return c, nil
}

func (c *certificates) load() error {
	pair, err := tls.LoadX509KeyPair(filepath.Join(c.dir, "tls.crt"), filepath.Join(c.dir, "tls.key"))
	if err != nil {
		return err
	}
	c.current, c.read = &pair, time.Now()
	return nil
}

// get returns the certificate for a connection. Files that are being exchanged can be unreadable for a moment; the last
// good pair serves until they are.
func (c *certificates) get(*tls.ClientHelloInfo) (*tls.Certificate, error) {
	c.mu.Lock()
	defer c.mu.Unlock()
	if c.dir != "" && time.Since(c.read) > reloadAfter {
		_ = c.load()
	}
	return c.current, nil
}
