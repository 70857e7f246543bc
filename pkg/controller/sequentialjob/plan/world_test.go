// Copyright The jobset-apiserver Authors.
// SPDX-License-Identifier: Apache-2.0

package plan

import (
	"fmt"
	"slices"
	"testing"
	"time"

	"github.com/google/go-cmp/cmp"
	batchv1 "k8s.io/api/batch/v1"
	corev1 "k8s.io/api/core/v1"
	"k8s.io/apimachinery/pkg/api/meta"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/types"
	"k8s.io/utils/ptr"

	batchv1alpha1 "github.com/jobset-apiserver/jobset-apiserver/pkg/apis/batch/v1alpha1"
	"github.com/jobset-apiserver/jobset-apiserver/pkg/apis/batch/v1alpha1/helper"
	hostplan "github.com/jobset-apiserver/jobset-apiserver/pkg/controller/host/plan"
)

// world is a sequence with its children, as passes of the controller change them.
type world struct {
	t       *testing.T
	sj      *batchv1alpha1.SequentialJob
	owned   []*Child
	now     time.Time
	uids    int
	events  []string
	created []string
	// refuse is what the API says about creations, and fail about everything else.
	creation Creation
	refusal  *Refusal
	fail     string
	mayPass  bool
	forbid   bool
	queue    Queue
	waits    Unschedulable
	contest  *Contest
	refused  time.Time
	failing  time.Time
	gone     bool
	// restored is true until the sequence is written.
	restored bool
	due      time.Duration
	// earlier is what is read of earlier children, and asked are the questions about them.
	earlier hostplan.Known[string]
	// unreadable is why it cannot be read.
	unreadable string
	asked      []EarlierQuery
}

func newWorld(t *testing.T, change ...func(*batchv1alpha1.SequentialJob)) *world {
	t.Helper()
	sj := &batchv1alpha1.SequentialJob{
		ObjectMeta: metav1.ObjectMeta{Name: "etl", Namespace: "default", UID: "uid", Generation: 1},
		Spec: batchv1alpha1.SequentialJobSpec{
			Containers:     []corev1.Container{{Name: "extract", Image: "a"}, {Name: "transform", Image: "b"}, {Name: "load", Image: "c"}},
			UpdateStrategy: &batchv1alpha1.SequentialJobUpdateStrategy{Type: batchv1alpha1.UpdateContinue},
		},
		Status: batchv1alpha1.SequentialJobStatus{StepsGeneration: 1},
	}
	for _, c := range change {
		c(sj)
	}
	return &world{t: t, sj: sj, now: time.Date(2026, 1, 1, 0, 0, 0, 0, time.UTC), queue: Queue{Served: true, Workload: hostplan.None[*Workload]()}, creation: Created, earlier: hostplan.None[string]()}
}

func (w *world) observed() Observed {
	o := Observed{SequentialJob: w.sj, Now: metav1.NewTime(w.now), Unschedulable: w.waits, RefusedSince: w.refused, FailingSince: w.failing}
	for _, kid := range w.owned {
		o.Children = append(o.Children, *kid)
	}
	for range 5 {
		p := Decide(o)
		if len(p.Questions()) == 0 {
			break
		}
		w.answer(&o, p)
	}
	return o
}

// pass is one pass of the controller. It reports whether it changed anything.
func (w *world) pass() bool {
	w.t.Helper()
	o := w.observed()
	stored := w.sj.DeepCopy()
	p := Decide(o)
	if diff := cmp.Diff(stored, w.sj); diff != "" {
		w.t.Fatalf("a decision changed the sequence (-was +is):\n%s", diff)
	}
	w.checkPlan(p)
	r := w.apply(p)
	out := Finish(o, p, r)
	w.refused, w.failing, w.due = out.RefusedSince, out.FailingSince, out.RequeueAfter
	for _, e := range slices.Concat(out.Warnings, out.Events) {
		w.events = append(w.events, fmt.Sprintf("%s %s %s", e.Type, e.Reason, e.Note))
	}
	if out.Status != nil {
		w.sj = w.sj.DeepCopy()
		w.sj.Status = *out.Status.DeepCopy()
		w.restored = false
	}
	if out.RemoveFinalizer {
		w.sj = w.sj.DeepCopy()
		w.sj.Finalizers = nil
		w.gone = w.sj.DeletionTimestamp != nil
	}
	w.gone = w.gone || out.DeleteSequentialJob
	return out.Status != nil || out.RemoveFinalizer || p.AddFinalizer || p.creates() && r.Creation == Created || len(r.Deleted)+len(p.Suspend) > 0 || p.SetWorkloadActive != nil
}

// checkPlan checks what holds for every plan.
func (w *world) checkPlan(p Plan) {
	w.t.Helper()
	if !p.creates() {
		return
	}
	for _, kid := range w.owned {
		if kid.End == "" {
			w.t.Fatalf("a child is created while %s is there", kid.Name)
		}
	}
	if entry := begunStep(w.sj); entry == nil || entry.ChildUID != "" {
		w.t.Fatalf("a child is created for a step that is not stored: %+v", w.sj.Status)
	}
}

func (w *world) apply(p Plan) Results {
	r := Results{Error: w.fail, MayPass: w.mayPass}
	for i, d := range p.Delete {
		if w.forbid {
			r.Forbidden = append(r.Forbidden, i)
			continue
		}
		for _, kid := range w.owned {
			if kid.UID == d.UID {
				kid.Deleting = true
				r.Deleted = append(r.Deleted, i)
			}
		}
	}
	for _, s := range p.Suspend {
		kid := w.child(s.Name)
		if kid.Queued && !s.Suspend {
			w.t.Fatal("a queued child is unsuspended")
		}
		kid.Suspended = s.Suspend
		kid.Busy = kid.Busy && !s.Suspend
	}
	if s := p.SetWorkloadActive; s != nil {
		w.queue.Workload.Value().Active, w.queue.Workload.Value().Deactivated = s.Active, !s.Active
	}
	if p.AddFinalizer {
		w.sj = w.sj.DeepCopy()
		w.sj.Finalizers = []string{batchv1alpha1.SequentialJobFinalizer}
	}
	if p.creates() {
		w.create(p, &r)
	}
	return r
}

func (w *world) create(p Plan, r *Results) {
	w.t.Helper()
	if !hasFinalizer(w.sj) {
		w.t.Fatal("a child is created before the finalizer is there")
	}
	if r.Creation, r.Refusal = w.creation, w.refusal; r.Creation != Created {
		return
	}
	w.uids++
	var kid Child
	if p.CreateJob != nil {
		job := p.CreateJob.DeepCopy()
		job.UID = types.UID(fmt.Sprint("uid-", w.uids))
		kid = ChildOfJob(job)
	} else {
		js := p.CreateJobSet.DeepCopy()
		js.UID = types.UID(fmt.Sprint("uid-", w.uids))
		kid = ChildOfJobSet(js)
	}
	kid.Busy, kid.Created = !kid.Suspended, metav1.NewTime(w.now)
	w.owned = append(w.owned, &kid)
	w.created = append(w.created, fmt.Sprintf("%s/%d", kid.Name, kid.Attempt))
}

// stabilize makes passes until nothing changes. What is being deleted goes between them.
func (w *world) stabilize() *world {
	w.t.Helper()
	for range 50 {
		changed := w.pass()
		before := len(w.owned)
		w.owned = slices.DeleteFunc(w.owned, func(c *Child) bool { return c.Deleting })
		if w.gone || !changed && len(w.owned) == before {
			return w
		}
		w.checkActive()
	}
	w.t.Fatal("the sequence does not stabilize")
	return nil
}

func (w *world) checkActive() {
	w.t.Helper()
	active := 0
	for _, kid := range w.owned {
		if kid.End == "" {
			active++
		}
	}
	if active > 1 {
		w.t.Fatalf("%d children are active", active)
	}
	if active == 1 && !hasFinalizer(w.sj) {
		w.t.Fatal("a child is active, and the finalizer is not there")
	}
}

func (w *world) child(name string) *Child {
	w.t.Helper()
	for _, kid := range w.owned {
		if kid.Name == name {
			return kid
		}
	}
	w.t.Fatalf("there is no child %s", name)
	return nil
}

// ends lets the child of a step end.
func (w *world) ends(index int, end End) *world {
	w.t.Helper()
	kid := w.child(helper.ChildName("etl", index))
	kid.End, kid.Busy, kid.EndTime = end, false, ptr.To(metav1.NewTime(w.now))
	if end == Failed {
		kid.Reason, kid.Message = batchv1.JobReasonBackoffLimitExceeded, "Job has reached the specified backoff limit"
	}
	return w.stabilize()
}

func (w *world) vanishes(index int) *world {
	w.t.Helper()
	kid := w.child(helper.ChildName("etl", index))
	w.owned = slices.DeleteFunc(w.owned, func(c *Child) bool { return c == kid })
	return w.stabilize()
}

// change changes the sequence as a user or the server does.
func (w *world) change(change func(*batchv1alpha1.SequentialJob)) *world {
	w.sj, w.restored = w.sj.DeepCopy(), false
	change(w.sj)
	return w
}

func (w *world) wait(d time.Duration) *world {
	w.now = w.now.Add(d)
	return w
}

// condition returns a condition in one line.
func (w *world) condition(conditionType string) string {
	c := meta.FindStatusCondition(w.sj.Status.Conditions, conditionType)
	if c == nil {
		return ""
	}
	return fmt.Sprintf("%s %s: %s", c.Status, c.Reason, c.Message)
}

func diff(t *testing.T, what string, want, got any) {
	t.Helper()
	if diff := cmp.Diff(want, got); diff != "" {
		t.Errorf("%s (-want +got):\n%s", what, diff)
	}
}
