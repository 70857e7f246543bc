// Copyright The jobset-apiserver Authors.
// SPDX-License-Identifier: Apache-2.0

package webhook

import (
	"math"
	"time"

	"github.com/jobset-apiserver/jobset-apiserver/pkg/apiserver/requests/callers"
)

// queue gives turns to questions that were received, those with the least cost first, and the older one of those with the same.
type queue = callers.Line[float64]

func newQueue(turns int) *queue {
	return callers.NewLine(int64(turns), func(a, b float64) bool { return a < b }, nil)
}

// newRooms gives memory for large questions of all addresses. While there is too little, the question of the address that holds least of it
// is the next one, and the older one of those with the same.
func newRooms(free int64) *callers.Line[*share] {
	return callers.NewLine(free, func(a, b *share) bool { return a.held < b.held }, func(s *share, bytes int64) { s.held += bytes })
}

// usage is what an address has used lately: half of it is forgotten in ten seconds.
type usage struct {
	bytes float64
	at    time.Time
}

const halfLife = 10 * time.Second

func (u *usage) now(now time.Time) float64 {
	if u.bytes > 0 {
		u.bytes *= math.Exp2(-float64(now.Sub(u.at)) / float64(halfLife))
	}
	u.at = now
	return u.bytes
}
