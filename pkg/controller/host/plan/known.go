// Copyright The jobset-apiserver Authors.
// SPDX-License-Identifier: Apache-2.0

package plan

// Known is what is known of something that a decision does not find in caches: it is unknown, or there is none of it, or
// it has a value. The zero Known is unknown, and a decision that depends on it asks for it. What could not be obtained is
// unknown too, but is not asked for again while the same decision is made.
type Known[T any] struct {
	state knowledge
	value T
}

type knowledge uint8

const (
	notAsked knowledge = iota
	notObtained
	isNone
	hasValue
)

// Of returns a value that is known.
func Of[T any](value T) Known[T] { return Known[T]{hasValue, value} }

// None says that there is no value.
func None[T any]() Known[T] { return Known[T]{state: isNone} }

// NotObtained says that the value was asked for, and is unknown still.
func NotObtained[T any]() Known[T] { return Known[T]{state: notObtained} }

// Obtained returns a value that was asked for. If it could not be obtained, it is unknown still.
func Obtained[T any](value T, obtained bool) Known[T] {
	if !obtained {
		return NotObtained[T]()
	}
	return Of(value)
}

// Existing returns a value that is known, or that there is none.
func Existing[T any](value T, exists bool) Known[T] {
	if !exists {
		return None[T]()
	}
	return Of(value)
}

// Open returns whether the value is unknown and was not asked for.
func (k Known[T]) Open() bool { return k.state == notAsked }

// Get returns the value, and whether there is one and it is known.
func (k Known[T]) Get() (T, bool) { return k.value, k.state == hasValue }

// Value returns the value; the zero value if there is none or it is unknown.
func (k Known[T]) Value() T { return k.value }

// IsKnown returns whether there is a value, or it is known that there is none.
func (k Known[T]) IsKnown() bool { return k.state == hasValue || k.state == isNone }

// IsNone returns whether it is known that there is no value.
func (k Known[T]) IsNone() bool { return k.state == isNone }
