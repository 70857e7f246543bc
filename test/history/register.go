// Copyright The jobset-apiserver Authors.
// SPDX-License-Identifier: Apache-2.0

package history

import (
	"hash/maphash"
	"time"

	"github.com/anishathalye/porcupine"
	"k8s.io/apimachinery/pkg/types"
)

// register is an object that exists or not. After a write without an answer, the version is not known (nor the UID, if the write created
// the object): they are 0 and empty until an answer shows them.
type register struct {
	exists bool
	uid    types.UID
	// version is unknown if it is 0. It is above floor then.
	version int64
	// floor is a version that the object has passed.
	floor         int64
	value, status string
	// creates and deletes count the hidden ones that have happened.
	creates, deletes int
}

// input is an operation with what may have happened before its end without a trace.
type input struct {
	*Operation
	end    time.Duration
	hidden *hidden
}

var hashSeed = maphash.MakeSeed()

// model is the register for porcupine. Inputs contain their outputs.
var model = (&porcupine.NondeterministicModel{
	Init: func() []any { return []any{register{}} },
	Step: func(state, in, _ any) []any {
		var next []any
		for _, r := range state.(register).outcomes(in.(input)) {
			next = append(next, r)
		}
		return next
	},
	Hash:              func(state any) uint64 { return maphash.Comparable(hashSeed, state.(register)) },
	DescribeOperation: func(in, _ any) string { return in.(input).String() },
	DescribeState:     func(state any) string { return state.(register).String() },
}).ToModel()

func (r register) String() string {
	if !r.exists {
		return "absent"
	}
	return State{UID: r.uid, Version: r.version, Value: r.value, Status: r.status}.String()
}

// outcomes returns the registers that are possible after the operation. What is hidden happens only if the answer needs it: it can
// still happen later if it does not.
func (r register) outcomes(in input) []register {
	if next, ok := r.step(in.Operation); ok {
		return []register{next}
	}
	var outcomes []register
	before := []register{r}
	for range maxHidden {
		var after []register
		for _, b := range before {
			after = append(after, in.hidden.happen(b, in.end)...)
		}
		for _, a := range after {
			if next, ok := a.step(in.Operation); ok {
				outcomes = append(outcomes, next)
			}
		}
		before = after
	}
	return outcomes
}

// step returns the register after the operation, and whether it could have been answered like that.
func (r register) step(o *Operation) (register, bool) {
	if o.Outcome == Unknown || o.Outcome == Done {
		return r.happen(o)
	}
	return r, r.refuses(o)
}

// happen returns the register after an operation that was carried out.
func (r register) happen(o *Operation) (register, bool) {
	switch o.Kind {
	case Create:
		return r.create(o)
	case Update, UpdateStatus:
		return r.update(o)
	case Delete:
		return r.removed(), r.exists && r.mayHaveUID(o.UID)
	default:
		return r.read(o)
	}
}

func (r register) create(o *Operation) (register, bool) {
	if r.exists {
		return r, false
	}
	return r.added(o.Value).answered(o)
}

// added returns the register after a creation of which nothing else is known.
func (r register) added(value string) register {
	return register{exists: true, floor: r.floor, value: value, creates: r.creates, deletes: r.deletes}
}

// removed returns the register after a deletion.
func (r register) removed() register {
	return register{floor: max(r.floor, r.version), creates: r.creates, deletes: r.deletes}
}

func (r register) update(o *Operation) (register, bool) {
	if !r.exists || r.value == hiddenValue || !r.mayHaveVersion(o.Version) {
		return r, false
	}
	next := r
	next.version, next.floor = 0, o.Version
	if o.Kind == Update {
		next.value = o.Value
	} else {
		next.status = o.Value
	}
	return next.answered(o)
}

// answered returns the register with what the answer to a write shows, if there was one.
func (r register) answered(o *Operation) (register, bool) {
	if o.Outcome == Unknown {
		return r, true
	}
	return r.read(o)
}

// read returns the register with what the answer shows.
func (r register) read(o *Operation) (register, bool) {
	s := o.State
	if !r.exists || !r.mayHaveUID(s.UID) || !r.mayHaveVersion(s.Version) || r.value != s.Value || r.status != s.Status {
		return r, false
	}
	r.uid, r.version, r.floor = s.UID, s.Version, s.Version
	return r, true
}

// refuses returns whether the refusal of the operation is right.
func (r register) refuses(o *Operation) bool {
	switch o.Outcome {
	case NotFound:
		return !r.exists
	case Exists:
		return r.exists && o.Kind == Create
	case Conflict:
		if o.Kind == Delete {
			return r.exists && o.UID != "" && (r.uid == "" || r.uid != o.UID)
		}
		return r.exists && (r.version == 0 || r.version != o.Version)
	default:
		return false
	}
}

// mayHaveVersion returns whether the version can be that one.
func (r register) mayHaveVersion(version int64) bool {
	if r.version == 0 {
		return version > r.floor
	}
	return r.version == version
}

// mayHaveUID returns whether the UID can be that one. Nothing was asked for if it is empty.
func (r register) mayHaveUID(uid types.UID) bool {
	return uid == "" || r.uid == "" || r.uid == uid
}
