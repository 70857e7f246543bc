// Copyright The jobset-apiserver Authors.
// SPDX-License-Identifier: Apache-2.0

// Package loss proves that a wrong store loses nothing. Sets run in a full control plane, with the garbage collector and the namespace
// controller of Kubernetes. Then jobset-apiserver gets another store: an empty one, a foreign one, an older one, that of another cluster, a
// restored one. The Jobs must not be touched, for longer than the garbage collector needs to delete all of them, which the last test
// shows with a server that has no witness of its store.
//
// The faults and the decisions of people have a control plane each, side by side.
//
// JOBSET_LOSS_SETS is the number of sets (30), and JOBSET_LOSS_SECONDS how long each fault is watched (20). With 1,000
// sets and 600 seconds, and -v -timeout 4h, the table at the end is the proof that the documentation of operations
// refers to.
package loss
