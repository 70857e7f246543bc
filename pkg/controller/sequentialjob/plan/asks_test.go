// Copyright The jobset-apiserver Authors.
// SPDX-License-Identifier: Apache-2.0

package plan

import (
	"testing"

	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/utils/ptr"

	batchv1alpha1 "github.com/jobset-apiserver/jobset-apiserver/pkg/apis/batch/v1alpha1"
	jobsetv1alpha2 "github.com/jobset-apiserver/jobset-apiserver/pkg/apis/jobset/v1alpha2"
	hostplan "github.com/jobset-apiserver/jobset-apiserver/pkg/controller/host/plan"
)

// answer adds what a plan asks for. All that is there is shown.
func (w *world) answer(o *Observed, p Plan) {
	if p.Asks.Restored {
		if o.Restored = hostplan.None[Restored](); w.restored {
			o.Restored = hostplan.Of(Restored{})
		}
	}
	if p.Asks.Unseen != nil {
		o.Unseen = hostplan.None[LiveChild]()
	}
	if p.Asks.Queue != nil {
		o.Queue = hostplan.Of(w.queue)
	}
	if p.Asks.Contest != nil {
		o.Contest = hostplan.Existing(ptr.Deref(w.contest, Contest{}), w.contest != nil)
	}
	if p.Asks.Earlier != nil {
		w.asked = append(w.asked, *p.Asks.Earlier)
		o.Earlier, o.EarlierUnreadable = w.earlier, w.unreadable
	}
	if job := p.Asks.FirstCause; job != nil {
		o.FirstCause = hostplan.Of(jobsetv1alpha2.FailureCause{Job: job.Name, Pod: "pod", Container: "main", ExitCode: ptr.To(int32(3))})
	}
}

// TestDecisionsAboutUnseenChildren has a sequence whose child no cache shows.
func TestDecisionsAboutUnseenChildren(t *testing.T) {
	w := newWorld(t).stabilize()
	w.pass()
	o := Observed{SequentialJob: w.sj, Restored: hostplan.None[Restored]()}
	ref := ChildRef{Kind: "Job", Name: "etl-0", UID: w.owned[0].UID}
	live := LiveChild{Child: *w.owned[0]}
	lost := live
	lost.Stripped = true
	for name, tc := range map[string]struct {
		unseen hostplan.Known[LiveChild]
		want   Plan
	}{
		"it is not known whether it exists": {want: Plan{Asks: Asks{Unseen: &ref}}},
		"it cannot be known":                {unseen: hostplan.NotObtained[LiveChild](), want: Plan{Lags: true}},
		"it exists":                         {unseen: hostplan.Of(live), want: Plan{Lags: true}},
		"it exists and has lost its label":  {unseen: hostplan.Of(lost), want: Plan{Relabel: &ref}},
	} {
		t.Run(name, func(t *testing.T) {
			o.Unseen = tc.unseen
			diff(t, "the plan", tc.want, Decide(o))
		})
	}
	o.Unseen = hostplan.None[LiveChild]()
	diff(t, "the attempts of the step once the child is gone", int32(2), Decide(o).Status.Steps[0].Attempts)
}

// TestWaitAsksForChildOfEarlierAttempt has a user restart a step before its child was recorded, which has lost its label. Its pods run until it
// is deleted.
func TestWaitAsksForChildOfEarlierAttempt(t *testing.T) {
	w := newWorld(t).stabilize()
	w.pass()
	sj := w.sj.DeepCopy()
	entry := &sj.Status.Steps[0]
	entry.State, entry.ChildUID, entry.Attempts, entry.StartTime = batchv1alpha1.StepStarting, "", 2, &metav1.Time{Time: w.now}
	ref := ChildRef{Kind: "Job", Name: "etl-0", UID: w.owned[0].UID}
	live := LiveChild{Child: *w.owned[0]}
	lost := live
	lost.Stripped = true
	for name, tc := range map[string]struct {
		unseen   hostplan.Known[LiveChild]
		children []Child
		want     Plan
	}{
		"it is not known whether it exists": {want: Plan{Asks: Asks{Unseen: &ChildRef{Kind: "Job", Name: "etl-0"}}}},
		"it cannot be known":                {unseen: hostplan.NotObtained[LiveChild](), want: Plan{RequeueAfter: earlierSoonest}},
		"it does not exist":                 {unseen: hostplan.None[LiveChild](), want: Plan{RequeueAfter: earlierSoonest}},
		"it exists":                         {unseen: hostplan.Of(live), want: Plan{RequeueAfter: earlierSoonest}},
		"it exists and has lost its label":  {unseen: hostplan.Of(lost), want: Plan{Relabel: &ref}},
		"a cache shows it":                  {children: []Child{live.Child}, want: Plan{Delete: []Deletion{{ChildRef: ref, Index: 0}}}},
	} {
		t.Run(name, func(t *testing.T) {
			got := Decide(Observed{SequentialJob: sj, Children: tc.children, Restored: hostplan.None[Restored](), Earlier: hostplan.Of("pod etl-0-x"), Unseen: tc.unseen})
			diff(t, "the plan", tc.want, Plan{Asks: got.Asks, Relabel: got.Relabel, Lags: got.Lags, RequeueAfter: got.RequeueAfter, Delete: withoutNotes(got.Delete)})
		})
	}
}

func withoutNotes(deletions []Deletion) []Deletion {
	for i := range deletions {
		deletions[i].Note = ""
	}
	return deletions
}

// TestDeletionAsksForUnrecordedChild deletes a sequence whose step has begun. The child may have been created by a process that did not live
// to record it, and have lost its label since.
func TestDeletionAsksForUnrecordedChild(t *testing.T) {
	w := newWorld(t).stabilize()
	w.pass()
	sj := w.sj.DeepCopy()
	sj.DeletionTimestamp, sj.Status.Steps[0].ChildUID = &metav1.Time{Time: w.now}, ""
	ref := ChildRef{Kind: "Job", Name: "etl-0", UID: w.owned[0].UID}
	live := LiveChild{Child: *w.owned[0]}
	lost := live
	lost.Stripped = true
	for name, tc := range map[string]struct {
		unseen hostplan.Known[LiveChild]
		want   Plan
	}{
		"it is not known whether it exists": {want: Plan{Asks: Asks{Unseen: &ChildRef{Kind: "Job", Name: "etl-0"}}}},
		"it exists":                         {unseen: hostplan.Of(live), want: Plan{RequeueAfter: unseenRetry}},
		"it exists and has lost its label":  {unseen: hostplan.Of(lost), want: Plan{Relabel: &ref}},
		"it does not exist":                 {unseen: hostplan.None[LiveChild](), want: Plan{RemoveFinalizer: true}},
	} {
		t.Run(name, func(t *testing.T) {
			diff(t, "the plan", tc.want, Decide(Observed{SequentialJob: sj, Unseen: tc.unseen}))
		})
	}
}
