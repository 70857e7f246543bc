// Copyright The jobset-apiserver Authors.
// SPDX-License-Identifier: Apache-2.0

package storecheck

import (
	"time"

	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"

	"github.com/jobset-apiserver/jobset-apiserver/pkg/witness"
)

const (
	// confirmInterval is how often a refusal is confirmed in the record.
	confirmInterval = time.Minute
	// abandonedAfter is how long a server must have seen no new confirmation of a refusal before it takes the refusal as abandoned.
	abandonedAfter = 3 * confirmInterval
)

// confirmation is one of a refusal in the record, and when this server saw it first.
type confirmation struct {
	server, newUUID string
	time            metav1.Time
	seen            time.Time
}

// observe notes which confirmation the record has.
func (g *Guard) observe(record *witness.Record) {
	if record == nil || record.Refusal == nil {
		g.confirmation = confirmation{}
		return
	}
	if !g.confirmation.of(record.Refusal) {
		r := record.Refusal
		g.confirmation = confirmation{server: r.Server, newUUID: r.NewUUID, time: r.Time, seen: g.clock.Now()}
	}
}

func (c *confirmation) of(r *witness.Refusal) bool {
	return c.server == r.Server && c.newUUID == r.NewUUID && c.time.Equal(&r.Time)
}

// unconfirmed returns for how long this server has seen the refusal in the record without a new confirmation. The time in the record comes
// from the clock of another server, which may be wrong by any amount: it only distinguishes one confirmation from the next.
func (g *Guard) unconfirmed(refusal *witness.Refusal) time.Duration {
	if !g.confirmation.of(refusal) {
		return 0
	}
	return g.clock.Since(g.confirmation.seen)
}

// abandoned returns whether no server confirms the refusal any more.
func (g *Guard) abandoned(refusal *witness.Refusal) bool {
	return refusal != nil && g.unconfirmed(refusal) > abandonedAfter
}
