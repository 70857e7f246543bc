// Copyright The jobset-apiserver Authors.
// SPDX-License-Identifier: Apache-2.0

// Package plan decides what the controller does about one SequentialJob. Decide takes one snapshot of the sequence and its
// children and returns a plan; it does nothing itself, reads no clock and gives equal plans for equal snapshots.
//
// A decision that moves a commit point (a step or an attempt begins or ends, the sequence ends) is a status write and nothing
// else: the next decision, made on what was stored, then deals with the children. So a controller that dies at any moment, or
// acts on an outdated snapshot, never runs a finished step again, and never has two active children: a child is created only
// while no other one is there that has not ended, under a name and with the number of an attempt that status has stored.
package plan
