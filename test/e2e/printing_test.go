// Copyright The jobset-apiserver Authors.
// SPDX-License-Identifier: Apache-2.0

package e2e

import (
	"regexp"
	"slices"
	"strings"
	"testing"

	"github.com/google/go-cmp/cmp"

	"github.com/jobset-apiserver/jobset-apiserver/test/framework/tier"
)

// single is a set of one Job.
func single(name, podAnnotation string, extra ...string) string {
	return strings.Replace(manifest(name, podAnnotation, extra...), "replicas: 2", "replicas: 1", 1)
}

// events are the events of a set as kubectl prints them, oldest first, without columns that hang on time: type, reason, message.
func (k *kubectl) events(set string) []string {
	k.Helper()
	var lines []string
	for _, line := range strings.Split(strings.TrimSpace(k.ok("events", "--for", "jobset/"+set, "--no-headers")), "\n") {
		words := regexp.MustCompile(`\s{2,}`).Split(strings.TrimSpace(line), -1)
		if len(words) == 5 {
			lines = append(lines, words[1]+" "+words[2]+": "+words[4])
		}
	}
	return lines
}

// TestEventsAreForPeople looks that messages carry names and numbers that a person can use, and nothing else.
func TestEventsAreForPeople(t *testing.T) {
	tier.OnRequest(t, "compares ages and the order of events")
	t.Parallel()
	k := newKubectl(t)
	k.okIn(single("fails", runOn, "failurePolicy: {maxRestarts: 1}")+"---\n"+single("restarted", runOn), "create", "-f", "-")
	k.awaitSummary("restarted", "restarts=0 | 1 Start, ready")
	oncall := k.operator("oncall")
	k.answer(oncall.act("restart", "restarted", `"reason":"slow"`))
	k.failAttempt("fails", 1, 137)
	k.failAttempt("fails", 2, 137)
	k.wait("--for=jsonpath={.status.terminalState}", "jobset/fails")

	places := map[string]string{}
	for _, attempt := range k.sets()["fails"].Status.Attempts {
		number := string(rune('0' + attempt.Number))
		places["POD"+number], places["NODE"+number] = attempt.FirstCause.Pod, attempt.FirstCause.Node
	}
	const verdict = "applying RestartJobSet failure policy action (first failed job: fails-workers-0)"
	tests := map[string][]string{
		"fails": {
			"Warning FirstFailure: pod POD1 on node NODE1: container main exited with 137",
			"Warning DefaultFailurePolicy: " + verdict,
			"Warning RestartJobSetFailurePolicyAction: " + verdict,
			"Normal JobsRecreated: the only job of attempt 2 was recreated Ns after the restart by the failure policy",
			"Normal JobsReady: all jobs are ready",
			"Warning FirstFailure: pod POD2 on node NODE2: container main exited with 137",
			"Warning ReachedMaxRestarts: jobset failed due to reaching max number of restarts (first failed job: fails-workers-0)",
			"Normal JobSetFailed: jobset failed",
		},
		"restarted": {
			"Normal RestartRequested: system:serviceaccount:" + k.namespace + ":oncall asked to restart the set: slow (attempt 2)",
			"Normal JobsRecreated: the only job of attempt 2 was recreated Ns after the restart requested by system:serviceaccount:" + k.namespace + ":oncall",
			"Normal JobsReady: all jobs are ready",
		},
	}
	for set, want := range tests {
		for i := range want {
			for name, value := range places {
				want[i] = strings.ReplaceAll(want[i], name, value)
			}
		}
		slices.Sort(want) // events of one second have no order
		k.eventually(func() string {
			got := k.events(set)
			for i := range got {
				got[i] = regexp.MustCompile(`recreated (less than )?[0-9hm]+s? after`).ReplaceAllString(got[i], "recreated Ns after")
			}
			slices.Sort(got)
			return cmp.Diff(want, got)
		})
	}
}

// TestDescribeShowsTheHistory looks at what a user sees who knows no other command.
func TestDescribeShowsTheHistory(t *testing.T) {
	tier.OnRequest(t, "compares ages and the order of events")
	t.Parallel()
	k := newKubectl(t)
	k.okIn(single("train", runOn), "create", "-f", "-")
	k.awaitSummary("train", "restarts=0 | 1 Start, ready")
	oncall := k.operator("oncall")
	k.answer(oncall.act("suspend", "train", `"reason":"make room for production"`))
	k.wait("--for=condition=Suspended", "jobset/train")
	description := k.ok("describe", "jobset", "train")
	for _, want := range []string{
		`End Reason: +make room for production`, `End User: +system:serviceaccount:` + k.namespace + `:oncall`, `Outcome: +Suspended`,
		`Observed Generation: +2`, `Reason: +SuspendedJobs`, `Suspend: +true`, `jobset is suspended`,
	} {
		if !regexp.MustCompile(want).MatchString(description) {
			t.Errorf("%q is not in:\n%s", want, description)
		}
	}
	// The Job controller reports Jobs as suspended while their pods end, so the set can count as ready for a moment longer.
	k.eventually(func() string {
		row := strings.Fields(strings.SplitN(k.ok("get", "jobset", "train", "-o", "wide"), "\n", 3)[1])
		want := []string{"train", "0", "true", "Suspended", "0/1", "1/1", "SuspendedJobs"}
		return cmp.Diff(want, slices.Delete(row, 3, 4)) // without the age
	})
}
