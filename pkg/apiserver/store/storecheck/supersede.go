// Copyright The jobset-apiserver Authors.
// SPDX-License-Identifier: Apache-2.0

package storecheck

import (
	"context"
	"errors"
	"fmt"
	"sync/atomic"
	"time"

	"go.etcd.io/etcd/api/v3/v3rpc/rpctypes"
	clientv3 "go.etcd.io/etcd/client/v3"
	"golang.org/x/sync/errgroup"
	"k8s.io/klog/v2"
)

const (
	// aboveFloor is how many revisions above the floor clients may have seen: what is written until the floor is raised.
	aboveFloor = 10_000
	// maxSupersede is how many revisions are added at most. A store that is further behind cannot reach what clients have seen before
	// they connect again, and then their watches are refused: see package watchcache.
	maxSupersede = 100_000
	// parallelWrites is how many revisions are added at the same time.
	parallelWrites = 128
	// supersedeTimeout bounds adding them.
	supersedeTimeout = 5 * time.Minute
)

// behind returns by how many revisions a store must exceed what clients have seen of the store before it, whose floor is known.
func behind(floor, revision int64) int64 {
	missing := floor + aboveFloor - revision
	if floor == 0 || missing < 0 || missing > maxSupersede {
		return 0
	}
	return missing
}

// supersede raises the revision of an accepted store above those that clients know from the store before it, and
// compacts the store there. A client that resumes a watch is then sent back to list. Otherwise it would miss the
// changes up to the revision that it knows.
func (g *Guard) supersede(ctx context.Context, s *observation) error {
	ctx, cancel := context.WithTimeout(ctx, supersedeTimeout)
	defer cancel()
	revision, err := g.store.revision(ctx)
	if err != nil {
		return err
	}
	missing := behind(s.record.Floor, revision)
	if missing == 0 {
		return nil
	}
	klog.FromContext(ctx).Info("Raising the revision of the store above those that clients have seen", "from", revision, "by", missing)
	if err := g.store.raise(ctx, missing); err != nil {
		return err
	}
	if revision, err = g.store.revision(ctx); err != nil {
		return err
	}
	if _, err := g.store.client.Compact(ctx, revision); err != nil && !errors.Is(err, rpctypes.ErrCompacted) {
		// The watch caches, which are filled from here on, do the same for nearly all watches.
		klog.FromContext(ctx).Error(err, "Cannot compact the store", "revision", revision)
	}
	return nil
}

// raise adds so many revisions: each is a write of a key that is deleted in the end.
func (s *store) raise(ctx context.Context, count int64) error {
	key, left := s.key+"-revision", atomic.Int64{}
	left.Store(count)
	writers, writing := errgroup.WithContext(ctx)
	for range parallelWrites {
		writers.Go(func() error {
			for left.Add(-1) >= 0 {
				if _, err := s.client.Put(writing, key, ""); err != nil {
					return err
				}
			}
			return nil
		})
	}
	err := writers.Wait()
	if err == nil {
		_, err = s.client.Delete(ctx, key)
	}
	if err != nil {
		return fmt.Errorf("raising the revision of etcd: %w", err)
	}
	return nil
}

// revision returns the revision of the store.
func (s *store) revision(ctx context.Context) (int64, error) {
	response, err := s.client.Get(ctx, s.key, clientv3.WithCountOnly())
	if err != nil {
		return 0, fmt.Errorf("reading the revision of etcd: %w", err)
	}
	return response.Header.Revision, nil
}
