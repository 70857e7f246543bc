// Copyright The jobset-apiserver Authors.
// SPDX-License-Identifier: Apache-2.0

package space

import (
	"runtime"
	"runtime/debug"
	"runtime/metrics"
	"sync"
	"time"
)

// collectInterval is the least time between two garbage collections that are done only to measure.
const collectInterval = 5 * time.Second

// heap reads what was live at the end of the last garbage collection, and GOMEMLIMIT.
func heap() (live, limit int64) {
	sample := []metrics.Sample{{Name: "/gc/heap/live:bytes"}}
	metrics.Read(sample)
	return int64(sample[0].Value.Uint64()), debug.SetMemoryLimit(-1)
}

// collector brings the measure of live objects up to date. While a server has little to do, it collects garbage every two
// minutes only, and the answers that were under way at the last collection would count as live until the next one.
type collector struct {
	mu   sync.Mutex
	last time.Time
}

// collect collects garbage unless it has done so lately.
func (c *collector) collect() {
	c.mu.Lock()
	defer c.mu.Unlock()
	if time.Since(c.last) < collectInterval {
		return
	}
	runtime.GC()
	c.last = time.Now()
}
