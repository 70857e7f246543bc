// Copyright The jobset-apiserver Authors.
// SPDX-License-Identifier: Apache-2.0

package scenario

import (
	"context"
	"fmt"
	"sync"
	"time"

	"github.com/jobset-apiserver/jobset-apiserver/test/bench/cluster"
)

// schedule is when calls are made, whether or not earlier ones were answered: one every so often, by so many clients. A
// call is late only if all clients wait for answers when it is due.
type schedule struct {
	every      time.Duration
	n, clients int
}

// made is what became of the calls of a schedule.
type made struct {
	// late is by how much each call was made after it was due, in milliseconds.
	late []float64
	// took is the time from when the first call was due to the last answer.
	took time.Duration
}

// run makes all calls and waits for their answers. The error has the first failure and the number of all.
func (s schedule) run(ctx context.Context, call func(ctx context.Context, client, i int) error) (made, error) {
	result := made{late: make([]float64, s.n)}
	failures := make([]error, s.n)
	begin := time.Now()
	at := func(i int) time.Time { return begin.Add(time.Duration(i) * s.every) }
	due := make(chan int)
	var working sync.WaitGroup
	for client := range s.clients {
		working.Go(func() {
			for i := range due {
				result.late[i] = millis(time.Since(at(i)))
				failures[i] = call(ctx, client, i)
			}
		})
	}
	err := s.dispatch(ctx, at, due)
	close(due)
	working.Wait()
	result.took = time.Since(begin)
	if err != nil {
		return result, err
	}
	return result, firstOf(failures)
}

// dispatch gives each call to a client when it is due.
func (s schedule) dispatch(ctx context.Context, at func(i int) time.Time, due chan<- int) error {
	for i := range s.n {
		if err := cluster.Pause(ctx, time.Until(at(i))); err != nil {
			return err
		}
		select {
		case due <- i:
		case <-ctx.Done():
			return ctx.Err()
		}
	}
	return nil
}

// firstOf returns an error with the first failure and the number of all; nil if there is none.
func firstOf(failures []error) error {
	var first error
	failed := 0
	for _, err := range failures {
		if err == nil {
			continue
		}
		if first == nil {
			first = err
		}
		failed++
	}
	if failed == 0 {
		return nil
	}
	return fmt.Errorf("%d of %d requests failed; the first: %w", failed, len(failures), first)
}
