// Copyright The jobset-apiserver Authors.
// SPDX-License-Identifier: Apache-2.0

package collisions

import (
	"github.com/jobset-apiserver/jobset-apiserver/pkg/apis/batch"
	"github.com/jobset-apiserver/jobset-apiserver/pkg/apis/batch/v1alpha1/helper"
	"github.com/jobset-apiserver/jobset-apiserver/pkg/apis/batch/validation"
	"github.com/jobset-apiserver/jobset-apiserver/pkg/apis/jobset"
)

// sequence warns of JobSets that have the names of steps, and of others that need the Jobs of steps.
func (l *look) sequence(sj *batch.SequentialJob) {
	if validation.ManagedByOther(&sj.Spec) {
		return
	}
	for i := range steps(sj) {
		if stepAt(sj, i) != jobSetStep {
			continue
		}
		if js := l.jobSetNamed(helper.ChildName(sj.Name, i)); js != nil && !controls(sj, js) {
			l.Warn("the JobSet %q exists and does not belong to the sequence; step %d waits until it is deleted", js.Name, i)
		}
	}
	for i := range steps(sj) {
		if l.Ends() {
			return
		}
		if stepAt(sj, i) == jobStep {
			l.jobsOfJobSets(sj.Name, int32(i), "")
			continue
		}
		child := &jobset.JobSet{Spec: sj.Spec.Steps[i-len(sj.Spec.Containers)].JobSet.Spec}
		child.Name = helper.ChildName(sj.Name, i)
		l.jobs(child)
	}
}
