// Copyright The jobset-apiserver Authors.
// SPDX-License-Identifier: Apache-2.0

package simulation

import (
	"context"
	"slices"

	batchv1 "k8s.io/api/batch/v1"
	apierrors "k8s.io/apimachinery/pkg/api/errors"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"
	"k8s.io/apimachinery/pkg/types"
	"k8s.io/apimachinery/pkg/util/sets"
	"k8s.io/utils/ptr"

	"github.com/jobset-apiserver/jobset-apiserver/pkg/apis/batch"
	"github.com/jobset-apiserver/jobset-apiserver/pkg/apis/jobset"
	jobsetv1alpha2 "github.com/jobset-apiserver/jobset-apiserver/pkg/apis/jobset/v1alpha2"
	"github.com/jobset-apiserver/jobset-apiserver/pkg/controller/gang"
	gangplan "github.com/jobset-apiserver/jobset-apiserver/pkg/controller/gang/plan"
	"github.com/jobset-apiserver/jobset-apiserver/pkg/controller/host/children"
	jobsetgang "github.com/jobset-apiserver/jobset-apiserver/pkg/controller/jobset/plan/gang"
	"github.com/jobset-apiserver/jobset-apiserver/pkg/registry/jobset/jobset/actions"
	"github.com/jobset-apiserver/jobset-apiserver/test/simulation"
)

// groupAPI is what the main API has of groups of pods.
type groupAPI struct {
	*env
	workloads, podGroups *simulation.Resource[*unstructured.Unstructured]
	// unknown means that the groups cannot be read.
	unknown bool
	// deleted are the groups that users have deleted, and over those that the controller has decided to delete when the set had finished, or
	// all of its Jobs were suspended.
	deleted, over sets.Set[types.UID]
}

func newGroupAPI(e *env, main *simulation.Server) *groupAPI {
	a := &groupAPI{env: e, deleted: sets.New[types.UID](), over: sets.New[types.UID]()}
	a.workloads = simulation.NewResource[*unstructured.Unstructured](e.World, main, "workload")
	a.podGroups = simulation.NewResource[*unstructured.Unstructured](e.World, main, "podgroup")
	a.podGroups.Stays = func(group *unstructured.Unstructured) bool { return a.has(group.GetName(), hasPods) } // the scheduler keeps it
	return a
}

// resources are the kinds of groups.
func (a *groupAPI) resources() []*simulation.Resource[*unstructured.Unstructured] {
	return []*simulation.Resource[*unstructured.Unstructured]{a.workloads, a.podGroups}
}

// collect removes PodGroups that are being deleted and have no pods, and deletes groups whose set is gone. It reports whether there were
// any.
func (a *groupAPI) collect() bool {
	js := a.set()
	for _, of := range a.resources() {
		for _, object := range of.Objects {
			owner := metav1.GetControllerOfNoCopy(object)
			switch {
			case object.GetDeletionTimestamp() != nil && a.has(object.GetName(), hasPods):
			case object.GetDeletionTimestamp() != nil:
				a.Note("%s %s is gone", of.Kind, object.GetName())
				of.Remove(object.GetName())
				return true
			case js == nil || owner.UID != js.UID:
				a.remove(of, object)
				return true
			}
		}
	}
	return false
}

// has returns whether a group has a Job that has not ended and for which the condition holds.
func (a *groupAPI) has(group string, condition func(*batchv1.Job) bool) bool {
	return slices.ContainsFunc(a.jobs.Objects, func(job *batchv1.Job) bool {
		of := job.Spec.Template.Spec.SchedulingGroup
		return of != nil && ptr.Deref(of.PodGroupName, "") == group && !ended(job) && condition(job)
	})
}

// losesGroup reports whether the group of the pods of a Job is being deleted.
func (a *groupAPI) losesGroup(job *batchv1.Job) bool {
	of := job.Spec.Template.Spec.SchedulingGroup
	if a == nil || of == nil {
		return false
	}
	group, found := a.podGroups.Get(ptr.Deref(of.PodGroupName, ""))
	return found && group.GetDeletionTimestamp() != nil
}

// letGo notes groups that a decision deletes because the set needs none. The set may be retried or resumed before their pods have ended.
func (a *groupAPI) letGo(d decision) {
	if a == nil || !finished(d.before) && (!isSuspended(d.JobSet) || mayStartPods(d.Observed)) {
		return
	}
	for _, group := range d.plan.Groups.Delete {
		a.over.Insert(group.UID)
	}
}

// staysForSlow reports whether a Job waits for a new group because the scheduler keeps the old one (docs/scheduling.md#life-cycle): until the
// pods of the slow Job have ended if the set did not need the group any longer, or those of any Job if a user has deleted it.
func (a *groupAPI) staysForSlow(js *jobsetv1alpha2.JobSet, at place) bool {
	if a == nil {
		return false
	}
	group, found := a.podGroups.Get(groupAt(js, at))
	if !found || group.GetDeletionTimestamp() == nil {
		return false
	}
	slow := func(job *batchv1.Job) bool { return job.Name == a.slow && hasPods(job) }
	return a.over.Has(group.GetUID()) && a.has(group.GetName(), slow) || a.deleted.Has(group.GetUID()) && a.has(group.GetName(), hasPods)
}

// suspended lets a user take a suspension back, at times, when the controller has suspended a Job of the set, and others run. The cache
// shows it, so that no other Job is suspended.
func (a *groupAPI) suspended(job *batchv1.Job) {
	if a == nil || !jobIsSuspended(job) || !a.Dice.Percent(15) {
		return
	}
	runs := func(other *batchv1.Job) bool { return !ended(other) && !jobIsSuspended(other) && hasPods(other) }
	js := a.set()
	if js == nil || !isSuspended(js) || js.DeletionTimestamp != nil || finished(&js.Status) || !slices.ContainsFunc(a.ownJobs(), runs) {
		return
	}
	a.Seen["suspensions taken back while some Jobs run"]++
	a.switchSuspend(false)
	a.ShowPart(&a.process.jobSets)
}

// renewGroups has a user restart the set if a PodGroup was deleted whose pods run. No Job is stopped for it, and the missing Jobs wait
// until these pods have ended (docs/scheduling.md#life-cycle). It reports whether that was so.
func (e *env) renewGroups() bool {
	js := e.set()
	if e.gangs == nil || js == nil || js.DeletionTimestamp != nil || js.Spec.ManagedBy != nil || isSuspended(js) || finished(&js.Status) {
		return false
	}
	runs := func(job *batchv1.Job) bool { return !jobIsSuspended(job) }
	if !slices.ContainsFunc(e.gangs.podGroups.Objects, func(group *unstructured.Unstructured) bool {
		return e.gangs.deleted.Has(group.GetUID()) && e.gangs.has(group.GetName(), runs)
	}) {
		return false
	}
	restart := request{kind: restartRequests, do: func(js *jobset.JobSet, c actions.Call) (*batch.JobSetActionStatus, error) {
		return actions.Restart(js, &batch.JobSetRestartSpec{Reason: "because"}, c)
	}}
	if _, err := e.carryOut(restart); err != nil {
		e.Fail("a set whose group is deleted can be restarted", "%v", err)
	}
	e.personActed()
	e.Note("user restarts the set, whose group is being deleted")
	e.Seen["restarts for a new group"]++
	e.invariants.acted(restart, js, e.set())
	none := 0
	e.rounds(deniedRounds, runOn, &none)
	return true
}

func (a *groupAPI) remove(of *simulation.Resource[*unstructured.Unstructured], object *unstructured.Unstructured) {
	a.Note("%s %s is deleted", of.Kind, object.GetName())
	of.Delete(object, metav1.DeletePropagationBackground)
}

// meddle lets a user delete a group, or makes groups unknown or known.
func (a *groupAPI) meddle() {
	of := simulation.OneOf(a.Dice, a.resources()...)
	switch {
	case a.Dice.Percent(40):
		a.turn(!a.unknown)
	case len(of.Objects) > 0 && of.Objects[0].GetDeletionTimestamp() == nil:
		a.deleted.Insert(of.Objects[0].GetUID())
		a.remove(of, of.Objects[0])
		a.Seen["groups deleted by users"]++
	}
}

// turn makes groups unknown or known.
func (a *groupAPI) turn(unknown bool) {
	if a.unknown = unknown; a.process != nil {
		a.Note("groups are unknown: %t", unknown)
		a.process.enqueue()
	}
}

// happenings are what may happen to groups.
func (a *groupAPI) happenings() []simulation.Happening {
	if a == nil {
		return nil
	}
	p := a.process
	return []simulation.Happening{
		{Weight: a.faults.services, Do: func() { a.ShowPart(&p.workloads) }},
		{Weight: a.faults.jobs, Do: func() { a.ShowPart(&p.podGroups) }},
		{Weight: a.faults.children, Do: a.meddle},
	}
}

// listen has a process follow groups.
func (a *groupAPI) listen(p *process) {
	for informer, of := range map[*simulation.Informer[*unstructured.Unstructured]]*simulation.Resource[*unstructured.Unstructured]{
		&p.workloads: a.workloads, &p.podGroups: a.podGroups,
	} {
		*informer = simulation.Informer[*unstructured.Unstructured]{
			From: &of.Store, Handle: func(object *unstructured.Unstructured, _ bool) { p.enqueueOwner(object) },
		}
	}
}

// processGroups are the groups as a process sees and writes them.
type processGroups struct{ *process }

func (g processGroups) Ask() gang.State {
	if g.gangs.unknown {
		return gang.State{Problem: "no answer"}
	}
	return gang.State{Version: jobsetgang.V1beta1.GroupVersion()}
}

func (g processGroups) Of(owner types.UID) []*unstructured.Unstructured {
	return ownGroups(owner, g.workloads.Objects, g.podGroups.Objects)
}

func (processGroups) Provider() gangplan.Provider { return "" }

func (g processGroups) Client(_ jobsetgang.API, kind, _ string) children.Client[*unstructured.Unstructured] {
	of := g.gangs.podGroups
	if kind == gang.Workloads.Kind {
		of = g.gangs.workloads
	}
	return groupClient{simulation.Client[*unstructured.Unstructured]{Resource: of, Sender: g.sender}}
}

// groupClient is a client of groups.
type groupClient struct {
	simulation.Client[*unstructured.Unstructured]
}

// Delete answers with a conflict only if another object has the name: the UID is the only precondition.
func (c groupClient) Delete(ctx context.Context, name string, options metav1.DeleteOptions) error {
	err := c.Client.Delete(ctx, name, options)
	if object, found := c.Store.Get(name); apierrors.IsConflict(err) && found && object.GetUID() == *options.Preconditions.UID {
		return simulation.ErrServer
	}
	return err
}
