// Copyright The jobset-apiserver Authors.
// SPDX-License-Identifier: Apache-2.0

package framework

import (
	"context"
	"fmt"
	"net"
	"path/filepath"
	"strings"
	"testing"

	"go.etcd.io/etcd/client/pkg/v3/transport"
	clientv3 "go.etcd.io/etcd/client/v3"
)

// Etcd is an external etcd that wants client certificates.
type Etcd struct {
	*Process
	// Endpoint is its address.
	Endpoint string
	// UnnamedEndpoint is another address of it, which its certificate does not name.
	UnnamedEndpoint string
	// Flags make jobset-apiserver use it.
	Flags []string
	// CAFile, CertFile and KeyFile are credentials of a client.
	CAFile, CertFile, KeyFile string
	// Dir holds all certificates: those of the server are server.crt and server.key.
	Dir string

	binary string
	args   []string
}

// StartEtcd runs an etcd with TLS, and with further flags. It stores its data in memory if there is enough.
func (p *ControlPlane) StartEtcd(t testing.TB, flags ...string) *Etcd {
	t.Helper()
	authority, err := NewAuthority("etcd")
	if err != nil {
		t.Fatal(err)
	}
	dir := t.TempDir()
	ca, serverCert, serverKey, err := authority.WriteServer(dir)
	if err != nil {
		t.Fatal(err)
	}
	_, clientCert, clientKey, err := authority.WriteClient(dir, "jobset-apiserver")
	if err != nil {
		t.Fatal(err)
	}
	port, peer := FreePort(t), fmt.Sprintf("http://127.0.0.1:%d", FreePort(t))
	e := &Etcd{
		Endpoint: fmt.Sprintf("https://127.0.0.1:%d", port), UnnamedEndpoint: fmt.Sprintf("https://127.0.0.2:%d", port),
		CAFile: ca, CertFile: clientCert, KeyFile: clientKey, Dir: dir, binary: p.EtcdBinary(),
	}
	e.Flags = []string{"--etcd-servers=" + e.Endpoint, "--etcd-cafile=" + ca, "--etcd-certfile=" + clientCert, "--etcd-keyfile=" + clientKey}
	e.args = []string{
		"--data-dir=" + filepath.Join(ShortDir(t), "data"), "--unsafe-no-fsync",
		"--listen-client-urls=" + e.Endpoint + "," + e.UnnamedEndpoint, "--advertise-client-urls=" + e.Endpoint,
		"--listen-peer-urls=" + peer, "--initial-advertise-peer-urls=" + peer, "--initial-cluster=default=" + peer,
		"--cert-file=" + serverCert, "--key-file=" + serverKey, "--trusted-ca-file=" + ca, "--client-cert-auth",
	}
	e.args = append(e.args, flags...)
	e.Launch(t)
	return e
}

// Launch starts the etcd again after its process has ended, and waits until it listens.
func (e *Etcd) Launch(t testing.TB) {
	t.Helper()
	e.Process = Run(t, e.binary, e.args...)
	Eventually(t, "etcd listens", func(context.Context) error {
		conn, err := net.Dial("tcp", strings.TrimPrefix(e.Endpoint, "https://"))
		if err == nil {
			conn.Close()
		}
		return err
	})
}

// Client reaches the etcd as jobset-apiserver does.
func (e *Etcd) Client(t testing.TB) *clientv3.Client {
	t.Helper()
	info := transport.TLSInfo{CertFile: e.CertFile, KeyFile: e.KeyFile, TrustedCAFile: e.CAFile}
	tlsConfig, err := info.ClientConfig()
	if err != nil {
		t.Fatal(err)
	}
	client, err := clientv3.New(clientv3.Config{Endpoints: []string{e.Endpoint}, TLS: tlsConfig})
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() { client.Close() })
	return client
}
