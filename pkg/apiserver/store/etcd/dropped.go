// Copyright The jobset-apiserver Authors.
// SPDX-License-Identifier: Apache-2.0

package etcd

import (
	"context"
	"time"

	"google.golang.org/grpc"
	"google.golang.org/grpc/status"
)

const (
	// droppedTimeout is longer than an election, and droppedPause is the time between two tries.
	droppedTimeout, droppedPause = 5 * time.Second, 20 * time.Millisecond
	// proposalDropped is the error of Raft.
	proposalDropped = "raft proposal dropped"
)

// retryDropped lets a member try a write again which Raft has not taken, because there is no leader or the leader passes its role on. Such
// a write has had no effect. Clients cannot know this, and do not try it again.
func retryDropped(ctx context.Context, request any, _ *grpc.UnaryServerInfo, handle grpc.UnaryHandler) (any, error) {
	for begin := time.Now(); ; {
		answer, err := handle(ctx, request)
		if err == nil || status.Convert(err).Message() != proposalDropped || time.Since(begin) >= droppedTimeout {
			return answer, err
		}
		select {
		case <-ctx.Done():
			return answer, err
		case <-time.After(droppedPause):
		}
	}
}
