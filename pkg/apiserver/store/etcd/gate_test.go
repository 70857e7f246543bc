// Copyright The jobset-apiserver Authors.
// SPDX-License-Identifier: Apache-2.0

package etcd

import (
	"context"
	"sync"
	"testing"
	"testing/synctest"
	"time"

	"go.etcd.io/etcd/api/v3/etcdserverpb"
	"go.etcd.io/etcd/client/pkg/v3/types"
	"google.golang.org/grpc"
	"google.golang.org/grpc/codes"
	"google.golang.org/grpc/status"
)

// election is a member that knows who the leader is.
type election struct {
	mu      sync.Mutex
	leader  types.ID
	changed chan struct{}
}

func (e *election) Leader() types.ID {
	e.mu.Lock()
	defer e.mu.Unlock()
	return e.leader
}

func (e *election) LeaderChangedNotify() <-chan struct{} {
	e.mu.Lock()
	defer e.mu.Unlock()
	return e.changed
}

func (e *election) CommittedIndex() uint64 { return 0 }

// elect makes a member the leader; 0 means that there is none, which the library does not notify.
func (e *election) elect(leader types.ID) {
	e.mu.Lock()
	defer e.mu.Unlock()
	if e.leader = leader; leader != 0 {
		close(e.changed)
		e.changed = make(chan struct{})
	}
}

// gated is a gate of a member that has a leader.
type gated struct {
	*testing.T
	gate
	election
}

const first, second, third types.ID = 1, 2, 3

// inGate runs a test in a bubble.
func inGate(t *testing.T, test func(g *gated)) {
	t.Helper()
	synctest.Test(t, func(t *testing.T) {
		g := &gated{T: t, election: election{leader: first, changed: make(chan struct{})}}
		g.open(&g.election)
		test(g)
	})
}

// send sends a request that takes some time. The channel has how long it took altogether, or -1 if it failed.
func (g *gated) send(ctx context.Context, method string, takes time.Duration) <-chan time.Duration {
	ended, begin := make(chan time.Duration, 1), time.Now()
	go func() {
		_, err := g.intercept(ctx, nil, &grpc.UnaryServerInfo{FullMethod: method}, func(context.Context, any) (any, error) {
			time.Sleep(takes)
			return nil, nil
		})
		if err != nil {
			ended <- -1
			return
		}
		ended <- time.Since(begin)
	}()
	synctest.Wait()
	return ended
}

func (g *gated) put() <-chan time.Duration {
	return g.send(g.Context(), etcdserverpb.KV_Put_FullMethodName, 0)
}

func (g *gated) mustHold(leader types.ID) {
	g.Helper()
	if err := g.hold(g.Context(), leader); err != nil {
		g.Fatal(err)
	}
}

func (g *gated) want(what string, ended <-chan time.Duration, want time.Duration) {
	g.Helper()
	if got := <-ended; got != want {
		g.Errorf("%s took %s, want %s", what, got, want)
	}
}

func (g *gated) wantPassed(leader types.ID, want bool) {
	g.Helper()
	if got := g.hasPassed(leader); got != want {
		g.Errorf("leader %d has passed its role on: %t, want %t", leader, got, want)
	}
}

// TestGateHoldsWrites: writes wait for the next leader, and reads do not.
func TestGateHoldsWrites(t *testing.T) {
	t.Parallel()
	inGate(t, func(g *gated) {
		g.want("a write before", g.put(), 0)
		g.mustHold(first)
		held := make([]<-chan time.Duration, 0, len(writes))
		for method := range writes {
			held = append(held, g.send(g.Context(), method, 0))
		}
		g.want("a read", g.send(g.Context(), etcdserverpb.KV_Range_FullMethodName, 0), 0)
		limited, cancel := context.WithTimeout(g.Context(), 100*time.Millisecond)
		defer cancel()
		g.want("a write of a client that does not wait", g.send(limited, etcdserverpb.KV_Put_FullMethodName, 0), -1)
		g.elect(0)
		time.Sleep(100 * time.Millisecond)
		g.elect(second)
		for _, write := range held {
			g.want("a write", write, 200*time.Millisecond)
		}
		g.want("a write after", g.put(), 0)
		g.wantPassed(second, false)
		g.wantPassed(first, true)
		g.wantPassed(first, false)
	})
}

// TestGateOpensWithoutMove: a leader that does not pass its role on, although it said so, may be lost later.
func TestGateOpensWithoutMove(t *testing.T) {
	t.Parallel()
	inGate(t, func(g *gated) {
		g.mustHold(first)
		g.want("a write", g.put(), heldFor)
		g.want("a write after", g.put(), 0)
		g.elect(second)
		g.wantPassed(first, false)
		// One that holds writes again does so for the whole time.
		g.mustHold(second)
		write := g.put()
		time.Sleep(time.Second)
		g.mustHold(second)
		g.want("a write", write, time.Second+heldFor)
	})
}

// TestGateWithoutLeader: writes wait no longer than that if there is no leader. They are not sent to the former one.
func TestGateWithoutLeader(t *testing.T) {
	t.Parallel()
	inGate(t, func(g *gated) {
		g.mustHold(first)
		g.elect(0)
		g.want("a write", g.put(), heldFor)
		g.elect(second)
		g.wantPassed(first, true)
	})
}

// TestGateForgets: a leader that has passed its role on and has it again may be lost.
func TestGateForgets(t *testing.T) {
	t.Parallel()
	inGate(t, func(g *gated) {
		g.mustHold(first)
		g.elect(second)
		g.want("a write", g.put(), 0)
		g.elect(first)
		g.want("a write", g.put(), 0)
		g.elect(second)
		g.wantPassed(first, false)
		// The next leader may pass its role on at once, to a third member.
		g.mustHold(second)
		g.elect(first)
		g.mustHold(first)
		g.elect(third)
		g.want("a write", g.put(), 0)
		g.wantPassed(first, true)
	})
}

// TestGateDrains: the leader waits until writes under way have ended, but not for long.
func TestGateDrains(t *testing.T) {
	t.Parallel()
	for takes, want := range map[time.Duration]time.Duration{0: 0, 300 * time.Millisecond: 300 * time.Millisecond, time.Minute: drainTimeout} {
		inGate(t, func(g *gated) {
			long := g.send(g.Context(), etcdserverpb.KV_Txn_FullMethodName, takes)
			short := g.send(g.Context(), etcdserverpb.KV_Txn_FullMethodName, takes/2)
			begin := time.Now()
			g.mustHold(first)
			if got := time.Since(begin); got != want {
				g.Errorf("with writes of %s, it waits for %s, want %s", takes, got, want)
			}
			g.want("the short write", short, takes/2)
			g.want("the long write", long, takes)
		})
	}
}

// TestGateKnowsLeader: writes do not wait for a leader that the member does not know, or before it has started.
func TestGateKnowsLeader(t *testing.T) {
	t.Parallel()
	inGate(t, func(g *gated) {
		if err := new(gate).hold(g.Context(), first); status.Code(err) != codes.Unavailable {
			g.Errorf("a member that starts answers %v", err)
		}
		ctx, cancel := context.WithTimeout(g.Context(), holdTimeout)
		defer cancel()
		if err := g.hold(ctx, second); status.Code(err) != codes.DeadlineExceeded {
			g.Errorf("a former leader gets %v", err)
		}
		g.want("a write", g.put(), 0)
		go func() {
			time.Sleep(100 * time.Millisecond)
			g.elect(second)
		}()
		g.mustHold(second)
		g.want("a write", g.put(), heldFor)
	})
}
