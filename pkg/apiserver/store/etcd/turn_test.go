// Copyright The jobset-apiserver Authors.
// SPDX-License-Identifier: Apache-2.0

package etcd

import (
	"context"
	"slices"
	"sync/atomic"
	"testing"
	"time"

	pb "go.etcd.io/etcd/api/v3/etcdserverpb"

	"github.com/jobset-apiserver/jobset-apiserver/test/framework/tier"
)

// TestTurns: in an hour, each member has turns, and no other one may begin while one defragments its database, also if clocks differ.
func TestTurns(t *testing.T) {
	t.Parallel()
	const skew, work = 5 * time.Second, 30 * time.Second
	turns, began := [3]int{}, [3]time.Time{}
	for begin, now := time.Unix(1_800_000_000, 0), time.Unix(1_800_000_000, 0); now.Sub(begin) < time.Hour; now = now.Add(time.Second) {
		for ordinal := range 3 {
			if !inTurn(now.Add(time.Duration(ordinal-1)*skew), ordinal, 3) {
				continue
			}
			if began[ordinal] != (time.Time{}) && now.Sub(began[ordinal]) < time.Minute {
				continue
			}
			began[ordinal] = now
			turns[ordinal]++
			for other := range 3 {
				if other != ordinal && now.Sub(began[other]) < work {
					t.Fatalf("member %d begins %s after member %d", ordinal, now.Sub(began[other]), other)
				}
			}
		}
	}
	for ordinal, n := range turns {
		if n != 20 {
			t.Errorf("member %d had %d turns", ordinal, n)
		}
	}
}

// alarmed has the alarms of two members.
type alarmed struct {
	quiet
	ended []uint64
}

func (a *alarmed) Alarm(_ context.Context, request *pb.AlarmRequest) (*pb.AlarmResponse, error) {
	if request.Action == pb.AlarmRequest_DEACTIVATE {
		a.ended = append(a.ended, request.MemberID)
	}
	return &pb.AlarmResponse{Alarms: []*pb.AlarmMember{{MemberID: 1, Alarm: pb.AlarmType_NOSPACE}, {MemberID: 2, Alarm: pb.AlarmType_NOSPACE}}}, nil
}

// TestMembersMaintainThemselves: a member waits for its turn to defragment, and ends its own alarm only.
func TestMembersMaintainThemselves(t *testing.T) {
	t.Parallel()
	compacted, turn := 0, false
	db, api := &sizes{size: 800 << 20, used: 300 << 20}, &alarmed{quiet: quiet{&compacted}}
	m := &maintainer{
		db: db, member: api, revision: func() int64 { return 2 }, quotaBytes: 1 << 30, full: &atomic.Bool{}, id: 1,
		turn: func(context.Context) bool { return turn },
	}
	for _, turn = range []bool{false, true} {
		if err := m.maintain(t.Context()); err != nil || m.deferred == turn || (db.defragged > 0) != turn {
			t.Errorf("turn %t: deferred %t, defragmented %d times, %v", turn, m.deferred, db.defragged, err)
		}
	}
	if !m.full.Load() || len(api.ended) != 2 || api.ended[0] != 1 || api.ended[1] != 1 {
		t.Errorf("full %t, ended the alarms of %v", m.full.Load(), api.ended)
	}
}

// TestOnlyMemberPauses: a cluster whose other members have not joined yet stops while its only member defragments, as a single store does.
func TestOnlyMemberPauses(t *testing.T) {
	t.Parallel()
	first := newCluster(t).found()
	defer first.Close()
	if !first.mayPause(t.Context()) {
		t.Error("the only member does not pause")
	}
}

// TestLeaderPassesItsRoleOnBeforeItPauses: it does not if another member is away, so that a majority always answers.
func TestLeaderPassesItsRoleOnBeforeItPauses(t *testing.T) {
	tier.OnRequest(t, "three members form a cluster, which takes etcd eight seconds")
	t.Parallel()
	c := newCluster(t)
	all := c.form()
	defer all[0].Close()
	defer all[1].Close()
	at := slices.IndexFunc(all, func(s *Server) bool { return s.Members() != nil })
	if !all[at].mayPause(t.Context()) || all[at].Members() != nil {
		t.Error("the leader does not pause, or is still the leader")
	}
	own := all[at].etcd.Server.MemberID()
	if all[at].lost(t.Context(), own) {
		t.Error("the requests of a leader that has passed its role on are taken for lost")
	}
	if !all[at].lost(t.Context(), own) {
		t.Error("the requests of a leader that has lost the others are not taken for lost")
	}
	c.put(c.client(0, 1, 2), "value")
	all[2].Close()
	for ordinal, s := range all[:2] {
		if s.mayPause(t.Context()) {
			t.Errorf("member %d pauses while another one is away", ordinal)
		}
	}
}
