// Copyright The jobset-apiserver Authors.
// SPDX-License-Identifier: Apache-2.0

package plan

import "time"

// afterFinish removes what still runs of a finished set, keeps its finished Jobs, and deletes the set when its time is
// over (spec/jobset.md §5.17).
func afterFinish(o Observed, kids children) Plan {
	p := Plan{DeleteJobs: refs(kids.previous, kids.active)}
	ttl := o.JobSet.Spec.TTLSecondsAfterFinished
	if ttl == nil {
		return p
	}
	end := finishedCondition(&o.JobSet.Status).LastTransitionTime.Add(time.Duration(*ttl) * time.Second)
	if left := end.Sub(o.Now.Time); left > 0 {
		p.RequeueAfter = left
	} else {
		p.DeleteJobSet = true
	}
	return p
}
