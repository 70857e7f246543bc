// Copyright The jobset-apiserver Authors.
// SPDX-License-Identifier: Apache-2.0

// Package children writes the children of objects of any kind, and what is stored about their owner.
//
// A Writer creates, patches and deletes children of one kind. Names of children follow from their owner, so that a creation
// that finds its name taken either finds the child that it wanted or another object in the way. Patches and deletions are
// about one version or one incarnation only. What was accepted is remembered until the caches show it. Many requests are
// made by a Runner: SlowStart in the program, a runner with an order of its own in a simulation.
package children
