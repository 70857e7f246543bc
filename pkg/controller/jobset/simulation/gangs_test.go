// Copyright The jobset-apiserver Authors.
// SPDX-License-Identifier: Apache-2.0

package simulation

import (
	"slices"
	"testing"

	batchv1 "k8s.io/api/batch/v1"
	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"
	"k8s.io/apimachinery/pkg/types"
	"k8s.io/utils/ptr"

	jobsetv1alpha2 "github.com/jobset-apiserver/jobset-apiserver/pkg/apis/jobset/v1alpha2"
	"github.com/jobset-apiserver/jobset-apiserver/pkg/apis/jobset/v1alpha2/helper"
	"github.com/jobset-apiserver/jobset-apiserver/pkg/controller/jobset/plan"
	"github.com/jobset-apiserver/jobset-apiserver/pkg/controller/jobset/plan/gang"
	"github.com/jobset-apiserver/jobset-apiserver/test/simulation"
)

// This file holds histories of sets whose pods are scheduled in groups. Caches show the groups late, their API is unknown at times, and
// users delete some of them.

const gangFirst = "a Job starts only when its group exists"

// gangs are histories of sets whose pods are scheduled in groups.
var gangs = simulation.Histories[mutant]{
	Run: func(seed uint64, m mutant, trace *[]string) (map[string]int, string) {
		m.grouped = true
		return run(seed, m, trace)
	},
	Faultless: faultless, Number: 800, Long: 2_400,
	Wanted: []string{
		"plans that wait for groups", "groups unknown", "Jobs created in groups", "Jobs resumed in groups", "groups deleted by users", "groups that are going",
		"suspensions taken back while some Jobs run", "restarts for a new group", "ends running", "ends suspended", "ends finished",
	},
}

// TestGangs runs histories of sets whose pods are scheduled in groups.
func TestGangs(t *testing.T) { gangs.Test(t) }

// TestGangsShowDefects makes sure that these histories can fail, and by which rule.
func TestGangsShowDefects(t *testing.T) {
	gangs.ShowDefects(t, gangs.Number, map[string]simulation.Defect[mutant]{
		"Jobs that are created before their gang": {
			Mutant: deciding(nil, beforeGang(func(p *plan.Plan, early plan.Plan) { p.CreateJobs = early.CreateJobs })), Rules: []string{gangFirst},
		},
		"Jobs that are resumed before their gang": {
			Mutant: deciding(nil, beforeGang(func(p *plan.Plan, early plan.Plan) { p.PatchJobs = early.PatchJobs })), Rules: []string{gangFirst},
		},
		"groups that are deleted while Jobs of a suspended set run": {
			Mutant: deciding(nil, ungroupEarly), Rules: []string{"nobody has to wake a set that is not at rest", slowAlone}, First: 0,
		},
		"groups that are not made": {
			Mutant: deciding(nil, func(_ plan.Observed, p *plan.Plan) { p.Groups.Create = nil }), Rules: []string{"nobody has to wake a set that is not at rest"},
		},
	})
}

// beforeGang takes a part of the plan from one that is made as if all groups existed. So a plan would be that looks at groups last.
func beforeGang(take func(p *plan.Plan, early plan.Plan)) func(plan.Observed, *plan.Plan) {
	return func(o plan.Observed, p *plan.Plan) {
		if o.Grouped == nil || o.JobSet.Spec.Scheduling == nil {
			return
		}
		ready := *o.Grouped
		ready.API, ready.Objects = gang.V1beta1, gang.Objects(gang.V1beta1, o.JobSet)
		o.Grouped = &ready
		if early := plan.Decide(o); early.Asks.Empty() {
			take(p, early)
		}
	}
}

// ungroupEarly deletes the groups of a suspended set although some of its Jobs are not suspended yet.
func ungroupEarly(o plan.Observed, p *plan.Plan) {
	if o.Grouped != nil && isSuspended(o.JobSet) && !finished(&o.JobSet.Status) && mayStartPods(o) {
		p.Groups = gang.Delete(o.Grouped)
	}
}

// randomScheduling returns what is asked of the groups of a set: one for all pods, one for each replicatedJob, or one for each Job.
func randomScheduling(d simulation.Dice, js *jobsetv1alpha2.JobSet) *jobsetv1alpha2.JobSetSchedulingConfiguration {
	out := &jobsetv1alpha2.JobSetSchedulingConfiguration{}
	if d.Percent(40) {
		return out
	}
	for _, name := range replicatedJobNames(js) {
		entry := jobsetv1alpha2.ReplicatedJobScheduling{TargetReplicatedJobs: []string{name}}
		if d.Percent(50) {
			entry.Job = &jobsetv1alpha2.JobScheduling{}
		}
		out.ReplicatedJobs = append(out.ReplicatedJobs, entry)
	}
	return out
}

// startsAfterGang checks the Jobs that a decision starts.
func startsAfterGang(d decision) string {
	if d.Grouped == nil || d.JobSet.Spec.Scheduling == nil || isSuspended(d.JobSet) {
		return ""
	}
	for _, job := range d.plan.CreateJobs {
		if lacks := groupLacking(d.Observed, job); lacks != "" {
			return "job " + job.Name + " is created without " + lacks
		}
	}
	for _, patch := range d.plan.PatchJobs {
		if patch.Suspend == nil || *patch.Suspend {
			continue
		}
		if lacks := groupLacking(d.Observed, d.job(patch.Name)); lacks != "" {
			return "job " + patch.Name + " is resumed without " + lacks
		}
	}
	return ""
}

// groupOf returns the name of the group of the pods of a Job; "" if they have none.
func groupOf(js *jobsetv1alpha2.JobSet, job *batchv1.Job) string {
	at, _ := placeOf(job)
	return groupAt(js, at)
}

// groupAt returns the name of the group of the pods of the Job at a place; "" if they have none.
func groupAt(js *jobsetv1alpha2.JobSet, at place) string {
	if js.Spec.Scheduling == nil {
		return ""
	}
	set, _ := helper.PodGroups(js)
	for _, group := range set.Groups() {
		if slices.Contains(set.Entries[group.Entry].Targets, at.replicatedJob) && (group.Job < 0 || group.Job == at.index) {
			return group.Name
		}
	}
	return ""
}

// outsideGroup returns whether the pods of a Job are not in the group that the set asks for.
func outsideGroup(js *jobsetv1alpha2.JobSet, job *batchv1.Job) bool {
	group := job.Spec.Template.Spec.SchedulingGroup
	return groupOf(js, job) != "" && (group == nil || *group.PodGroupName != groupOf(js, job))
}

// groupLacking returns what a Job needs before it starts and the main API does not have; "" if it has all.
func groupLacking(o plan.Observed, job *batchv1.Job) string {
	exists := func(kind, name string) bool {
		return slices.ContainsFunc(o.Grouped.Objects, func(object *unstructured.Unstructured) bool {
			return object.GetKind() == kind && object.GetName() == name && object.GetDeletionTimestamp() == nil
		})
	}
	set, _ := helper.PodGroups(o.JobSet)
	switch group := groupOf(o.JobSet, job); {
	case group == "":
		return ""
	case o.Grouped.API == "":
		return "groups that are known"
	case !exists("Workload", set.WorkloadName()):
		return "the Workload " + set.WorkloadName()
	case !exists("PodGroup", group):
		return "the PodGroup " + group
	}
	return ""
}

// tallyGangs counts what decisions do about groups.
func (r *invariants) tallyGangs(d decision) {
	if d.Grouped == nil {
		return
	}
	r.Seen["plans that wait for groups"] += int(one(d.plan.Groups.Waiting))
	r.Seen["groups that are going"] += int(one(slices.ContainsFunc(d.Grouped.Objects, func(object *unstructured.Unstructured) bool {
		return object.GetDeletionTimestamp() != nil
	})))
	r.Seen["groups unknown"] += int(one(d.Grouped.API == ""))
	for _, job := range d.plan.CreateJobs {
		r.Seen["Jobs created in groups"] += int(one(job.Spec.Template.Spec.SchedulingGroup != nil))
	}
	for _, patch := range d.plan.PatchJobs {
		grouped := d.job(patch.Name).Spec.Template.Spec.SchedulingGroup != nil
		r.Seen["Jobs resumed in groups"] += int(one(grouped && !ptr.Deref(patch.Suspend, true)))
	}
}

// ownGroups returns the groups that a set controls.
func ownGroups(owner types.UID, objects ...[]*unstructured.Unstructured) (own []*unstructured.Unstructured) {
	for _, object := range slices.Concat(objects...) {
		if owners := object.GetOwnerReferences(); len(owners) > 0 && owners[0].UID == owner {
			own = append(own, object)
		}
	}
	return own
}
