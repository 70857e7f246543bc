// Copyright The jobset-apiserver Authors.
// SPDX-License-Identifier: Apache-2.0

package etcd

import (
	"context"
	"fmt"
	"slices"
	"sync"
	"testing"
	"time"

	"go.etcd.io/etcd/server/v3/embed"
	"google.golang.org/grpc/codes"
	"google.golang.org/grpc/status"

	"github.com/jobset-apiserver/jobset-apiserver/test/framework/tier"
)

// load writes to members until it is ended.
type load struct {
	end     func()
	writing sync.WaitGroup

	mu       sync.Mutex
	writes   int
	slowest  time.Duration
	failures map[string]int
}

// writers are how many clients write to each member.
const writers = 8

func (c *cluster) load(ordinals ...int) *load {
	c.Helper()
	ctx, cancel := context.WithCancel(c.Context())
	l := &load{end: cancel, failures: map[string]int{}}
	for _, ordinal := range ordinals {
		client := c.client(ordinal)
		for writer := range writers {
			l.writing.Go(func() {
				for n := 0; ctx.Err() == nil; n++ {
					begin := time.Now()
					_, err := client.Put(c.Context(), fmt.Sprintf("%d/%d", ordinal, writer), fmt.Sprint(n))
					l.count(time.Since(begin), err)
					time.Sleep(10 * time.Millisecond)
				}
			})
		}
	}
	return l
}

func (l *load) count(took time.Duration, err error) {
	l.mu.Lock()
	defer l.mu.Unlock()
	l.writes++
	l.slowest = max(l.slowest, took)
	if err != nil {
		l.failures[err.Error()]++
	}
}

// wantNoFailures ends the load.
func (l *load) wantNoFailures(t *testing.T) {
	t.Helper()
	l.end()
	l.writing.Wait()
	t.Logf("%d writes, the slowest took %s", l.writes, l.slowest)
	if len(l.failures) > 0 {
		t.Errorf("writes have failed: %v", l.failures)
	}
}

// leader returns the index of the member that is the leader, or -1 during an election.
func leader(all []*Server) int {
	return slices.IndexFunc(all, func(s *Server) bool { return s.Members() != nil })
}

// TestNoWriteIsLostWhenTheLeaderPassesItsRoleOn writes to all members meanwhile.
func TestNoWriteIsLostWhenTheLeaderPassesItsRoleOn(t *testing.T) {
	tier.OnRequest(t, "three members form a cluster, which takes etcd eight seconds")
	t.Parallel()
	const moves = 20
	c := newCluster(t)
	all := c.form()
	defer func() {
		for _, member := range all {
			member.Close()
		}
	}()
	load := c.load(0, 1, 2)
	for moved := 0; moved < moves; time.Sleep(300 * time.Millisecond) {
		at := leader(all)
		if at < 0 {
			continue
		}
		if err := all[at].passOn(t.Context()); err != nil {
			t.Error(err)
		}
		moved++
	}
	load.wantNoFailures(t)
}

// TestNoWriteIsLostWhenTheLeaderEnds writes to the other members meanwhile, and ends each member once.
func TestNoWriteIsLostWhenTheLeaderEnds(t *testing.T) {
	tier.OnRequest(t, "three members form a cluster, which takes etcd eight seconds")
	t.Parallel()
	c := newCluster(t)
	all := c.form()
	defer func() {
		for _, member := range all {
			member.Close()
		}
	}()
	for range 3 {
		at := leader(all)
		for ; at < 0; at = leader(all) {
			time.Sleep(joinPause)
		}
		former, others := all[at].etcd.Server.MemberID(), []int{(at + 1) % 3, (at + 2) % 3}
		load := c.load(others...)
		time.Sleep(300 * time.Millisecond)
		begin := time.Now()
		all[at].Close()
		t.Log("it has ended after", time.Since(begin))
		time.Sleep(time.Second)
		load.wantNoFailures(t)
		for _, other := range others {
			for all[other].etcd.Server.Leader() == former {
				time.Sleep(droppedPause)
			}
			if all[other].lost(t.Context(), former) {
				t.Errorf("member %d takes a leader for lost that has passed its role on", other)
			}
		}
		all[at] = c.run(at)
	}
}

// TestMembersOfEarlierVersionsDoNotHold: the role is passed on nevertheless.
func TestMembersOfEarlierVersionsDoNotHold(t *testing.T) {
	tier.OnRequest(t, "two members form a cluster, which takes etcd some seconds")
	t.Parallel()
	c := newCluster(t)
	current, earlier := c.found(), c.open(1)
	defer current.Close()
	defer earlier.Close()
	i := Installation{Tell: func(Step, string) {}, Wait: func(error) {}}
	initial, err := earlier.join(t.Context(), c.record.Load().Cluster.ID, i)
	if err != nil {
		t.Fatal(err)
	}
	cfg := embedConfig(earlier.config, earlier.log)
	cfg.InitialCluster, cfg.ClusterState = initial, embed.ClusterStateFlagExisting
	if earlier.etcd, err = embed.StartEtcd(cfg); err == nil {
		err = earlier.awaitVote(t.Context(), i)
	}
	if err != nil {
		t.Fatal(err)
	}
	own := current.etcd.Server
	member := own.Cluster().Member(earlier.etcd.Server.MemberID())
	if _, err := current.config.Cluster.hold(t.Context(), member, own.MemberID()); status.Code(err) != codes.Unimplemented {
		t.Errorf("a member without the service answers %v", err)
	}
	if err := current.passOn(t.Context()); err != nil || own.Leader() != member.ID {
		t.Errorf("the leader is %s, want %s: %v", own.Leader(), member.ID, err)
	}
	c.put(c.client(0, 1), "after")
}
