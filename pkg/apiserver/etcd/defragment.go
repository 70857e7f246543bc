// Copyright The jobset-apiserver Authors.
// SPDX-License-Identifier: Apache-2.0

package etcd

import (
	"context"
	"time"

	"k8s.io/klog/v2"
)

// minDefragmentBytes is the least space worth a defragmentation, which stops all writes while it copies the database.
const minDefragmentBytes = 64 << 20

// database is what the defragmenter needs from the member's backend.
type database interface {
	Size() int64
	SizeInUse() int64
	Defrag() error
}

func runDefragmenter(ctx context.Context, db database, interval time.Duration) {
	ticker := time.NewTicker(interval)
	defer ticker.Stop()
	for {
		select {
		case <-ctx.Done():
			return
		case <-ticker.C:
			defragment(ctx, db)
		}
	}
}

// defragment returns the free pages to the file system when they are more than half of the file. Compaction frees pages
// within the file only, and the quota counts the file.
func defragment(ctx context.Context, db database) {
	before, used := db.Size(), db.SizeInUse()
	if free := before - used; free < minDefragmentBytes || free*2 < before {
		return
	}
	logger, start := klog.FromContext(ctx), time.Now()
	if err := db.Defrag(); err != nil {
		logger.Error(err, "Defragmenting the embedded etcd")
		return
	}
	logger.Info("Defragmented the embedded etcd", "bytesBefore", before, "bytesAfter", db.Size(), "duration", time.Since(start))
}
