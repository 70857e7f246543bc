// Copyright The jobset-apiserver Authors.
// SPDX-License-Identifier: Apache-2.0

package etcd

import (
	"context"
	"errors"
	"fmt"
	"sync/atomic"
	"time"

	pb "go.etcd.io/etcd/api/v3/etcdserverpb"
	"go.etcd.io/etcd/server/v3/storage/mvcc"
	"k8s.io/klog/v2"
)

const (
	// minDefragmentBytes is the least space worth a defragmentation, which stops all writes while it copies the database.
	minDefragmentBytes = 64 << 20
	// lookInterval is the time between two looks at the size, which cost nothing.
	lookInterval = 2 * time.Second
	// workShare bounds what maintenance out of turn may take: a tenth of the time.
	workShare = 10
)

// database is what maintenance needs from the member's backend.
type database interface {
	Size() int64
	SizeInUse() int64
	Defrag() error
}

// member is what maintenance needs from the member itself.
type member interface {
	Alarm(context.Context, *pb.AlarmRequest) (*pb.AlarmResponse, error)
	Compact(context.Context, *pb.CompactionRequest) (*pb.CompactionResponse, error)
}

// maintainer does what an operator of an etcd cluster arranges: it defragments the database and, when the quota is nearly
// used up, drops the history; after the quota was reached, it allows writes again once there is space.
type maintainer struct {
	db         database
	member     member
	revision   func() int64
	quotaBytes int64
	// full is where others see whether the member refuses writes.
	full *atomic.Bool
	// id is the ID of the member if there are others, whose alarms they end themselves; 0 if there are none.
	id uint64
	// turn returns whether this one of several members may defragment its database now, during which it answers nothing; nil if it always may.
	turn func(context.Context) bool

	compacted int64
	// deferred means that a defragmentation waits for its turn.
	deferred bool
}

// run maintains at each interval and, while space is short, as soon as it is woken or notices.
func (m *maintainer) run(ctx context.Context, interval time.Duration, wake <-chan struct{}) {
	ticker := time.NewTicker(min(interval, lookInterval))
	defer ticker.Stop()
	// The alarm of an earlier process is still set, so the first turn is now.
	next, pause := time.Now(), time.Now()
	for {
		due := !time.Now().Before(next)
		if due || m.short() && !time.Now().Before(pause) {
			start := time.Now()
			if err := m.maintain(ctx); err != nil && ctx.Err() == nil {
				klog.FromContext(ctx).Error(err, "Maintaining the embedded etcd")
			}
			pause = time.Now().Add(workShare * time.Since(start))
		}
		if due && !m.deferred {
			next = time.Now().Add(interval)
		}
		select {
		case <-ctx.Done():
			return
		case <-ticker.C:
		case <-wake:
			m.full.Store(true)
		}
	}
}

func (m *maintainer) maintain(ctx context.Context) error {
	alarms, err := m.alarms(ctx)
	if err != nil {
		return err
	}
	m.full.Store(len(alarms) > 0)
	if len(alarms) > 0 || m.tight() {
		if err := m.compact(ctx); err != nil {
			return err
		}
	}
	fragmented := m.fragmented(len(alarms) > 0)
	m.deferred = fragmented && m.turn != nil && !m.turn(ctx)
	if fragmented && !m.deferred {
		if err := m.defragment(ctx); err != nil {
			return err
		}
	}
	if len(alarms) > 0 {
		return m.reopen(ctx, alarms)
	}
	return nil
}

// short reports whether maintenance does not wait for the next interval.
func (m *maintainer) short() bool { return m.tight() || m.full.Load() }

// tight reports whether so much of the quota is used that the history of objects is in the way.
func (m *maintainer) tight() bool {
	return m.db.Size() >= m.quotaBytes/100*85
}

// alarms are set while the member refuses writes because of its quota.
func (m *maintainer) alarms(ctx context.Context) ([]*pb.AlarmMember, error) {
	response, err := m.member.Alarm(ctx, &pb.AlarmRequest{Action: pb.AlarmRequest_GET, Alarm: pb.AlarmType_NOSPACE})
	if err != nil {
		return nil, fmt.Errorf("asking for alarms: %w", err)
	}
	return response.Alarms, nil
}

// compact drops the history. The API server does that too, but keeps five minutes of it and writes first, which a full
// member refuses. Watches are served from a cache and do not need it.
func (m *maintainer) compact(ctx context.Context) error {
	revision := m.revision()
	if revision == m.compacted {
		return nil
	}
	_, err := m.member.Compact(ctx, &pb.CompactionRequest{Revision: revision, Physical: true})
	if err != nil && !errors.Is(err, mvcc.ErrCompacted) {
		return fmt.Errorf("compacting: %w", err)
	}
	m.compacted = revision
	return nil
}

// fragmented reports whether a defragmentation is worth it. Compaction frees pages within the file only, and the quota
// counts the file: normally more than half of it must be free; when the file nearly has the quota, a twentieth of the
// quota; and when writes are refused, a hundredth.
func (m *maintainer) fragmented(full bool) bool {
	size := m.db.Size()
	free := size - m.db.SizeInUse()
	switch {
	case full:
		return free >= m.quotaBytes/100
	case size >= m.quotaBytes/100*93:
		return free >= m.quotaBytes/20
	default:
		return free >= minDefragmentBytes && free*2 >= size
	}
}

func (m *maintainer) defragment(ctx context.Context) error {
	before, start := m.db.Size(), time.Now()
	if err := m.db.Defrag(); err != nil {
		return fmt.Errorf("defragmenting: %w", err)
	}
	klog.FromContext(ctx).Info("Defragmented the embedded etcd", "bytesBefore", before, "bytesAfter", m.db.Size(), "duration",
		time.Since(start))
	return nil
}

// reopen ends the alarm when a twentieth of the quota is free, so that it does not come back with the next write.
func (m *maintainer) reopen(ctx context.Context, alarms []*pb.AlarmMember) error {
	size := m.db.Size()
	if size > m.quotaBytes/20*19 {
		klog.FromContext(ctx).Info("The embedded etcd refuses writes: delete JobSets or raise --embedded-etcd-quota-bytes", "bytes", size,
			"quotaBytes", m.quotaBytes)
		return nil
	}
	for _, alarm := range alarms {
		if m.id != 0 && alarm.MemberID != m.id {
			return nil // the other member has no space yet
		}
		request := &pb.AlarmRequest{Action: pb.AlarmRequest_DEACTIVATE, MemberID: alarm.MemberID, Alarm: alarm.Alarm}
		if _, err := m.member.Alarm(ctx, request); err != nil {
			return fmt.Errorf("ending the alarm: %w", err)
		}
	}
	m.full.Store(false)
	klog.FromContext(ctx).Info("The embedded etcd accepts writes again", "bytes", size, "quotaBytes", m.quotaBytes)
	return nil
}
