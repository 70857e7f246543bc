// Copyright The jobset-apiserver Authors.
// SPDX-License-Identifier: Apache-2.0

// Package plan decides what the controller does about one SequentialJob. Decide takes one snapshot of the sequence and its children and
// returns a plan; it does nothing itself, reads no clock and gives equal plans for equal snapshots.
//
// A decision that moves a commit point (a step or an attempt begins or ends, the sequence ends) is a status write and nothing else: the
// next decision, made on what was stored, then deals with the children. So a controller that dies at any moment, or acts on an outdated
// snapshot, never runs a finished step again, and never has two active children: a child is created only while no other one is there that
// has not ended, under a name and with the number of an attempt that status has stored.
//
// # Decide
//
// A sequence that another controller manages gets an empty plan. look adds to a snapshot what follows from it, such as the current step
// and the kinds of children: the child of the current attempt of the current step, children that must be gone before a child is created,
// and children that have ended. If the sequence is being deleted, its children are stopped and the finalizer is removed once none runs.
// If the sequence has ended, afterFinish completes its status, stops what still runs, and deletes children and sequence when their time
// to live is over. Otherwise subjects are asked in this order. Each subject is a function from the sequence and its next status to what
// it wants, and changes nothing:
//
//  1. reopenRetried, afterRestore and afterTakeOver: after the store was restored from a backup, the progress that children show is taken
//     over. If they do not show it, the sequence is held, and nothing else happens.
//  2. takeUpSpec: the present generation is observed.
//  3. nextMove: the transition that is due, if there is one. The first of these applies: all steps have ended; the next step waits
//     because the sequence is suspended; the next step begins; the child has ended; the child is gone and the step begins again; the
//     deadline is over. Nothing else happens, because a transition is a commit point.
//  4. clearTheWay: children that are in the way are deleted.
//  5. startStep and createChild, without a child: the step waits while the sequence is suspended, has no quota, or pods of earlier
//     children run. Once it waits for nothing, the child is created.
//  6. childExists and followChild, with a child: the child is suspended or resumed as the sequence, its queue and the quota of the
//     sequence want it. Then reportTroubles: pods that are refused or find no node.
//  7. awaitDeadline and deleteExpired: the deadline and times to live set when the next decision is due; children whose time is over are
//     deleted.
//
// Last, the children are counted, and the finalizer is added before the first child and removed after the last one.
//
// # What a decision asks for
//
// What caches do not show, a plan asks for: whether a child exists that no cache shows, what is known of Kueue, whether the sequence is
// as a backup had it, who suspends a child again and again, what runs of earlier children, and why a Job failed. The controller answers
// and decides again, until the plan asks for nothing. What could not be obtained is unknown, and unknown is not no: the child waits, and
// the finalizer stays.
//
// An answer changes nothing. A child that has lost the label by which caches select it gets the label back in a step of its own, before
// anything else is done (Plan.Relabel). If the API refuses that, the decision is made once more, on what the API has of the child. A
// child that caches are about to show is waited for (Plan.Lags).
//
// # How status changes
//
// fold makes the next status and the plan from what a subject wants: first the state of the step, then events and conditions, then the
// transition, then the clock of the deadline, then writes of children. What a later subject wants of a condition replaces what an earlier
// one wanted. Everything that changes a status is a function from the status and the time to events: put for conditions, which knows when
// a change causes an event; report for troubles, which become the condition ResourcesUnavailable once they have lasted; carryOut for
// transitions of steps and of the sequence; followClock for the time that counts towards the deadline.
//
// # Finish
//
// Finish adds to the status what became of the writes: why the child was not created, and whether the pass failed.
package plan
