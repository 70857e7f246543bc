// Copyright The jobset-apiserver Authors.
// SPDX-License-Identifier: Apache-2.0

package plan

import (
	"time"

	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/utils/ptr"

	leaderworkersetv1 "github.com/jobset-apiserver/jobset-apiserver/pkg/apis/leaderworkerset/v1"
)

// Defaults of spec.groupRestartBackoff, for specs that were stored without them.
const defaultBase, defaultLongest = 10 * time.Second, 300 * time.Second

// backoff is how long groups wait that fail again and again.
type backoff struct {
	set           bool
	base, longest time.Duration
}

func backoffOf(set *leaderworkersetv1.LeaderWorkerSet) backoff {
	b := set.Spec.GroupRestartBackoff
	if b == nil {
		return backoff{}
	}
	base := seconds(b.BaseSeconds, defaultBase)
	return backoff{set: true, base: base, longest: max(base, seconds(b.MaxSeconds, defaultLongest))}
}

func seconds(n *int32, fallback time.Duration) time.Duration {
	if n == nil || *n < 1 {
		return fallback
	}
	return time.Duration(*n) * time.Second
}

// delay returns how long a group waits that has failed so often in a row, this failure included.
func (b backoff) delay(inRow int32) time.Duration {
	if !b.set || inRow < 2 {
		return 0
	}
	d := b.base
	for range inRow - 2 {
		if d >= b.longest {
			break
		}
		d *= 2
	}
	return min(d, b.longest)
}

// follow records since when a group is ready, and that it begins again without delay once it was ready for long enough.
func (b backoff) follow(e *leaderworkersetv1.GroupStatus, ready bool, now metav1.Time) {
	switch {
	case !b.set:
		e.RestartsInRow, e.RestartAt, e.ReadySince = 0, nil, nil
	case e.RestartsInRow == 0:
		e.ReadySince = nil
	case ready && e.ReadySince == nil:
		e.ReadySince = ptr.To(now)
	case !ready && e.ReadySince != nil:
		b.endReady(e, now)
	}
}

// endReady ends the time for which a group was ready.
func (b backoff) endReady(e *leaderworkersetv1.GroupStatus, now metav1.Time) {
	if e.ReadySince != nil && now.Sub(e.ReadySince.Time) >= b.longest {
		e.RestartsInRow = 0
	}
	e.ReadySince = nil
}

// next counts a failure and returns when the group is recreated; nil for at once.
func (b backoff) next(e *leaderworkersetv1.GroupStatus, now metav1.Time) *metav1.Time {
	if !b.set {
		return nil
	}
	b.endReady(e, now)
	e.RestartsInRow += one(e.RestartsInRow < maxRestarts)
	if d := b.delay(e.RestartsInRow); d > 0 {
		return ptr.To(metav1.NewTime(now.Add(d)))
	}
	return nil
}

// waits returns whether a restart that was decided waits for its time.
func (b backoff) waits(e *leaderworkersetv1.GroupStatus, now metav1.Time) bool {
	return b.set && e.RestartAt != nil && now.Before(e.RestartAt)
}
