// Copyright The jobset-apiserver Authors.
// SPDX-License-Identifier: Apache-2.0

package space

import (
	"fmt"
	"math"
	"runtime"
	"runtime/debug"
	"runtime/metrics"
	"sync"
	"time"
)

const (
	// DefaultMemory is the memory of the server in bytes if GOMEMLIMIT is not set: the limit in the manifests.
	DefaultMemory = 2 << 30
	// watchHeap is the divisor for the part of the bytes counted for a watch that is live objects. The rest is stacks, and pages that
	// are not full. It is a little less than measured, so that what is live beyond it counts as objects.
	watchHeap = 4
	// collectInterval is the least time between two garbage collections that are done only to measure.
	collectInterval = 5 * time.Second
)

// parts are percentages of the memory limit.
type parts struct {
	// objects bounds live objects without watches, and all bounds them with watches. What is above is for requests and for a start, when
	// all objects are read.
	objects, all int64
}

var (
	// growing holds for creations, changes of spec, and new watches.
	growing = parts{objects: 50, all: 80}
	// touching holds for changes of labels, annotations and finalizers: the server remembers each version of an object for a minute
	// or more.
	touching = parts{objects: 65, all: 85}
)

// Memory is the memory that objects and watches share.
type Memory struct {
	// read returns what was live at the end of the last garbage collection.
	read func() sample
	// collect brings that measure up to date.
	collect func()

	mu      sync.Mutex
	watches watches
	// collections is the last garbage collection that was seen, and then is what watches took at that time: live objects include a part
	// of them.
	collections uint64
	then        int64
}

// watches are how many watches there are, and the bytes counted for them.
type watches struct {
	number int
	bytes  int64
}

// sample is the state of the heap at the end of a garbage collection. The limit is math.MaxInt64 if none is set.
type sample struct {
	live, limit int64
	collections uint64
}

// NewMemory returns the memory of this process.
func NewMemory() *Memory {
	return &Memory{read: readHeap, collect: new(collector).collect}
}

// Limit returns the memory of the server in bytes.
func (m *Memory) Limit() int64 {
	if limit := m.read().limit; limit != math.MaxInt64 {
		return limit
	}
	return DefaultMemory
}

// SetWatches notes how many watches there are, and how many bytes are counted for them.
func (m *Memory) SetWatches(number int, bytes int64) {
	m.mu.Lock()
	defer m.mu.Unlock()
	m.usage()
	m.watches = watches{number, bytes}
}

// Fits returns whether objects leave room for so many more bytes of watches.
func (m *Memory) Fits(bytes int64) bool {
	m.mu.Lock()
	defer m.mu.Unlock()
	objects, limit := m.usage()
	return limit == math.MaxInt64 || objects+m.watches.bytes+bytes <= limit/100*growing.all
}

// Collect brings the measure of live objects up to date, unless that was done lately.
func (m *Memory) Collect() { m.collect() }

// usage returns the bytes of live objects without watches, and the limit. The caller holds the lock.
func (m *Memory) usage() (objects, limit int64) {
	now := m.read()
	if now.collections != m.collections {
		m.collections, m.then = now.collections, m.watches.bytes
	}
	return max(0, now.live-m.then/watchHeap), now.limit
}

// low is the shortage in which objects, or objects and watches, have their parts of the limit.
func (m *Memory) low(of parts) *shortage {
	lack := m.look(of)
	if lack == nil {
		return nil
	}
	m.collect()
	return m.look(of)
}

func (m *Memory) look(of parts) *shortage {
	m.mu.Lock()
	defer m.mu.Unlock()
	objects, limit := m.usage()
	switch {
	case limit == math.MaxInt64:
		return nil
	case objects >= limit/100*of.objects:
		return &shortage{reason: reasonMemory, message: fmt.Sprintf(
			"the objects that the server keeps in memory take %d%% of its limit of %d MiB, and the rest is reserved for "+
				"requests and restarts: delete JobSets, or raise the memory limit and GOMEMLIMIT", percent(objects, limit), limit>>20)}
	case objects+m.watches.bytes >= limit/100*of.all:
		return &shortage{reason: reasonWatches, message: fmt.Sprintf(
			"%d watches take %d%% of the memory limit of %d MiB and objects %d%%, and the rest is reserved for "+
				"requests and restarts: end watches, or raise the memory limit and GOMEMLIMIT",
			m.watches.number, percent(m.watches.bytes, limit), limit>>20, percent(objects, limit))}
	}
	return nil
}

// readHeap reads what was live at the end of the last garbage collection, and GOMEMLIMIT.
func readHeap() sample {
	values := []metrics.Sample{{Name: "/gc/heap/live:bytes"}, {Name: "/gc/cycles/total:gc-cycles"}}
	metrics.Read(values)
	return sample{live: int64(values[0].Value.Uint64()), limit: debug.SetMemoryLimit(-1), collections: values[1].Value.Uint64()}
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
