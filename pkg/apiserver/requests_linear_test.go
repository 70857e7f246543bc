// Copyright The jobset-apiserver Authors.
// SPDX-License-Identifier: Apache-2.0

package apiserver_test

import (
	"fmt"
	"net/http"
	"os"
	"runtime"
	"slices"
	"strings"
	"testing"
	"time"

	"golang.org/x/sys/unix"

	"github.com/jobset-apiserver/jobset-apiserver/pkg/apiserver/payload"
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

// cheapest returns the least time and memory of a few tries.
func cheapest(t *testing.T, s *server, media string, body []byte, update bool) (time.Duration, uint64) {
	t.Helper()
	runtime.LockOSThread()
	defer runtime.UnlockOSThread()
	var times []time.Duration
	var bytes []uint64
	for range 4 {
		time, memory := processorTime(t), allocated()
		s.send(media, body, update)
		times, bytes = append(times, processorTime(t)-time), append(bytes, allocated()-memory)
	}
	return slices.Min(times), slices.Min(bytes)
}

// Eight times as many bytes cost about eight times as much; quadratic work would cost 64 times as much. The lists of the one
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

// linear compares the cost of two bodies, of which the second has eight times as many items.
func linear(t *testing.T, s *server, media string, few, many []byte, update bool) {
	t.Helper()
	const tolerated = 24
	if few == nil || many == nil {
		return // the format cannot say it
	}
	baseTime, baseMemory := cheapest(t, s, media, few, update)
	time, memory := cheapest(t, s, media, many, update)
	if limit := tolerated * max(baseTime, 500_000); time > limit {
		t.Errorf("%d bytes take %s, %d bytes %s: want at most %s (update: %v)", len(few), baseTime, len(many), time, limit, update)
	}
	if limit := tolerated * max(baseMemory, 1<<20); memory > limit {
		t.Errorf("%d bytes allocate %d bytes, %d bytes %d: want at most %d (update: %v)", len(few), baseMemory, len(many), memory, limit, update)
	}
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
