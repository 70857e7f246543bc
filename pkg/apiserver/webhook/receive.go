// Copyright The jobset-apiserver Authors.
// SPDX-License-Identifier: Apache-2.0

package webhook

import (
	"context"
	"errors"
	"io"
	"mime"
	"net/http"
	"time"

	"golang.org/x/sync/semaphore"

	"github.com/jobset-apiserver/jobset-apiserver/pkg/apiserver/requests/callers"
	"github.com/jobset-apiserver/jobset-apiserver/pkg/apiserver/requests/payload"
)

// check refuses what is no question, before anything of its body is read.
func check(req *http.Request) error {
	if req.Method != http.MethodPost {
		return bad(http.StatusMethodNotAllowed, "the method must be POST")
	}
	if media, _, err := mime.ParseMediaType(req.Header.Get("Content-Type")); err != nil || media != "application/json" {
		return bad(http.StatusUnsupportedMediaType, "the content type must be application/json")
	}
	if req.ContentLength > maxBytes {
		return tooLarge()
	}
	return nil
}

// receiveKnown receives a question of a caller with a certificate, and waits for its turn. The turn ends with done.
func (h *handler) receiveKnown(ctx context.Context, w http.ResponseWriter, req *http.Request) (data []byte, done func(), err error) {
	if err := acquire(ctx, h.reading); err != nil {
		return nil, nil, err
	}
	defer h.reading.Release(1)
	h.setDeadline(w, h.timeout)
	if data, err = read(req.Body, nil, req.ContentLength); err != nil {
		return nil, nil, err
	}
	endDeadline(w)
	if err := acquire(ctx, h.answering); err != nil {
		return nil, nil, err
	}
	return data, func() { h.answering.Release(1) }, nil
}

// receive receives a question of any other caller within its share.
func (h *handler) receive(ctx context.Context, w http.ResponseWriter, req *http.Request) (data []byte, done func(), err error) {
	control := http.NewResponseController(w)
	r := h.shares.enter(callers.AddressOf(req.RemoteAddr), func() { _ = control.SetReadDeadline(time.Unix(1, 0)) })
	if r == nil {
		return nil, nil, busy()
	}
	cost, err := 0.0, error(nil)
	if data, err = h.receiveBody(ctx, w, req, r); err == nil {
		cost, err = h.pace(ctx, r, len(data))
	}
	if err == nil && !h.queue.Enter(cost, 1).Wait(ctx) {
		err = busy()
	}
	if err != nil {
		r.leave()
		if errors.Is(err, errNotDue) {
			h.delay(ctx) // its place, its room and its body are free by now
		}
		return nil, nil, err
	}
	r.charge(len(data))
	return data, func() {
		h.queue.Release(cost, 1)
		r.leave()
	}, nil
}

// receiveBody receives the beginning first. What is larger must find room before more of it is received, and has arrived soon in any case.
func (h *handler) receiveBody(ctx context.Context, w http.ResponseWriter, req *http.Request, r *request) ([]byte, error) {
	h.setDeadline(w, h.receiving)
	data, err := read(io.LimitReader(req.Body, smallBody+1), nil, req.ContentLength)
	if err == nil && len(data) > smallBody {
		size := req.ContentLength
		if size < 0 {
			size = maxBytes
		}
		if r.makeRoom(ctx, size) != nil {
			return nil, busy()
		}
		h.setDeadline(w, h.receiving)
		data, err = read(req.Body, data, size)
	}
	if !r.arrive() {
		return nil, busy()
	}
	if err == nil {
		endDeadline(w)
	}
	return data, err
}

// errNotDue is the answer to a question that would have to wait for longer than it may.
var errNotDue = busy()

// delay lets a caller wait whose pace is used up. When many wait already, it does not.
func (h *handler) delay(ctx context.Context) {
	if h.delays.TryAcquire(1) {
		defer h.delays.Release(1)
		_ = sleep(ctx, busyDelay)
	}
}

// pace waits until the question is due.
func (h *handler) pace(ctx context.Context, r *request, size int) (cost float64, err error) {
	deadline, _ := ctx.Deadline()
	wait, cost, due := r.reserve(size, time.Until(deadline))
	if !due {
		return 0, errNotDue
	}
	return cost, sleep(ctx, wait)
}

// sleep waits, and returns an error when the context ends before.
func sleep(ctx context.Context, d time.Duration) error {
	if d <= 0 {
		return nil
	}
	timer := time.NewTimer(d)
	defer timer.Stop()
	select {
	case <-timer.C:
		return nil
	case <-ctx.Done():
		return busy()
	}
}

// setDeadline is when the client must have sent what is read. Not all writers know deadlines: those of tests do not.
func (h *handler) setDeadline(w http.ResponseWriter, d time.Duration) {
	_ = http.NewResponseController(w).SetReadDeadline(time.Now().Add(d))
}

// endDeadline goes on listening for the end of the connection, which would otherwise end at the deadline.
func endDeadline(w http.ResponseWriter) {
	_ = http.NewResponseController(w).SetReadDeadline(time.Time{})
}

// read receives a body, or what follows its beginning. Its memory grows with what was received, not with what was announced.
func read(body io.Reader, begin []byte, announced int64) ([]byte, error) {
	data := begin
	if cap(data) == 0 {
		data = make([]byte, 0, min(max(announced, 0), smallBody)+1)
	}
	for {
		if len(data) == cap(data) {
			data = append(data, 0)[:len(data)]
		}
		n, err := body.Read(data[len(data):cap(data)])
		data = data[:len(data)+n]
		switch {
		case len(data) > maxBytes:
			return nil, tooLarge()
		case errors.Is(err, io.EOF):
			return data, nil
		case err != nil:
			return nil, bad(http.StatusBadRequest, "the body was not received in time")
		}
	}
}

// acquire waits for a turn.
func acquire(ctx context.Context, turns *semaphore.Weighted) error {
	if turns.Acquire(ctx, 1) != nil {
		return busy()
	}
	return nil
}

func busy() error {
	return &failure{code: http.StatusServiceUnavailable, result: resultBusy, err: errors.New("too many requests at the same time")}
}

func tooLarge() error {
	return bad(http.StatusRequestEntityTooLarge, "the body must have no more than %d bytes (3 MiB)", maxBytes)
}

// checkPayload refuses what would be expensive to decode.
func checkPayload(data []byte) error {
	if err := payload.Check(data); err != nil {
		return bad(http.StatusRequestEntityTooLarge, "%w", err)
	}
	return nil
}
