// Copyright The jobset-apiserver Authors.
// SPDX-License-Identifier: Apache-2.0

package etcd

import (
	"context"
	"fmt"
	"slices"
	"strings"

	"go.etcd.io/etcd/api/v3/etcdserverpb"
	"go.etcd.io/etcd/client/pkg/v3/types"
	clientv3 "go.etcd.io/etcd/client/v3"
)

// joining is an attempt of a member without data to join the cluster with the ID.
type joining struct {
	*Cluster
	Installation
	client  *clientv3.Client
	id      string
	members []*etcdserverpb.Member
}

// join makes this member a learner of the cluster and returns the members that the cluster has then.
func (s *Server) join(ctx context.Context, cluster string, i Installation) (initial string, err error) {
	client, err := s.config.Cluster.client()
	if err != nil {
		return "", err
	}
	defer client.Close()
	ctx, cancel := context.WithTimeout(ctx, joinTimeout)
	defer cancel()
	list, err := client.MemberList(ctx)
	if err != nil {
		return "", notYet("%w: %w", ErrAlone, err)
	}
	if found := types.ID(list.Header.ClusterId).String(); found != cluster {
		return "", notYet("the data directory is empty, and the other members are the cluster %s, not %s", found, cluster)
	}
	j := &joining{Cluster: s.config.Cluster, Installation: i, client: client, id: cluster, members: list.Members}
	for _, member := range list.Members {
		if s.added != 0 && member.ID == s.added {
			return j.initial(list.Members), nil
		}
		if err := j.makeRoom(ctx, member); err != nil {
			return "", err
		}
	}
	added, err := client.MemberAddAsLearner(ctx, []string{j.url(j.Ordinal, peerPort)})
	if err != nil {
		return "", notYet("joining the other members: %w", err)
	}
	s.added = added.Member.ID
	j.tell(ctx, StepAdded, s.added, "Added %s to the embedded etcd as a learner. It has a vote when it has the data of the others.",
		j.name(j.Ordinal))
	return j.initial(added.Members), nil
}

// makeRoom removes a member of this host from the cluster: a learner that an earlier process has added, which has never had a vote and
// does not run, or one whose data were lost. It returns an error if another member keeps this one from joining.
func (j *joining) makeRoom(ctx context.Context, member *etcdserverpb.Member) error {
	switch own := slices.Contains(member.PeerURLs, j.url(j.Ordinal, peerPort)); {
	case own:
		if err := j.checkAway(ctx); err != nil {
			return err
		}
		if !member.IsLearner {
			return j.replace(ctx, member.ID)
		}
		if _, err := j.client.MemberRemove(ctx, member.ID); err != nil {
			return notYet("removing the learner of an earlier attempt: %w", err)
		}
	case member.IsLearner:
		return notYet("%s joins now", strings.Join(member.PeerURLs, " and "))
	}
	return nil
}

// replace removes the former member of this host, which does not run, if all others agree.
func (j *joining) replace(ctx context.Context, lost uint64) error {
	if err := j.agree(ctx, lost); err != nil {
		return notYet("the data directory is empty although the cluster has a member %s, which is replaced only if all other members agree: %w",
			j.name(j.Ordinal), err)
	}
	if _, err := j.client.MemberRemove(ctx, lost); err != nil {
		return notYet("removing the member whose data were lost: %w", err)
	}
	j.tell(ctx, StepRemoved, lost, "Removed %s from the embedded etcd, because its data directory is empty. It joins again.",
		j.name(j.Ordinal))
	return nil
}

// checkAway returns an error if another process runs the member of this host.
func (j *joining) checkAway(ctx context.Context) error {
	if _, err := j.status(ctx, j.Ordinal); err == nil {
		return notYet("the data directory is empty, but a member answers at %s: stop the other process that runs %s",
			j.url(j.Ordinal, clientPort), j.name(j.Ordinal))
	}
	return nil
}

// agree returns an error unless all other members answer, have a vote, and have the same leader, which is not the lost member.
func (j *joining) agree(ctx context.Context, lost uint64) error {
	var leader uint64
	for ordinal := range j.Hosts {
		if ordinal == j.Ordinal {
			continue
		}
		name := j.name(ordinal)
		at := slices.IndexFunc(j.members, func(m *etcdserverpb.Member) bool { return slices.Contains(m.PeerURLs, j.url(ordinal, peerPort)) })
		if at < 0 {
			return fmt.Errorf("%s has not joined yet", name)
		}
		status, err := j.status(ctx, ordinal)
		switch {
		case err != nil:
			return fmt.Errorf("%s does not answer: %w", name, err)
		case status.Header.MemberId != j.members[at].ID:
			return fmt.Errorf("another member answers for %s", name)
		case types.ID(status.Header.ClusterId).String() != j.id:
			return fmt.Errorf("%s %w", name, ErrOtherCluster)
		case status.IsLearner:
			return fmt.Errorf("%s has no vote yet", name)
		case status.Leader == 0 || status.Leader == lost:
			return fmt.Errorf("%s has no leader", name)
		case leader != 0 && status.Leader != leader:
			return fmt.Errorf("%s has another leader than the others", name)
		}
		leader = status.Leader
	}
	return nil
}

// status asks a member about itself.
func (j *joining) status(ctx context.Context, ordinal int) (*clientv3.StatusResponse, error) {
	ctx, cancel := context.WithTimeout(ctx, statusTimeout)
	defer cancel()
	return j.client.Status(ctx, j.url(ordinal, clientPort))
}
