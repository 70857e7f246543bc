// Copyright The jobset-apiserver Authors.
// SPDX-License-Identifier: Apache-2.0

package plan

import (
	corev1 "k8s.io/api/core/v1"
	"k8s.io/utils/ptr"

	"github.com/jobset-apiserver/jobset-apiserver/pkg/apis/jobset/v1alpha2/helper"
	"github.com/jobset-apiserver/jobset-apiserver/pkg/controller/jobset/plan/gang"
)

// awaitGroup returns which Jobs wait for their group, and how to bring the groups of the set to where they should be. Where all Jobs run or
// have ended, no condition says that groups are missing. The groups of a suspended set stay until all of its Jobs are suspended: if the
// suspension is taken back before, the Jobs that run would keep a group that is being deleted, and the others would wait for them.
func awaitGroup(s state) wait {
	if s.Grouped == nil || suspended(s.JobSet) && mayStartPods(s.owned) {
		return wait{reason: awaitsGroup}
	}
	changed, lacking := gang.Compare(s.JobSet, s.Grouped)
	if int64(startedNames(s.owned).Len()) >= helper.TotalReplicas(s.JobSet) {
		changed = changed.Unawaited()
	}
	w := wait{reason: awaitsGroup, all: lacking.All, jobs: lacking.Jobs}
	for _, name := range lacking.ReplicatedJobs {
		if rj, place := s.replicatedJob(name); rj != nil {
			w.replicatedJobs = append(w.replicatedJobs, place)
		}
	}
	w.changes.plan = Plan{Groups: changed, RequeueAfter: changed.After}
	return w
}

// ungroup deletes all groups of a set.
func ungroup(o Observed) gang.Changes {
	if o.Grouped == nil {
		return gang.Changes{}
	}
	return gang.Delete(o.Grouped)
}

// withRefusal adds to results why no group was tried.
func withRefusal(changes gang.Changes, r Results) Results {
	if changes.Refusal != nil && len(r.Refusals) == 0 {
		r.Refused, r.Refusals = "the groups of the pods", []Refusal{*changes.Refusal}
	}
	return r
}

// groupNamesOf returns the groups of the Jobs of a replicatedJob; none if its pods have none.
func groupNamesOf(o *Observed, name string) gang.Names {
	if o.Grouped == nil {
		return gang.Names{}
	}
	return o.index.groups[name]
}

// groupedElsewhere reports whether the pods of a suspended Job would name another group than the set has now. That
// cannot be changed in a Job.
func groupedElsewhere(o *Observed, job child) bool {
	if o.Grouped == nil {
		return false
	}
	rj := &o.JobSet.Spec.ReplicatedJobs[job.place]
	want := ""
	if rj.Template.Spec.Template.Spec.SchedulingGroup != nil {
		want = ptr.Deref(rj.Template.Spec.Template.Spec.SchedulingGroup.PodGroupName, "")
	}
	groups := groupNamesOf(o, rj.Name)
	if name := groups.Of(job.index).PodGroup; name != "" && groups.Provider == "" {
		want = name
	}
	have := ptr.Deref(job.Spec.Template.Spec.SchedulingGroup, corev1.PodSchedulingGroup{})
	return ptr.Deref(have.PodGroupName, "") != want
}
