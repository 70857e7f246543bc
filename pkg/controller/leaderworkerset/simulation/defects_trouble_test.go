// Copyright The jobset-apiserver Authors.
// SPDX-License-Identifier: Apache-2.0

package simulation

import (
	"slices"

	"github.com/jobset-apiserver/jobset-apiserver/pkg/controller/leaderworkerset/plan"
)

// This file holds defects that show when requests are refused, when clocks differ, and when children are left behind.

// silent reports nothing about requests that were refused.
func silent(o plan.Observed, p plan.Plan, r plan.Results) plan.Outcome {
	r.LeaderError, r.ServiceError, r.WorkerErrors, r.AdoptError, r.Failed = "", "", nil, "", nil
	return plan.Finish(o, p, r)
}

// unseenNames takes the age of a leader pod for the time since which its name is taken.
func unseenNames(o plan.Observed, p plan.Plan, r plan.Results) plan.Outcome {
	o.TakenSince = plan.Taken{}
	return plan.Finish(o, p, r)
}

// unlooked decides by their times alone which StatefulSets of workers are new.
func unlooked(o *plan.Observed) {
	for i := range o.Workers {
		o.Workers[i].Observed = false
	}
}

// youngerStay restarts only groups whose leader pods are older than the request, by the clock of another server.
func youngerStay(o *plan.Observed) {
	if request := o.Set.Status.Restart; request != nil && !request.Found {
		o.Leaders = slices.DeleteFunc(o.Leaders, func(leader plan.Pod) bool { return leader.Created.After(request.RequestTime.Time) })
	}
}

// ageless does not look at how old an orphan is, nor at its revision.
func ageless(o *plan.Observed) {
	for i := range o.Orphans {
		for j := range o.Leaders {
			if orphan, leader := &o.Orphans[i], &o.Leaders[j]; orphan.Name == leader.Name {
				orphan.Created, orphan.Revision = leader.Created, leader.Revision
			}
		}
	}
}

// unconditional reports refusals in events only.
func unconditional(o plan.Observed, p plan.Plan, r plan.Results) plan.Outcome {
	r.Blocked = nil
	return plan.Finish(o, p, r)
}
