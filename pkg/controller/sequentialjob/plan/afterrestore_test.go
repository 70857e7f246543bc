// Copyright The jobset-apiserver Authors.
// SPDX-License-Identifier: Apache-2.0

package plan

import (
	"slices"
	"strings"
	"testing"
	"time"

	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/utils/ptr"

	batchv1alpha1 "github.com/jobset-apiserver/jobset-apiserver/pkg/apis/batch/v1alpha1"
	"github.com/jobset-apiserver/jobset-apiserver/pkg/apis/batch/v1alpha1/helper"
	jobsetv1alpha2 "github.com/jobset-apiserver/jobset-apiserver/pkg/apis/jobset/v1alpha2"
)

// restore takes the sequence back to an earlier state. The children stay as they are. Passes find it unchanged until it is written.
func (w *world) restore(backup *batchv1alpha1.SequentialJob) *world {
	w.sj, w.restored = backup, true
	return w
}

// held returns why the sequence is held; "" if it is not.
func (w *world) held() string {
	if !helper.Held(w.sj) {
		return ""
	}
	return w.condition(batchv1alpha1.ConditionHeld)
}

// resume is what the server does to a held sequence.
func (w *world) resume() *world {
	return w.change(func(sj *batchv1alpha1.SequentialJob) {
		sj.Spec.Suspend = ptr.To(false)
		for i := range sj.Status.Conditions {
			if c := &sj.Status.Conditions[i]; c.Type == batchv1alpha1.ConditionHeld {
				c.Status, c.Reason, c.Message = metav1.ConditionFalse, batchv1alpha1.ReasonResumed, "resumed by ada"
			}
		}
	}).stabilize()
}

func TestAfterRestore(t *testing.T) {
	started := func(w *world) { w.stabilize() }
	second := func(w *world) { w.stabilize().wait(time.Minute).ends(0, Succeeded) }
	vanish := func(w *world) { w.owned = nil }
	again := func(w *world) { // the server restarts the step that runs
		w.change(func(sj *batchv1alpha1.SequentialJob) {
			entry := begunStep(sj)
			entry.Attempts, entry.ChildUID, entry.State = entry.Attempts+1, "", batchv1alpha1.StepStarting
		}).stabilize()
	}
	suspend := func(w *world) {
		w.change(func(sj *batchv1alpha1.SequentialJob) { sj.Spec.Suspend = ptr.To(true) }).stabilize()
	}
	for name, tc := range map[string]struct {
		spec func(*batchv1alpha1.SequentialJob)
		// before the backup, and since.
		before, since []func(*world)
		// wantHeld is a part of the condition; "" for a sequence that is not held.
		wantHeld string
		// wantCurrent is the child that is current afterwards, and wantCreated those that were created, without and with a resume.
		wantStep, wantAttempt  int
		wantCreated, wantAfter []string
	}{
		"nothing has happened since": {
			before: []func(*world){started}, wantAttempt: 1, wantCreated: []string{"etl-0/1"},
		},
		"the sequence had not begun": {wantAttempt: 1, wantCreated: []string{"etl-0/1"}},
		"the child of the step is gone": {
			before: []func(*world){started}, since: []func(*world){vanish},
			wantHeld: "job 0 had started, but does not exist", wantAttempt: 1, wantCreated: []string{"etl-0/1"}, wantAfter: []string{"etl-0/1", "etl-0/2"},
		},
		"the step was restarted": {
			before: []func(*world){started}, since: []func(*world){again}, wantAttempt: 2, wantCreated: []string{"etl-0/1", "etl-0/2"},
		},
		"a later step runs": {
			before: []func(*world){started}, since: []func(*world){second}, wantStep: 1, wantAttempt: 1, wantCreated: []string{"etl-0/1", "etl-1/1"},
		},
		"a step had not begun, and a later one runs": {
			since: []func(*world){second}, wantStep: 1, wantAttempt: 1, wantCreated: []string{"etl-0/1", "etl-1/1"},
		},
		"it was suspended when the backup was made, and its child runs": {
			before: []func(*world){started, suspend},
			since: []func(*world){func(w *world) {
				w.change(func(sj *batchv1alpha1.SequentialJob) { sj.Spec.Suspend = ptr.To(false) }).stabilize()
			}},
			wantHeld: "the sequence is suspended, but job 0 runs", wantAttempt: 1, wantCreated: []string{"etl-0/1"}, wantAfter: []string{"etl-0/1"},
		},
		"a failed sequence was retried": {
			before: []func(*world){started, func(w *world) { w.ends(0, Failed) }},
			since: []func(*world){func(w *world) {
				w.wait(time.Minute).change(func(sj *batchv1alpha1.SequentialJob) { retry(sj, 0) }).stabilize()
			}},
			wantAttempt: 2, wantCreated: []string{"etl-0/1", "etl-0/2"},
		},
		"the next step is a JobSet": {
			spec: func(sj *batchv1alpha1.SequentialJob) {
				sj.Spec.Steps = []batchv1alpha1.SequentialJobStep{{Name: "train", JobSet: &batchv1alpha1.JobSetTemplateSpec{Spec: jobsetv1alpha2.JobSetSpec{ReplicatedJobs: []jobsetv1alpha2.ReplicatedJob{{Name: "a"}}}}}}
			},
			before: []func(*world){started, func(w *world) { w.ends(0, Succeeded).ends(1, Succeeded) }},
			since: []func(*world){func(w *world) {
				w.ends(2, Succeeded).ends(3, Succeeded)
				w.owned = slices.DeleteFunc(w.owned, func(c *Child) bool { return c.Kind == batchv1alpha1.StepKindJobSet }) // restored, too
			}},
			wantHeld: "job 3 is next, but may have run since", wantStep: 2, wantAttempt: 1,
			wantCreated: []string{"etl-0/1", "etl-1/1", "etl-2/1", "etl-3/1"}, wantAfter: []string{"etl-0/1", "etl-1/1", "etl-2/1", "etl-3/1", "etl-3/1"},
		},
	} {
		t.Run(name, func(t *testing.T) {
			w := newWorld(t, func(sj *batchv1alpha1.SequentialJob) {
				if tc.spec != nil {
					tc.spec(sj)
				}
			})
			for _, step := range tc.before {
				step(w)
			}
			backup := w.sj.DeepCopy()
			for _, step := range tc.since {
				step(w)
			}
			w.restore(backup)
			running := map[string]bool{}
			for _, kid := range w.owned {
				running[string(kid.UID)] = kid.End == "" && !kid.Suspended
			}
			w.stabilize()
			if got := w.held(); (got == "") != (tc.wantHeld == "") || !strings.Contains(got, tc.wantHeld) {
				t.Errorf("held: %q, want %q", got, tc.wantHeld)
			}
			for _, kid := range w.owned {
				if running[string(kid.UID)] && kid.Suspended {
					t.Errorf("child %s is suspended", kid.Name)
				}
				delete(running, string(kid.UID))
			}
			diff(t, "children that are gone", 0, len(running))
			diff(t, "the step", tc.wantStep, currentIndex(&w.sj.Status))
			diff(t, "its attempt", tc.wantAttempt, int(w.sj.Status.Steps[tc.wantStep].Attempts))
			diff(t, "what was created", tc.wantCreated, w.created)
			if tc.wantAfter != nil {
				w.resume()
				diff(t, "why it is held after it was resumed", "", w.held())
				diff(t, "what was created after it was resumed", tc.wantAfter, w.created)
			}
		})
	}
}

// TestRetriedFromAnEarlierStep: the API keeps completed steps completed, so that what runs is left alone until a person decides.
func TestRetriedFromAnEarlierStep(t *testing.T) {
	w := newWorld(t).stabilize().wait(time.Minute).ends(0, Succeeded).wait(time.Minute).ends(1, Failed)
	backup := w.sj.DeepCopy()
	w.wait(time.Minute).change(func(sj *batchv1alpha1.SequentialJob) { retry(sj, 0) }).stabilize()
	w.restore(backup).stabilize()
	if !strings.Contains(w.held(), "child etl-0 is of an attempt that the sequence does not know") || w.child("etl-0").End != "" {
		t.Errorf("held: %q", w.held())
	}
	diff(t, "the phase", batchv1alpha1.PhaseRunning, helper.Phase(w.sj))
	w.resume().ends(1, Succeeded).ends(2, Succeeded)
	diff(t, "Complete", "True AllJobsCompleted: all jobs completed successfully", w.condition("Complete"))
}

// TestHoldStopsTheClock: for how long the sequence was active is not known.
func TestHoldStopsTheClock(t *testing.T) {
	w := newWorld(t, func(sj *batchv1alpha1.SequentialJob) { sj.Spec.ActiveDeadlineSeconds = ptr.To[int64](60) }).stabilize()
	backup := w.sj.DeepCopy()
	w.owned = nil
	w.restore(backup).wait(time.Hour).stabilize()
	if w.held() == "" || w.sj.Status.ActiveSince != nil || helper.Finished(w.sj) != nil {
		t.Errorf("held %q, status %+v", w.held(), w.sj.Status)
	}
	w.resume()
	diff(t, "what was created", []string{"etl-0/1", "etl-0/2"}, w.created)
}
