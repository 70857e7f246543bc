// Copyright The jobset-apiserver Authors.
// SPDX-License-Identifier: Apache-2.0

package space

import (
	"math"
	"strings"
	"testing"

	corev1 "k8s.io/api/core/v1"
)

// heapOf is a heap of fixed size with a memory limit of 1,000 MiB. Each look at it is after another garbage collection if collects is true.
func heapOf(live int64, collects bool) *Memory {
	var collections uint64
	return &Memory{collect: func() {}, read: func() sample {
		if collects {
			collections++
		}
		return sample{live: live << 20, limit: 1000 << 20, collections: collections}
	}}
}

// TestWatchesInMemory wants a creation that is refused for lack of memory to name what takes it. A watch counts to a quarter among live
// objects.
func TestWatchesInMemory(t *testing.T) {
	for name, tc := range map[string]struct {
		live, watches int64
		want          string
	}{
		"watches have all that they may have":   {live: 160, watches: 625},
		"live are watches":                      {live: 510, watches: 620, want: "8 watches take 62% of the memory limit of 1000 MiB and objects 35%"},
		"watches, and objects below their part": {live: 560, watches: 450, want: "8 watches take 45% of the memory limit of 1000 MiB and objects 44%"},
		"objects have their part":               {live: 600, watches: 400, want: "objects that the server keeps in memory take 50% of its limit of 1000 MiB"},
		"no watches":                            {live: 499},
	} {
		t.Run(name, func(t *testing.T) {
			m := heapOf(tc.live, true)
			m.SetWatches(8, tc.watches<<20)
			err := guarded{Interface: &inner{}, guard: New(plenty, m)}.Create(t.Context(), "key", &corev1.Pod{}, nil, 0)
			switch {
			case tc.want == "":
				if err != nil {
					t.Errorf("refused: %v", err)
				}
			case !isInsufficient(err) || !strings.Contains(err.Error(), tc.want):
				t.Errorf("error is %v, want %q", err, tc.want)
			case strings.Contains(tc.want, "watches") && (strings.Contains(err.Error(), "JobSets") || !strings.Contains(err.Error(), "end watches")):
				t.Errorf("the remedy is wrong: %v", err)
			}
		})
	}
}

// TestRoomForWatches wants watches to fit beside the objects.
func TestRoomForWatches(t *testing.T) {
	const mib = 1 << 20
	m := heapOf(600, true)
	m.SetWatches(1, 200*mib) // of which 50 MiB are live, so that objects take 550 MiB
	for bytes, want := range map[int64]bool{50 * mib: true, 51 * mib: false} {
		if got := m.Fits(bytes); got != want {
			t.Errorf("%d MiB more fit: %t", bytes/mib, got)
		}
	}
	m.read = func() sample { return sample{live: math.MaxInt64 - 1, limit: math.MaxInt64} }
	if !m.Fits(mib) || m.Limit() != DefaultMemory {
		t.Errorf("without a limit, memory is bounded by %d bytes", m.Limit())
	}
}

// TestWatchesSinceTheLastCollection begins watches after a garbage collection: what was live then has no part of them.
func TestWatchesSinceTheLastCollection(t *testing.T) {
	m := heapOf(450, false)
	m.SetWatches(8, 400<<20)
	if m.Fits(1 << 20) {
		t.Error("450 MiB of objects and 400 MiB of watches leave room for more")
	}
	m.read = heapOf(450, true).read
	if !m.Fits(1 << 20) {
		t.Error("350 MiB of objects and 400 MiB of watches leave no room for more")
	}
}
