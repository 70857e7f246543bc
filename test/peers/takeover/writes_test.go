// Copyright The jobset-apiserver Authors.
// SPDX-License-Identifier: Apache-2.0

package takeover

import (
	"context"
	"fmt"
	"strconv"
	"sync"
	"testing"
	"time"
)

// writer writes a number that grows into a set, all the time.
type writer struct {
	set string
	// acknowledged is the last number whose write succeeded.
	acknowledged int
	// refused is the longest time between two writes that succeeded.
	refused time.Duration
}

func (w *writer) run(ctx context.Context, o *takeover) {
	last := time.Now()
	for n := 1; ctx.Err() == nil; n++ {
		if o.patch(context.WithoutCancel(ctx), jobSets, w.set, fmt.Sprintf(`{"metadata":{"annotations":{"count":"%d"}}}`, n)) == nil {
			w.acknowledged, w.refused, last = n, max(w.refused, time.Since(last)), time.Now()
		}
		time.Sleep(20 * time.Millisecond)
	}
}

// TestWritesAreKept writes sets while they are moved over and back. Every write that succeeded must be there afterwards.
func TestWritesAreKept(t *testing.T) {
	const writers = 5
	o := begin(t, writers, 1)
	startServer(t)
	if err := upstream.Stop(); err != nil {
		t.Fatal(err)
	}
	for _, direction := range []string{"to-server", "to-crd"} {
		ctx, stop := context.WithCancel(t.Context())
		var all []*writer
		var writing sync.WaitGroup
		for i := range writers {
			w := &writer{set: fmt.Sprint("set-", i)}
			all = append(all, w)
			writing.Go(func() { w.run(ctx, o) })
		}
		time.Sleep(2 * time.Second)
		migrate(t, direction)
		time.Sleep(2 * time.Second)
		stop()
		writing.Wait()
		for _, w := range all {
			if w.acknowledged == 0 {
				t.Fatalf("%s: no write of %s succeeded", direction, w.set)
			}
			got, err := strconv.Atoi(o.get(t, jobSets, w.set).GetAnnotations()["count"])
			if err != nil || got < w.acknowledged {
				t.Errorf("%s: %s has the number %d (%v), and %d was written", direction, w.set, got, err, w.acknowledged)
			}
			t.Logf("%s: %d was written into %s; no write succeeded for %s", direction, w.acknowledged, w.set, w.refused.Round(time.Millisecond))
		}
		o.unchanged(t, direction)
	}
	o.works(t)
}
