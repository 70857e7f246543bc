// Copyright The jobset-apiserver Authors.
// SPDX-License-Identifier: Apache-2.0

package etcd

import (
	"context"
	"crypto/tls"
	"time"

	"go.etcd.io/etcd/client/pkg/v3/types"
	"k8s.io/klog/v2"

	"github.com/jobset-apiserver/jobset-apiserver/pkg/apiserver/store/etcd/members"
)

// aliveTimeout is how long a member has to answer that was the leader until now.
const aliveTimeout = 500 * time.Millisecond

// WatchLeader calls a function each time that the leader is another one because the former one does not answer any more, or because this
// member had lost the others. What this member had sent to the former leader is lost then, and etcd would wait seven seconds for its
// result. It does not call it when the leader has passed its role on, which loses nothing. It returns when the context ends.
func (s *Server) WatchLeader(ctx context.Context, lost func()) {
	running := s.etcd.Server
	for leader := running.Leader(); ; {
		changed := running.LeaderChangedNotify()
		if now := running.Leader(); now != leader && now != 0 {
			if leader != 0 && s.lost(ctx, leader) && ctx.Err() == nil {
				klog.FromContext(ctx).Info("The leader of the embedded etcd was lost; requests that it has not answered end", "was", leader, "is", now)
				lost()
			}
			leader = now
		}
		select {
		case <-ctx.Done():
			return
		case <-changed:
		}
	}
}

// lost returns whether the former leader was lost, and has not passed its role on. One that has may have ended since.
func (s *Server) lost(ctx context.Context, former types.ID) bool {
	if s.gate.hasPassed(former) {
		return false
	}
	return former == s.etcd.Server.MemberID() || !s.alive(ctx, former)
}

// alive returns whether a member answers the others.
func (s *Server) alive(ctx context.Context, id types.ID) bool {
	c, member := s.config.Cluster, s.etcd.Server.Cluster().Member(id)
	settings, err := members.TLS(c.Transport())
	if err != nil || member == nil {
		return false
	}
	ordinal := c.ordinalOf(member.PeerURLs)
	if ordinal < 0 {
		return false
	}
	settings.ServerName = c.Hosts[ordinal]
	ctx, cancel := context.WithTimeout(ctx, aliveTimeout)
	defer cancel()
	conn, err := (&tls.Dialer{Config: settings}).DialContext(ctx, "tcp", secure(c.Hosts[ordinal], peerPort).Host)
	if err == nil {
		_ = conn.Close()
	}
	return err == nil
}
