// Copyright The jobset-apiserver Authors.
// SPDX-License-Identifier: Apache-2.0

// Package simulation plays random histories against the controller of SequentialJobs.
//
// A history is all that happens to one sequence: its children get pods, succeed, fail, are deleted by users and take
// their time to go; Kueue admits and evicts them; users change steps, suspend, resume, restart, retry, cancel and
// delete; caches lag behind, each on its own; requests fail, or fail but are carried out, at once or later; the
// controller dies between two writes and starts again, or a second one acts at the same time. Pods of a child may
// outlive it (pods_test.go). Others take names, remove labels and delete children in every way (meddling_test.go),
// Kueue is away or not read yet (kueue_test.go), the servers have different clocks, and in some histories one kind of
// requests is refused for minutes (trouble_test.go). Package plan decides, and what comes before and after its
// decisions is the real Syncer of package sequentialjob; what users do is done by the real strategies and actions of
// the server (users_test.go).
//
// Rules are checked at every decision and every write (rules_test.go). In the end nothing fails any more, and the
// sequence must come to rest in the state that its spec asks for (stabilize_test.go). Defects that are built in on
// purpose must break the rules (defects_test.go).
//
// Everything in a history follows from its seed. SIMULATION_SEED=n runs that one and prints its steps,
// SIMULATION_HISTORIES=n sets how many are run.
package simulation
