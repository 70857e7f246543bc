// Copyright The jobset-apiserver Authors.
// SPDX-License-Identifier: Apache-2.0

package etcd

import (
	"context"
	"crypto/tls"
	"crypto/x509"
	"errors"
	"fmt"
	"net"
	"os"
	"path/filepath"
	"strconv"
	"sync"
	"sync/atomic"
	"testing"
	"time"

	"github.com/google/go-cmp/cmp"
	clientv3 "go.etcd.io/etcd/client/v3"
	certutil "k8s.io/client-go/util/cert"

	"github.com/jobset-apiserver/jobset-apiserver/pkg/apiserver/store/etcd/members"
	"github.com/jobset-apiserver/jobset-apiserver/pkg/authority"
	"github.com/jobset-apiserver/jobset-apiserver/pkg/witness"
)

// networks counts the clusters of this process. Each has loopback addresses of its own, so that the ports are free.
var networks atomic.Int32

// cluster is what the servers of an installation share.
type cluster struct {
	*testing.T
	hosts        []string
	dir          string
	signer       *authority.Pair
	certificates string
	// record is what the witness knows.
	record atomic.Pointer[witness.Record]
	// told are the steps of all members.
	mu   sync.Mutex
	told []string
}

func newCluster(t *testing.T) *cluster {
	t.Helper()
	c := &cluster{T: t, dir: shortDir(t)}
	pid, network := os.Getpid(), networks.Add(1)
	for i := range 3 {
		c.hosts = append(c.hosts, fmt.Sprintf("127.%d.%d.%d", 1+pid>>8%250, pid%256, int(network)*3+i+1))
	}
	c.signer = newAuthority(t)
	c.certificates = filepath.Join(c.dir, "certificates")
	c.issue(c.certificates, c.signer, c.signer.Certificate)
	return c
}

func newAuthority(t *testing.T) *authority.Pair {
	t.Helper()
	signer, err := authority.New(certutil.Config{CommonName: "ca", NotBefore: time.Now().Add(-time.Minute)}, time.Now().Add(time.Hour))
	if err != nil {
		t.Fatal(err)
	}
	return signer
}

// issue writes a pair into a directory, and the authority that the others must have.
func (c *cluster) issue(dir string, signer *authority.Pair, trusted *x509.Certificate) {
	c.Helper()
	pair, err := signer.Issue(certutil.Config{
		CommonName: "member", AltNames: authority.AltNames(c.hosts), NotBefore: time.Now().Add(-time.Minute),
		Usages: []x509.ExtKeyUsage{x509.ExtKeyUsageServerAuth, x509.ExtKeyUsageClientAuth},
	}, time.Now().Add(time.Hour))
	if err != nil {
		c.Fatal(err)
	}
	cert, key, err := pair.PEM()
	if err != nil {
		c.Fatal(err)
	}
	ca, err := certutil.EncodeCertificates(trusted)
	if err == nil {
		err = os.MkdirAll(dir, 0o700)
	}
	for name, content := range map[string][]byte{"ca.crt": ca, "tls.key": key, "tls.crt": cert} {
		if err == nil {
			err = os.WriteFile(filepath.Join(dir, name), content, 0o600)
		}
	}
	if err != nil {
		c.Fatal(err)
	}
}

func (c *cluster) config(ordinal int) *Cluster {
	return &Cluster{Hosts: c.hosts, Ordinal: ordinal, Name: "m-", Address: c.hosts[ordinal], Certificates: c.certificates}
}

func (c *cluster) data(ordinal int) string { return filepath.Join(c.dir, fmt.Sprint(ordinal)) }

// open opens a member, which is closed at the end of the test.
func (c *cluster) open(ordinal int) *Server {
	c.Helper()
	s, err := Open(Config{DataDir: c.data(ordinal), QuotaBytes: 64 << 20, Ephemeral: true, Cluster: c.config(ordinal)})
	if err != nil {
		c.Fatal(err)
	}
	return s
}

// known reads the witness.
func (c *cluster) known(context.Context) (*witness.Record, error) { return c.record.Load(), nil }

// begin starts a member, and returns what it waits for and how its start ends.
func (c *cluster) begin(ctx context.Context, s *Server) (waits <-chan string, ended <-chan error) {
	reports, end := make(chan string, 1), make(chan error, 1)
	go func() {
		end <- s.StartMember(ctx, Installation{
			Read: c.known,
			Wait: func(err error) {
				select {
				case reports <- err.Error():
				default:
				}
			},
			Tell: func(step Step, note string) {
				c.mu.Lock()
				defer c.mu.Unlock()
				c.told = append(c.told, string(step)+": "+note)
			},
		})
	}()
	return reports, end
}

// run runs a member until the end of the test, unless it is closed before.
func (c *cluster) run(ordinal int) *Server {
	c.Helper()
	s := c.open(ordinal)
	_, ended := c.begin(c.Context(), s)
	if err := <-ended; err != nil {
		s.Close()
		c.Fatalf("member %d: %v", ordinal, err)
	}
	return s
}

// found runs the first member and lets the witness know its cluster.
func (c *cluster) found() *Server {
	c.Helper()
	s := c.run(0)
	c.adopt(s)
	return s
}

func (c *cluster) adopt(s *Server) {
	c.record.Store(&witness.Record{UUID: "store", Cluster: witness.NewCluster(s.ClusterID())})
}

// form runs three members of one cluster.
func (c *cluster) form() []*Server {
	c.Helper()
	return []*Server{c.found(), c.run(1), c.run(2)}
}

// client reaches some members as their servers do.
func (c *cluster) client(ordinals ...int) *clientv3.Client {
	c.Helper()
	transport := c.config(0).Transport()
	var endpoints []string
	for _, ordinal := range ordinals {
		endpoints = append(endpoints, transport.ServerList[ordinal])
	}
	settings, err := members.TLS(transport)
	if err != nil {
		c.Fatal(err)
	}
	client, err := clientv3.New(clientv3.Config{Endpoints: endpoints, TLS: settings, DialTimeout: 10 * time.Second})
	if err != nil {
		c.Fatal(err)
	}
	c.Cleanup(func() { _ = client.Close() })
	return client
}

// connect connects to a port of the first member without a certificate, and returns how the member ends the connection.
func (c *cluster) connect(port int) error {
	c.Helper()
	dialer := &net.Dialer{Timeout: 10 * time.Second}
	//nolint:gosec // it is the member that has to verify
	conn, err := tls.DialWithDialer(dialer, "tcp", net.JoinHostPort(c.hosts[0], strconv.Itoa(port)), &tls.Config{InsecureSkipVerify: true, NextProtos: []string{"h2"}})
	if err != nil {
		return err
	}
	defer conn.Close()
	if err := conn.SetReadDeadline(time.Now().Add(10 * time.Second)); err != nil {
		return err
	}
	_, err = conn.Read(make([]byte, 1))
	return err
}

func (c *cluster) put(client *clientv3.Client, value string) {
	c.Helper()
	ctx, cancel := context.WithTimeout(c.Context(), time.Minute)
	defer cancel()
	for { // a leader that is gone has to be replaced first
		_, err := client.Put(ctx, "key", value)
		if err == nil {
			return
		}
		if ctx.Err() != nil {
			c.Fatal(err)
		}
	}
}

func (c *cluster) wantValue(client *clientv3.Client, want string) {
	c.Helper()
	response, err := client.Get(c.Context(), "key")
	if err != nil || len(response.Kvs) != 1 || string(response.Kvs[0].Value) != want {
		c.Errorf("read %v, %v, want %s", response, err, want)
	}
}

// lose deletes the data of a member that has ended.
func (c *cluster) lose(ordinal int) {
	c.Helper()
	if err := os.RemoveAll(c.data(ordinal)); err != nil {
		c.Fatal(err)
	}
}

// join lets a member that has not started join the cluster.
func (c *cluster) join(s *Server) error {
	_, err := s.join(c.Context(), c.record.Load().Cluster.ID, Installation{Tell: func(Step, string) {}})
	return err
}

// wantMembers checks that the cluster has these members only, that each has a vote, and that only the leader reports them.
func (c *cluster) wantMembers(all ...*Server) {
	c.Helper()
	var want []witness.Member
	for ordinal, s := range all {
		want = append(want, witness.Member{Name: "m-" + strconv.Itoa(ordinal), ID: s.etcd.Server.MemberID().String()})
	}
	reports, backups := 0, 0
	for _, s := range all {
		if s.BacksUp(func(string) bool { return true }) {
			backups++
		}
		got := s.Members()
		if got == nil {
			if !s.BacksUp(func(string) bool { return false }) {
				c.Error("a follower does not back up although no other one answers")
			}
			continue
		}
		reports++
		if diff := cmp.Diff(want, got); diff != "" {
			c.Errorf("members (-want +got):\n%s", diff)
		}
	}
	if reports != 1 || backups != 1 {
		c.Errorf("%d members report the cluster, and %d back it up", reports, backups)
	}
}

// refused returns what a member waits for that must not start.
func (c *cluster) refused(ordinal int) string {
	c.Helper()
	s := c.open(ordinal)
	defer s.Close()
	ctx, cancel := context.WithCancel(c.Context())
	waits, ended := c.begin(ctx, s)
	var reason string
	select {
	case reason = <-waits:
	case err := <-ended:
		cancel()
		c.Fatalf("the start has ended with %v, must wait", err)
	}
	cancel()
	if err := <-ended; !errors.Is(err, context.Canceled) {
		c.Errorf("the start has ended with %v", err)
	}
	if s.etcd != nil {
		c.Error("the member has started")
	}
	return reason
}
