// Copyright The jobset-apiserver Authors.
// SPDX-License-Identifier: Apache-2.0

package jobset

import (
	"strings"
	"testing"
	"time"

	"k8s.io/apimachinery/pkg/runtime"
	clientgotesting "k8s.io/client-go/testing"
	"k8s.io/client-go/tools/cache"
	clocktesting "k8s.io/utils/clock/testing"
	"k8s.io/utils/ptr"

	"github.com/jobset-apiserver/jobset-apiserver/pkg/apis/jobset/gates"
	jobsetv1alpha2 "github.com/jobset-apiserver/jobset-apiserver/pkg/apis/jobset/v1alpha2"
	"github.com/jobset-apiserver/jobset-apiserver/pkg/controller/host/children"
)

func TestDroppedStatusFieldsAreDetected(t *testing.T) {
	restarts := []jobsetv1alpha2.ReplicatedJobStatus{{Name: "w", JobRestarts: []int32{1}}}
	all := gates.Gates{JobSetActiveDeadlineSeconds: true, ExecutionAttemptsTracking: true, RestartJob: true}
	noRestartJob, noExecutions := all, all
	noRestartJob.RestartJob, noExecutions.ExecutionAttemptsTracking = false, false
	for name, tc := range map[string]struct {
		sent, stored jobsetv1alpha2.JobSetStatus
		want         gates.Gates
		noAttempts   bool
	}{
		"nothing is dropped": {
			jobsetv1alpha2.JobSetStatus{ExecutionAttempts: ptr.To[int32](1), ReplicatedJobsStatus: restarts},
			jobsetv1alpha2.JobSetStatus{ExecutionAttempts: ptr.To[int32](1), ReplicatedJobsStatus: restarts}, all, false},
		"a count that stands still": {
			jobsetv1alpha2.JobSetStatus{ExecutionAttempts: ptr.To[int32](2)}, jobsetv1alpha2.JobSetStatus{ExecutionAttempts: ptr.To[int32](1)}, noExecutions, false},
		"the history": {jobsetv1alpha2.JobSetStatus{Attempts: []jobsetv1alpha2.Attempt{{Number: 1}}}, jobsetv1alpha2.JobSetStatus{}, all, true},
		"restarts of single Jobs": {
			jobsetv1alpha2.JobSetStatus{ReplicatedJobsStatus: restarts},
			jobsetv1alpha2.JobSetStatus{ReplicatedJobsStatus: []jobsetv1alpha2.ReplicatedJobStatus{{Name: "w"}}}, noRestartJob, false},
	} {
		t.Run(name, func(t *testing.T) {
			r := newRig(t, newSet())
			r.deps.Gates = all
			if err := r.dropped.notice(&tc.sent, &tc.stored); (err != nil) != (tc.want != all || tc.noAttempts) {
				t.Errorf("error %v", err)
			}
			diff(t, "gates", tc.want, r.gates())
			diff(t, "attempts are kept", !tc.noAttempts, r.keepsAttempts())
		})
	}
}

// TestSetStartsWithGateMismatch has an API server that drops the fields of two features.
func TestSetStartsWithGateMismatch(t *testing.T) {
	set := newSet()
	r := newRig(t, set)
	r.deps.Runner = children.NewSlowStart(1) // for an order that does not change
	r.deps.Gates = gates.Gates{JobSetActiveDeadlineSeconds: true, ExecutionAttemptsTracking: true, RestartJob: true}
	if err := r.caches.jobSets.GetIndexer().Add(set); err != nil {
		t.Fatal(err)
	}
	r.jobSets.PrependReactor("update", "jobsets", func(action clientgotesting.Action) (bool, runtime.Object, error) {
		stored := action.(clientgotesting.UpdateAction).GetObject().DeepCopyObject().(*jobsetv1alpha2.JobSet)
		stored.Status.StartTime, stored.Status.ExecutionAttempts = nil, nil
		return true, stored, nil
	})
	var got []string
	for range 3 {
		_, err := r.Sync(t.Context(), cache.MetaObjectToName(set))
		got = append(got, errorText(err))
		r.deps.Consistency.Forget(cache.MetaObjectToName(set)) // these caches show nothing
	}
	want := []string{
		"jobset-apiserver does not keep status.executionAttempts: executions are not counted until both programs run with --feature-gates=ExecutionAttemptsTracking=true",
		"jobset-apiserver does not keep status.startTime: deadlines are not enforced until both programs run with --feature-gates=JobSetActiveDeadlineSeconds=true",
		"",
	}
	diff(t, "errors", want, got)
	diff(t, "gates that are left", gates.Gates{RestartJob: true}, r.gates())
	diff(t, "requests", []string{"create services js", "create jobs js-w-0", "create jobs js-w-1"}, r.requests()[:3])
}

// TestGateMismatchExpires has an API server that drops start times, and gets the gate later.
func TestGateMismatchExpires(t *testing.T) {
	set := newSet()
	set.Spec.ActiveDeadlineSeconds = ptr.To[int64](3600)
	r := newRig(t, set)
	now := clocktesting.NewFakePassiveClock(time.Now())
	r.deps.Clock, r.dropped = now, newDropped(now)
	r.deps.Gates = gates.Gates{JobSetActiveDeadlineSeconds: true}
	if err := r.caches.jobSets.GetIndexer().Add(set); err != nil {
		t.Fatal(err)
	}
	drops := true
	r.jobSets.PrependReactor("update", "jobsets", func(action clientgotesting.Action) (bool, runtime.Object, error) {
		stored := action.(clientgotesting.UpdateAction).GetObject().DeepCopyObject().(*jobsetv1alpha2.JobSet)
		if drops {
			stored.Status.StartTime = nil
		}
		return true, stored, nil
	})
	sync := func() time.Duration {
		due, _ := r.Sync(t.Context(), cache.MetaObjectToName(set)) // the error is another test's
		r.deps.Consistency.Forget(cache.MetaObjectToName(set))
		return due.Deadline
	}
	mismatches := func() (n int) {
		for _, event := range r.events.all() {
			if strings.HasPrefix(event, "Warning FeatureGateMismatch Reconciling: jobset-apiserver does not keep status.startTime: ") {
				n++
			}
		}
		return n
	}
	sync() // the write that finds out fails, and is tried again
	diff(t, "time until the feature is tried again", droppedFor, sync())
	diff(t, "deadlines", false, r.gates().JobSetActiveDeadlineSeconds)
	diff(t, "events", 1, mismatches())
	now.SetTime(now.Now().Add(time.Minute))
	diff(t, "time until the feature is tried again, later", droppedFor-time.Minute, sync())
	diff(t, "events after another sync", 1, mismatches())

	drops = false
	now.SetTime(now.Now().Add(droppedFor))
	diff(t, "deadlines when the mismatch is forgotten", true, r.gates().JobSetActiveDeadlineSeconds)
	sync()
	diff(t, "deadlines once the API server keeps the field", true, r.gates().JobSetActiveDeadlineSeconds)
	diff(t, "events in all", 1, mismatches())
}

func TestSetsWithDisabledFeatures(t *testing.T) {
	all := gates.Gates{JobSetActiveDeadlineSeconds: true, ExecutionAttemptsTracking: true, RestartJob: true}
	for name, tc := range map[string]struct {
		gates   gates.Gates
		dropped droppedField
		change  func(*jobsetv1alpha2.JobSet)
		want    []droppedField
	}{
		"a set without a deadline": {gates: all, dropped: droppedStartTime},
		"a set with a deadline": {gates: all, dropped: droppedStartTime, want: []droppedField{droppedStartTime},
			change: func(js *jobsetv1alpha2.JobSet) { js.Spec.ActiveDeadlineSeconds = ptr.To[int64](1) }},
		"a set with a deadline, whose field is kept": {gates: all, dropped: droppedAttempts,
			change: func(js *jobsetv1alpha2.JobSet) { js.Spec.ActiveDeadlineSeconds = ptr.To[int64](1) }},
		"a set without rules": {gates: all, dropped: droppedJobRestarts},
		"a set with a rule for single Jobs": {gates: all, dropped: droppedJobRestarts, want: []droppedField{droppedJobRestarts},
			change: func(js *jobsetv1alpha2.JobSet) {
				js.Spec.FailurePolicy = &jobsetv1alpha2.FailurePolicy{Rules: []jobsetv1alpha2.FailurePolicyRule{{Action: jobsetv1alpha2.RestartJob}}}
			}},
		"any set when executions are counted":     {gates: all, dropped: droppedExecutionAttempts, want: []droppedField{droppedExecutionAttempts}},
		"any set when executions are not counted": {dropped: droppedExecutionAttempts},
		"a set without exclusive placement":       {gates: gates.Gates{ExclusivePlacement: true}, dropped: droppedPlacement},
		"a set with exclusive placement": {gates: gates.Gates{ExclusivePlacement: true}, dropped: droppedPlacement, want: []droppedField{droppedPlacement},
			change: func(js *jobsetv1alpha2.JobSet) {
				js.Annotations = map[string]string{jobsetv1alpha2.ExclusiveKey: "rack"}
			}},
		"a set with exclusive placement while that is off": {dropped: droppedPlacement,
			change: func(js *jobsetv1alpha2.JobSet) {
				js.Annotations = map[string]string{jobsetv1alpha2.ExclusiveKey: "rack"}
			}},
		"a set that has finished": {gates: all, dropped: droppedExecutionAttempts,
			change: func(js *jobsetv1alpha2.JobSet) { js.Status.TerminalState = jobsetv1alpha2.TerminalStateFailed }},
	} {
		t.Run(name, func(t *testing.T) {
			set := newSet()
			if tc.change != nil {
				tc.change(set)
			}
			r := newRig(t, set)
			r.deps.Gates = tc.gates
			r.dropped.note(tc.dropped)
			diff(t, "fields", tc.want, r.lacks(set))
		})
	}
}
