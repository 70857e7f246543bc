// Copyright The jobset-apiserver Authors.
// SPDX-License-Identifier: Apache-2.0

package simulation

import (
	"maps"
	"slices"
	"strconv"

	batchv1 "k8s.io/api/batch/v1"
	corev1 "k8s.io/api/core/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/utils/ptr"

	jobsetv1alpha2 "github.com/jobset-apiserver/jobset-apiserver/pkg/apis/jobset/v1alpha2"
	"github.com/jobset-apiserver/jobset-apiserver/test/simulation"
)

// changeSomething is what users, and systems like Kueue, do to the set.
func (e *env) changeSomething() {
	if r := e.invariants.restored; r != nil {
		r.edited = true
	}
	js := e.set()
	if js == nil {
		if e.Dice.Percent(30) {
			e.createSet()
		}
		return
	}
	switch n := e.Dice.IntN(100); {
	case n < 30 && !conditionIs(&js.Status, jobsetv1alpha2.JobSetFailed): // a set that has failed is rather retried
		e.switchSuspend(!isSuspended(js))
	case n < 58:
		e.callAction()
	case n < 67:
		e.touchSet()
	case n < 75:
		ttl := simulation.OneOf[*int32](e.Dice, nil, ptr.To[int32](0), ptr.To[int32](5))
		e.Note("user changes the time to live")
		e.changeSpec(func(js *jobsetv1alpha2.JobSet) { js.Spec.TTLSecondsAfterFinished = ttl })
	case n < 92:
		e.resize()
	default:
		e.deleteSet(e.Dice.Percent(50))
	}
}

// touchSet changes nothing but the version of the set.
func (e *env) touchSet() {
	e.Note("user annotates the set")
	e.changeSet(func(js *jobsetv1alpha2.JobSet) {
		js.Annotations = maps.Clone(js.Annotations)
		if js.Annotations == nil {
			js.Annotations = map[string]string{}
		}
		js.Annotations["touched"] = strconv.Itoa(e.jobSets.Versions.Last)
	})
}

// switchSuspend suspends or resumes the set, at times with other scheduling directives in the same write.
func (e *env) switchSuspend(suspend bool) {
	e.personActed()
	e.Note("user sets suspend to %t", suspend)
	directed := e.Dice.Percent(60)
	value := e.Dice.IntN(3)
	e.changeSpec(func(js *jobsetv1alpha2.JobSet) {
		js.Spec.Suspend = &suspend
		if !directed {
			return
		}
		e.Note("  with the directives %d", value)
		js.Spec.ReplicatedJobs = slices.Clone(js.Spec.ReplicatedJobs)
		for i := range js.Spec.ReplicatedJobs {
			setDirectives(&js.Spec.ReplicatedJobs[i], strconv.Itoa(value))
			if e.gates.MutablePodResourcesForSuspendedJobSets {
				setResources(&js.Spec.ReplicatedJobs[i], value)
			}
		}
	})
}

// resize gives an elastic replicatedJob another size, unless its pods are a gang.
func (e *env) resize() {
	i := e.Dice.IntN(len(e.set().Spec.ReplicatedJobs))
	if !e.gates.ElasticJobSet || e.set().Spec.Scheduling != nil || finished(&e.set().Status) || e.set().Spec.ReplicatedJobs[i].Template.Spec.Completions == nil {
		return
	}
	size := simulation.OneOf[int32](e.Dice, 1, 2, 3)
	e.changeSpec(func(js *jobsetv1alpha2.JobSet) {
		js.Spec.ReplicatedJobs = slices.Clone(js.Spec.ReplicatedJobs)
		rj := &js.Spec.ReplicatedJobs[i]
		e.Note("user resizes %s to %d", rj.Name, size)
		rj.Template.Spec.Parallelism, rj.Template.Spec.Completions = &size, &size
	})
}

func (e *env) deleteSet(foreground bool) {
	e.personActed()
	e.Note("user deletes the set, in the foreground: %t", foreground)
	switch {
	case !foreground:
		e.jobSets.Remove(setName)
	case e.set().DeletionTimestamp == nil:
		e.changeSpec(func(js *jobsetv1alpha2.JobSet) { js.DeletionTimestamp = ptr.To(e.Stored()) })
	}
}

// meddleWithChildren is what a user may do to Jobs and to other objects of the set.
func (e *env) meddleWithChildren() {
	if own := e.ownJobs(); len(own) > 0 && e.Dice.Percent(80) {
		e.meddleWithJob(simulation.OneOf(e.Dice, own...))
		return
	}
	switch n := e.Dice.IntN(5); {
	case n == 4 && e.set() != nil:
		e.denyJob()
	case n == 0 && len(e.services.Objects) > 0:
		e.Note("somebody deletes the service")
		e.services.Remove(e.services.Objects[0].Name)
	case n == 1 && len(e.claims.Objects) > 0:
		e.Note("somebody deletes a claim")
		e.claims.Remove(e.claims.Objects[0].Name)
	case n == 2 && e.set() != nil:
		e.occupyName()
	default:
		e.removeForeign()
	}
}

func (e *env) meddleWithJob(job *batchv1.Job) {
	switch n := e.Dice.IntN(100); {
	case n < 60:
		e.Note("somebody deletes job %s", job.Name)
		e.invariants.deletedByOther(job)
		e.deleteJob(job, e.Dice.Percent(50))
	case n < 80 && !ended(job):
		hold := e.Dice.Percent(70)
		e.Note("somebody sets suspend of job %s to %t", job.Name, hold)
		e.hold(job, hold)
	case n < 90:
		e.relabel(job, jobsetv1alpha2.RestartsKey, "x")
	case n < 95:
		e.relabel(job, jobsetv1alpha2.JobIndexKey, "7")
	default:
		e.relabel(job, jobsetv1alpha2.JobSetNameKey, "")
	}
}

// hold suspends a Job, or lets it run, as a queueing system does with the children of a set.
func (e *env) hold(job *batchv1.Job, hold bool) {
	e.invariants.held(job, hold)
	e.changeJob(job, func(j *batchv1.Job) { j.Spec.Suspend = &hold })
}

// relabel spoils a label of a Job, or removes it.
func (e *env) relabel(job *batchv1.Job, key, value string) {
	e.Note("somebody changes label %s of job %s to %q", key, job.Name, value)
	e.invariants.spoiled(job)
	e.changeJob(job, func(j *batchv1.Job) {
		j.Labels = maps.Clone(j.Labels)
		if j.Labels[key] = value; value == "" {
			delete(j.Labels, key)
		}
	})
}

// occupyName creates a Job that the set does not own, with a name that the set needs.
func (e *env) occupyName() {
	rj := simulation.OneOf(e.Dice, replicatedJobNames(e.set())...)
	name := setName + "-" + rj + "-0"
	if _, taken := e.jobs.Get(name); taken {
		return
	}
	e.Note("somebody creates a job named %s", name)
	e.jobs.Put(&batchv1.Job{
		ObjectMeta: metav1.ObjectMeta{Name: name, Namespace: namespace, UID: e.NewUID("foreign")},
		Spec:       batchv1.JobSpec{Parallelism: ptr.To[int32](1), Template: corev1.PodTemplateSpec{}},
	})
}

// denyJob makes a policy deny one Job of the set, or none.
func (e *env) denyJob() {
	e.denied = ""
	if rj := simulation.OneOf(e.Dice, e.set().Spec.ReplicatedJobs...); e.Dice.Percent(80) && *rj.Replicas > 0 {
		e.denied = jobNameOf(rj.Name, e.Dice.IntN(int(*rj.Replicas)))
	}
	e.deniesStatus = e.Dice.Percent(15)
	e.Note("a policy denies job %q, and the status: %t", e.denied, e.deniesStatus)
	if e.Dice.Percent(30) {
		e.fillNodes(e.Dice.IntN(3))
	}
	if e.Dice.Percent(30) {
		e.refusesPods = !e.refusesPods
		e.Note("a quota refuses pods: %t", e.refusesPods)
		e.process.enqueue()
	}
}

// fillNodes leaves so many pods of the set without a node.
func (e *env) fillNodes(pods int) {
	e.unschedulable = pods
	e.Note("%d pods cannot be scheduled", pods)
	e.process.enqueue()
}

// removeForeign removes a Job that is no child of any set. It reports whether there was one.
func (e *env) removeForeign() bool {
	for _, job := range e.jobs.Objects {
		if len(job.OwnerReferences) == 0 {
			e.Note("the job of somebody else named %s is gone", job.Name)
			e.jobs.Remove(job.Name)
			return true
		}
	}
	return false
}
