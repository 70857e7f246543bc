// Copyright The jobset-apiserver Authors.
// SPDX-License-Identifier: Apache-2.0

package storecheck

import (
	"context"
	"time"

	"k8s.io/apimachinery/pkg/watch"
)

const (
	// heldEvents is how many events one check releases at most, and how many wait for the watch cache.
	heldEvents = 100
	// heldPause is the time between two checks when etcd does not answer.
	heldPause = 100 * time.Millisecond
)

// held is a watch whose events are passed on after a check that began after they came. The client of etcd connects again by itself, and
// does not notice that another store answers.
type held struct {
	next   watch.Interface
	guard  *Guard
	out    chan watch.Event
	cancel context.CancelFunc
}

func newHeld(next watch.Interface, guard *Guard) *held {
	ctx, cancel := guard.left.until(context.Background())
	h := &held{next: next, guard: guard, out: make(chan watch.Event, heldEvents), cancel: cancel}
	go h.run(ctx)
	return h
}

// ResultChan implements watch.Interface.
func (h *held) ResultChan() <-chan watch.Event { return h.out }

// Stop implements watch.Interface.
func (h *held) Stop() { h.cancel() }

func (h *held) run(ctx context.Context) {
	defer h.cancel()
	defer close(h.out)
	defer h.next.Stop()
	for {
		events := h.receive(ctx)
		if len(events) == 0 || !h.verify(ctx) {
			return
		}
		for _, event := range events {
			select {
			case h.out <- event:
			case <-ctx.Done():
				return
			}
		}
	}
}

// receive waits for an event and takes those that have come as well. It returns none at the end of the watch.
func (h *held) receive(ctx context.Context) []watch.Event {
	var events []watch.Event
	select {
	case event, ok := <-h.next.ResultChan():
		if !ok {
			return nil
		}
		events = append(events, event)
	case <-ctx.Done():
		return nil
	}
	for len(events) < heldEvents {
		select {
		case event, ok := <-h.next.ResultChan():
			if !ok {
				return events
			}
			events = append(events, event)
		default:
			return events
		}
	}
	return events
}

// verify waits until etcd says that it is still the right store. It returns false when it is not, or when the watch has ended.
func (h *held) verify(ctx context.Context) bool {
	for ctx.Err() == nil {
		if h.guard.Verify(ctx) == nil {
			return true
		}
		sleep(ctx, heldPause)
	}
	return false
}
