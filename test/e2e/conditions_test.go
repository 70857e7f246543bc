// Copyright The jobset-apiserver Authors.
// SPDX-License-Identifier: Apache-2.0

package e2e

import (
	"regexp"
	"strings"
	"testing"

	"github.com/jobset-apiserver/jobset-apiserver/test/framework/tier"
)

// TestConditionsOfWhatPreventsASetFromRunning waits for conditions as users do, and lets the set run then.
func TestConditionsOfWhatPreventsASetFromRunning(t *testing.T) {
	tier.OnRequest(t, "waits for controllers in real time")
	t.Parallel()
	tests := map[string]struct {
		prepare         func(k *kubectl)
		manifest        string
		condition       string
		reason, message string
		lift            func(k *kubectl)
		after           string
	}{
		"a quota": {
			prepare: func(k *kubectl) {
				k.ok("create", "quota", "jobs", "--hard=count/jobs.batch=1")
				k.wait("quota/jobs", "--for=jsonpath={.status.hard}")
			},
			manifest: manifest("train", runOn), condition: "JobCreationFailure",
			reason: "QuotaExceeded", message: `1 of 2 Jobs could not be created: jobs\.batch "train-workers-\d" is forbidden: exceeded quota: jobs, .*`,
			lift: func(k *kubectl) { k.ok("delete", "quota", "jobs") }, after: "JobsCreated",
		},
		"a template that the Job API rejects": {
			manifest:  strings.Replace(manifest("train", runOn), "          spec:\n            containers:", "          spec:\n            dnsPolicy: Wrong\n            containers:", 1),
			condition: "JobCreationFailure", reason: "Invalid", message: `2 of 2 Jobs could not be created: Job\.batch "train-workers-\d" is invalid: .*`,
			lift: actOnTrain("cancel"), after: "JobSetFailed",
		},
		"nodes that are missing": {
			manifest:  strings.Replace(manifest("train", runOn), "          spec:\n            containers:", "          spec:\n            nodeSelector: {no: such-node}\n            containers:", 1),
			condition: "PodsUnschedulable", reason: "Unschedulable", message: `2 pods cannot be scheduled: 0/\d+ nodes are available: .*`,
			lift: actOnTrain("suspend"), after: "PodsScheduled",
		},
	}
	for name, tc := range tests {
		t.Run(name, func(t *testing.T) {
			k := newKubectl(t)
			if tc.prepare != nil {
				tc.prepare(k)
			}
			k.okIn(tc.manifest, "create", "-f", "-")
			k.wait("jobset/train", "--for=condition="+tc.condition)
			get := func(field string) string {
				return k.ok("get", "jobset", "train", "-o", `jsonpath={.status.conditions[?(@.type=="`+tc.condition+`")].`+field+`}`)
			}
			if got := get("reason"); got != tc.reason {
				t.Errorf("reason %q, want %q", got, tc.reason)
			}
			if got := get("message"); !regexp.MustCompile(`^` + tc.message + `$`).MatchString(got) {
				t.Errorf("message %q, want %q", got, tc.message)
			}
			tc.lift(k)
			k.wait("jobset/train", "--for=condition="+tc.condition+"=False")
			if got := get("reason"); got != tc.after {
				t.Errorf("reason %q when it is over, want %q", got, tc.after)
			}
		})
	}
}

func actOnTrain(action string) func(*kubectl) {
	return func(k *kubectl) { actOn(action)(k, "train") }
}
