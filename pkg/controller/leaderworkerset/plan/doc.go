// Copyright The jobset-apiserver Authors.
// SPDX-License-Identifier: Apache-2.0

// Package plan decides what the controller does about one LeaderWorkerSet (docs/reference/leaderworkerset.md#controller). Decide takes one
// snapshot of the set and its children and returns a plan; it does nothing itself, reads no clock and gives equal plans for equal
// snapshots. Finish takes the plan and what became of each write, and returns the next status, the events and the time of the next
// decision.
//
// Decide has these steps:
//
//  1. A set that is being deleted is left to the garbage collector. While the StatefulSet of its leaders is being deleted, nothing is done.
//  2. look adds to the snapshot what follows from it: the revision of the spec (revision.go), and the groups that have a leader pod, with
//     their size at their own revision and whether they are ready, updated or broken (groups.go).
//  3. restartGroups decides which groups are recreated (restart.go): because the leader pod was deleted (deleted.go), because pods have
//     failed or were lost (trigger.go, incomplete.go), or because users have requested it (requested.go). limit.go and backoff.go say what
//     keeps a group from being recreated, and entries.go what the status keeps of groups. For the first cause of a failure, the plan asks
//     (asks.go, cause.go); a plan that asks for something holds nothing else.
//  4. Subjects return their parts of the plan: orphans to adopt (adopt.go), the StatefulSet of leaders to apply (leader.go) with the
//     partition and replicas that carry out the rolling update (rollout.go), leader pods to delete that their StatefulSet does not replace
//     (stuck.go), Services, StatefulSets of workers and PodGroups to create (services.go, workers.go, gang.go), StatefulSets to touch
//     (touch.go), and revisions to delete (history.go). None depends on the part of another one.
//  5. Troubles of pods (troubles.go) and counts of groups (status.go) become conditions of the next status.
//
// That a group is recreated, and how often it was, is stored before its leader pod is deleted: the next decision, made on what was stored,
// finds the UID of the pod in the status. So a controller that dies at any moment, or acts on an outdated snapshot, counts no failure twice
// and loses no restart.
//
// Finish adds what became of the writes: children that are refused or whose names others have (troubles.go, failedwrites.go).
package plan
