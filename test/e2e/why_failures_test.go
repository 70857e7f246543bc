// Copyright The jobset-apiserver Authors.
// SPDX-License-Identifier: Apache-2.0

package e2e

import (
	batchv1 "k8s.io/api/batch/v1"
	"k8s.io/utils/ptr"

	jobsetv1alpha2 "github.com/jobset-apiserver/jobset-apiserver/pkg/apis/jobset/v1alpha2"
	"github.com/jobset-apiserver/jobset-apiserver/pkg/kubectl/why"
)

// What ended the set.
var failureFaults = map[string]fault{
	"a container used too much memory": {
		seed: inTurn(becomesReady(), func(k *kubectl) {
			k.podFails("train-workers-1", `"reason":"OOMKilled","exitCode":137`)
		}),
		want: why.OutOfMemory, words: []string{"container main of pod train-workers-1-", "memory"},
	},
	"a pod was evicted": {
		seed: inTurn(becomesReady(), func(k *kubectl) {
			k.podStatus(k.podNamed("train-workers-0"), `{"phase":"Failed","reason":"Evicted","message":"The node was low on resource: ephemeral-storage."}`)
		}),
		want: why.Evicted, words: []string{"pod train-workers-0-", "ephemeral-storage"},
	},
	"a pod made room for another": {
		seed: inTurn(becomesReady(), func(k *kubectl) {
			k.podStatus(k.podNamed("train-workers-0"), `{"phase":"Failed","conditions":[{"type":"DisruptionTarget","status":"True","reason":"PreemptionByScheduler","message":"default-scheduler: preempting to accommodate a higher priority pod"}]}`)
		}),
		want: why.Preempted, words: []string{"pod train-workers-0-", "priority"},
	},
	"a Job failed without a known reason": {
		seed: inTurn(becomesReady(), func(k *kubectl) {
			k.podStatus(k.podNamed("train-workers-0"), `{"phase":"Failed","containerStatuses":null}`)
		}),
		want: why.JobFailed, words: []string{"train-workers-0"},
	},
	"the set failed with an exit code after a restart": {
		seed: inTurn(becomesReady(failurePolicy(5, jobsetv1alpha2.FailurePolicyRule{
			Name: "broken", Action: jobsetv1alpha2.FailJobSet, OnJobFailureReasons: []string{batchv1.JobReasonBackoffLimitExceeded},
		})), func(k *kubectl) {
			k.pluginOK("restart", "train", "--wait")
			k.podFails("train-workers-0", `"reason":"Error","exitCode":42,"message":"assertion failed"`)
		}),
		want: why.ExitCode, words: []string{"container main of pod train-workers-0-", "exit code 42", "assertion failed", "after 1 restart"},
	},
	"the restarts are used up": {
		seed: makes(failurePolicy(1), everyJob(annotated("jobset-apiserver.io/kwok-outcome", "failed"), annotated("jobset-apiserver.io/kwok-exit-code", "3"))),
		want: why.MaxRestartsReached, words: []string{"maxRestarts is reached (1 of 1 restart)", "exit code 3"},
	},
	"the same failure restarts the set again and again": {
		seed: makes(failurePolicy(1000), everyJob(annotated("jobset-apiserver.io/kwok-outcome", "failed"), annotated("jobset-apiserver.io/kwok-exit-code", "9"))),
		want: why.ExitCode, words: []string{"exit code 9", "attempts ended with the same failure"},
	},
	"a Job tries again after its pod failed": {
		seed: makes(jobSpecs(func(j *batchv1.JobSpec) { j.BackoffLimit = ptr.To(int32(6)) }),
			everyJob(annotated("jobset-apiserver.io/kwok-outcome", "failed"), annotated("jobset-apiserver.io/kwok-exit-code", "7"))),
		want: why.ExitCode, words: []string{"exit code 7", "tries again", "backoffLimit 6"},
	},
	"the deadline of the set is over": {
		alone: true,
		seed: inTurn(withGates("JobSetActiveDeadlineSeconds=true"), makes(func(js *jobsetv1alpha2.JobSet) {
			js.Spec.ActiveDeadlineSeconds = ptr.To(int64(2))
		})),
		want: why.DeadlineExceeded, words: []string{"the set ran longer than its activeDeadlineSeconds of 2"},
	},
	"the deadline of a Job is over": {
		seed: makes(jobSpecs(func(j *batchv1.JobSpec) { j.ActiveDeadlineSeconds = ptr.To(int64(2)) })),
		want: why.DeadlineExceeded, words: []string{"the job train-workers-", "longer than its activeDeadlineSeconds"},
	},
}

func failurePolicy(maxRestarts int32, rules ...jobsetv1alpha2.FailurePolicyRule) func(*jobsetv1alpha2.JobSet) {
	return func(js *jobsetv1alpha2.JobSet) {
		js.Spec.FailurePolicy = &jobsetv1alpha2.FailurePolicy{MaxRestarts: maxRestarts, Rules: rules}
	}
}

// podFails ends the container of a pod as a kubelet would.
func (k *kubectl) podFails(job, terminated string) {
	k.Helper()
	k.podStatus(k.podNamed(job), `{"phase":"Failed","containerStatuses":[{"name":"main","image":"i","imageID":"","ready":false,"restartCount":0,
		"state":{"terminated":{`+terminated+`,"startedAt":"`+timestamp()+`","finishedAt":"`+timestamp()+`"}}}]}`)
}
