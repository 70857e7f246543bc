// Copyright The jobset-apiserver Authors.
// SPDX-License-Identifier: Apache-2.0

package faults

import (
	"context"
	"errors"
	"time"

	"github.com/jobset-apiserver/jobset-apiserver/test/framework/hosts"
)

// lossy is the share of packets that is lost in a bad network.
const lossy = 0.3

// partitions are faults of the network between the servers. All of them reach kube-apiserver, and it reaches them.
var partitions = []memberFault{
	{name: "partition of a follower", kind: "partition", root: true, happen: func(ctx context.Context, e *embedded) error {
		return e.partition(ctx, outage(), e.follower, loseBoth)
	}},
	{name: "partition of the leader", kind: "partition", root: true, happen: func(ctx context.Context, e *embedded) error {
		return e.partition(ctx, outage(), e.leader, loseBoth)
	}},
	{name: "long partition of each", kind: "partition", root: true, happen: partitionEach},
	{name: "loss from the leader", kind: "loss", root: true, happen: func(ctx context.Context, e *embedded) error {
		return e.partition(ctx, outage(), e.leader, loseSent)
	}},
	{name: "loss to the leader", kind: "loss", root: true, happen: func(ctx context.Context, e *embedded) error {
		return e.partition(ctx, outage(), e.leader, loseReceived)
	}},
	{name: "30 percent of packets lost", kind: "loss", root: true, happen: func(ctx context.Context, e *embedded) error {
		return e.partition(ctx, outage(), e.leader, func(one, other *hosts.Host, _ bool) error {
			return errors.Join(one.Lose(other, lossy), other.Lose(one, lossy))
		})
	}},
}

// loss is what happens between two hosts; chosen says that one of them is the chosen one, which comes first.
type loss func(one, other *hosts.Host, chosen bool) error

func loseBoth(one, other *hosts.Host, chosen bool) error {
	return errors.Join(loseSent(one, other, chosen), loseReceived(one, other, chosen))
}

func loseSent(one, other *hosts.Host, chosen bool) error {
	if !chosen {
		return nil
	}
	return other.Lose(one, 1)
}

func loseReceived(one, other *hosts.Host, chosen bool) error {
	if !chosen {
		return nil
	}
	return one.Lose(other, 1)
}

// partitionEach cuts off one server after the other, one of which has the connection of kube-apiserver. This server cannot answer, but the
// others can.
func partitionEach(ctx context.Context, e *embedded) error {
	for n := range size {
		chosen := func(context.Context) (int, error) { return n, nil }
		if err := errors.Join(e.partition(ctx, 4*outage(), chosen, loseBoth), e.recovered(ctx)); err != nil {
			return err
		}
	}
	return nil
}

// partition loses packets between a chosen server and the others, and between the others, for a while.
func (e *embedded) partition(ctx context.Context, pause time.Duration, choose func(context.Context) (int, error), lose loss) error {
	chosen, err := choose(ctx)
	if err != nil {
		return err
	}
	of := func(n int) *hosts.Host { return e.network.Hosts[(chosen+n)%size] }
	err = errors.Join(lose(of(0), of(1), true), lose(of(0), of(2), true), lose(of(1), of(2), false))
	if err == nil {
		time.Sleep(pause)
	}
	return errors.Join(err, e.network.Heal())
}
