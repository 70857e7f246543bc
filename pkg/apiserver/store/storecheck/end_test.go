// Copyright The jobset-apiserver Authors.
// SPDX-License-Identifier: Apache-2.0

package storecheck

import (
	"context"
	"testing"

	apierrors "k8s.io/apimachinery/pkg/api/errors"

	"github.com/jobset-apiserver/jobset-apiserver/pkg/witness"
)

// TestWaitingEndsWithTheServer: the watch caches wait for a server that refuses, and the end of the server waits for them.
func TestWaitingEndsWithTheServer(t *testing.T) {
	t.Parallel()
	g := &Guard{served: newLatch(), left: newLatch(), ending: newLatch(), reason: witness.ReasonEmptyStore}
	waited := make(chan error)
	go func() { waited <- g.await(context.Background()) }()
	ctx, stop := context.WithCancel(t.Context())
	stop()
	if err := g.Run(ctx); err != nil {
		t.Error(err)
	}
	if err := <-waited; !apierrors.IsServiceUnavailable(err) {
		t.Errorf("waiting ended with %v", err)
	}
}
