// Copyright The jobset-apiserver Authors.
// SPDX-License-Identifier: Apache-2.0

package storage_test

import (
	"strings"
	"testing"

	"github.com/jobset-apiserver/jobset-apiserver/pkg/apis/batch"
	"github.com/jobset-apiserver/jobset-apiserver/pkg/apis/jobset"
	jobsetv1alpha2 "github.com/jobset-apiserver/jobset-apiserver/pkg/apis/jobset/v1alpha2"
	"github.com/jobset-apiserver/jobset-apiserver/pkg/registry/jobset/jobset/actions"
)

// TestWarningsOfRestart covers docs/kueue.md#restarts-after-a-job-has-succeeded.
func TestWarningsOfRestart(t *testing.T) {
	const told = `Kueue took back the quota of the Jobs that had succeeded and cannot reserve it again in queue "team"; kubectl jobset why train shows what to do`
	for name, tc := range map[string]struct {
		queue     string
		succeeded int32
		spec      batch.JobSetRestartSpec
		want      string
	}{
		"a Job had succeeded":            {queue: "team", succeeded: 1, want: told},
		"its replicatedJob is restarted": {queue: "team", succeeded: 1, spec: batch.JobSetRestartSpec{Scope: batch.RestartScopeReplicatedJob, ReplicatedJob: "workers"}, want: told},
		"another one is restarted":       {queue: "team", succeeded: 1, spec: batch.JobSetRestartSpec{Scope: batch.RestartScopeReplicatedJob, ReplicatedJob: "launcher"}},
		"none had succeeded":             {queue: "team"},
		"the set is not in a queue":      {succeeded: 1},
	} {
		t.Run(name, func(t *testing.T) {
			js := train()
			if tc.queue != "" {
				js.Labels = map[string]string{jobsetv1alpha2.QueueNameKey: tc.queue}
			}
			js.Status.ReplicatedJobsStatus = []jobset.ReplicatedJobStatus{{Name: "workers", Succeeded: tc.succeeded}, {Name: "launcher"}}
			if got := strings.Join(actions.WarningsOfRestart(js, &tc.spec), "\n"); got != tc.want {
				t.Errorf("got %q, want %q", got, tc.want)
			}
		})
	}
}
