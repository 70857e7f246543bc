// Copyright The jobset-apiserver Authors.
// SPDX-License-Identifier: Apache-2.0

package plan

import (
	"k8s.io/apimachinery/pkg/api/equality"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/types"

	jobsetv1alpha2 "github.com/jobset-apiserver/jobset-apiserver/pkg/apis/jobset/v1alpha2"
)

// Most changes of a status are counts of Jobs on their way from one state that matters to the next: 17 of 400 Jobs ready,
// then 18. Writing each of them costs more than the Jobs themselves. They may wait a while, and be written together.

// Noted is what was seen and held back. A controller that starts anew has noted nothing, and then sees it somewhat later.
type Noted struct {
	// UID is that of the set.
	UID types.UID
	// Attempt is the number of the attempt that CreateTime is about.
	Attempt int32
	// CreateTime is when all Jobs of the attempt were there.
	CreateTime *metav1.MicroTime
}

// StatusMayWait tells whether nobody waits for the next status: it differs from the stored one in counts only, none of
// which completes anything, and in what Note returns.
func StatusMayWait(o Observed, p Plan) bool {
	if p.Status == nil {
		return false
	}
	stored := &o.JobSet.Status
	if completes(o.JobSet, stored.ReplicatedJobsStatus, p.Status.ReplicatedJobsStatus) {
		return false
	}
	return equality.Semantic.DeepEqual(withoutProgress(stored), withoutProgress(p.Status))
}

// completes tells whether a replicatedJob has come to a state that others may wait for: all of its Jobs are up, all are
// suspended, or none is active while the set is suspended.
func completes(js *jobsetv1alpha2.JobSet, before, after []jobsetv1alpha2.ReplicatedJobStatus) bool {
	for i := range js.Spec.ReplicatedJobs {
		rj := &js.Spec.ReplicatedJobs[i]
		was, is := replicatedJobStatus(before, rj.Name), replicatedJobStatus(after, rj.Name)
		all := replicas(rj)
		if is.Ready+is.Succeeded == all && was.Ready+was.Succeeded != all ||
			is.Succeeded == all && was.Succeeded != all ||
			is.Suspended == all && was.Suspended != all ||
			is.Active == 0 && was.Active != 0 && suspended(js) ||
			is.Failed > was.Failed {
			return true
		}
	}
	return false
}

// withoutProgress returns a status without what may wait.
func withoutProgress(status *jobsetv1alpha2.JobSetStatus) *jobsetv1alpha2.JobSetStatus {
	rest := status.DeepCopy()
	for i := range rest.ReplicatedJobsStatus {
		count := &rest.ReplicatedJobsStatus[i]
		count.Ready, count.Succeeded, count.Failed, count.Active, count.Suspended = 0, 0, 0, 0, 0
	}
	if a := runningAttempt(rest); a != nil {
		a.CreateTime = nil
	}
	return rest
}

// Note returns what has to be remembered of a status that is held back.
func Note(o Observed, p Plan) Noted {
	noted := Noted{UID: o.JobSet.UID}
	if a := runningAttempt(p.Status); a != nil {
		noted.Attempt, noted.CreateTime = a.Number, a.CreateTime
	}
	return noted
}
