// Copyright The jobset-apiserver Authors.
// SPDX-License-Identifier: Apache-2.0

package simulation

import (
	"maps"
	"slices"

	batchv1 "k8s.io/api/batch/v1"
	corev1 "k8s.io/api/core/v1"
	"k8s.io/apimachinery/pkg/api/equality"

	jobsetv1alpha2 "github.com/jobset-apiserver/jobset-apiserver/pkg/apis/jobset/v1alpha2"
	"github.com/jobset-apiserver/jobset-apiserver/pkg/controller/jobset/plan"
)

// This file holds the rules about what is stored. They take into account what a controller can know: a request whose
// answer was lost, or that arrives after its sender gave up, may bring about what no controller would have decided.

// jobCreated checks a Job right before it is stored. known means that its creator learns of it.
func (r *invariants) jobCreated(o plan.Observed, job *batchv1.Job, known bool) {
	if o.JobSet.UID != r.uid {
		return // a child of a set that is gone, for the garbage collector
	}
	if r.restored != nil {
		r.restored.created(r.env, job)
		return
	}
	at, _ := placeOf(job)
	this := attempt{name: job.Name, restarts: at.restarts, jobRestarts: at.jobRestarts}
	if js := r.set(); known && js != nil && js.UID == r.uid {
		r.checkCreation(o, js, job, this)
	}
	r.created[this] = job.UID
	r.jobs[job.UID] = &facts{attempt: this, unseen: !known}
	r.Seen["Jobs created"]++
}

func (r *invariants) checkCreation(o plan.Observed, js *jobsetv1alpha2.JobSet, job *batchv1.Job, this attempt) {
	if earlier, found := r.created[this]; found && !r.switched && !r.jobs[earlier].deletedByOther && !r.jobs[earlier].unseen {
		r.Fail("a Job is not created twice for one attempt", "%s and %s are both job %s of attempt %d-%d", earlier, job.UID, job.Name, this.restarts, this.jobRestarts)
	}
	if !r.known || r.process.gaveUp || number(o.JobSet.ResourceVersion) < r.actedAt {
		return
	}
	stored := o
	stored.JobSet, stored.Jobs = js, r.ownJobs()
	switch {
	case finished(&js.Status):
		r.Fail("nothing is created in a finished set", "job %s", job.Name)
	case meaningOf(stored, job) == previous:
		r.Fail("nothing is created for an earlier attempt", "job %s of attempt %d-%d", job.Name, this.restarts, this.jobRestarts)
	}
	policy := js.Spec.FailurePolicy
	if policy == nil || policy.RestartStrategy != jobsetv1alpha2.RestartStrategyBlockingRecreate {
		return
	}
	for _, old := range having(stored, previous) {
		if f := r.jobs[old.UID]; !f.unseen && !f.spoiled {
			r.Fail("BlockingRecreate never mixes attempts", "job %s is created while %s of an earlier attempt is there", job.Name, old.Name)
		}
	}
}

// statusStored checks a status right before it is stored. known means that its writer learns of it.
func (r *invariants) statusStored(o plan.Observed, before, after *jobsetv1alpha2.JobSetStatus, known bool) {
	if r.restored != nil {
		r.restored.stored(r.env, before, after)
		return
	}
	d := decision{Observed: o, before: before, after: after}
	r.checkRestart(d)
	if wrong := wrongWithHistory(before, after); wrong != "" {
		r.Fail("what is stored keeps the history", "%s", wrong)
	}
	if finished(before) && !sameConditions(before.Conditions, after.Conditions) {
		r.Fail("a finished set never restarts nor changes its result", "the conditions become %+v", after.Conditions)
	}
	if policy := o.JobSet.Spec.FailurePolicy; policy != nil && restartsThatCount(after) > policy.MaxRestarts+after.AddedRestarts {
		r.Fail("restarts that count stay within the maximum", "%d of %d+%d", restartsThatCount(after), policy.MaxRestarts, after.AddedRestarts)
	}
	if after.RestartsCountTowardsMax > after.Restarts {
		r.Fail("restarts that count are restarts", "%d of %d", after.RestartsCountTowardsMax, after.Restarts)
	}
	if isSuspended(o.JobSet) && !finished(before) && after.Restarts == 0 && !r.meddled {
		for _, counters := range before.ReplicatedJobsStatus {
			if next := countersOf(after, counters.Name); next.Succeeded < counters.Succeeded {
				r.Fail("succeeded never falls while suspended", "%s from %d to %d", counters.Name, counters.Succeeded, next.Succeeded)
			}
		}
	}
	if d.moved() {
		r.known = known
	}
}

// checkRestart checks that attempts follow each other, each after a failure of the one before.
func (r *invariants) checkRestart(d decision) {
	restarts, jobRestarts := d.after.Restarts-d.before.Restarts, jobRestartsOf(d.after)-jobRestartsOf(d.before)
	switch {
	case restarts == 0 && jobRestarts == 0:
		return
	case restarts < 0 || jobRestarts < 0 || restarts > 1 || restarts == 1 && jobRestarts > 0:
		r.Fail("restarts never fall, and come one by one", "%d and %d at once", restarts, jobRestarts)
	case restarts == 1 && !slices.ContainsFunc(slices.Collect(maps.Keys(r.failures)), func(failed attempt) bool { return failed.restarts == d.before.Restarts }):
		r.Fail("there is one restart for each attempt that failed", "restarts %d, failed were %v", d.after.Restarts, r.failures)
	}
	for _, counters := range d.after.ReplicatedJobsStatus {
		for i, n := range counters.JobRestarts {
			was := jobRestartsAt(d.before, counters.Name, i)
			if n > was && (n > was+1 || !r.failures[attempt{name: jobNameOf(counters.Name, i), restarts: d.before.Restarts, jobRestarts: was}]) {
				r.Fail("there is one restart for each attempt that failed", "job %s-%d goes from %d to %d, failed were %v",
					counters.Name, i, was, n, r.failures)
			}
		}
	}
}

// jobPatched checks a Job right before it is stored with a change of the controller.
func (r *invariants) jobPatched(js *jobsetv1alpha2.JobSet, before, job *batchv1.Job) {
	suspend := jobIsSuspended(job)
	if suspend == jobIsSuspended(before) {
		return
	}
	if r.restored != nil {
		if suspend {
			r.restored.stopped(r.env, job, suspendedNow)
		}
		return
	}
	if f := r.jobs[job.UID]; f != nil {
		if f.held && f.heldAt == js.Generation && !suspend {
			r.Fail("a Job that somebody else suspended stays so until the set changes", "job %s", job.Name)
		}
		f.held = false
		r.checkRecorded(js, job, f, suspend)
	}
	if suspend {
		return
	}
	r.Seen["Jobs resumed"]++
	rj := replicatedJob(js, job.Labels[jobsetv1alpha2.ReplicatedJobNameKey])
	wanted, got := &rj.Template.Spec.Template, &job.Spec.Template
	if got.Labels[directive] != wanted.Labels[directive] || got.Annotations[directive] != wanted.Annotations[directive] ||
		got.Spec.NodeSelector[directive] != wanted.Spec.NodeSelector[directive] || !slices.Equal(withKey(got.Spec.Tolerations), wanted.Spec.Tolerations) {
		r.Fail("a Job is resumed with the directives of the set", "job %s", job.Name)
	}
	if r.gates.MutablePodResourcesForSuspendedJobSets && !equality.Semantic.DeepEqual(got.Spec.Containers[0].Resources, wanted.Spec.Containers[0].Resources) {
		r.Fail("a Job is resumed with the resources of the set", "job %s", job.Name)
	}
	if got.Labels["controller-uid"] != string(job.UID) || got.Labels[jobsetv1alpha2.RestartsKey] != job.Labels[jobsetv1alpha2.RestartsKey] {
		r.Fail("a resumed Job keeps its identity", "job %s", job.Name)
	}
}

// jobDeleted checks a Job right before the controller deletes it. What was right to delete once stays so: attempts only
// grow, and finished sets stay finished.
func (r *invariants) jobDeleted(job *batchv1.Job) {
	if r.restored != nil {
		r.restored.stopped(r.env, job, "deleted")
		return
	}
	js, f := r.set(), r.jobs[job.UID]
	if js == nil || js.UID != r.uid || f == nil || f.spoiled || r.switched || finished(&js.Status) {
		return
	}
	if outsideGroup(js, job) {
		f.deletedByOther = true // it is created once more, in its group
		return
	}
	if stored := (plan.Observed{JobSet: js, Gates: r.gates}); meaningOf(stored, job) != previous {
		r.Fail("no Job of the present attempt is deleted", "job %s of attempt %d-%d", job.Name, f.restarts, f.jobRestarts)
	}
}

// withKey returns those tolerations that users change.
func withKey(tolerations []corev1.Toleration) []corev1.Toleration {
	return slices.DeleteFunc(slices.Clone(tolerations), func(t corev1.Toleration) bool { return t.Key != directive })
}

// setDeleted checks a set right before the controller deletes it.
func (r *invariants) setDeleted(js *jobsetv1alpha2.JobSet) {
	if wrong := outlived(js, r.Now()); wrong != "" {
		r.Fail("a stored set is deleted after its time to live only", "%s", wrong)
	}
	r.Seen["sets deleted after their time to live"]++
}
