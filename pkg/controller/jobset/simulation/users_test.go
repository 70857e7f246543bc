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
)

// changeSomething is what users, and systems like Kueue, do to the set.
func (w *world) changeSomething() {
	js := w.set()
	if js == nil {
		if w.dice.percent(30) {
			w.createSet()
		}
		return
	}
	switch n := w.dice.IntN(100); {
	case n < 30 && !conditionIs(&js.Status, jobsetv1alpha2.JobSetFailed): // a set that has failed is rather retried
		w.switchSuspend(!isSuspended(js))
	case n < 58:
		w.callAction()
	case n < 67:
		w.touchSet()
	case n < 75:
		ttl := oneOf[*int32](w.dice, nil, ptr.To[int32](0), ptr.To[int32](5))
		w.note("user changes the time to live")
		w.changeSpec(func(js *jobsetv1alpha2.JobSet) { js.Spec.TTLSecondsAfterFinished = ttl })
	case n < 92:
		w.resize()
	default:
		w.deleteSet(w.dice.percent(50))
	}
}

// touchSet changes nothing but the version of the set.
func (w *world) touchSet() {
	w.note("user annotates the set")
	w.changeSet(func(js *jobsetv1alpha2.JobSet) {
		js.Annotations = maps.Clone(js.Annotations)
		if js.Annotations == nil {
			js.Annotations = map[string]string{}
		}
		js.Annotations["touched"] = strconv.Itoa(w.jobSets.versions.last)
	})
}

// switchSuspend suspends or resumes the set, at times with other scheduling directives in the same write.
func (w *world) switchSuspend(suspend bool) {
	w.note("user sets suspend to %t", suspend)
	directed := w.dice.percent(60)
	value := w.dice.IntN(3)
	w.changeSpec(func(js *jobsetv1alpha2.JobSet) {
		js.Spec.Suspend = &suspend
		if !directed {
			return
		}
		w.note("  with the directives %d", value)
		js.Spec.ReplicatedJobs = slices.Clone(js.Spec.ReplicatedJobs)
		for i := range js.Spec.ReplicatedJobs {
			setDirectives(&js.Spec.ReplicatedJobs[i], strconv.Itoa(value))
			if w.gates.MutableResources {
				setResources(&js.Spec.ReplicatedJobs[i], value)
			}
		}
	})
}

// resize gives an elastic replicatedJob another size.
func (w *world) resize() {
	i := w.dice.IntN(len(w.set().Spec.ReplicatedJobs))
	if !w.gates.ElasticJobSet || finished(&w.set().Status) || w.set().Spec.ReplicatedJobs[i].Template.Spec.Completions == nil {
		return
	}
	size := oneOf[int32](w.dice, 1, 2, 3)
	w.changeSpec(func(js *jobsetv1alpha2.JobSet) {
		js.Spec.ReplicatedJobs = slices.Clone(js.Spec.ReplicatedJobs)
		rj := &js.Spec.ReplicatedJobs[i]
		w.note("user resizes %s to %d", rj.Name, size)
		rj.Template.Spec.Parallelism, rj.Template.Spec.Completions = &size, &size
	})
}

func (w *world) deleteSet(foreground bool) {
	w.note("user deletes the set, in the foreground: %t", foreground)
	switch {
	case !foreground:
		w.jobSets.remove(setName)
	case w.set().DeletionTimestamp == nil:
		w.changeSpec(func(js *jobsetv1alpha2.JobSet) { js.DeletionTimestamp = ptr.To(w.stored()) })
	}
}

// meddleWithChildren is what somebody may do to Jobs and to what else belongs to the set.
func (w *world) meddleWithChildren() {
	if own := w.ownJobs(); len(own) > 0 && w.dice.percent(80) {
		w.meddleWithJob(oneOf(w.dice, own...))
		return
	}
	switch n := w.dice.IntN(5); {
	case n == 4 && w.set() != nil:
		w.denyJob()
	case n == 0 && len(w.services.objects) > 0:
		w.note("somebody deletes the service")
		w.services.remove(w.services.objects[0].Name)
	case n == 1 && len(w.claims.objects) > 0:
		w.note("somebody deletes a claim")
		w.claims.remove(w.claims.objects[0].Name)
	case n == 2 && w.set() != nil:
		w.occupyName()
	default:
		w.removeForeign()
	}
}

func (w *world) meddleWithJob(job *batchv1.Job) {
	switch n := w.dice.IntN(100); {
	case n < 60:
		w.note("somebody deletes job %s", job.Name)
		w.referee.deletedByOther(job)
		w.deleteJob(job, w.dice.percent(50))
	case n < 80 && !ended(job):
		hold := w.dice.percent(70)
		w.note("somebody sets suspend of job %s to %t", job.Name, hold)
		w.hold(job, hold)
	case n < 90:
		w.relabel(job, jobsetv1alpha2.RestartsKey, "x")
	case n < 95:
		w.relabel(job, jobsetv1alpha2.JobIndexKey, "7")
	default:
		w.relabel(job, jobsetv1alpha2.JobSetNameKey, "")
	}
}

// hold suspends a Job, or lets it run, as a queueing system does with the children of a set.
func (w *world) hold(job *batchv1.Job, hold bool) {
	w.referee.held(job, hold)
	w.changeJob(job, func(j *batchv1.Job) { j.Spec.Suspend = &hold })
}

// relabel spoils a label of a Job, or removes it.
func (w *world) relabel(job *batchv1.Job, key, value string) {
	w.note("somebody changes label %s of job %s to %q", key, job.Name, value)
	w.referee.spoiled(job)
	w.changeJob(job, func(j *batchv1.Job) {
		j.Labels = maps.Clone(j.Labels)
		if j.Labels[key] = value; value == "" {
			delete(j.Labels, key)
		}
	})
}

// occupyName makes a Job of somebody else that has a name which the set wants.
func (w *world) occupyName() {
	rj := oneOf(w.dice, replicatedJobNames(w.set())...)
	name := setName + "-" + rj + "-0"
	if _, taken := w.jobs.get(name); taken {
		return
	}
	w.note("somebody creates a job named %s", name)
	uid := newUID("foreign", w.jobs.versions.last)
	w.jobs.put(&batchv1.Job{
		ObjectMeta: metav1.ObjectMeta{Name: name, Namespace: namespace, UID: uid},
		Spec:       batchv1.JobSpec{Parallelism: ptr.To[int32](1), Template: corev1.PodTemplateSpec{}},
	})
}

// denyJob makes a policy deny one Job of the set, or none.
func (w *world) denyJob() {
	w.denied = ""
	if rj := oneOf(w.dice, w.set().Spec.ReplicatedJobs...); w.dice.percent(80) && *rj.Replicas > 0 {
		w.denied = jobNameOf(rj.Name, w.dice.IntN(int(*rj.Replicas)))
	}
	w.note("a policy denies job %q", w.denied)
}

// removeForeign removes a Job that is no child of any set. It tells whether there was one.
func (w *world) removeForeign() bool {
	for _, job := range w.jobs.objects {
		if len(job.OwnerReferences) == 0 {
			w.note("the job of somebody else named %s is gone", job.Name)
			w.jobs.remove(job.Name)
			return true
		}
	}
	return false
}
