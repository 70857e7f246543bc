// Copyright The jobset-apiserver Authors.
// SPDX-License-Identifier: Apache-2.0

package helper_test

import (
	"math"
	"testing"
	"time"

	"github.com/google/go-cmp/cmp"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"

	jobsetv1alpha2 "github.com/jobset-apiserver/jobset-apiserver/pkg/apis/jobset/v1alpha2"
	"github.com/jobset-apiserver/jobset-apiserver/pkg/apis/jobset/v1alpha2/helper"
	"github.com/jobset-apiserver/jobset-apiserver/test/builders"
)

// happens is what happens to a set so many minutes after its creation.
type happens struct {
	minute int
	what   func(*jobsetv1alpha2.JobSet, time.Time)
}

func begins(minute int) happens {
	return happens{minute, func(js *jobsetv1alpha2.JobSet, now time.Time) {
		helper.EndAttempt(&js.Status, jobsetv1alpha2.OutcomeRestarted, "", "", now)
		helper.BeginAttempt(&js.Status, jobsetv1alpha2.Attempt{Number: 1}, now)
	}}
}

func becomesReady(minute int) happens {
	return happens{minute, func(js *jobsetv1alpha2.JobSet, now time.Time) {
		a := helper.RunningAttempt(&js.Status)
		a.CreateTime, a.ReadyTime = helper.NotBeforeAttempts(&js.Status, now), helper.NotBeforeAttempts(&js.Status, now)
	}}
}

func reports(minute int, step int64) happens {
	return happens{minute, func(js *jobsetv1alpha2.JobSet, now time.Time) {
		js.Annotations = map[string]string{jobsetv1alpha2.CheckpointStepKey: "reported"}
		helper.RecordCheckpoint(&js.Status, step, now)
	}}
}

func ends(minute int, outcome jobsetv1alpha2.AttemptOutcome) happens {
	return happens{minute, func(js *jobsetv1alpha2.JobSet, now time.Time) {
		helper.EndAttempt(&js.Status, outcome, "", "", now)
		if outcome == jobsetv1alpha2.OutcomeCompleted {
			since("Completed", minute)(js)
		}
	}}
}

// TestGoodput follows sets for 100 minutes.
func TestGoodput(t *testing.T) {
	crashes := func(n int) (all []happens) {
		for i := range n {
			all = append(all, begins(50+i))
		}
		return all
	}
	for name, tc := range map[string]struct {
		history []happens
		want    int // minutes of work that was kept
	}{
		"nothing is reported after the ready time": {[]happens{begins(0), reports(5, 0), becomesReady(10)}, 0},
		"one attempt counts up to its last report": {[]happens{begins(0), becomesReady(10), reports(20, 100), reports(40, 300)}, 30},
		"work after the last report is lost with the attempt": {
			[]happens{begins(0), becomesReady(10), reports(40, 300), begins(60), becomesReady(70), reports(90, 500)}, 30 + 20},
		"an attempt without a report is lost": {
			[]happens{begins(0), becomesReady(10), reports(40, 300), begins(45), becomesReady(50), begins(60), becomesReady(70), reports(90, 500)}, 30 + 20},
		"the step from which an attempt resumes takes back what came after it": {
			// Steps 100 to 300 took 20 minutes, so that 200 was reached 10 minutes after 100.
			[]happens{begins(0), becomesReady(10), reports(20, 100), begins(25), becomesReady(30), reports(50, 300), begins(60), becomesReady(65), reports(65, 200), reports(80, 400)},
			10 + 10 + 15},
		"an earlier step without known steps before it is taken back in proportion": {
			[]happens{begins(0), becomesReady(10), reports(50, 400), begins(60), becomesReady(65), reports(70, 100), reports(75, 200)}, 10 + 5},
		"step 0 takes back everything": {
			[]happens{begins(0), becomesReady(10), reports(50, 400), begins(60), becomesReady(65), reports(65, 0), reports(75, 200)}, 10},
		"a rollback within an attempt": {[]happens{begins(0), becomesReady(10), reports(50, 400), reports(60, 200), reports(70, 300)}, 20 + 10},
		"steps of a path that was left do not count": {
			// Back from 400 to 100, then on to 200: what was known of 400 says nothing about the way from 200 to 150.
			[]happens{begins(0), becomesReady(10), reports(50, 400), begins(52), becomesReady(54), reports(54, 100), reports(64, 200), begins(66), becomesReady(68), reports(68, 150)},
			15},
		"the same step again": {[]happens{begins(0), becomesReady(10), reports(20, 100), reports(30, 100)}, 20},
		"a suspended set reports nothing": {
			[]happens{begins(0), becomesReady(10), reports(20, 100), ends(30, jobsetv1alpha2.OutcomeSuspended), reports(50, 300)}, 10},
		"all work of a completed set was kept": {
			[]happens{begins(0), becomesReady(10), reports(20, 100), begins(30), becomesReady(40), reports(50, 200), ends(70, jobsetv1alpha2.OutcomeCompleted)}, 10 + 30},
		"a failed set keeps what its checkpoints kept": {
			[]happens{begins(0), becomesReady(10), reports(20, 100), ends(70, jobsetv1alpha2.OutcomeFailed)}, 10},
		"attempts that are no longer listed keep their times": {
			append(append([]happens{begins(0), becomesReady(10), reports(40, 300)}, crashes(12)...), becomesReady(70), reports(90, 500)), 30 + 20},
		"large steps": {[]happens{begins(0), becomesReady(10), reports(50, math.MaxInt64), begins(55), becomesReady(60), reports(60, math.MaxInt64/2)}, 20},
	} {
		t.Run(name, func(t *testing.T) {
			js := builders.JobSet("a", func(js *jobsetv1alpha2.JobSet) { js.CreationTimestamp = metav1.NewTime(start) })
			for _, h := range tc.history {
				h.what(js, start.Add(time.Duration(h.minute)*time.Minute))
			}
			g, ok := helper.GoodputOf(js)
			if !ok {
				t.Fatal("no goodput")
			}
			now := start.Add(100 * time.Minute)
			good, life := g.At(now)
			if diff := cmp.Diff(time.Duration(tc.want)*time.Minute, good.Round(time.Second)); diff != "" {
				t.Errorf("work that was kept (-want +got):\n%s", diff)
			}
			ready, _ := helper.ReadyShareOf(js).At(now)
			if good > ready {
				t.Errorf("good for %v, ready for %v", good, ready)
			}
			if got, want := g.Ratio(now), good.Seconds()/life.Seconds(); got != want {
				t.Errorf("ratio %v, want %v", got, want)
			}
		})
	}
}

func TestGoodputOfSetsThatReportNothing(t *testing.T) {
	js := builders.JobSet("a", func(js *jobsetv1alpha2.JobSet) { js.CreationTimestamp = metav1.NewTime(start) })
	begins(0).what(js, start)
	if _, ok := helper.GoodputOf(js); ok {
		t.Error("a set without the annotation has a goodput")
	}
}

// TestCheckpointsKeepTimesInOrder: the attempt does not end before its last report, whatever the clocks say.
func TestCheckpointsKeepTimesInOrder(t *testing.T) {
	js := builders.JobSet("a")
	begins(0).what(js, start)
	becomesReady(10).what(js, start.Add(10*time.Minute))
	helper.RecordCheckpoint(&js.Status, 7, start.Add(5*time.Minute))
	a := helper.RunningAttempt(&js.Status)
	if want := (&jobsetv1alpha2.Checkpoint{Step: 7, Time: micro(10)}); !cmp.Equal(want, a.Checkpoint) {
		t.Errorf("checkpoint (-want +got):\n%s", cmp.Diff(want, a.Checkpoint))
	}
	helper.RecordCheckpoint(&js.Status, 8, start.Add(20*time.Minute))
	helper.EndAttempt(&js.Status, jobsetv1alpha2.OutcomeFailed, "", "", start.Add(15*time.Minute))
	if a := helper.CurrentAttempt(&js.Status); !a.EndTime.Equal(micro(20)) {
		t.Errorf("ended at %v, before the last report at %v", a.EndTime, a.Checkpoint.Time)
	}
}
