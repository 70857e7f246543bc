// Copyright The jobset-apiserver Authors.
// SPDX-License-Identifier: Apache-2.0

package children

import (
	"testing"
	"time"

	"k8s.io/client-go/tools/cache"
)

func TestSince(t *testing.T) {
	notes, key, start := NewNotes[time.Time](), cache.NewObjectName("ns", "a"), time.Unix(100, 0)
	for i, step := range []struct {
		holds bool
		want  time.Time
	}{{false, time.Time{}}, {true, start.Add(time.Second)}, {true, start.Add(time.Second)}, {false, time.Time{}}, {true, start.Add(4 * time.Second)}} {
		if got := Since(notes, key, step.holds, start.Add(time.Duration(i)*time.Second)); !got.Equal(step.want) {
			t.Errorf("step %d: since %v, want %v", i, got, step.want)
		}
	}
}
