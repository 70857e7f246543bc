// Copyright The jobset-apiserver Authors.
// SPDX-License-Identifier: Apache-2.0

// Package plan decides what the controller does about one JobSet. Decide takes one snapshot of the set and its children
// and returns a plan; it does nothing itself, reads no clock and gives equal plans for equal snapshots.
//
// docs/reference/jobset.md#order-of-decisions gives the order of the decisions. A decision that moves a commit point (the attempt counter,
// a terminal condition) is a status write and nothing else: the next decision, made on what was stored, then deals with
// the children. So a controller that dies at any moment, or acts on an outdated snapshot, never restarts a set twice
// for one failure: the status write is refused with a conflict, and child writes name the incarnation that they mean.
package plan
