// Copyright The jobset-apiserver Authors.
// SPDX-License-Identifier: Apache-2.0

package queue

import (
	"context"
	"testing"
	"testing/synctest"
	"time"

	"k8s.io/client-go/tools/cache"
)

// TestDeadlinesSurviveLeapsOfTheClock has the clock of the machine an hour behind when a deadline is computed, and set
// right a minute later.
func TestDeadlinesSurviveLeapsOfTheClock(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		ctx, cancel := context.WithCancel(t.Context())
		begin := time.Now()
		behind := func() time.Duration {
			if time.Since(begin) < time.Minute {
				return time.Hour
			}
			return 0
		}
		deadline, met := begin.Add(30*time.Minute), time.Time{}
		q := New("leap")
		q.Add(cache.ObjectName{Namespace: "ns", Name: "set"})
		ended := make(chan struct{})
		syncs := 0
		go func() {
			defer close(ended)
			q.Run(ctx, 1, func(context.Context, cache.ObjectName) (Due, error) {
				syncs++
				now := time.Now().Add(-behind())
				if now.Before(deadline) {
					return After(deadline.Sub(now)), nil
				}
				met = time.Now()
				return Due{}, nil
			})
		}()
		time.Sleep(3 * time.Hour)
		cancel()
		<-ended
		if late := met.Sub(deadline); met.IsZero() || late > longestPause {
			t.Errorf("the deadline was met %s late, want at most %s", late, longestPause)
		}
		if syncs > 5 {
			t.Errorf("%d syncs, want at most 5", syncs)
		}
	})
}
