// Copyright The jobset-apiserver Authors.
// SPDX-License-Identifier: Apache-2.0

package apiserver_test

import (
	"fmt"
	"math"
	"net/http"
	"os"
	"runtime"
	"runtime/debug"
	"strings"
	"testing"
	"time"

	"golang.org/x/sys/unix"

	"github.com/jobset-apiserver/jobset-apiserver/pkg/apiserver/requests/payload"
	"github.com/jobset-apiserver/jobset-apiserver/test/framework/tier"
)

// processorTime is the time that this thread has used. Other processes do not lengthen it.
func processorTime(t *testing.T) time.Duration {
	t.Helper()
	var used unix.Timespec
	if err := unix.ClockGettime(unix.CLOCK_THREAD_CPUTIME_ID, &used); err != nil {
		t.Fatal(err)
	}
	return time.Duration(used.Nano())
}

// least is the least time and memory that one request has taken so far.
type least struct {
	time   time.Duration
	memory uint64
}

// measure sends a request once more.
func (l *least) measure(t *testing.T, s *server, media string, body []byte, update bool) {
	t.Helper()
	time, memory := processorTime(t), allocated()
	s.send(media, body, update)
	l.time, l.memory = min(l.time, processorTime(t)-time), min(l.memory, allocated()-memory)
}

// Eight times as many bytes cost about eight times as much memory, and in the long tier as much time; quadratic work would cost 64 times as
// much. The lists of the one
// pair are within their limits, so that all items are looked at; those of the other are as long as can be decoded.
func TestCostIsLinearInBytes(t *testing.T) {
	s := newServer()
	tr := newTranscoder(s)
	for _, shape := range shapes {
		for _, media := range medias {
			t.Run(shape.name+"/"+media, func(t *testing.T) {
				linear(t, s, media, tr.in(media, shape.json(120)), tr.in(media, shape.json(120*8)), false)
				if media == mediaJSON {
					linear(t, s, media, shape.json(120), shape.json(120*8), true)
					linear(t, s, media, shape.json(2400), shape.json(2400*8), true)
				}
			})
		}
	}
}

// linear compares the cost of two bodies, of which the second has eight times as many items. The bytes that are allocated are exact but for
// what is kept in pools between the tries. The time is not compared in the gate: neighbors slow down a thread, too. A busy machine adds to
// some tries, but not to all; quadratic work exceeds the limit in each. The garbage collector, which would charge its own work to the
// requests, runs between the tries only.
func linear(t *testing.T, s *server, media string, few, many []byte, update bool) {
	t.Helper()
	if few == nil || many == nil {
		return // the format cannot say it
	}
	runtime.LockOSThread()
	defer runtime.UnlockOSThread()
	defer debug.SetGCPercent(debug.SetGCPercent(-1))
	const tolerated, atMost = 24, 24
	atLeast := 2
	if tier.Long() {
		atLeast = 4
	}
	base, cost := least{math.MaxInt64, math.MaxUint64}, least{math.MaxInt64, math.MaxUint64}
	var timeLimit time.Duration
	var memoryLimit uint64
	for try := 1; try <= atMost; try++ {
		runtime.GC()
		base.measure(t, s, media, few, update)
		cost.measure(t, s, media, many, update)
		timeLimit, memoryLimit = tolerated*max(base.time, 500*time.Microsecond), tolerated*max(base.memory, 1<<20)
		if try >= atLeast && (!tier.Long() || cost.time <= timeLimit) && cost.memory <= memoryLimit {
			return
		}
	}
	t.Errorf("%d bytes take %s and %d bytes of memory, %d bytes %s and %d: want at most %s and %d (update: %v)",
		len(few), base.time, base.memory, len(many), cost.time, cost.memory, timeLimit, memoryLimit, update)
}

// The largest bodies of each shape are refused, or cost a bounded amount of memory.
func TestLargestBodies(t *testing.T) {
	s := newServer()
	tr := newTranscoder(s)
	for _, shape := range shapes {
		item := len(strings.ReplaceAll(shape.item+shape.another, "%d", "12345")) + 1
		document := shape.json((payload.MaxBytes - len(shape.before) - len(shape.after) - len(shape.end)) / item)
		t.Run(shape.name, func(t *testing.T) { check(t, s, mediaJSON, document, false) })
		t.Run(shape.name+" in YAML", func(t *testing.T) { check(t, s, mediaYAML, append([]byte("# not JSON\n"), document...), true) })
	}
	for _, shape := range shapes[:2] {
		for _, media := range []string{mediaCBOR, mediaProtobuf} {
			t.Run(shape.name+" in "+media, func(t *testing.T) { check(t, s, media, tr.in(media, shape.json(12_000)), false) })
		}
	}
	code, answer := s.send(mediaJSON, make([]byte, payload.MaxBytes+1), false)
	if want := "the body must have no more than 1572864 bytes (1.5 MiB), it has 1572865 or more"; code != http.StatusRequestEntityTooLarge || !strings.Contains(answer.Message, want) {
		t.Errorf("a body of a byte too many: %d %q, want %d and %q", code, answer.Message, http.StatusRequestEntityTooLarge, want)
	}
}

func TestRequestLimitsAreDocumented(t *testing.T) {
	page, err := os.ReadFile("../../docs/validation.md")
	if err != nil {
		t.Fatal(err)
	}
	for what, limit := range map[string]int{
		"Bytes of a body":                                                       payload.MaxBytes,
		"Entries of one list or map":                                            payload.MaxEntries,
		"Objects and lists that are items of lists, together":                   payload.MaxObjects,
		"Levels of objects and lists":                                           payload.MaxDepth,
		"Objects in one list of a strategic merge patch or a server-side apply": payload.MaxMergedItems,
	} {
		if row := fmt.Sprintf("| %s | %d |\n", what, limit); !strings.Contains(string(page), row) {
			t.Errorf("docs/validation.md lacks the row %q", row)
		}
	}
}
