// Copyright The jobset-apiserver Authors.
// SPDX-License-Identifier: Apache-2.0

package storecheck

import (
	"context"
	"slices"

	"k8s.io/klog/v2"

	"github.com/jobset-apiserver/jobset-apiserver/pkg/witness"
)

// serveMembers lets the server answer if its member belongs to the cluster of the record. A store with one member that several may have
// now is recorded as their cluster first. The store of another cluster was restored, and is served only when an administrator has accepted
// that: the members of the recorded cluster may have newer data.
func (g *Guard) serveMembers(ctx context.Context, s *observation) error {
	switch recorded := s.record.Cluster; {
	case recorded.Equal(g.Cluster):
		return g.serve(ctx, s)
	case recorded == nil: // and the store can have several members
		s.record.Cluster = g.Cluster
		if err := g.writeRecord(ctx, s.cm, s.record); err != nil {
			return err
		}
		klog.FromContext(ctx).Info("The store can have several members from now on", "cluster", g.Cluster.ID)
		return errAgain
	default:
		return g.refuse(ctx, s, witness.ReasonRolledBack, nil)
	}
}

// reported returns the cluster as the record has to have it: with the members that this server reports, or else as it is.
func (g *Guard) reported(record *witness.Record) *witness.Cluster {
	cluster := g.Cluster
	if record.Adopted() {
		cluster = record.Cluster
	}
	if cluster == nil || g.Members == nil {
		return cluster
	}
	if members := g.Members(); members != nil && (!slices.Equal(members, cluster.Members) || len(cluster.Empty) > 0) {
		return cluster.With(members)
	}
	return cluster
}
