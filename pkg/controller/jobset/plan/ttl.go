// Copyright The jobset-apiserver Authors.
// SPDX-License-Identifier: Apache-2.0

package plan

import "time"

// afterFinish removes what still runs of a finished set, keeps its finished Jobs, and deletes the set when its time is
// over (spec/jobset.md §5.17).
func afterFinish(o Observed, kids children) Plan {
	p := timeToLive(o)
	p.DeleteJobs = refs(kids.previous, kids.active)
	return p
}

// timeToLive deletes a finished set when its time is over. It is all that is done about sets that other controllers run.
func timeToLive(o Observed) Plan {
	ttl, finished := o.JobSet.Spec.TTLSecondsAfterFinished, finishedCondition(&o.JobSet.Status)
	if ttl == nil || finished == nil {
		return Plan{}
	}
	end := finished.LastTransitionTime.Add(time.Duration(*ttl) * time.Second)
	if left := end.Sub(o.Now.Time); left > 0 {
		return Plan{RequeueAfter: left}
	}
	return Plan{DeleteJobSet: true}
}
