// Copyright The jobset-apiserver Authors.
// SPDX-License-Identifier: Apache-2.0

// Package plan decides what the controller does about one JobSet. Decide takes one snapshot of the set and its children
// and returns a plan; it does nothing itself, reads no clock and gives equal plans for equal snapshots. Finish takes the
// plan and what became of each write, and returns the next status, the events and the time of the next decision.
//
// Decide has these steps. docs/reference/jobset.md#order-of-decisions gives the rules.
//
//  1. A set that is being deleted is left to the garbage collector. A set that another controller runs is only deleted when
//     its time to live is over.
//  2. Subjects ask for what the decision depends on and the snapshot does not have (Asks): asksFirst before classify sorts the Jobs
//     into previous, succeeded, failed and active ones, and others after that. A plan that asks for something holds nothing else; the
//     loop answers, and decides again. What is known of an answer is unknown, none or a value (Known). A rule that stops, deletes or
//     replaces something does not take unknown for none.
//  3. After the store was restored from a backup, attempts that only the Jobs show are taken over, and a set that may have
//     finished since is held (afterRestore).
//  4. Of a finished set, the Jobs that still run are deleted, and the set itself when its time is over (removeRest).
//  5. advance moves a commit point, if one is due: policies are asked whether the set ends or begins its next attempt, in the order
//     success, deadline, failure, restarts in place, and the first verdict counts. Without one, a suspension that was taken back, the
//     start of an execution, the nodes that pods keep off, or the move of a Job to another domain is stored. Nothing else happens then.
//  6. childSteps bring the children to where they should be. awaitDependencies, awaitTurn, awaitDomain and awaitGroup each return
//     which Jobs wait (wait.go); a Job starts if it is in none of them. Jobs of earlier attempts are deleted, active ones suspended,
//     resumed or resized, and missing ones created, at most as many as one pass and the backlog of the Job controller may hold.
//
// A step looks at the state (the snapshot, its Jobs, the next status and the rest of the plan so far) and returns what it wants:
// conditions, troubles, edits of the status, events, children, times. Only fold changes the state; attempt.go has what attempts want,
// conditions.go how conditions change that are no troubles. A trouble is what keeps a set from running, such as pods without a node.
// pkg/controller/host/plan makes its condition and events. Rules that need no state are in packages of their own: policy, gang, domains
// and inplace.
//
// A decision that moves a commit point (the attempt counter, a terminal condition) is a status write and nothing else: the
// next decision, made on what was stored, then deals with the children. So a controller that dies at any moment, or acts
// on an outdated snapshot, never restarts a set twice for one failure: the status write is refused with a conflict, and
// child writes name the incarnation that they mean.
package plan
