// Copyright The jobset-apiserver Authors.
// SPDX-License-Identifier: Apache-2.0

package why

import (
	"testing"
	"time"

	"k8s.io/utils/ptr"

	jobsetv1alpha2 "github.com/jobset-apiserver/jobset-apiserver/pkg/apis/jobset/v1alpha2"
	"github.com/jobset-apiserver/jobset-apiserver/pkg/apis/jobset/v1alpha2/helper"
)

// TestStateIsThePhase takes a set to every phase: `kubectl jobset why` and the column PHASE of `kubectl get -o wide` agree,
// although why knows more than the status says.
func TestStateIsThePhase(t *testing.T) {
	ends := func(state string) func(*Evidence) {
		return status(func(s *jobsetv1alpha2.JobSetStatus) { s.TerminalState = state })
	}
	earlier := status(func(s *jobsetv1alpha2.JobSetStatus) { s.Restarts = 1 }) // the Jobs are of the attempt before
	restarting := has(jobsetv1alpha2.JobSetRestarting, "RestartRequested", "restart requested by alice")
	seen := map[string]bool{}
	for name, tc := range map[string]struct {
		evidence *Evidence
		want     string
	}{
		"it is deleted":                          {healthy(set(func(js *jobsetv1alpha2.JobSet) { js.DeletionTimestamp = ptr.To(before(time.Minute)) })), helper.PhaseTerminating},
		"it has completed":                       {healthy(has("Completed", "AllJobsCompleted", "done"), ends("Completed")), helper.PhaseCompleted},
		"only its terminal state is Completed":   {healthy(ends("Completed")), helper.PhaseCompleted},
		"it has failed":                          {healthy(has("Failed", "FailedJobs", "failed"), ends("Failed")), helper.PhaseFailed},
		"only its terminal state is Failed":      {healthy(ends("Failed")), helper.PhaseFailed},
		"it is suspended":                        {healthy(spec(suspends)), helper.PhaseSuspended},
		"it restarts":                            {healthy(restarting, notReadyYet), helper.PhaseRestarting},
		"it restarts although its Jobs are up":   {healthy(restarting), helper.PhaseRestarting},
		"it has no Jobs":                         {healthy(without), helper.PhasePending},
		"some Jobs are not ready":                {healthy(notReadyYet), helper.PhaseStarting},
		"Jobs of an earlier attempt are left":    {healthy(notReadyYet, earlier), helper.PhaseStarting},
		"it runs":                                {healthy(), helper.PhaseRunning},
		"its status is older than a pod's crash": {healthy(pods(crashing("CrashLoopBackOff", 3)), upByStatus), helper.PhaseRunning},
	} {
		report := Diagnose(tc.evidence)
		if phase := helper.Phase(tc.evidence.JobSet); report.State != tc.want || phase != tc.want {
			t.Errorf("%s: why says %s, the phase is %s, want %s", name, report.State, phase, tc.want)
		}
		if len(report.Findings) == 0 {
			t.Errorf("%s: nothing was found", name)
		}
		seen[tc.want] = true
	}
	for _, phase := range helper.Phases {
		if !seen[phase] {
			t.Errorf("no case has the phase %s", phase)
		}
	}
}

// upByStatus makes all Jobs ready in the status of the set.
func upByStatus(e *Evidence) {
	e.JobSet.Status.ReplicatedJobsStatus = []jobsetv1alpha2.ReplicatedJobStatus{{Name: "workers", Active: 2, Ready: 2}}
}
