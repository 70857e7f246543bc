// Copyright The jobset-apiserver Authors.
// SPDX-License-Identifier: Apache-2.0

package helper_test

import (
	"testing"

	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/utils/ptr"

	jobsetv1alpha2 "github.com/jobset-apiserver/jobset-apiserver/pkg/apis/jobset/v1alpha2"
	"github.com/jobset-apiserver/jobset-apiserver/pkg/apis/jobset/v1alpha2/helper"
	"github.com/jobset-apiserver/jobset-apiserver/test/builders"
)

func TestPhase(t *testing.T) {
	suspend := func(js *jobsetv1alpha2.JobSet) { js.Spec.Suspend = ptr.To(true) }
	deleted := func(js *jobsetv1alpha2.JobSet) { js.DeletionTimestamp = &metav1.Time{} }
	ends := func(state string) change { return func(js *jobsetv1alpha2.JobSet) { js.Status.TerminalState = state } }
	counts := func(c jobsetv1alpha2.ReplicatedJobStatus) change {
		return func(js *jobsetv1alpha2.JobSet) {
			js.Status.ReplicatedJobsStatus = []jobsetv1alpha2.ReplicatedJobStatus{c}
		}
	}
	up := counts(jobsetv1alpha2.ReplicatedJobStatus{Name: "w", Ready: 1, Succeeded: 1})
	for name, tc := range map[string]struct {
		changes []change
		want    string
	}{
		"nothing has happened":                 {want: helper.PhasePending},
		"the Jobs exist, without pods":         {changes: []change{counts(jobsetv1alpha2.ReplicatedJobStatus{Name: "w"})}, want: helper.PhasePending},
		"one of two Jobs has pods":             {changes: []change{counts(jobsetv1alpha2.ReplicatedJobStatus{Name: "w", Active: 1})}, want: helper.PhaseStarting},
		"a Job failed":                         {changes: []change{counts(jobsetv1alpha2.ReplicatedJobStatus{Name: "w", Ready: 1, Failed: 1})}, want: helper.PhaseStarting},
		"all Jobs are ready or have succeeded": {changes: []change{up}, want: helper.PhaseRunning},
		"it restarts although Jobs are ready":  {changes: []change{up, since("RestartingJobSet", 0)}, want: helper.PhaseRestarting},
		"it restarts without Jobs":             {changes: []change{since("RestartingJobSet", 0)}, want: helper.PhaseRestarting},
		"it is suspended while it restarts":    {changes: []change{suspend, since("RestartingJobSet", 0)}, want: helper.PhaseSuspended},
		"it failed while suspended":            {changes: []change{suspend, since("Failed", 0)}, want: helper.PhaseFailed},
		"only the terminal state is Completed": {changes: []change{up, ends("Completed")}, want: helper.PhaseCompleted},
		"only the terminal state is Failed":    {changes: []change{up, ends("Failed")}, want: helper.PhaseFailed},
		"it has completed":                     {changes: []change{since("Completed", 0), ends("Completed")}, want: helper.PhaseCompleted},
		"it is deleted after it has completed": {changes: []change{since("Completed", 0), deleted}, want: helper.PhaseTerminating},
	} {
		if got := helper.Phase(builders.JobSet("a", append(tc.changes, builders.WithJobs("w", 2, 1))...)); got != tc.want {
			t.Errorf("%s: %s, want %s", name, got, tc.want)
		}
	}
}
