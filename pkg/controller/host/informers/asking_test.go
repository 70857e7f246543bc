// Copyright The jobset-apiserver Authors.
// SPDX-License-Identifier: Apache-2.0

package informers

import (
	"context"
	"errors"
	"testing"
	"testing/synctest"
	"time"
)

// TestProbeHoldsNothingUp asks a server that does not answer. Meanwhile what it is known to be can be read and noted, and those who
// wait for the answer go when their time is over.
func TestProbeHoldsNothingUp(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		answer, asked := make(chan error), 0
		s := newServer("test", func(context.Context) error {
			asked++
			return <-answer
		})
		failed := time.Now()
		time.Sleep(minPause)
		first, second := make(chan bool, 1), make(chan bool, 1)
		go func() { first <- s.serves(t.Context(), failed, errors.New("connection refused")) }()
		synctest.Wait()
		go func() { second <- s.serves(t.Context(), failed, errors.New("connection refused")) }()
		s.fails()
		s.answers()
		if since := s.ServedSince(); since.IsZero() {
			t.Error("the answer to another request must count")
		}
		gone, cancel := context.WithTimeout(t.Context(), time.Millisecond)
		defer cancel()
		if s.serves(gone, failed, errors.New("connection refused")) {
			t.Error("a caller whose time is over must not get an answer")
		}
		time.Sleep(time.Millisecond)
		answer <- nil
		if !<-first || !<-second || asked != 1 {
			t.Errorf("%d questions, want one that answers both", asked)
		}
	})
}
