// Copyright The jobset-apiserver Authors.
// SPDX-License-Identifier: Apache-2.0

package etcd

import (
	"context"
	"fmt"
	"time"

	pb "go.etcd.io/etcd/api/v3/etcdserverpb"
	"k8s.io/klog/v2"
)

// minDefragmentBytes is the least space worth a defragmentation, which stops all writes while it copies the database.
const minDefragmentBytes = 64 << 20

// database is what maintenance needs from the member's backend.
type database interface {
	Size() int64
	SizeInUse() int64
	Defrag() error
}

// alarms is what maintenance needs from the member itself.
type alarms interface {
	Alarm(context.Context, *pb.AlarmRequest) (*pb.AlarmResponse, error)
}

// maintainer does what an operator of an etcd cluster arranges: it defragments the database and, after the quota was
// reached, allows writes again once there is space.
type maintainer struct {
	db         database
	alarms     alarms
	quotaBytes int64
}

func (m maintainer) run(ctx context.Context, interval time.Duration) {
	ticker := time.NewTicker(interval)
	defer ticker.Stop()
	for {
		select {
		case <-ctx.Done():
			return
		case <-ticker.C:
			if err := m.maintain(ctx); err != nil && ctx.Err() == nil {
				klog.FromContext(ctx).Error(err, "Maintaining the embedded etcd")
			}
		}
	}
}

func (m maintainer) maintain(ctx context.Context) error {
	full, err := m.full(ctx)
	if err != nil {
		return err
	}
	if full || m.fragmented() {
		if err := m.defragment(ctx); err != nil {
			return err
		}
	}
	if full {
		return m.reopen(ctx)
	}
	return nil
}

// full tells whether the member refuses writes because of its quota.
func (m maintainer) full(ctx context.Context) (bool, error) {
	response, err := m.alarms.Alarm(ctx, &pb.AlarmRequest{Action: pb.AlarmRequest_GET, Alarm: pb.AlarmType_NOSPACE})
	if err != nil {
		return false, fmt.Errorf("asking for alarms: %w", err)
	}
	return len(response.Alarms) > 0, nil
}

// fragmented tells whether more than half of the file is free. Compaction frees pages within the file only, and the quota
// counts the file.
func (m maintainer) fragmented() bool {
	size := m.db.Size()
	free := size - m.db.SizeInUse()
	return free >= minDefragmentBytes && free*2 >= size
}

func (m maintainer) defragment(ctx context.Context) error {
	before, start := m.db.Size(), time.Now()
	if err := m.db.Defrag(); err != nil {
		return fmt.Errorf("defragmenting: %w", err)
	}
	klog.FromContext(ctx).Info("Defragmented the embedded etcd", "bytesBefore", before, "bytesAfter", m.db.Size(), "duration", time.Since(start))
	return nil
}

// reopen ends the alarm when a tenth of the quota is free, so that it does not come back with the next write.
func (m maintainer) reopen(ctx context.Context) error {
	size := m.db.Size()
	if size > m.quotaBytes/10*9 {
		klog.FromContext(ctx).Info("The embedded etcd refuses writes: delete JobSets or raise --embedded-etcd-quota-bytes", "bytes", size, "quotaBytes", m.quotaBytes)
		return nil
	}
	response, err := m.alarms.Alarm(ctx, &pb.AlarmRequest{Action: pb.AlarmRequest_GET, Alarm: pb.AlarmType_NOSPACE})
	if err != nil {
		return fmt.Errorf("asking for alarms: %w", err)
	}
	for _, alarm := range response.Alarms {
		request := &pb.AlarmRequest{Action: pb.AlarmRequest_DEACTIVATE, MemberID: alarm.MemberID, Alarm: alarm.Alarm}
		if _, err := m.alarms.Alarm(ctx, request); err != nil {
			return fmt.Errorf("ending the alarm: %w", err)
		}
	}
	klog.FromContext(ctx).Info("The embedded etcd accepts writes again", "bytes", size, "quotaBytes", m.quotaBytes)
	return nil
}
