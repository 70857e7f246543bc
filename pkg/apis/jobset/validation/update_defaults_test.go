// Copyright The jobset-apiserver Authors.
// SPDX-License-Identifier: Apache-2.0

package validation_test

import (
	"testing"

	"github.com/jobset-apiserver/jobset-apiserver/pkg/apis/jobset"
)

// TestDefaultOfCreationIsLeftOut: the message says what to write.
func TestDefaultOfCreationIsLeftOut(t *testing.T) {
	const job = "spec.replicatedJobs[1].template.spec"
	runUpdates(t, map[string]updateCase{
		"a default that a chart leaves out": {
			change: func(js *jobset.JobSet) {
				template := &js.Spec.ReplicatedJobs[1].Template.Spec
				template.CompletionMode, template.Template.Spec.RestartPolicy = nil, ""
			},
			want: []refusal{
				{job + ".template.spec.restartPolicy", invalid, `was "OnFailure", now is not; field is immutable: the creation has set the default, and an update of the whole object must keep it; write restartPolicy: OnFailure`},
				{job + ".completionMode", invalid, `was "Indexed", now is not; field is immutable: the creation has set the default, and an update of the whole object must keep it; write completionMode: Indexed`},
			},
		},
	})
}
