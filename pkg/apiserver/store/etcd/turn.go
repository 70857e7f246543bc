// Copyright The jobset-apiserver Authors.
// SPDX-License-Identifier: Apache-2.0

package etcd

import (
	"context"
	"time"

	"k8s.io/klog/v2"
)

// Members of a cluster defragment their databases in turns, so that a majority always answers: each in the minutes that have its ordinal
// when divided by the number of members. It begins in the first part of the minute and has ended in the next one, also if clocks differ a
// bit.
const (
	turnMinute, turnBegin = time.Minute, 20 * time.Second
)

// inTurn returns whether the member with an ordinal may begin at a time.
func inTurn(now time.Time, ordinal, members int) bool {
	minute := now.Unix() / int64(turnMinute.Seconds())
	return int(minute%int64(members)) == ordinal && now.Sub(now.Truncate(turnMinute)) < turnBegin
}

// turn returns whether this member may defragment its database now.
func (s *Server) turn(ctx context.Context) bool {
	c := s.config.Cluster
	return inTurn(time.Now(), c.Ordinal, len(c.Hosts)) && s.mayPause(ctx)
}

// mayPause returns whether the others go on without this member for a while: all of them answer and have a vote, and one of them is the
// leader, because without a leader nothing can be written. If this member is, it passes that on. The only member of a cluster pauses as a
// single store does.
func (s *Server) mayPause(ctx context.Context) bool {
	running := s.etcd.Server
	alone := true
	for _, member := range running.Cluster().Members() {
		if member.ID == running.MemberID() {
			continue
		}
		if member.IsLearner || !s.alive(ctx, member.ID) {
			return false
		}
		alone = false
	}
	if leader := running.Leader(); alone || leader != running.MemberID() {
		return alone || leader != 0
	}
	if err := s.passOn(ctx); err != nil {
		klog.FromContext(ctx).Error(err, "Cannot pass the role of the leader on before the embedded etcd is defragmented")
		return false
	}
	return running.Leader() != 0
}
