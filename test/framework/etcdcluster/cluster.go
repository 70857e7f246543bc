// Copyright The jobset-apiserver Authors.
// SPDX-License-Identifier: Apache-2.0

package etcdcluster

import (
	"context"
	"errors"
	"fmt"
	"os"
	"path/filepath"
	"strings"
	"time"

	clientv3 "go.etcd.io/etcd/client/v3"
	"go.uber.org/zap"
	"k8s.io/apimachinery/pkg/util/wait"

	"github.com/jobset-apiserver/jobset-apiserver/test/framework"
	"github.com/jobset-apiserver/jobset-apiserver/test/localcluster"
)

const (
	// answerTimeout is how long a member has to answer a question of the test, which is asked again.
	answerTimeout = 5 * time.Second
	pollInterval  = 100 * time.Millisecond
)

// Cluster is an etcd cluster without TLS.
type Cluster struct {
	Members []*Member

	network *network
}

// Start starts a cluster of that many members with their data and logs in the directory, and waits until it is healthy.
func Start(ctx context.Context, binary, dir string, size int) (_ *Cluster, err error) {
	// For each member: clients, peers, and the relay to its peers.
	ports, err := localcluster.FreePorts(3 * size)
	if err != nil {
		return nil, err
	}
	c := &Cluster{}
	var peers []string
	for i := range size {
		peers = append(peers, fmt.Sprintf("member-%d=%s", i, address(ports[3*i+2])))
	}
	for i := range size {
		c.Members = append(c.Members, newMember(i, binary, dir, ports[3*i:3*i+3], strings.Join(peers, ",")))
	}
	if err := os.MkdirAll(dir, 0o700); err != nil {
		return nil, err
	}
	if c.network, err = newNetwork(c.Members); err != nil {
		return nil, err
	}
	for _, m := range c.Members {
		err = errors.Join(err, m.Start())
	}
	if err = errors.Join(err, c.AwaitHealthy(ctx)); err != nil {
		c.Close()
		return nil, err
	}
	return c, nil
}

// At returns a cluster whose members run elsewhere, and are not started or stopped here. The addresses are for clients without TLS.
func At(endpoints ...string) *Cluster {
	c := &Cluster{}
	for i, endpoint := range endpoints {
		c.Members = append(c.Members, &Member{Name: fmt.Sprintf("member-%d", i), Endpoint: endpoint})
	}
	return c
}

func newMember(index int, binary, dir string, ports []string, peers string) *Member {
	name := fmt.Sprintf("member-%d", index)
	return &Member{
		Name: name, Endpoint: address(ports[0]),
		binary: binary, log: filepath.Join(dir, name+".log"), peer: "127.0.0.1:" + ports[1], relay: "127.0.0.1:" + ports[2],
		args: []string{
			"--name=" + name, "--data-dir=" + filepath.Join(dir, name),
			"--listen-client-urls=" + address(ports[0]), "--advertise-client-urls=" + address(ports[0]),
			"--listen-peer-urls=" + address(ports[1]), "--initial-advertise-peer-urls=" + address(ports[2]),
			"--initial-cluster=" + peers, "--initial-cluster-state=new",
		},
	}
}

func address(port string) string { return "http://127.0.0.1:" + port }

// Endpoints are the addresses of all members.
func (c *Cluster) Endpoints() []string {
	var endpoints []string
	for _, m := range c.Members {
		endpoints = append(endpoints, m.Endpoint)
	}
	return endpoints
}

// Flags make jobset-apiserver use the cluster.
func (c *Cluster) Flags() []string {
	return []string{"--etcd-servers=" + strings.Join(c.Endpoints(), ",")}
}

// Close ends all members. Their data and logs stay.
func (c *Cluster) Close() {
	for _, m := range c.Members {
		m.Kill()
	}
	c.network.close()
}

// Isolate cuts a member off from the others: what they send to each other is held back. Clients still reach it.
func (c *Cluster) Isolate(m *Member) { c.network.isolate(m, true) }

// Heal ends what Isolate began. What was held back arrives.
func (c *Cluster) Heal(m *Member) { c.network.isolate(m, false) }

// Leader returns the member that most of the others take for the leader.
func (c *Cluster) Leader(ctx context.Context) (*Member, error) {
	votes, ids := map[uint64]int{}, map[uint64]*Member{}
	var errs []error
	for _, m := range c.Members {
		status, err := m.status(ctx)
		if err != nil {
			errs = append(errs, err)
			continue
		}
		ids[status.Header.MemberId] = m
		votes[status.Leader]++
	}
	for id, count := range votes {
		if leader := ids[id]; leader != nil && count > len(c.Members)/2 {
			return leader, nil
		}
	}
	return nil, fmt.Errorf("no leader is known to most members: %w", errors.Join(errs...))
}

// Follower returns a member that is not the leader.
func (c *Cluster) Follower(ctx context.Context) (*Member, error) {
	leader, err := c.Leader(ctx)
	for _, m := range c.Members {
		if err == nil && m != leader {
			return m, nil
		}
	}
	return nil, err
}

// AwaitHealthy waits until all members know the same leader and each of them answers linearizable reads.
func (c *Cluster) AwaitHealthy(ctx context.Context) error {
	var last error
	err := wait.PollUntilContextTimeout(ctx, pollInterval, framework.StepTimeout(), true, func(ctx context.Context) (bool, error) {
		last = c.healthy(ctx)
		return last == nil, nil
	})
	if err != nil {
		return fmt.Errorf("waiting for a healthy etcd cluster: %w: %w", err, last)
	}
	return nil
}

func (c *Cluster) healthy(ctx context.Context) error {
	leaders := map[uint64]bool{}
	for _, m := range c.Members {
		status, err := m.status(ctx)
		if err != nil {
			return err
		}
		leaders[status.Leader] = true
		if err := m.read(ctx); err != nil {
			return err
		}
	}
	if len(leaders) != 1 || leaders[0] {
		return fmt.Errorf("the members know %d different leaders", len(leaders))
	}
	return nil
}

// client reaches this member only.
func (m *Member) client(ctx context.Context) (*clientv3.Client, error) {
	return clientv3.New(clientv3.Config{Endpoints: []string{m.Endpoint}, DialTimeout: answerTimeout, Context: ctx, Logger: zap.NewNop()})
}

func (m *Member) status(ctx context.Context) (*clientv3.StatusResponse, error) {
	ctx, cancel := context.WithTimeout(ctx, answerTimeout)
	defer cancel()
	client, err := m.client(ctx)
	if err != nil {
		return nil, err
	}
	defer client.Close()
	status, err := client.Status(ctx, m.Endpoint)
	if err != nil {
		return nil, fmt.Errorf("status of %s: %w", m.Name, err)
	}
	return status, nil
}

// read is a linearizable read.
func (m *Member) read(ctx context.Context) error {
	ctx, cancel := context.WithTimeout(ctx, answerTimeout)
	defer cancel()
	client, err := m.client(ctx)
	if err != nil {
		return err
	}
	defer client.Close()
	if _, err := client.Get(ctx, "/health"); err != nil {
		return fmt.Errorf("reading from %s: %w", m.Name, err)
	}
	return nil
}
