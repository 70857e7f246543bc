// Copyright The jobset-apiserver Authors.
// SPDX-License-Identifier: Apache-2.0

package plan

import (
	"time"

	"k8s.io/apimachinery/pkg/types"

	leaderworkersetv1 "github.com/jobset-apiserver/jobset-apiserver/pkg/apis/leaderworkerset/v1"
)

// Outcome is what to store, report and remember.
type Outcome struct {
	// Status is the complete next status; nil when the stored one is right.
	Status *leaderworkersetv1.LeaderWorkerSetStatus
	// CountsWait means that counts which differ from the stored ones wait for other changes.
	CountsWait bool
	// Evaluated is to be remembered once Status is stored.
	Evaluated []types.UID
	// Recorded are leader pods, gone or being deleted, that the stored status names.
	Recorded []types.UID
	// TakenSince and TroubledSince are to be remembered.
	TakenSince    Taken
	TroubledSince time.Time
	// Events are reported once Status is stored. Others are reported whatever becomes of it.
	Events, Others []Event
	// RequeueAfter is the time after which the next decision is due; 0 for none.
	RequeueAfter time.Duration
	// ActsAfter is the part of RequeueAfter after which a time limit ends: then a rule acts. 0 for none.
	ActsAfter time.Duration
	// Continue is true if there is more to do, and something of the plan was accepted.
	Continue bool
}
