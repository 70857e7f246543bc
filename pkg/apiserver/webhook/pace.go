// Copyright The jobset-apiserver Authors.
// SPDX-License-Identifier: Apache-2.0

package webhook

import (
	"math"
	"time"
)

// bucket paces what comes: so many bytes at once, and then so many in a second.
type bucket struct {
	left float64
	at   time.Time
}

func newBucket(now time.Time, burst float64) bucket { return bucket{left: burst, at: now} }

// take takes bytes, and returns how long to wait until they are due.
func (b *bucket) take(now time.Time, size, pace, burst float64) time.Duration {
	b.left, b.at = min(b.left+now.Sub(b.at).Seconds()*pace, burst), now
	b.left -= size
	return time.Duration(max(-b.left, 0) / pace * float64(time.Second))
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
