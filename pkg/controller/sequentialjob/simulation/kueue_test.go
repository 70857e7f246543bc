// Copyright The jobset-apiserver Authors.
// SPDX-License-Identifier: Apache-2.0

package simulation

import (
	"context"
	"strconv"

	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/types"

	batchv1 "k8s.io/api/batch/v1"

	batchv1alpha1 "github.com/jobset-apiserver/jobset-apiserver/pkg/apis/batch/v1alpha1"
	"github.com/jobset-apiserver/jobset-apiserver/pkg/apis/batch/v1alpha1/helper"
	jobsetv1alpha2 "github.com/jobset-apiserver/jobset-apiserver/pkg/apis/jobset/v1alpha2"
	hostplan "github.com/jobset-apiserver/jobset-apiserver/pkg/controller/host/plan"
	kueueplan "github.com/jobset-apiserver/jobset-apiserver/pkg/controller/kueue/plan"
	"github.com/jobset-apiserver/jobset-apiserver/pkg/controller/sequentialjob/plan"
	"github.com/jobset-apiserver/jobset-apiserver/test/simulation"
)

// This file holds what Kueue does, and what the controller knows of it: nothing while Kueue is away, and nothing until
// a controller that has started has read it.

// kueue is what Kueue does with sequences.
type kueue struct {
	// holds means that sequences hold quota for all of their steps, served that the cluster has Kueue, and admitted to
	// which nodes the sequence was admitted; empty if it has no quota.
	holds, served bool
	admitted      string
}

// workload is what Kueue has made for a child.
type workload struct {
	version             int
	active, deactivated bool
}

// kueueActs lets Kueue look at a child or at the whole sequence, and lets it come and go.
func (e *env) kueueActs() {
	own, evict := e.own(), e.Dice.Percent(20)
	switch {
	case e.Dice.Percent(5):
		e.served = !e.served
		e.Note("Kueue is there: %t", e.served)
		e.process.worker.Add(name)
	case e.served && !e.process.readsKueue:
		e.readKueue()
	case e.admit(evict):
	case len(own) > 0:
		e.queue(simulation.OneOf(e.Dice, own...), evict)
	}
}

// readKueue shows the controller what Kueue has made. It reports whether it had not seen it.
func (e *env) readKueue() bool {
	if e.process.readsKueue || !e.served {
		return false
	}
	e.Note("the controller has read the Workloads")
	e.process.readsKueue = true
	e.process.worker.Add(name)
	return true
}

// admit gives a sequence that holds quota its quota, or takes it back. It reports whether anything changed.
func (e *env) admit(evict bool) bool {
	sj := e.sequence()
	if !e.holds || !e.served || sj == nil || sj.Labels[helper.QueueKey] == "" || (e.admitted != "") != evict || !evict && !e.generous {
		return false
	}
	if e.admitted = ""; !evict {
		e.admitted = simulation.OneOf(e.Dice, "zone-a", "zone-a", "zone-b")
		e.Seen["admissions"]++
	}
	e.Note("Kueue admits the sequence to %q", e.admitted)
	e.process.worker.Add(name)
	return true
}

// queue is what Kueue does with a child: it makes its Workload, admits it, or stops it. It reports whether anything changed.
func (e *env) queue(child metav1.Object, evict bool) bool {
	c := view(child)
	if !c.Queued || c.End != "" || c.Deleting || !e.served {
		return false
	}
	w := e.workloads[c.UID]
	switch {
	case w == nil:
		e.Note("Kueue makes a Workload for %s", c.Name)
		e.workloads[c.UID] = &workload{version: 1, active: true}
		e.process.worker.Add(name)
	case c.Suspended && w.active && e.generous && !evict:
		e.Note("Kueue admits %s", c.Name)
		e.Seen["admissions"]++
		e.setSuspend(child, false)
	case !c.Suspended && (!w.active || evict):
		e.Note("Kueue stops %s", c.Name)
		e.setSuspend(child, true)
	default:
		return false
	}
	return true
}

func (e *env) setSuspend(child metav1.Object, suspend bool) {
	e.changeChild(child, func(j *batchv1.Job) { j.Spec.Suspend = &suspend }, func(s *jobsetv1alpha2.JobSet) { s.Spec.Suspend = &suspend })
}

// queues is what a process knows of Kueue.
type queues struct{ p *process }

func (q queues) Queue(_ context.Context, sj *batchv1alpha1.SequentialJob, child plan.ChildRef) (plan.Queue, error) {
	known := plan.Queue{Served: q.p.served}
	read := q.p.served && q.p.readsKueue
	if !read {
		q.p.Seen["decisions without knowledge of Kueue"]++
	}
	if q.p.holds && sj.Labels[helper.QueueKey] != "" {
		switch known.Hold = (&plan.Hold{}); {
		case !read:
		case q.p.admitted == "":
			known.Hold.Admission = hostplan.None[plan.Admission]()
		default:
			known.Hold = &plan.Hold{Admission: hostplan.Of(plan.Admission{Key: q.p.admitted, Workload: &kueueplan.Workload{}})}
		}
		q.p.without = known.Hold.Admission.IsNone()
	}
	q.p.unread = !read && q.p.served
	switch w := q.p.workloads[child.UID]; {
	case !q.p.served, read && w == nil:
		known.Workload = hostplan.None[*plan.Workload]()
	case read:
		known.Workload = hostplan.Of(&plan.Workload{
			Name: child.Name, UID: "w-" + child.UID, ResourceVersion: strconv.Itoa(w.version), Active: w.active, Deactivated: w.deactivated,
		})
	}
	return known, nil
}

func (q queues) SetActive(_ context.Context, _ *batchv1alpha1.SequentialJob, patch plan.WorkloadPatch) error {
	_, err := simulation.Send(q.p.sender, struct{}{}, func(bool) (struct{}, error) {
		w := q.p.workloads[types.UID(string(patch.UID)[len("w-"):])]
		switch {
		case w == nil:
			return struct{}{}, nil
		case q.p.refusals["patch workload"] != nil:
			return struct{}{}, q.p.refusedSelf("patch workload")
		case strconv.Itoa(w.version) != patch.ResourceVersion:
			return struct{}{}, simulation.ErrConflict
		}
		q.p.Note("  sets the Workload of %s active: %t", patch.Name, patch.Active)
		w.version++
		w.active, w.deactivated = patch.Active, !patch.Active
		q.p.env.process.worker.Add(name)
		return struct{}{}, nil
	})
	return err
}
