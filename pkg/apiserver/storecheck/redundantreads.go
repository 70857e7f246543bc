// Copyright The jobset-apiserver Authors.
// SPDX-License-Identifier: Apache-2.0

package storecheck

import (
	"context"
	"time"
)

const (
	// moreReadsAfter is how long a read may take before another one begins beside it, and maxReads how many there are at most.
	moreReadsAfter = 200 * time.Millisecond
	maxReads       = 4
)

// redundantly returns nil as soon as one read has succeeded, and the last error when all have failed. A member of etcd
// that hangs would otherwise hold up every request of the server: the client sends the reads to the members in turn.
func redundantly(ctx context.Context, read func(context.Context) error) error {
	ctx, cancel := context.WithCancel(ctx)
	defer cancel()
	results := make(chan error, maxReads)
	running, begun := 0, 0
	begin := func() {
		running, begun = running+1, begun+1
		go func() { results <- read(ctx) }()
	}
	more := time.NewTicker(moreReadsAfter)
	defer more.Stop()
	var last error
	for begin(); running > 0; {
		select {
		case err := <-results:
			running--
			if err == nil {
				return nil
			}
			last = err
		case <-more.C:
			if begun < maxReads {
				begin()
			}
		}
	}
	return last
}
