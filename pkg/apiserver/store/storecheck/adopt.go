// Copyright The jobset-apiserver Authors.
// SPDX-License-Identifier: Apache-2.0

package storecheck

import (
	"context"

	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/util/sets"
	"k8s.io/klog/v2"

	"github.com/jobset-apiserver/jobset-apiserver/pkg/witness"
)

// adopt records this store as the one that belongs to the installation, after an administrator accepted it. It writes first the key, which
// must not have changed since it was found, then the record. Only then does the server answer.
func (g *Guard) adopt(ctx context.Context, s *observation) error {
	if !s.record.Accepted.AbandonJobs {
		found, err := g.find(ctx, s.routedHere(), false)
		if err != nil {
			return err
		}
		if losses, _ := found.Losses(); losses.Any() {
			found.definitions = g.refusal.definitions
			g.count(ctx, s.routedHere(), found)
			g.describe(s)
			s.record.Accepted = nil
			klog.FromContext(ctx).Error(nil, "The store was accepted, but objects are at stake that were not abandoned", "objects", losses.String())
			return g.publish(ctx, s, true)
		}
	}
	groups, err := g.accepted(ctx, s)
	if err != nil {
		return err
	}
	if err := g.supersede(ctx, s); err != nil {
		return err
	}
	key := g.newKey(s.record.Accepted.NewUUID, s.cluster)
	key.Groups = s.listed(groups)
	revision, err := g.writeKey(ctx, s, key)
	if err != nil {
		return err
	}
	s.key = &witness.Found{Key: *key, ModRevision: revision, Revision: revision}
	return g.finish(ctx, s)
}

// accepted returns the groups that are accepted with the store. A definition that may hide objects was accepted only if the refusal was
// about definitions; otherwise its group is looked at later.
func (g *Guard) accepted(ctx context.Context, s *observation) (sets.Set[string], error) {
	groups := s.routedHere()
	if g.refusal.Reason == witness.ReasonCustomResources {
		return groups, nil
	}
	definitions, err := g.Definitions(ctx, groups)
	for _, definition := range definitions {
		groups.Delete(definition.Group)
	}
	return groups, err
}

// unfinished returns whether a server has begun to adopt the store and has not written the record.
func (s *observation) unfinished(reason witness.Reason) bool {
	return reason == witness.ReasonForeignStore && s.record.Accepted != nil && s.record.Accepted.NewUUID == s.key.UUID
}

// finish writes the record of a store that has been accepted and whose key has been written.
func (g *Guard) finish(ctx context.Context, s *observation) error {
	s.record.UUID, s.record.Floor, s.record.Groups = s.key.UUID, s.key.ModRevision, s.key.Groups
	s.record.Restored = &witness.Restored{Revision: s.key.ModRevision, Time: metav1.Now()}
	s.record.Cluster, s.record.Accepted, s.record.Refusal = g.Cluster, nil, nil
	if err := g.writeRecord(ctx, s.cm, s.record); err != nil {
		return err
	}
	klog.FromContext(ctx).Info("The store was accepted by an administrator and is now the one of this cluster", "uuid", s.key.UUID, "revision",
		s.key.ModRevision)
	g.record(false, "StoreAccepted", "An administrator has accepted the store "+s.key.UUID+", which is served from now on.")
	return errAgain
}
