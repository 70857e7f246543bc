// Copyright The jobset-apiserver Authors.
// SPDX-License-Identifier: Apache-2.0

package simulation

import (
	"errors"
)

// write is what a request does when an API server carries it out: it returns the version of what it wrote. known tells
// that the controller which sent it learns of the result, or that its successor sees it from the start.
type write func(known bool) (version int, err error)

// request sends a request, and lets other things happen before. A controller that was deposed goes on as if all was
// well; what it sends arrives when its successor is at work.
func (p *process) request(do write) (int, error) {
	if p.deposed {
		p.late = append(p.late, func() { _, _ = do(false) })
		return 0, nil
	}
	if p.dead {
		return 0, errDead
	}
	p.interlude()
	what := p.fate()
	if what != carriedOut {
		p.note("  next request: %s", [outcomes]string{
			"", "refused", "conflict", "answer lost", "comes late", "killed before", "killed after", "killed, request comes late", "deposed",
		}[what])
		p.seen[troubles]++
	}
	switch what {
	case refused:
		return 0, errServer
	case conflicted:
		return 0, errConflict
	case lost:
		_, _ = do(false)
		return 0, errTimeout
	case belated:
		p.late = append(p.late, func() { _, _ = do(false) })
		return 0, errTimeout
	case killedBefore:
		p.dead = true
	case killedAfter:
		p.dead = true
		_, _ = do(true)
	case killedWhile:
		p.dead = true
		p.late = append(p.late, func() { _, _ = do(false) })
	case deposed:
		p.deposed = true
		return p.request(do)
	default:
		return do(true)
	}
	return 0, errDead
}

// inBatches does one thing, then two at a time, then four, until something tells that it is over.
func (p *process) inBatches(n int, over func() bool, do func(i int) error) error {
	var errs []error
	for begin, size := 0, 1; begin < n && !over(); begin, size = begin+size, 2*size {
		size = min(size, n-begin)
		for _, i := range p.dice.Perm(size) {
			errs = append(errs, do(begin+i))
		}
	}
	return errors.Join(errs...)
}

func never() bool { return false }
