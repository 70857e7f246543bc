// Copyright The jobset-apiserver Authors.
// SPDX-License-Identifier: Apache-2.0

// Package podgroup_test plays random histories against the controller of pod groups.
//
// A history is all that happens to the groups of one name, one of each prefix: pods are created, start, become ready,
// end, are deleted and replaced, also by pods that belong to no group; users write sizes that are malformed or
// contradict each other, and remove labels; a PodReadinessGroup is created, edited, deleted and created again; Jobs are
// scaled and deleted. Caches lag behind, each on its own; requests fail, or fail but are carried out, at once or later;
// API servers refuse some of them for a while; the controller dies between two writes, or acts on while its successor
// is at work. What runs is the real Syncer, with the real reader of sizes, the real memory of own writes and the real
// pace of the queue.
//
// Rules are checked at every request (rules_test.go) against what the API servers have stored (reference_test.go). In
// the end nothing fails any more, and all must come to rest (stabilize_test.go). Defects that are built in on purpose
// must break the rules (defects_test.go).
//
// Everything in a history follows from its seed. SIMULATION_SEED=n runs that one and prints its steps, SIMULATION_HISTORIES=n sets how many
// are run.
package podgroup_test
