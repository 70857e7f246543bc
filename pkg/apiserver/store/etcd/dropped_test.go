// Copyright The jobset-apiserver Authors.
// SPDX-License-Identifier: Apache-2.0

package etcd

import (
	"context"
	"fmt"
	"slices"
	"strings"
	"sync"
	"testing"
	"testing/synctest"
	"time"

	"google.golang.org/grpc/codes"
	"google.golang.org/grpc/status"

	"github.com/jobset-apiserver/jobset-apiserver/test/framework/tier"
)

// TestWritesThatRaftDropsAreTriedAgain counts how often a member tries a request.
func TestWritesThatRaftDropsAreTriedAgain(t *testing.T) {
	droppedWrite := status.Error(codes.Unknown, "raft proposal dropped")
	cases := map[string]struct {
		answers []error
		// timeout is the one of the client; 0 for none.
		timeout     time.Duration
		want        error
		least, most int
	}{
		"a request that succeeds":        {answers: []error{nil}, least: 1, most: 1},
		"a write that Raft drops twice":  {answers: []error{droppedWrite, droppedWrite, nil}, least: 3, most: 3},
		"a write that may have happened": {answers: []error{context.DeadlineExceeded}, want: context.DeadlineExceeded, least: 1, most: 1},
		"a write that is always dropped": {answers: []error{droppedWrite}, want: droppedWrite, least: 10, most: 1000},
		"a client that does not wait":    {answers: []error{droppedWrite}, timeout: 3 * droppedPause, want: droppedWrite, least: 2, most: 4},
		"a second try with an error":     {answers: []error{droppedWrite, context.Canceled}, want: context.Canceled, least: 2, most: 2},
	}
	for name, c := range cases {
		t.Run(name, func(t *testing.T) {
			synctest.Test(t, func(t *testing.T) {
				ctx := t.Context()
				if c.timeout > 0 {
					var cancel context.CancelFunc
					ctx, cancel = context.WithTimeout(ctx, c.timeout)
					defer cancel()
				}
				tries := 0
				_, err := retryDropped(ctx, nil, nil, func(context.Context, any) (any, error) {
					tries++
					return nil, c.answers[min(tries, len(c.answers))-1]
				})
				if err != c.want || tries < c.least || tries > c.most {
					t.Errorf("%d tries, %v, want %d to %d, %v", tries, err, c.least, c.most, c.want)
				}
			})
		})
	}
}

// TestNoWriteIsDroppedWhileTheLeaderChanges moves the leader while clients write to all members.
func TestNoWriteIsDroppedWhileTheLeaderChanges(t *testing.T) {
	tier.OnRequest(t, "three members form a cluster, which takes etcd eight seconds")
	t.Parallel()
	const moves, writers = 10, 8
	c := newCluster(t)
	all := c.form()
	defer func() {
		for _, member := range all {
			member.Close()
		}
	}()
	ctx, end := context.WithCancel(t.Context())
	var mu sync.Mutex
	failures := map[string]int{}
	var writing sync.WaitGroup
	for ordinal := range all {
		client := c.client(ordinal)
		for writer := range writers {
			writing.Go(func() {
				for n := 0; ctx.Err() == nil; n++ {
					if _, err := client.Put(t.Context(), fmt.Sprintf("%d/%d", ordinal, writer), fmt.Sprint(n)); err != nil {
						mu.Lock()
						failures[err.Error()]++
						mu.Unlock()
					}
					time.Sleep(10 * time.Millisecond)
				}
			})
		}
	}
	for range moves {
		time.Sleep(500 * time.Millisecond)
		at := slices.IndexFunc(all, func(s *Server) bool { return s.Members() != nil })
		if at < 0 {
			continue // an election goes on
		}
		from, to := all[at].etcd.Server.MemberID(), all[(at+1)%len(all)].etcd.Server.MemberID()
		if err := all[at].etcd.Server.MoveLeader(t.Context(), uint64(from), uint64(to)); err != nil {
			t.Error(err)
		}
	}
	end()
	writing.Wait()
	t.Log(failures)
	for failure, count := range failures {
		if strings.Contains(failure, "dropped") {
			t.Errorf("%d writes failed without need: %s", count, failure)
		}
	}
}
