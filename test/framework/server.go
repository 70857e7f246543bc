// Copyright The jobset-apiserver Authors.
// SPDX-License-Identifier: Apache-2.0

package framework

import (
	"context"
	"errors"
	"fmt"
	"net/http"
	"os"
	"path/filepath"
	"strconv"
	"testing"

	"k8s.io/client-go/rest"
	"sigs.k8s.io/controller-runtime/pkg/envtest"
)

// Server is a running jobset-apiserver.
type Server struct {
	*Process
	// Port is where it serves.
	Port int
	// CertDir holds its self-signed certificate.
	CertDir string

	admin *envtest.AuthenticatedUser
}

// StartServer runs jobset-apiserver with the identity of its manifests and waits until it is ready. Without storage flags
// it gets an embedded etcd in the directory of the test.
func (p *ControlPlane) StartServer(t testing.TB, flags ...string) *Server {
	t.Helper()
	s := p.LaunchServer(t, flags...)
	s.AwaitReady(t)
	return s
}

// LaunchServer is StartServer without the waiting.
func (p *ControlPlane) LaunchServer(t testing.TB, flags ...string) *Server {
	t.Helper()
	admin, err := p.AddUser("test-admin", "system:masters")
	if err != nil {
		t.Fatal(err)
	}
	s := &Server{Port: FreePort(t), CertDir: t.TempDir(), admin: admin}
	all := append([]string{
		"--secure-port=" + strconv.Itoa(s.Port),
		"--bind-address=127.0.0.1",
		"--cert-dir=" + s.CertDir,
		"--kubeconfig=" + p.ServerKubeconfig(t),
		"--shutdown-delay-duration=0s",
		// The tests start many servers with stores of their own in one cluster. A test of the witness gives the flag again.
		"--store-witness=false",
		"--v=2",
	}, flags...)
	s.Process = Run(t, p.Binary, all...)
	return s
}

// ServerKubeconfig is a kubeconfig of the server's own identity.
func (p *ControlPlane) ServerKubeconfig(t testing.TB) string {
	t.Helper()
	kubeconfig, err := p.Kubeconfig(ServerUser, "system:serviceaccounts", "system:serviceaccounts:jobset-system", "system:authenticated")
	if err != nil {
		t.Fatal(err)
	}
	return kubeconfig
}

// Embedded returns flags for an embedded etcd in the directory.
func Embedded(dir string) []string {
	return []string{"--data-dir=" + dir, "--allow-ephemeral-data"}
}

// ShortDir returns a directory whose path leaves room for the names of sockets. It is in memory if there is enough: only tests of the disk
// should wait for one.
func ShortDir(t testing.TB) string {
	t.Helper()
	return shortDir(t, memoryDir)
}

// DiskDir is ShortDir on the disk of temporary files.
func DiskDir(t testing.TB) string {
	t.Helper()
	return shortDir(t, func() (string, error) { return os.MkdirTemp("", memoryPrefix) })
}

func shortDir(t testing.TB, make func() (string, error)) string {
	t.Helper()
	dir, err := make()
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() { _ = os.RemoveAll(dir) })
	return dir
}

// URL is the address of the server.
func (s *Server) URL() string { return fmt.Sprintf("https://localhost:%d", s.Port) }

// Config reaches the server directly, as an administrator of the main cluster.
func (s *Server) Config(t testing.TB) *rest.Config {
	t.Helper()
	return s.ConfigOf(t, s.admin)
}

// ConfigOf reaches the server directly, as a user of the main cluster.
func (s *Server) ConfigOf(t testing.TB, user *envtest.AuthenticatedUser) *rest.Config {
	t.Helper()
	config := s.Anonymous(t)
	config.CertData, config.KeyData = user.Config().CertData, user.Config().KeyData
	return config
}

// Anonymous reaches the server directly, without an identity.
func (s *Server) Anonymous(t testing.TB) *rest.Config {
	t.Helper()
	ca, err := os.ReadFile(filepath.Join(s.CertDir, "ca.crt"))
	if err != nil {
		t.Fatal(err)
	}
	return &rest.Config{Host: s.URL(), QPS: -1, TLSClientConfig: rest.TLSClientConfig{CAData: ca}}
}

// AwaitReady waits until /readyz answers with 200.
func (s *Server) AwaitReady(t testing.TB) {
	t.Helper()
	if err := s.Await(t.Context(), "is ready", func(context.Context) error {
		if code, body := s.TryGet(t, "/readyz?verbose"); code != http.StatusOK {
			return errors.New(body)
		}
		return nil
	}); err != nil {
		t.Fatal(err)
	}
}

// Get asks for a path without an identity and returns the status code, which is 0 when nothing answers, and the body.
func (s *Server) Get(t testing.TB, path string) (int, string) {
	t.Helper()
	return Get(t, s.Anonymous(t), path)
}

// TryGet is Get for a server that may not have made its certificate yet.
func (s *Server) TryGet(t testing.TB, path string) (int, string) {
	t.Helper()
	if _, err := os.Stat(filepath.Join(s.CertDir, "ca.crt")); err != nil {
		return 0, err.Error()
	}
	return s.Get(t, path)
}

// Stop ends the server as Kubernetes does and waits for its end.
func (s *Server) Stop(t testing.TB) {
	t.Helper()
	if err := s.Terminate(); err != nil {
		t.Fatal(err)
	}
}
