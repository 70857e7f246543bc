// Copyright The jobset-apiserver Authors.
// SPDX-License-Identifier: Apache-2.0

// Package simulation plays random histories against the controller of DisaggregatedSets.
//
// A history is all that happens to one set and its children: LeaderWorkerSets get groups, become ready late or never,
// and lose groups for a while; users change templates, sizes, limits, roles, slices and who scales a role, delete the
// set in the background, in the foreground and without its dependents, which a new set adopts, and delete, relabel and
// scale whatever they find; restores drop owners; autoscalers scale roles; objects of others have our names, a
// part of their labels or all of them, and controllers of their own; servers refuse requests by verb and kind, and
// their clocks differ; caches lag behind, each on its own; requests fail, or fail but are carried out, at once or
// later; the time of a pass ends before all is done; the controller dies between two writes and starts again, or acts
// on after another one has taken its place. Package plan decides, and what comes before and after its decisions is the
// real Syncer of package disaggregatedset, with the pace of package queue.
//
// Rules are checked at every decision and every write (rules_test.go). In the end nothing fails any more, and the set
// must come to rest in the state that its spec asks for (stabilize_test.go). Defects that are built in on purpose must
// break the rules (defects_test.go).
//
// Everything in a history follows from its seed. SIMULATION_SEED=n runs that one and prints its steps,
// SIMULATION_HISTORIES=n sets how many are run, and SIMULATION_FIRST=n with which seed they begin.
package simulation
