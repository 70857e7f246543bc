// Copyright The jobset-apiserver Authors.
// SPDX-License-Identifier: Apache-2.0

package apiserver_test

import (
	"math/rand"
	"os"
	"strconv"
	"testing"
	"time"
)

// inputsVariable is the number of random inputs of TestRandomRequests; a few thousand when it is not set.
const inputsVariable = "JOBSET_FUZZ_INPUTS"

// FuzzRequests lets the fuzzer of Go make up bodies. The seeds are every shape in every format.
func FuzzRequests(f *testing.F) {
	s := newServer()
	tr := newTranscoder(s)
	for _, shape := range shapes {
		for i, media := range medias {
			for _, n := range []int{0, 1, 3, 120} {
				if body := tr.in(media, shape.json(n)); body != nil {
					f.Add(uint8(i), body, n%2 == 0)
				}
			}
		}
	}
	f.Fuzz(func(t *testing.T, media uint8, body []byte, update bool) {
		check(t, s, medias[int(media)%len(medias)], body, update)
		unchanged(t, s)
	})
}

// TestRandomRequests sends random bodies that are near to valid ones, the same in each run.
func TestRandomRequests(t *testing.T) {
	inputs := 4000
	if text := os.Getenv(inputsVariable); text != "" {
		n, err := strconv.Atoi(text)
		if err != nil {
			t.Fatalf("%s: %v", inputsVariable, err)
		}
		inputs = n
	}
	s := newServer()
	tr := newTranscoder(s)
	r := rand.New(rand.NewSource(1))
	start, bytes, decoded := time.Now(), 0, 0
	for i := range inputs {
		body, media := randomBody(r, tr)
		update := r.Intn(2) == 0
		check(t, s, media, body, update)
		if s.obj != nil {
			decoded++
			unchanged(t, s)
		}
		bytes += len(body)
		if t.Failed() {
			t.Fatalf("input %d: %s %q", i, media, body[:min(len(body), 2000)])
		}
		if i > 0 && i%100_000 == 0 {
			t.Logf("%s: %d inputs, %d bytes, %d decoded, in %s", time.Now().UTC().Format(time.TimeOnly), i, bytes, decoded, time.Since(start).Round(time.Second))
		}
	}
	t.Logf("%d inputs of %d bytes together, %d of them decoded, in %s", inputs, bytes, decoded, time.Since(start).Round(time.Second))
	if decoded < inputs/10 {
		t.Errorf("only %d of %d inputs could be decoded: the bodies are too random", decoded, inputs)
	}
}

// randomBody changes a shape with few items, one in five hundred times with many.
func randomBody(r *rand.Rand, tr transcoder) (body []byte, media string) {
	n := r.Intn(4)
	switch {
	case r.Intn(500) == 0:
		n = r.Intn(3000)
	case r.Intn(20) == 0:
		n = r.Intn(130)
	}
	media = medias[r.Intn(len(medias))]
	document := shapes[r.Intn(len(shapes))].json(n)
	if media == mediaJSON || r.Intn(2) == 0 {
		if changed := tr.in(media, mutate(r, document)); changed != nil {
			return changed, media
		}
	}
	if body = tr.in(media, document); body == nil {
		return document, mediaJSON
	}
	return mutate(r, body), media
}
