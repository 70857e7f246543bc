// Copyright The jobset-apiserver Authors.
// SPDX-License-Identifier: Apache-2.0

package preview

import (
	"fmt"
	"slices"
	"strconv"
	"testing"
	"time"

	"github.com/google/go-cmp/cmp"
	batchv1 "k8s.io/api/batch/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/runtime"
	"k8s.io/apimachinery/pkg/types"
	"k8s.io/utils/ptr"

	"github.com/jobset-apiserver/jobset-apiserver/pkg/apis/batch"
	"github.com/jobset-apiserver/jobset-apiserver/pkg/apis/batch/install"
	batchv1alpha1 "github.com/jobset-apiserver/jobset-apiserver/pkg/apis/batch/v1alpha1"
	"github.com/jobset-apiserver/jobset-apiserver/pkg/apis/batch/v1alpha1/helper"
	"github.com/jobset-apiserver/jobset-apiserver/pkg/apis/jobset/gates"
	jobsetv1alpha2 "github.com/jobset-apiserver/jobset-apiserver/pkg/apis/jobset/v1alpha2"
	hostplan "github.com/jobset-apiserver/jobset-apiserver/pkg/controller/host/plan"
	"github.com/jobset-apiserver/jobset-apiserver/pkg/controller/sequentialjob/plan"
	registry "github.com/jobset-apiserver/jobset-apiserver/pkg/registry/batch/sequentialjob"
	"github.com/jobset-apiserver/jobset-apiserver/test/builders"
)

type sequenceChange = func(*batchv1alpha1.SequentialJob)

// sequenceWorld carries out what the controller decides about a sequence of Jobs, in a cluster where Jobs are ready at once and deleted at
// once.
type sequenceWorld struct {
	t    *testing.T
	sj   *batchv1alpha1.SequentialJob
	jobs []*batchv1.Job
	ends map[types.UID]metav1.Time
	now  metav1.Time
	// did are what the controller did with its children, like "create etl-0", in order.
	did []string
}

func newSequenceWorld(t *testing.T, sj *batchv1alpha1.SequentialJob) *sequenceWorld {
	return &sequenceWorld{t: t, sj: sj, ends: map[types.UID]metav1.Time{}, now: metav1.NewTime(time.Date(2026, 5, 4, 3, 2, 1, 0, time.UTC))}
}

func (w *sequenceWorld) observe() plan.Observed {
	o := plan.Observed{SequentialJob: w.sj, Now: w.now, Earlier: hostplan.None[string](),
		Restored: hostplan.None[plan.Restored](), FirstCause: hostplan.NotObtained[jobsetv1alpha2.FailureCause](),
		Unseen: hostplan.None[plan.LiveChild](), Contest: hostplan.None[plan.Contest](), Queue: hostplan.Of(plan.Queue{}),
	}
	for _, job := range w.jobs {
		attempt, err := strconv.ParseInt(job.Labels[batchv1alpha1.StepAttemptKey], 10, 32)
		if err != nil {
			w.t.Fatal(err)
		}
		runs := !ptr.Deref(job.Spec.Suspend, false)
		child := plan.Child{
			ChildRef:        plan.ChildRef{Kind: batchv1alpha1.StepKindJob, Name: job.Name, UID: job.UID},
			ResourceVersion: "1", Attempt: int32(attempt), Created: job.CreationTimestamp, Queued: job.Labels[helper.QueueKey] != "",
			Suspended: !runs, Busy: runs, Ready: runs,
		}
		if at, ended := w.ends[job.UID]; ended {
			child.End, child.EndTime, child.Busy = plan.Succeeded, &at, false
		}
		o.Children = append(o.Children, child)
	}
	return o
}

// rest lets the controller decide until it has nothing to do.
func (w *sequenceWorld) rest() {
	w.t.Helper()
	for range 50 {
		w.now = metav1.NewTime(w.now.Add(time.Second))
		if !w.carryOut(plan.Decide(w.observe())) {
			return
		}
	}
	w.t.Fatalf("the controller finds no rest; it did %q", w.did)
}

// carryOut does what a plan says, and returns whether that is anything.
func (w *sequenceWorld) carryOut(p plan.Plan) bool {
	w.sj = w.sj.DeepCopy()
	if p.Status != nil {
		w.sj.Status = *p.Status
	}
	if p.AddFinalizer {
		w.sj.Finalizers = append(w.sj.Finalizers, batchv1alpha1.SequentialJobFinalizer)
	}
	if p.RemoveFinalizer {
		w.sj.Finalizers = nil
	}
	before := len(w.did)
	for _, child := range p.Delete {
		w.did = append(w.did, "delete "+child.Name)
		w.jobs = slices.DeleteFunc(w.jobs, func(job *batchv1.Job) bool { return job.UID == child.UID })
	}
	for _, patch := range p.Suspend {
		w.did = append(w.did, fmt.Sprintf("suspend %s: %v", patch.Name, patch.Suspend))
		for _, job := range w.jobs {
			if job.UID == patch.UID {
				job.Spec.Suspend = ptr.To(patch.Suspend)
			}
		}
	}
	if job := p.CreateJob; job != nil {
		w.did = append(w.did, "create "+job.Name+" with "+job.Spec.Template.Spec.Containers[0].Image+job.Labels[helper.QueueKey])
		job.UID, job.CreationTimestamp = types.UID(fmt.Sprint("job-", w.now.Unix())), w.now
		w.jobs = append(w.jobs, job)
	}
	if p.DeleteSequentialJob {
		w.did = append(w.did, "delete the sequence")
		return false
	}
	return p.Status != nil || p.AddFinalizer || p.RemoveFinalizer || len(w.did) > before
}

// end lets the Job that runs succeed.
func (w *sequenceWorld) end() {
	w.t.Helper()
	if len(w.jobs) == 0 {
		w.t.Fatal("no Job runs")
	}
	w.ends[w.jobs[len(w.jobs)-1].UID] = w.now
	w.rest()
}

// effectOnSequence is a change of a sequence, and what the preview says that it does.
type effectOnSequence struct {
	live []sequenceChange
	// earlier is a change before this one; nil for none. ends means that all steps have succeeded before it.
	earlier, change sequenceChange
	ends            bool
	want            Effect
	// did is what the controller does at once, and next what it does after later; nil for the end of the step that runs.
	did, next []string
	later     func(*sequenceWorld)
}

func stepImage(index int, name string) sequenceChange {
	return func(sj *batchv1alpha1.SequentialJob) { sj.Spec.Containers[index].Image = name }
}

func restartSteps(sj *batchv1alpha1.SequentialJob) {
	sj.Spec.UpdateStrategy = &batchv1alpha1.SequentialJobUpdateStrategy{Type: batchv1alpha1.UpdateRestart}
}

func suspendSequence(suspend bool) sequenceChange {
	return func(sj *batchv1alpha1.SequentialJob) { sj.Spec.Suspend = ptr.To(suspend) }
}

func sequenceLabel(key, value string) sequenceChange {
	return func(sj *batchv1alpha1.SequentialJob) { sj.Labels = map[string]string{key: value} }
}

func anHourLater(w *sequenceWorld) {
	w.now = metav1.NewTime(w.now.Add(time.Hour))
	w.rest()
}

var again = []string{"delete etl-0", "create etl-0 with new"}

var effectsOnSequences = map[string]effectOnSequence{
	"the step that runs":                 {change: stepImage(0, "new"), want: EffectNextStep, next: []string{"create etl-1 with old"}},
	"the step that runs, which restarts": {live: []sequenceChange{restartSteps}, change: stepImage(0, "new"), want: EffectRestart, did: again, next: []string{"create etl-1 with old"}},
	"a later step":                       {live: []sequenceChange{restartSteps}, change: stepImage(1, "new"), want: EffectNextStep, next: []string{"create etl-1 with new"}},
	"what steps share": {
		live: []sequenceChange{restartSteps}, change: func(sj *batchv1alpha1.SequentialJob) { sj.Spec.BackoffLimit = ptr.To[int32](1) }, want: EffectRestart,
		did: []string{"delete etl-0", "create etl-0 with old"}, next: []string{"create etl-1 with old"},
	},
	"suspend": {change: suspendSequence(true), want: EffectSuspend, did: []string{"suspend etl-0: true"}, later: anHourLater},
	"resume": {
		earlier: suspendSequence(true), change: suspendSequence(false), want: EffectResume, did: []string{"suspend etl-0: false"},
		next: []string{"create etl-1 with old"},
	},
	"suspend false where it was absent": {change: suspendSequence(false), want: EffectNone, next: []string{"create etl-1 with old"}},
	"update strategy": {
		change: restartSteps, want: EffectImmediate, next: again, later: func(w *sequenceWorld) { w.edit(stepImage(0, "new")); w.rest() },
	},
	"active deadline": {
		change: func(sj *batchv1alpha1.SequentialJob) { sj.Spec.ActiveDeadlineSeconds = ptr.To[int64](1800) }, want: EffectImmediate,
		next: []string{"delete etl-0"}, later: anHourLater,
	},
	"time to live of a sequence that has finished": {
		ends: true, change: func(sj *batchv1alpha1.SequentialJob) { sj.Spec.TTLSecondsAfterFinished = ptr.To[int32](60) }, want: EffectImmediate,
		next: []string{"delete the sequence"}, later: anHourLater,
	},
	"a sequence that has finished": {ends: true, change: stepImage(1, "new"), want: EffectNone, later: anHourLater},
	"queue":                        {change: sequenceLabel(helper.QueueKey, "q"), want: EffectNextStep, next: []string{"create etl-1 with oldq"}},
	"other labels":                 {change: sequenceLabel("team", "ml"), want: EffectNone, next: []string{"create etl-1 with old"}},
}

// edit changes the sequence as a user does; the server records in the status what the change means for the step that runs.
func (w *sequenceWorld) edit(change sequenceChange) (before *batchv1alpha1.SequentialJob) {
	w.t.Helper()
	scheme := runtime.NewScheme()
	install.Install(scheme)
	before, w.sj, w.did = w.sj, w.sj.DeepCopy(), nil
	change(w.sj)
	var old, next batch.SequentialJob
	after := &batchv1alpha1.SequentialJob{}
	convert := func(from, to any) {
		w.t.Helper()
		if err := scheme.Convert(from, to, nil); err != nil {
			w.t.Fatal(err)
		}
	}
	convert(before, &old)
	convert(w.sj, &next)
	registry.NewStrategy(scheme, gates.Gates{}, func() time.Time { return w.now.Time }).PrepareForUpdate(w.t.Context(), &next, &old)
	convert(&next, after)
	after.TypeMeta = before.TypeMeta
	w.sj = after
	return before
}

// TestEffectsOnSequentialJobs has the controller decide about a sequence whose first step of two runs and that is changed, and compares what
// it does with the effect of which the preview speaks.
func TestEffectsOnSequentialJobs(t *testing.T) {
	for name, tc := range effectsOnSequences {
		t.Run(name, func(t *testing.T) {
			live := append([]sequenceChange{builders.WithContainers("extract", "load"), stepImage(0, "old"), stepImage(1, "old")}, tc.live...)
			w := newSequenceWorld(t, builders.SequentialJob("etl", live...))
			w.rest()
			if tc.ends {
				w.end()
				w.end()
			}
			if tc.earlier != nil {
				w.edit(tc.earlier)
				w.rest()
			}
			before := w.edit(tc.change)
			changes := changesBetween(encode(t, before), encode(t, w.sj))
			if len(changes) == 0 {
				t.Fatal("nothing changes")
			}
			for _, c := range changes {
				if effect, text := (sequenceUpdate{live: before, next: w.sj}).effect(c.Field); effect != tc.want {
					t.Errorf("%s: the effect is %s (%s): want %s", c.Field, effect, text, tc.want)
				}
			}
			w.rest()
			if diff := cmp.Diff(tc.did, w.did); diff != "" {
				t.Errorf("the controller did at once (-want +got):\n%s", diff)
			}
			w.did = nil
			if tc.later != nil {
				tc.later(w)
			} else {
				w.end()
			}
			if diff := cmp.Diff(tc.next, w.did); diff != "" {
				t.Errorf("the controller did next (-want +got):\n%s", diff)
			}
		})
	}
}
