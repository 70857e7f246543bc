// Copyright The jobset-apiserver Authors.
// SPDX-License-Identifier: Apache-2.0

package plan

import (
	"slices"
	"time"

	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"

	jobsetv1alpha2 "github.com/jobset-apiserver/jobset-apiserver/pkg/apis/jobset/v1alpha2"
)

// cancelledTTL is how long a cancelled set stays at least. Whoever may cancel a set need not have the right to delete it, and
// a set that was cancelled by mistake can be retried.
const cancelledTTL = 5 * time.Minute

// removeRest removes what still runs of a finished set, keeps its finished Jobs, and deletes the set when its time is
// over (docs/reference/jobset.md#finish-and-time-to-live).
func removeRest(s state) changes {
	p := timeToLive(s.Observed)
	p.Groups = ungroup(s.Observed)
	p.DeleteJobs, p.More = deletions(s.Observed, slices.Concat(s.owned.previous, jobsOf(s.owned.active)))
	return changes{plan: p}
}

// timeToLive deletes a finished set when its time is over. It is all that is done about sets that other controllers run.
func timeToLive(o Observed) Plan {
	ttl, finished := o.JobSet.Spec.TTLSecondsAfterFinished, finishedCondition(&o.JobSet.Status)
	if ttl == nil || finished == nil {
		return Plan{}
	}
	end := finished.LastTransitionTime.Add(timeAfterFinish(*ttl, finished))
	if left := end.Sub(o.Now.Time); left > 0 {
		return Plan{RequeueAfter: left, ActsAfter: left}
	}
	return Plan{DeleteJobSet: true}
}

// timeAfterFinish returns how long a set stays after it has finished.
func timeAfterFinish(seconds int32, finished *metav1.Condition) time.Duration {
	ttl := time.Duration(seconds) * time.Second
	if finished.Reason == jobsetv1alpha2.ReasonCancelled {
		return max(ttl, cancelledTTL)
	}
	return ttl
}
