// Copyright The jobset-apiserver Authors.
// SPDX-License-Identifier: Apache-2.0

package etcd

import (
	"context"
	"errors"
	"net"
	"slices"
	"testing"

	"go.etcd.io/etcd/api/v3/v3rpc/rpctypes"
	clientv3 "go.etcd.io/etcd/client/v3"
	"google.golang.org/grpc"

	"github.com/jobset-apiserver/jobset-apiserver/pkg/apiserver/store/etcd/members"
	"github.com/jobset-apiserver/jobset-apiserver/test/framework/tier"
)

// TestRequestsToALostLeaderEnd writes through a follower at the moment in which the leader is gone.
func TestRequestsToALostLeaderEnd(t *testing.T) {
	tier.OnRequest(t, "three members form a cluster, which takes etcd eight seconds")
	t.Parallel()
	c := newCluster(t)
	all := c.form()
	defer func() {
		for _, s := range all {
			s.Close()
		}
	}()
	at := slices.IndexFunc(all, func(s *Server) bool { return s.Members() != nil })
	leader, follower := all[at], all[(at+1)%3]
	reached, err := members.New(t.Context(), c.config(0).Transport(), "test")
	if err != nil {
		t.Fatal(err)
	}
	address := follower.config.Cluster.Client(follower.config.Cluster.Ordinal)
	settings, err := members.TLS(c.config(0).Transport())
	if err != nil {
		t.Fatal(err)
	}
	client, err := clientv3.New(clientv3.Config{Endpoints: []string{"https://" + address}, TLS: settings, DialOptions: []grpc.DialOption{
		grpc.WithContextDialer(dialing(reached)),
	}})
	if err != nil {
		t.Fatal(err)
	}
	defer client.Close()
	c.put(client, "before")
	lost := make(chan struct{}, 1)
	go follower.WatchLeader(t.Context(), func() {
		reached.Reconnect(address)
		lost <- struct{}{}
	})
	leader.etcd.Server.HardStop()
	leader.Close()
	all = slices.Delete(all, at, at+1)
	if _, err := client.Put(t.Context(), "key", "meanwhile"); errors.Is(err, rpctypes.ErrTimeout) || errors.Is(err, rpctypes.ErrTimeoutDueToLeaderFail) {
		t.Errorf("a request has waited for a leader that is gone: %v", err)
	}
	<-lost
	c.put(client, "after")
	c.wantValue(client, "after")

	// The role of a leader that ends is passed on, and no request has to end.
	ctx, cancel := context.WithCancel(t.Context())
	defer cancel()
	other := slices.IndexFunc(all, func(s *Server) bool { return s.Members() != nil })
	passed := all[1-other].etcd.Server.LeaderChangedNotify()
	go all[1-other].WatchLeader(ctx, func() { t.Error("requests end although the leader has passed its role on") })
	if err := all[other].etcd.Server.MoveLeader(t.Context(), uint64(all[other].etcd.Server.MemberID()), uint64(all[1-other].etcd.Server.MemberID())); err != nil {
		t.Fatal(err)
	}
	<-passed
}

func dialing(all *members.Members) func(context.Context, string) (net.Conn, error) {
	return func(ctx context.Context, address string) (net.Conn, error) { return all.Dial(ctx, "tcp", address) }
}
