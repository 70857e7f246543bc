// Copyright The jobset-apiserver Authors.
// SPDX-License-Identifier: Apache-2.0

package servingcert

import (
	"bytes"
	"errors"
	"fmt"
	"maps"
	"net/http"
	"os"
	"path/filepath"
	"time"

	corev1 "k8s.io/api/core/v1"
	"k8s.io/apiserver/pkg/server/dynamiccertificates"
)

// CheckName is the name of the check of /readyz.
const CheckName = "serving-certificate"

// Name implements dynamiccertificates.CertKeyContentProvider and healthz.HealthChecker.
func (m *Manager) Name() string { return CheckName }

// CurrentCertKeyContent implements dynamiccertificates.CertKeyContentProvider.
func (m *Manager) CurrentCertKeyContent() (cert, key []byte) {
	m.mu.Lock()
	defer m.mu.Unlock()
	return m.cert, m.key
}

// AddListener implements dynamiccertificates.Notifier.
func (m *Manager) AddListener(listener dynamiccertificates.Listener) {
	m.mu.Lock()
	defer m.mu.Unlock()
	m.listeners = append(m.listeners, listener)
}

// serve makes the server use the content for new connections.
func (m *Manager) serve(c *content) error {
	data, err := c.data()
	if err != nil {
		return err
	}
	if m.Dir != "" && !maps.EqualFunc(m.good, data, bytes.Equal) {
		if err := writeFiles(m.Dir, data); err != nil {
			return err
		}
	}
	m.good = data
	m.mu.Lock()
	defer m.mu.Unlock()
	if m.Dir == "" {
		m.authorityEnds(c)
	}
	cert, key := data[corev1.TLSCertKey], data[corev1.TLSPrivateKeyKey]
	if bytes.Equal(m.cert, cert) && bytes.Equal(m.key, key) {
		return nil
	}
	m.cert, m.key, m.notAfter = cert, key, c.serving.Certificate.NotAfter
	for _, listener := range m.listeners {
		listener.Enqueue()
	}
	return nil
}

// writeFiles replaces the files of a directory: the authorities before the key, and the certificate last.
func writeFiles(dir string, data map[string][]byte) error {
	if err := os.MkdirAll(dir, 0o700); err != nil {
		return fmt.Errorf("creating directory for certificates: %w", err)
	}
	for _, name := range []string{authoritiesKey, corev1.TLSPrivateKeyKey, corev1.TLSCertKey} {
		if err := replaceFile(filepath.Join(dir, name), data[name], 0o600); err != nil {
			return err
		}
	}
	return nil
}

// Check implements healthz.HealthChecker. The server becomes ready when kube-apiserver trusts its certificate, so that
// no request comes to a new server before, and stays ready until the certificate has ended, whatever becomes of the
// main cluster.
func (m *Manager) Check(*http.Request) error {
	m.mu.Lock()
	defer m.mu.Unlock()
	var state string
	switch {
	case !m.Clock.Now().Before(m.notAfter):
		state = "the serving certificate ended at " + m.notAfter.UTC().Format(time.RFC3339)
	case !m.trusted:
		state = "the caBundles do not have the authority of the serving certificate yet"
	default:
		return nil
	}
	if m.failure != nil {
		return fmt.Errorf("%s: %w", state, m.failure)
	}
	return errors.New(state)
}
