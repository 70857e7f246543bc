// Copyright The jobset-apiserver Authors.
// SPDX-License-Identifier: Apache-2.0

package actions_test

import (
	"strings"
	"testing"

	"github.com/jobset-apiserver/jobset-apiserver/pkg/apis/batch"
	"github.com/jobset-apiserver/jobset-apiserver/pkg/apis/jobset"
	jobsetv1alpha2 "github.com/jobset-apiserver/jobset-apiserver/pkg/apis/jobset/v1alpha2"
	"github.com/jobset-apiserver/jobset-apiserver/pkg/registry/jobset/jobset/actions"
)

// TestRestartInQueueAfterSuccess covers docs/kueue.md#restarts-after-a-job-has-succeeded.
func TestRestartInQueueAfterSuccess(t *testing.T) {
	const told = `; Kueue took back the quota of the Jobs that had succeeded and cannot reserve it again in queue "team"; kubectl jobset why train shows what to do`
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
			answer, err := actions.Restart(js, &tc.spec, call())
			if err != nil {
				t.Fatal(err)
			}
			if _, rest, _ := strings.Cut(answer.Message, " was restarted as attempt 2"); rest != tc.want {
				t.Errorf("got %q, want %q at the end", answer.Message, tc.want)
			}
		})
	}
}
