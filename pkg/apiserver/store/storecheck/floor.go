// Copyright The jobset-apiserver Authors.
// SPDX-License-Identifier: Apache-2.0

package storecheck

import (
	"context"
	"errors"
	"fmt"

	corev1 "k8s.io/api/core/v1"

	"github.com/jobset-apiserver/jobset-apiserver/pkg/witness"
)

// raise writes the key again if something has changed in the store since, and then raises the floor of the record to
// the revision of the key. It also compares both halves again: another store may have been accepted meanwhile, or
// another server may have raised the floor above this store.
func (g *Guard) raise(ctx context.Context) error {
	ctx, cancel := context.WithTimeout(ctx, lookTimeout)
	defer cancel()
	cm, record, err := g.readRecord(ctx)
	if err != nil {
		return err
	}
	g.mu.Lock()
	before := g.known
	g.mu.Unlock()
	key, err := g.store.read(ctx)
	if err != nil {
		return err
	}
	reason := before.compare(key)
	if reason == "" {
		_, reason = witness.Decide(key, record, before.cluster)
	}
	if reason != "" {
		g.stop(reason)
		return fmt.Errorf("the store is refused: %s", reason)
	}
	floor, listed := key.ModRevision, key.Groups.With(g.groups.changes)
	if key.Revision > floor || !listed.Equal(key.Groups) {
		next := g.newKey(key.UUID, key.ClusterUID)
		next.Groups = listed
		written, err := g.store.write(ctx, next, floor)
		switch {
		case err != nil:
			return err
		case written == 0 && len(g.groups.changes) > 0:
			return errAgain // another server has written it: the groups are listed in the next round
		}
		floor = max(floor, written)
	}
	g.saw(floor, max(key.Revision, floor), listed)
	return g.raiseRecord(ctx, cm, record, floor)
}

// raiseRecord raises the floor of the record, creates the record again if a person has deleted it, and takes out a refusal
// that no server confirms any more.
func (g *Guard) raiseRecord(ctx context.Context, cm *corev1.ConfigMap, record *witness.Record, floor int64) error {
	cluster := g.reported(record)
	switch {
	case !record.Adopted():
		g.mu.Lock()
		record = &witness.Record{UUID: g.known.uuid, Floor: floor, Groups: g.groups.listed}
		g.mu.Unlock()
	case record.Floor >= floor && !g.abandoned(record.Refusal) && cluster == record.Cluster &&
		record.Groups.With(g.groups.changes).Equal(record.Groups):
		g.groups.changes = nil
		return nil
	}
	record.Groups = record.Groups.With(g.groups.changes)
	record.Floor, record.Cluster = max(record.Floor, floor), cluster
	if g.abandoned(record.Refusal) {
		record.Refusal, record.Accepted = nil, nil
	}
	// Who was faster has raised it as well, or does so next time.
	err := g.writeRecord(ctx, cm, record)
	if err == nil {
		g.groups.changes = nil
	}
	if errors.Is(err, errAgain) {
		return nil
	}
	return err
}

// mark notes in the store that it is an older copy of what this server has seen. The floor may be too old to show that: the key may be the
// same in a copy that is a few seconds older.
func (g *Guard) mark(ctx context.Context, s *observation) error {
	g.mu.Lock()
	seen := g.known
	g.mu.Unlock()
	if s.key == nil || s.key.UUID != seen.uuid || s.key.Revision >= seen.revision || s.key.Behind > 0 {
		return nil
	}
	key := s.key.Key
	key.Behind = seen.revision
	if _, err := g.store.write(ctx, &key, s.key.ModRevision); err != nil {
		return err
	}
	return errAgain // the key is another one now
}
