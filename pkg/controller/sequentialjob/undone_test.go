// Copyright The jobset-apiserver Authors.
// SPDX-License-Identifier: Apache-2.0

package sequentialjob

import (
	"slices"
	"strings"
	"testing"
	"time"

	batchv1 "k8s.io/api/batch/v1"
	"k8s.io/apimachinery/pkg/api/meta"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	clocktesting "k8s.io/utils/clock/testing"

	batchv1alpha1 "github.com/jobset-apiserver/jobset-apiserver/pkg/apis/batch/v1alpha1"
)

// minutes makes a pass every second for five minutes, after each of which another party does something, and returns the
// writes that begin with a prefix.
func (r *rig) minutes(t *testing.T, now *clocktesting.FakePassiveClock, prefix string, others func()) (writes int, failure error) {
	t.Helper()
	for range 300 {
		now.SetTime(now.Now().Add(time.Second))
		r.cached(t)
		_, failure = r.Sync(t.Context(), key)
		others()
	}
	for _, write := range r.written() {
		if strings.HasPrefix(write, prefix) {
			writes++
		}
	}
	return writes, failure
}

func TestDeletionsByOthers(t *testing.T) {
	now := clocktesting.NewFakePassiveClock(time.Now())
	r := newRigAt(t, now, newSequence())
	created, _ := r.minutes(t, now, "create jobs ", func() {
		job, err := r.kube.BatchV1().Jobs("ns").Get(t.Context(), "etl-0", metav1.GetOptions{})
		if err != nil {
			return // it has not been created again
		}
		if err := r.kube.BatchV1().Jobs("ns").Delete(t.Context(), "etl-0", metav1.DeleteOptions{
			PropagationPolicy: new(metav1.DeletePropagationBackground), Preconditions: &metav1.Preconditions{UID: &job.UID},
		}); err != nil {
			t.Fatal(err)
		}
	})
	diff(t, "how often the Job is created in five minutes", 6, created)
	const message = "Job 0 could not be created: job etl-0 was deleted 3 times within a minute, each time after the controller had created it; " +
		"the API does not say who deletes it, the audit log does; the controller creates it again at "
	c := meta.FindStatusCondition(r.sequence(t).Status.Conditions, batchv1alpha1.ConditionAvailable)
	diff(t, "Available", "UndoneByOthers: "+message, untilTime(c.Reason+": "+c.Message))
	diff(t, "whether it is reported", true, slices.ContainsFunc(r.events.all(), func(event string) bool {
		return strings.HasPrefix(event, "Warning UndoneByOthers Job 0 could not be created: job etl-0 was deleted 3 times")
	}))
}

// untilTime returns a message without the time at its end.
func untilTime(message string) string {
	return message[:strings.LastIndex(message, " at ")+len(" at ")]
}

func TestLabelsRemovedByOthers(t *testing.T) {
	now := clocktesting.NewFakePassiveClock(time.Now())
	sj := newSequence(started)
	stored := jobOf(sj)
	stored.ResourceVersion = "5"
	r := newRigAt(t, now, sj, stored)
	patched, err := r.minutes(t, now, "patch jobs ", func() {
		job, err := r.kube.BatchV1().Jobs("ns").Get(t.Context(), "etl-0", metav1.GetOptions{})
		if err != nil {
			t.Fatal(err)
		}
		delete(job.Labels, batchv1alpha1.SequentialJobUIDKey)
		if err := r.kube.Tracker().Update(batchv1.SchemeGroupVersion.WithResource("jobs"), job, "ns"); err != nil {
			t.Fatal(err)
		}
	})
	diff(t, "how often the label is put back in five minutes", 5, patched)
	const message = "Changes of job 0 are noticed late: another party removed or changed the label " + batchv1alpha1.SequentialJobUIDKey +
		" of job etl-0 3 times within a minute, each time after the controller had set it; the API does not say who does, the audit log does; " +
		"the controller sets it again at "
	sj = r.sequence(t)
	c := meta.FindStatusCondition(sj.Status.Conditions, batchv1alpha1.ConditionAvailable)
	diff(t, "Available", "UndoneByOthers: "+message, untilTime(c.Reason+": "+c.Message))
	diff(t, "the events", 1, len(slices.DeleteFunc(r.events.all(), func(event string) bool { return !strings.HasPrefix(event, "Warning UndoneByOthers "+message) })))
	diff(t, "the state of the step", batchv1alpha1.StepRunning, sj.Status.Steps[0].State)
	if err != nil {
		t.Errorf("a pass fails: %v", err)
	}
	r.cached(t)
	due, err := r.Sync(t.Context(), key)
	diff(t, "when the child is looked at again", 15*time.Second, due.Deadline)
	if err != nil {
		t.Error(err)
	}

	// The other party has gone.
	now.SetTime(now.Now().Add(10 * time.Minute))
	if _, err := r.Sync(t.Context(), key); err != nil {
		t.Error(err)
	}
	if err := r.syncs(t, 1); err != nil {
		t.Error(err)
	}
	c = meta.FindStatusCondition(r.sequence(t).Status.Conditions, batchv1alpha1.ConditionAvailable)
	diff(t, "Available in the end", "Operational", c.Reason)
}

// TestFinalizersChangedByOthers changes the finalizers of a sequence back whenever the controller has changed them.
func TestFinalizersChangedByOthers(t *testing.T) {
	const message = "another party removed or changed metadata.finalizers of sequentialjob etl 3 times within a minute, each time after the " +
		"controller had set it; the API does not say who does, the audit log does; the controller sets it again at "
	complete := func(sj *batchv1alpha1.SequentialJob) {
		sj.Finalizers = []string{batchv1alpha1.SequentialJobFinalizer}
		sj.Status.Conditions = []metav1.Condition{{Type: batchv1alpha1.ConditionComplete, Status: metav1.ConditionTrue, Reason: "Completed"}}
	}
	for name, tc := range map[string]struct {
		sequence func(sj *batchv1alpha1.SequentialJob)
		// others is what the other party does to a sequence.
		others func(sj *batchv1alpha1.SequentialJob)
		want   int
		// says is where the controller says so.
		says string
	}{
		"removed while a step runs":                  {started, func(sj *batchv1alpha1.SequentialJob) { sj.Finalizers = nil }, 5, "condition"},
		"added once it has ended":                    {complete, complete, 5, "event"},
		"removed from the next generation each time": {started, func(sj *batchv1alpha1.SequentialJob) { sj.Finalizers, sj.Generation = nil, sj.Generation+1 }, 299, ""},
	} {
		t.Run(name, func(t *testing.T) {
			now := clocktesting.NewFakePassiveClock(time.Now())
			sj := newSequence(tc.sequence)
			r := newRigAt(t, now, sj, jobOf(newSequence(started)))
			if tc.says == "event" {
				r = newRigAt(t, now, sj)
			}
			patched, _ := r.minutes(t, now, "patch sequentialjobs ", func() {
				stored := r.sequence(t)
				tc.others(stored)
				if err := r.client.Tracker().Update(batchv1alpha1.SchemeGroupVersion.WithResource("sequentialjobs"), stored, "ns"); err != nil {
					t.Fatal(err)
				}
			})
			diff(t, "how often the finalizers are changed in five minutes", tc.want, patched)
			c := meta.FindStatusCondition(r.sequence(t).Status.Conditions, batchv1alpha1.ConditionFailed)
			inCondition := c != nil && c.Reason == batchv1alpha1.ReasonReconciliationError && strings.Contains(c.Message, message)
			inEvent := slices.ContainsFunc(r.events.all(), func(e string) bool {
				return strings.HasPrefix(e, "Warning ReconciliationFailed ") && strings.Contains(e, message)
			})
			diff(t, "whether the condition says so", tc.says == "condition", inCondition)
			diff(t, "whether an event says so", tc.says != "", inEvent)
			if t.Failed() {
				t.Logf("condition %+v, events %q", c, r.events.all())
			}
		})
	}
}
