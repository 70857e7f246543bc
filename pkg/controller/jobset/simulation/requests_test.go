// Copyright The jobset-apiserver Authors.
// SPDX-License-Identifier: Apache-2.0

package simulation

import (
	"context"
	"errors"

	"k8s.io/client-go/tools/cache"

	"github.com/jobset-apiserver/jobset-apiserver/pkg/controller/children"
)

// write is what a request does when an API server carries it out. known means that the controller which sent it learns of the
// result, or that its successor sees it from the start.
type write[T any] func(known bool) (T, error)

// send sends a request, and lets other things happen before. A controller that was deposed goes on as if all was well, with
// the answer that is given; what it sends arrives when its successor is at work.
func send[T any](p *process, answer T, do write[T]) (T, error) {
	later := func() { p.late = append(p.late, func() { _, _ = do(false) }) }
	if p.deposed {
		later()
		return answer, nil
	}
	if p.dead {
		return answer, errDead
	}
	p.interlude()
	switch p.draw() {
	case refused:
		return answer, errServer
	case conflicted:
		return answer, errConflict
	case lost:
		_, _ = do(false)
		return answer, errTimeout
	case belated:
		later()
		return answer, errTimeout
	case killedBefore:
		p.dead = true
	case killedAfter:
		p.dead = true
		_, _ = do(true)
	case killedWhile:
		p.dead = true
		later()
	case deposed:
		p.deposed = true
		return send(p, answer, do)
	default:
		return do(true)
	}
	return answer, errDead
}

// read sends a request that changes nothing.
func read[T any](p *process, do func() (T, error)) (answer T, err error) {
	if p.dead {
		return answer, errDead
	}
	if !p.deposed {
		p.interlude()
		switch p.draw() {
		case carriedOut:
		case deposed:
			p.deposed = true
		case killedBefore, killedAfter, killedWhile:
			p.dead = true
			return answer, errDead
		default:
			return answer, errTimeout
		}
	}
	return do()
}

// draw draws what becomes of a request.
func (p *process) draw() outcome {
	what := p.fate()
	if what != carriedOut {
		p.note("  next request: %s", [outcomes]string{
			"", "refused", "conflict", "answer lost", "comes late", "killed before", "killed after", "killed, request comes late", "deposed",
		}[what])
		p.seen[troubles]++
	}
	return what
}

// runner makes requests one after the other, as they would begin in batches of growing size: in any order within a batch.
type runner struct{ *process }

func (r runner) Do(ctx context.Context, _ cache.ObjectName, n int, do func(ctx context.Context, i int) error) error {
	var errs []error
	for begin, size := 0, 1; begin < n; begin, size = begin+size, 2*size {
		size = min(size, n-begin)
		for _, i := range r.dice.Perm(size) {
			err := do(ctx, begin+i)
			if errors.Is(err, children.ErrSkipped) {
				continue
			}
			if errs = append(errs, err); err != nil && r.timid {
				return children.FirstErrors(errs...)
			}
		}
	}
	return children.FirstErrors(errs...)
}

func (runner) Forget(cache.ObjectName) {}
