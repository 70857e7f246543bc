// Copyright The jobset-apiserver Authors.
// SPDX-License-Identifier: Apache-2.0

package archivesql

import (
	"context"
	"fmt"
	"time"
)

// pruneBatch is how many runs one transaction removes, so that others wait for a short time only.
const pruneBatch = 200

// Prune implements archive.Store. Runs that ended when the newest removed one did, or before, are not stored again. Tombstones that are not
// needed any more are removed too; they do not count.
func (s *Store) Prune(ctx context.Context, before time.Time, maxBytes int64, batch int) (int, error) {
	if batch < 1 {
		return 0, fmt.Errorf("removing old runs: the batch must be at least 1, and is %d", batch)
	}
	removed, err := s.prune(ctx, before.UnixMicro(), maxBytes, batch)
	if err == nil {
		err = s.write(ctx, func(ctx context.Context, t session) error { return t.removeTombstones(ctx, before.UnixMicro(), batch) })
	}
	if err == nil && removed > 0 && s.dialect.reclaim != nil {
		err = s.reclaim(ctx)
	}
	if err != nil {
		return removed, fmt.Errorf("removing old runs: %w", err)
	}
	return removed, nil
}

func (s *Store) prune(ctx context.Context, before, maxBytes int64, batch int) (int, error) {
	removed := 0
	for removed < batch {
		var n int
		limit := min(batch-removed, pruneBatch)
		err := s.write(ctx, func(ctx context.Context, t session) error {
			var err error
			if n, err = t.removeOldest(ctx, before, limit); err != nil || n == limit || maxBytes <= 0 {
				return err
			}
			excess, err := t.excess(ctx, maxBytes)
			if err != nil || excess == 0 {
				return err
			}
			more, err := t.removeOldest(ctx, endless, int(min(int64(limit-n), excess)))
			n += more
			return err
		})
		if err != nil {
			return removed, err
		}
		removed += n
		if n == 0 {
			break
		}
	}
	return removed, nil
}

// reclaim gives space back, in turn with the transactions of this server that write.
func (s *Store) reclaim(ctx context.Context) error {
	ctx, cancel := context.WithTimeout(ctx, s.timeout)
	defer cancel()
	select {
	case s.writer <- struct{}{}:
		defer func() { <-s.writer }()
	case <-ctx.Done():
		return ctx.Err()
	}
	return s.dialect.reclaim(ctx, s.db)
}

// excess returns about how many runs must be removed so that the rest takes at most so many bytes.
func (s session) excess(ctx context.Context, maxBytes int64) (int64, error) {
	var used, runs int64
	if err := s.row(ctx, s.d.used).Scan(&used); err != nil || used <= maxBytes {
		return 0, err
	}
	if err := s.row(ctx, `SELECT COUNT(*) FROM archive_runs`).Scan(&runs); err != nil || runs == 0 {
		return 0, err
	}
	// At least one, and so many that the next transaction need not come for a part of a run.
	return (used-maxBytes)/max(used/runs, 1) + 1, nil
}

// removeOldest removes the oldest runs that ended before a time, and raises the floor to the newest of them.
func (s session) removeOldest(ctx context.Context, before int64, limit int) (int, error) {
	var runs []stored
	err := s.each(ctx, func(scan func(...any) error) error {
		var run stored
		if err := scan(&run.id, &run.ended, &run.bytes, &run.terms); err != nil {
			return err
		}
		runs = append(runs, run)
		return nil
	}, `SELECT `+storedColumns+` WHERE r.ended < ? ORDER BY r.ended, r.id LIMIT ?`, before, limit)
	if err != nil || len(runs) == 0 {
		return 0, err
	}
	if err := s.remove(ctx, runs...); err != nil {
		return 0, err
	}
	return len(runs), s.raise(ctx, runs[len(runs)-1].ended)
}

// removeTombstones removes tombstones of runs that retention would have removed by now. The floor takes their place.
func (s session) removeTombstones(ctx context.Context, before int64, limit int) error {
	floor, err := s.meta(ctx, "floor")
	if err != nil {
		return err
	}
	var keys [][]byte
	var ended int64
	err = s.each(ctx, func(scan func(...any) error) error {
		var key []byte
		if err := scan(&key, &ended); err != nil {
			return err
		}
		keys = append(keys, key)
		return nil
	}, `SELECT run_key, ended FROM archive_tombstones WHERE ended <= ? ORDER BY ended LIMIT ?`, max(before-1, floor), limit)
	if err != nil || len(keys) == 0 {
		return err
	}
	for _, key := range keys {
		if err := s.exec(ctx, `DELETE FROM archive_tombstones WHERE run_key = ?`, key); err != nil {
			return err
		}
	}
	return s.raise(ctx, ended)
}
