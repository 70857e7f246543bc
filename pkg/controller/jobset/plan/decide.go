// Copyright The jobset-apiserver Authors.
// SPDX-License-Identifier: Apache-2.0

package plan

import (
	"k8s.io/utils/ptr"

	jobsetv1alpha2 "github.com/jobset-apiserver/jobset-apiserver/pkg/apis/jobset/v1alpha2"
)

// Decide returns what to do about a set.
func Decide(o Observed) Plan {
	if !ours(o.JobSet) {
		return Plan{}
	}
	kids := classify(o)
	st := newStatus(o)
	st.next.ReplicatedJobsStatus = countJobs(o, kids)

	p := Plan{}
	switch {
	case finishedCondition(&o.JobSet.Status) != nil:
		p = afterFinish(o, kids)
	case jobsFailed(kids):
		st.applyFailure(failureVerdict(o, kids))
	default:
		st.endRestart()
		if successPolicyMet(o, kids) {
			st.complete()
			break
		}
		p = childWrites(o, kids, st)
	}
	p.Problems = kids.problems
	p.Status, p.Events = st.result()
	return p
}

// childWrites brings the children of an unfinished set, none of whose Jobs calls for a policy, to where they should be.
func childWrites(o Observed, kids children, st *statusBuilder) Plan {
	open, inOrder := startable(o, st.next.ReplicatedJobsStatus)
	st.setStartup(inOrder)
	p := Plan{
		DeleteJobs:    refs(kids.previous),
		CreateService: missingService(o),
		CreateClaims:  missingClaims(o),
		CreateJobs:    missingJobs(o, kids, open),
	}
	var stillSuspended bool
	p.PatchJobs, stillSuspended = jobPatches(o, kids, open)
	st.setSuspended(stillSuspended || inOrder == orderWaiting)
	return p
}

// ours tells whether the set is this controller's to act on. The garbage collector takes care of terminating sets, and
// other controllers of those that name one in managedBy.
func ours(js *jobsetv1alpha2.JobSet) bool {
	return js.DeletionTimestamp == nil &&
		ptr.Deref(js.Spec.ManagedBy, jobsetv1alpha2.JobSetControllerName) == jobsetv1alpha2.JobSetControllerName
}

func suspended(js *jobsetv1alpha2.JobSet) bool { return ptr.Deref(js.Spec.Suspend, false) }
