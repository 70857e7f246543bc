// Copyright The jobset-apiserver Authors.
// SPDX-License-Identifier: Apache-2.0

// Package simulation tests the decisions about JobSets with random histories of a simulated cluster.
//
// A history is all that happens to one JobSet: Jobs get pods, become ready, succeed, fail, are deleted by users and
// take their time to go; users suspend, resume, change and delete; caches lag behind, each on its own; requests fail,
// or fail but are carried out, at once or later; the controller dies between two writes and starts again. Package plan
// decides, and what comes before and after its decisions is the real Syncer of package jobset, with simulated caches
// and clients (syncer_test.go, api_test.go). It makes its requests one after the other in an order that is drawn, so that every
// interleaving of them with everything else can be repeated.
//
// Invariants are checked at every decision and every write (invariants_test.go, rules_test.go, writes_test.go). In the
// end nothing fails any more, and the set must come to rest, in the state that its spec asks for (stabilize_test.go,
// rest_test.go).
//
// Worlds (world_test.go) are histories of a few sets that share a small cluster. Most ask for exclusive placement. The
// Placer is the real one too; nodes, the scheduler, an autoscaler and the Job controller are simulated with their pods.
// In the end all sets must finish.
//
// In some worlds the pods of all sets restart in place (inplace_worlds_test.go): agents follow the protocol, each with
// a watch that lags behind, containers fail, and kubelets restart them.
//
// Everything in a history follows from its seed. SIMULATION_SEED=n runs that one and prints its steps,
// SIMULATION_HISTORIES=n sets how many are run. For worlds, these are SIMULATION_WORLD=n and SIMULATION_WORLDS=n, and
// SIMULATION_INPLACE_WORLD=n and SIMULATION_INPLACE_WORLDS=n.
package simulation
