// Copyright The jobset-apiserver Authors.
// SPDX-License-Identifier: Apache-2.0

package etcd

import (
	"context"
	"sync"
	"time"

	"go.etcd.io/etcd/api/v3/etcdserverpb"
	"go.etcd.io/etcd/client/pkg/v3/types"
	"go.etcd.io/etcd/server/v3/embed"
	"google.golang.org/grpc"
	"google.golang.org/grpc/codes"
	"google.golang.org/grpc/status"
)

const (
	// drainTimeout is how long a member that holds new writes waits for those under way before it answers.
	drainTimeout = 700 * time.Millisecond
	// heldFor is how long writes wait for the next leader. It is longer than the leader takes to ask all members and to pass its role on.
	heldFor = holdTimeout + moveTimeout
)

// writes are the requests that a member sends to the leader.
var writes = map[string]bool{
	etcdserverpb.KV_Put_FullMethodName:            true,
	etcdserverpb.KV_DeleteRange_FullMethodName:    true,
	etcdserverpb.KV_Txn_FullMethodName:            true,
	etcdserverpb.KV_Compact_FullMethodName:        true,
	etcdserverpb.Lease_LeaseGrant_FullMethodName:  true,
	etcdserverpb.Lease_LeaseRevoke_FullMethodName: true,
}

// leadership is what a gate needs from the member.
type leadership interface {
	Leader() types.ID
	// LeaderChangedNotify returns a channel that is closed when there is another leader, which Leader returns then.
	LeaderChangedNotify() <-chan struct{}
	CommittedIndex() uint64
}

// gate holds the writes of the clients of a member while the leader passes its role on. The leader takes no writes then: it drops those
// that followers send, and they would wait seven seconds for an answer that does not come, and not know whether the write took place.
type gate struct {
	mu sync.Mutex
	// member is nil until the member has started.
	member leadership
	// running is the number of writes under way, and idle is closed when there are none; it is nil if nothing waits for that.
	running int
	idle    chan struct{}
	// held is the leader that passes its role on; 0 if none does. New writes wait until there is another one, or until a time.
	held  types.ID
	until time.Time
	// passed is a former leader to which no write was sent after it had announced that it passes its role on; 0 if there is none.
	passed types.ID
}

// configure makes the gate a part of a member, before retryDropped, which tries only writes that the gate lets through.
func (g *gate) configure(cfg *embed.Config) {
	cfg.GRPCAdditionalServerOptions = append(cfg.GRPCAdditionalServerOptions, grpc.ChainUnaryInterceptor(g.intercept, retryDropped))
	cfg.ServiceRegister = g.register
}

// open is called when the member has started.
func (g *gate) open(member leadership) {
	g.mu.Lock()
	defer g.mu.Unlock()
	g.member = member
}

func (g *gate) opened() leadership {
	g.mu.Lock()
	defer g.mu.Unlock()
	return g.member
}

// intercept lets writes wait at the gate, and counts those that it lets through.
func (g *gate) intercept(ctx context.Context, request any, info *grpc.UnaryServerInfo, handle grpc.UnaryHandler) (any, error) {
	if !writes[info.FullMethod] {
		return handle(ctx, request)
	}
	if err := g.enter(ctx); err != nil {
		return nil, err
	}
	defer g.leave()
	return handle(ctx, request)
}

func (g *gate) enter(ctx context.Context) error {
	for {
		changed, left := g.try()
		if changed == nil {
			return nil
		}
		select {
		case <-changed:
		case <-time.After(left):
		case <-ctx.Done():
			return status.FromContextError(ctx.Err()).Err()
		}
	}
}

// try lets a write through, or returns what it has to wait for and for how long at most.
func (g *gate) try() (changed <-chan struct{}, left time.Duration) {
	g.mu.Lock()
	defer g.mu.Unlock()
	if g.held != 0 {
		changed = g.member.LeaderChangedNotify() // before the look at the leader, so that no change is missed
	}
	g.update()
	if left = time.Until(g.until); g.held != 0 && left > 0 {
		return changed, left
	}
	g.running++
	return nil, 0
}

func (g *gate) leave() {
	g.mu.Lock()
	defer g.mu.Unlock()
	if g.running--; g.running == 0 && g.idle != nil {
		close(g.idle)
		g.idle = nil
	}
}

// update notes whether the leader that passes its role on has done so. While there is no leader, no write is sent to one.
func (g *gate) update() {
	if g.held == 0 && g.passed == 0 {
		return
	}
	leader := g.member.Leader()
	if leader == g.passed {
		g.passed = 0 // it is the leader again, and may be lost
	}
	switch {
	case g.held == 0:
	case leader != 0 && leader != g.held:
		g.passed, g.held = g.held, 0
	case leader == g.held && !time.Now().Before(g.until):
		g.held = 0 // from now on, writes are sent to it
	}
}

// hold lets new writes wait because the leader passes its role on, and returns when those under way have ended, or have had their time. A
// member that does not know that leader yet waits until it does.
func (g *gate) hold(ctx context.Context, leader types.ID) error {
	member := g.opened()
	if member == nil {
		return status.Error(codes.Unavailable, "the member starts")
	}
	for {
		changed := member.LeaderChangedNotify()
		if member.Leader() == leader {
			break
		}
		select {
		case <-changed:
		case <-ctx.Done():
			return status.FromContextError(ctx.Err()).Err()
		}
	}
	select {
	case <-g.begin(leader):
	case <-time.After(drainTimeout):
	case <-ctx.Done():
	}
	return nil
}

// begin lets new writes wait, and returns a channel that is closed when those under way have ended.
func (g *gate) begin(leader types.ID) <-chan struct{} {
	g.mu.Lock()
	defer g.mu.Unlock()
	g.update()
	g.held, g.until = leader, time.Now().Add(heldFor)
	if g.running == 0 {
		ended := make(chan struct{})
		close(ended)
		return ended
	}
	if g.idle == nil {
		g.idle = make(chan struct{})
	}
	return g.idle
}

// hasPassed returns whether a former leader has passed its role on, so that nothing that was sent to it is lost. It returns true once.
func (g *gate) hasPassed(former types.ID) bool {
	g.mu.Lock()
	defer g.mu.Unlock()
	g.update()
	if g.passed != former {
		return false
	}
	g.passed = 0
	return true
}
