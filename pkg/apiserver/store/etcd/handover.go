// Copyright The jobset-apiserver Authors.
// SPDX-License-Identifier: Apache-2.0

package etcd

import (
	"context"
	"errors"
	"fmt"
	"sync"
	"time"

	"go.etcd.io/etcd/client/pkg/v3/types"
	"go.etcd.io/etcd/server/v3/etcdserver/api/membership"
	"google.golang.org/grpc"
	"google.golang.org/grpc/codes"
	"google.golang.org/grpc/credentials"
	"google.golang.org/grpc/status"
	"google.golang.org/protobuf/types/known/wrapperspb"
	"k8s.io/klog/v2"

	"github.com/jobset-apiserver/jobset-apiserver/pkg/apiserver/store/etcd/members"
)

const (
	// holdTimeout is how long the members have to hold their writes, and moveTimeout how long the next leader has to become it. Raft gives up
	// after an election timeout, which is a second.
	holdTimeout, moveTimeout = time.Second, 2 * time.Second

	// handoverService is a service of the members beside those of etcd. Its method takes the ID of a leader that passes its role on, and
	// returns how far the log of the member is committed. Its name must not change, because versions differ during an update.
	handoverService = "jobset.etcd.Handover"
	holdMethod      = "Hold"
)

// register adds the service to a server of the member.
func (g *gate) register(server *grpc.Server) {
	server.RegisterService(&grpc.ServiceDesc{
		ServiceName: handoverService,
		HandlerType: (*any)(nil),
		Methods:     []grpc.MethodDesc{{MethodName: holdMethod, Handler: serveHold}},
	}, g)
}

// serveHold answers a leader that passes its role on. The interceptors of etcd and of the gate are for the requests of clients.
func serveHold(g any, ctx context.Context, decode func(any) error, _ grpc.UnaryServerInterceptor) (any, error) {
	var leader wrapperspb.UInt64Value
	if err := decode(&leader); err != nil {
		return nil, err
	}
	held := g.(*gate)
	if err := held.hold(ctx, types.ID(leader.GetValue())); err != nil {
		return nil, err
	}
	return wrapperspb.UInt64(held.opened().CommittedIndex()), nil
}

// passOn makes another member the leader if this one is and another one has a vote. All members let new writes wait before, and until they
// know the new leader, so that none is lost.
func (s *Server) passOn(ctx context.Context) error {
	s.passing.Lock()
	defer s.passing.Unlock()
	running := s.etcd.Server
	own := running.MemberID()
	if running.Leader() != own {
		return nil
	}
	var voters []*membership.Member
	for _, member := range running.Cluster().Members() {
		if member.ID != own && !member.IsLearner {
			voters = append(voters, member)
		}
	}
	if len(voters) == 0 {
		return nil
	}
	next, err := s.holdWrites(ctx, voters)
	if err != nil {
		return err
	}
	ctx, cancel := context.WithTimeout(ctx, moveTimeout)
	defer cancel()
	return running.MoveLeader(ctx, uint64(own), uint64(next))
}

// passOnBeforeEnd passes the role of the leader on if this member of a cluster has it. etcd would do so as well, but would not let writes
// wait.
func (s *Server) passOnBeforeEnd() {
	running := s.etcd.Server
	select {
	case <-running.StoppingNotify():
		return
	default:
	}
	if s.config.Cluster == nil {
		return
	}
	if err := s.passOn(context.Background()); err != nil {
		klog.Background().Info("Cannot pass the role of the leader on before the embedded etcd ends", "err", err)
	}
}

// holdWrites makes this member and the others hold new writes, and returns the one whose log is committed furthest, of those that answer. A
// member of an earlier version answers that it does not know the service. Its writes go on, and may be lost.
func (s *Server) holdWrites(ctx context.Context, voters []*membership.Member) (next types.ID, err error) {
	ctx, cancel := context.WithTimeout(ctx, holdTimeout)
	defer cancel()
	var (
		asking sync.WaitGroup
		mu     sync.Mutex
		most   uint64
		failed []error
	)
	leader := s.etcd.Server.MemberID()
	asking.Go(func() { _ = s.gate.hold(ctx, leader) })
	for _, voter := range voters {
		asking.Go(func() {
			committed, err := s.config.Cluster.hold(ctx, voter, leader)
			mu.Lock()
			defer mu.Unlock()
			switch {
			case err != nil && status.Code(err) != codes.Unimplemented:
				failed = append(failed, err)
			case next == 0 || committed > most:
				next, most = voter.ID, committed
			}
		})
	}
	asking.Wait()
	if next == 0 {
		return 0, fmt.Errorf("no other member answers: %w", errors.Join(failed...))
	}
	return next, nil
}

// hold asks another member to hold new writes until the leader is another one, and returns how far its log is committed.
func (c *Cluster) hold(ctx context.Context, member *membership.Member, leader types.ID) (committed uint64, err error) {
	ordinal := c.ordinalOf(member.PeerURLs)
	if ordinal < 0 {
		return 0, fmt.Errorf("no server has the member %s", member.ID)
	}
	settings, err := members.TLS(c.Transport())
	if err != nil {
		return 0, err
	}
	settings.ServerName = c.Hosts[ordinal]
	secured := grpc.WithTransportCredentials(credentials.NewTLS(settings))
	conn, err := grpc.NewClient("passthrough:///"+c.Client(ordinal), secured, grpc.WithNoProxy())
	if err != nil {
		return 0, err
	}
	defer conn.Close()
	var answer wrapperspb.UInt64Value
	if err := conn.Invoke(ctx, "/"+handoverService+"/"+holdMethod, wrapperspb.UInt64(uint64(leader)), &answer); err != nil {
		return 0, fmt.Errorf("%s: %w", c.name(ordinal), err)
	}
	return answer.GetValue(), nil
}
