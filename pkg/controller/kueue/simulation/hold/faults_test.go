// Copyright The jobset-apiserver Authors.
// SPDX-License-Identifier: Apache-2.0

package hold

import (
	"slices"
	"time"

	batchv1 "k8s.io/api/batch/v1"
	corev1 "k8s.io/api/core/v1"
	"k8s.io/apimachinery/pkg/api/meta"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"
	"k8s.io/utils/ptr"

	batchv1alpha1 "github.com/jobset-apiserver/jobset-apiserver/pkg/apis/batch/v1alpha1"
	"github.com/jobset-apiserver/jobset-apiserver/pkg/controller/kueue"
	"github.com/jobset-apiserver/jobset-apiserver/pkg/controller/kueue/plan"
	"github.com/jobset-apiserver/jobset-apiserver/test/simulation"
)

// faults are the weights of what happens in a history. Each history does without some of it.
type faults struct {
	pods, kueue, evictions, users, api, weather, lag, restarts, time int
}

func randomFaults(d simulation.Dice) faults {
	return faults{
		pods: 20, kueue: 15, evictions: simulation.OneOf(d, 0, 1, 4), users: simulation.OneOf(d, 0, 1, 3), api: simulation.OneOf(d, 0, 1, 3),
		weather: simulation.OneOf(d, 0, 2, 5), lag: simulation.OneOf(d, 0, 1), restarts: simulation.OneOf(d, 0, 0, 1), time: 5,
	}
}

// step lets something happen.
func (e *env) step() {
	f := e.faults
	e.endure()
	e.Happen([]simulation.Happening{
		{Weight: f.pods, Do: e.livePods},
		{Weight: f.kueue, Do: func() { e.kueueActs() }},
		{Weight: f.evictions, Do: e.evict},
		{Weight: f.users, Do: e.userActs},
		{Weight: f.api, Do: e.turnAPI},
		{Weight: f.weather, Do: e.turnWeather},
		{Weight: f.lag, Do: func() { e.server.SetLag(simulation.OneOf(e.Dice, 0, time.Second, maxLag)) }},
		{Weight: f.restarts, Do: e.restart},
		{Weight: f.time, Do: func() { e.pass(simulation.OneOf(e.Dice, 9*time.Second, time.Minute)) }},
	})
	e.observe()
	e.pass(time.Duration(1+e.Dice.IntN(2000)) * time.Millisecond)
	e.check()
}

func (e *env) restart() {
	e.stop()
	e.Seen["restarts"]++
	e.start()
}

func (e *env) turnWeather() {
	verb, t := e.weather.Turn(e.Dice, "discovery", "list", "watch", "get", "create", "patch", "apply")
	e.Note("%s: %+v", verb, t)
	e.Seen["trouble of "+verb]++
}

func (e *env) served() bool { return e.server.Serves(kueue.GroupVersion.WithResource("workloads")) }

// turnAPI removes the API of Kueue, or installs it again. Its objects stay: a kube-apiserver answered that does not know it.
func (e *env) turnAPI() {
	if e.served() {
		e.server.Withdraw(kueue.GroupVersion)
		e.Note("the API of Kueue is removed")
		e.Seen["removals"]++
		return
	}
	e.server.Serve(kueue.GroupVersion, kinds)
	e.Note("the API of Kueue is served")
}

// livePods lets the Job controller do what is to be done, or lets pods end.
func (e *env) livePods() {
	if !e.controlJobs() {
		e.endPods()
	}
}

// controlJobs starts and stops pods. It reports whether there was anything to do.
func (e *env) controlJobs() (busy bool) {
	for _, object := range e.server.List(jobs) {
		job := into[batchv1.Job](object)
		if len(job.Status.Conditions) > 0 {
			continue
		}
		switch suspended, active := ptr.Deref(job.Spec.Suspend, false), job.Status.Active > 0; {
		case e.slowPods && ptr.Deref(job.Status.Terminating, 0) > 0 && e.Now().Before(e.stopAt):
		case e.slowPods && suspended && active:
			e.letTerminate(object)
			return true
		case suspended && (active || job.Status.StartTime != nil || ptr.Deref(job.Status.Terminating, 0) > 0):
			e.expect(stops)
			change(e, jobs, object, func(job *batchv1.Job) { job.Status = batchv1.JobStatus{} })
			e.Note("pods of %s are gone", job.Name)
			return true
		case !suspended && !active:
			change(e, jobs, object, func(job *batchv1.Job) {
				job.Status.Active, job.Status.Ready, job.Status.StartTime, job.Status.Terminating = 1, ptr.To[int32](1), ptr.To(metav1.Now()), nil
			})
			e.Note("pods of %s run", job.Name)
			e.Seen["pods that run"]++
			return true
		}
	}
	return false
}

// endPods lets a Job complete.
func (e *env) endPods() {
	for _, object := range e.server.List(jobs) {
		if job := into[batchv1.Job](object); job.Status.Active > 0 && e.Dice.Percent(30) {
			e.expect(stops)
			change(e, jobs, object, complete)
			e.Note("%s completes", job.Name)
			e.Seen["steps that complete"]++
		}
	}
}

func complete(job *batchv1.Job) {
	now := metav1.Now()
	job.Status.Active, job.Status.Ready, job.Status.Succeeded, job.Status.CompletionTime = 0, nil, 1, &now
	job.Status.Conditions = []batchv1.JobCondition{{Type: batchv1.JobComplete, Status: corev1.ConditionTrue, LastTransitionTime: now}}
}

// kueueActs lets Kueue, and the garbage collector, do what is to be done. It reports whether there was anything.
func (e *env) kueueActs() (busy bool) {
	for _, object := range e.server.List(jobs) {
		sj, owner := e.server.Get(sequences, namespace, name), metav1.GetControllerOf(object)
		if sj == nil || sj.GetUID() != owner.UID {
			e.server.Delete(jobs, object)
			e.Note("the garbage collector deletes %s", object.GetName())
			return true
		}
	}
	for _, object := range e.server.List(workloads) {
		w := into[plan.Workload](object)
		sj := e.server.Get(sequences, namespace, name)
		switch {
		case (sj == nil || sj.GetUID() != w.OwnerUID()) && w.DeletionTimestamp == nil:
			e.expect(mayStop)
			e.server.Delete(workloads, object)
			e.Note("the garbage collector deletes the Workload")
		case w.Is(plan.ConditionFinished) || w.DeletionTimestamp != nil:
			continue
		case !w.Active() && w.Is(plan.ConditionQuotaReserved) && !w.Is(plan.ConditionEvicted):
			e.condition(object, plan.ConditionEvicted, metav1.ConditionTrue, "Deactivated")
			e.Note("Kueue evicts the Workload that is deactivated")
		case w.Active() && !w.Is(plan.ConditionQuotaReserved) && w.Status.Admission == nil:
			e.admit(object)
		default:
			continue
		}
		return true
	}
	return false
}

func (e *env) admit(object *unstructured.Unstructured) {
	e.expect(mayBegin)
	change(e, workloads, object, func(w *plan.Workload) {
		w.Status.Admission = &plan.Admission{ClusterQueue: "cq", PodSetAssignments: []plan.PodSetAssignment{
			{Name: plan.MainPodSet, Flavors: map[corev1.ResourceName]string{"cpu": "spot"}},
		}}
		for _, c := range []string{plan.ConditionQuotaReserved, plan.ConditionAdmitted} {
			meta.SetStatusCondition(&w.Status.Conditions, metav1.Condition{Type: c, Status: metav1.ConditionTrue, Reason: c})
		}
		meta.SetStatusCondition(&w.Status.Conditions, metav1.Condition{Type: plan.ConditionEvicted, Status: metav1.ConditionFalse, Reason: "QuotaReserved"})
	})
	e.Note("Kueue admits the Workload")
	e.Seen["admissions"]++
}

func (e *env) condition(object *unstructured.Unstructured, kind string, status metav1.ConditionStatus, reason string) {
	e.expect(mayStop)
	change(e, workloads, object, func(w *plan.Workload) {
		meta.SetStatusCondition(&w.Status.Conditions, metav1.Condition{Type: kind, Status: status, Reason: reason})
	})
}

// evict lets Kueue evict a Workload, or an administrator delete it.
func (e *env) evict() {
	for _, object := range e.server.List(workloads) {
		w := into[plan.Workload](object)
		switch {
		case !w.Is(plan.ConditionQuotaReserved) || w.Is(plan.ConditionEvicted) || w.Is(plan.ConditionFinished) || w.DeletionTimestamp != nil:
		case e.Dice.Percent(20):
			e.expect(mayStop)
			e.server.Delete(workloads, object)
			e.Note("an administrator deletes the Workload")
		default:
			e.condition(object, plan.ConditionEvicted, metav1.ConditionTrue, "Preempted")
			e.Note("Kueue evicts the Workload")
			e.Seen["evictions"]++
		}
	}
}

// userActs suspends, resumes, deletes or creates the sequence.
func (e *env) userActs() {
	e.expect(mayStop)
	object := e.server.Get(sequences, namespace, name)
	switch {
	case object == nil:
		if e.created < 3 {
			e.createSequence()
		}
	case e.Dice.Percent(25):
		e.server.Delete(sequences, object)
		e.Note("the user deletes the sequence")
		e.Seen["deletions"]++
	default:
		change(e, sequences, object, func(sj *batchv1alpha1.SequentialJob) {
			sj.Spec.Suspend = ptr.To(!ptr.Deref(sj.Spec.Suspend, false))
			sj.Generation++
		})
		e.Note("the user suspends or resumes the sequence")
		e.Seen["suspensions"]++
	}
}

// inUse returns whether a Workload has the finalizer.
func inUse(w *plan.Workload) bool { return slices.Contains(w.Finalizers, plan.InUseFinalizer) }
