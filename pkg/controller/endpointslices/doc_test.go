// Copyright The jobset-apiserver Authors.
// SPDX-License-Identifier: Apache-2.0

// Package endpoints_test plays random histories against the controller of EndpointSlices.
//
// A history is all that happens to the Service of one JobSet: its pods start, become ready, change their address, end, and leave their
// address to others; the set asks for our slices and asks no more, shares its Service, is deleted in each way, and created again; others
// change the Service and the slices; quotas, policies and webhooks refuse requests; DNS servers answer, answer without the record, or do
// not answer; caches lag behind, each on its own; requests fail, or fail but are carried out, at once or later; the controller dies between
// two writes and starts again, or is deposed without noticing. What decides and writes is the real Syncer, with the real pacing of syncs
// and the real caches but for the watches. In a third of the histories the set is large, its status changes, and its mode may be auto. The
// controller of the cluster writes slices for Services that select pods.
//
// First comes a storm in which anything may happen (users_test.go), then a calm: requests are carried out at once or
// refused for good, caches follow, and pods still come and go. There the rules about names hold (rules_test.go). In the
// end nothing is refused, and all must come to rest in the state that the set asks for (stabilize_test.go). Defects
// that are built in on purpose must break the rules (defects_test.go).
//
// Everything in a history follows from its seed. SIMULATION_SEED=n runs that one and prints its steps,
// SIMULATION_HISTORIES=n sets how many are run.
package endpoints_test
