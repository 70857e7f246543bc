// Copyright The jobset-apiserver Authors.
// SPDX-License-Identifier: Apache-2.0

// Package simulation plays random histories against the controller of LeaderWorkerSets.
//
// A history is all that happens to one set and its children: the StatefulSet controller creates, replaces and removes
// pods by partition and maxUnavailable, pods become ready, fail, restart and stop, the garbage collector deletes in the
// foreground and in the background; users change templates, sizes, replicas, the parameters of rolling updates and
// restart policies, pause, ask for restarts, and delete and edit whatever they find; autoscalers change the number of
// groups; nodes are lost with all of their pods; gangs wait for their PodGroups, and workers follow their leader into
// its domain; the server of the set is away, and pods of it are refused; no controller runs for a while, in which pods
// vanish; caches lag behind, each on its own; requests fail, or fail but are carried out, at once or later; the
// controller dies between two writes and starts again. Package plan decides, and what comes before and after its
// decisions is the real Syncer of package leaderworkerset; actions of users are carried out by the real code of the
// server (users_test.go).
//
// Rules are checked at every decision and every write (rules_test.go). In the end nothing fails any more, and the set
// must come to rest in the state that its spec asks for (stabilize_test.go). Defects that are built in on purpose must
// break the rules (defects_test.go).
//
// Everything in a history follows from its seed. SIMULATION_SEED=n runs that one and prints its steps,
// SIMULATION_HISTORIES=n sets how many are run, and SIMULATION_FIRST=n with which seed they begin.
package simulation
