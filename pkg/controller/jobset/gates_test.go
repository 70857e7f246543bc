// Copyright The jobset-apiserver Authors.
// SPDX-License-Identifier: Apache-2.0

package jobset

import (
	"testing"

	"k8s.io/apimachinery/pkg/runtime"
	clientgotesting "k8s.io/client-go/testing"
	"k8s.io/client-go/tools/cache"
	"k8s.io/utils/ptr"

	jobsetv1alpha2 "github.com/jobset-apiserver/jobset-apiserver/pkg/apis/jobset/v1alpha2"
	"github.com/jobset-apiserver/jobset-apiserver/pkg/controller/jobset/plan"
)

func TestWhatTheAPIServerDropsIsNoticed(t *testing.T) {
	restarts := []jobsetv1alpha2.ReplicatedJobStatus{{Name: "w", JobRestarts: []int32{1}}}
	all := plan.Gates{ActiveDeadline: true, ExecutionAttempts: true, RestartJob: true, Attempts: true}
	noRestartJob, noExecutions, noAttempts := all, all, all
	noRestartJob.RestartJob, noExecutions.ExecutionAttempts, noAttempts.Attempts = false, false, false
	for name, tc := range map[string]struct {
		sent, stored jobsetv1alpha2.JobSetStatus
		want         plan.Gates
	}{
		"nothing is dropped": {
			jobsetv1alpha2.JobSetStatus{ExecutionAttempts: ptr.To[int32](1), ReplicatedJobsStatus: restarts},
			jobsetv1alpha2.JobSetStatus{ExecutionAttempts: ptr.To[int32](1), ReplicatedJobsStatus: restarts}, all},
		"a count that stands still": {
			jobsetv1alpha2.JobSetStatus{ExecutionAttempts: ptr.To[int32](2)}, jobsetv1alpha2.JobSetStatus{ExecutionAttempts: ptr.To[int32](1)}, noExecutions},
		"the history": {jobsetv1alpha2.JobSetStatus{Attempts: []jobsetv1alpha2.Attempt{{Number: 1}}}, jobsetv1alpha2.JobSetStatus{}, noAttempts},
		"restarts of single Jobs": {
			jobsetv1alpha2.JobSetStatus{ReplicatedJobsStatus: restarts},
			jobsetv1alpha2.JobSetStatus{ReplicatedJobsStatus: []jobsetv1alpha2.ReplicatedJobStatus{{Name: "w"}}}, noRestartJob},
	} {
		t.Run(name, func(t *testing.T) {
			r := newRig(t, newSet())
			r.Gates = all
			if err := r.dropped.notice(&tc.sent, &tc.stored); (err != nil) != (tc.want != all) {
				t.Errorf("error %v", err)
			}
			diff(t, "gates", tc.want, r.gates())
		})
	}
}

// TestASetStartsAlthoughTheAPIServerHasOtherGates has an API server that drops the fields of two features.
func TestASetStartsAlthoughTheAPIServerHasOtherGates(t *testing.T) {
	set := newSet()
	r := newRig(t, set)
	r.Gates = plan.Gates{ActiveDeadline: true, ExecutionAttempts: true, RestartJob: true}
	if err := r.informers.jobSets.GetIndexer().Add(set); err != nil {
		t.Fatal(err)
	}
	r.jobSets.PrependReactor("update", "jobsets", func(action clientgotesting.Action) (bool, runtime.Object, error) {
		stored := action.(clientgotesting.UpdateAction).GetObject().DeepCopyObject().(*jobsetv1alpha2.JobSet)
		stored.Status.StartTime, stored.Status.ExecutionAttempts = nil, nil
		return true, stored, nil
	})
	var got []string
	for range 3 {
		_, err := r.sync(t.Context(), cache.MetaObjectToName(set))
		got = append(got, errorText(err))
		r.writes.Forget(cache.MetaObjectToName(set)) // these caches show nothing
	}
	want := []string{
		"jobset-apiserver does not keep status.executionAttempts: executions are not counted until both programs run with --feature-gates=ExecutionAttemptsTracking=true",
		"jobset-apiserver does not keep status.startTime: deadlines are off until both programs run with --feature-gates=JobSetActiveDeadlineSeconds=true",
		"",
	}
	diff(t, "errors", want, got)
	diff(t, "gates that are left", plan.Gates{RestartJob: true, Attempts: true}, r.gates())
	diff(t, "requests", []string{"create services js", "create jobs js-w-0", "create jobs js-w-1"}, r.requests()[:3])
}
