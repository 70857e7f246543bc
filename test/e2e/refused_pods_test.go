// Copyright The jobset-apiserver Authors.
// SPDX-License-Identifier: Apache-2.0

package e2e

import (
	"fmt"
	"slices"
	"strings"
	"testing"
	"time"

	"github.com/jobset-apiserver/jobset-apiserver/test/framework/tier"
)

// refusedPodsWithin is three times as long as it takes at most until a refusal of pods shows, which tests with a clock of their own measure:
// here, controllers and kubectl wait for the machine.
const refusedPodsWithin = 3 * 15 * time.Second

// refusedKind is a kind whose pods are refused. The manifest takes the fields of the pods.
type refusedKind struct {
	object, manifest string
	condition        string
	// message is how that of the condition begins.
	message string
}

// oneJob is the spec of a JobSet with one Job.
const oneJob = "{replicatedJobs: [{name: w, template: {spec: {template: {spec: {restartPolicy: Never, %s}}}}}]}"

var refusedKinds = map[string]refusedKind{
	"JobSet": {
		object: "jobset/train", condition: "PodCreationFailure", message: "pods of 1 of 1 Jobs cannot be created: ",
		manifest: "apiVersion: jobset.x-k8s.io/v1alpha2\nkind: JobSet\nmetadata: {name: train}\nspec: " + oneJob,
	},
	"SequentialJob": {
		object: "sequentialjob/train", condition: "ResourcesUnavailable", message: "pods of job 0 cannot be created: ",
		manifest: "apiVersion: batch.jobset-apiserver.io/v1alpha1\nkind: SequentialJob\nmetadata: {name: train}\n" +
			"spec: {steps: [{name: one, job: {spec: {template: {spec: {restartPolicy: Never, %s}}}}}]}\n",
	},
	"SequentialJob of a JobSet": {
		object: "sequentialjob/train", condition: "ResourcesUnavailable", message: "job 0: pods of 1 of 1 Jobs cannot be created: ",
		manifest: "apiVersion: batch.jobset-apiserver.io/v1alpha1\nkind: SequentialJob\nmetadata: {name: train}\n" +
			"spec: {steps: [{name: one, jobSet: {spec: " + oneJob + "}}]}\n",
	},
	"LeaderWorkerSet": {
		object: "leaderworkerset/train", condition: "PodCreationFailure", message: "pods of 1 StatefulSet cannot be created: ",
		manifest: "apiVersion: leaderworkerset.x-k8s.io/v1\nkind: LeaderWorkerSet\nmetadata: {name: train}\n" +
			"spec: {replicas: 1, leaderWorkerTemplate: {size: 2, workerTemplate: {spec: {%s}}}}\n",
	},
}

// podRefusal is why pods are refused, until it ends. NAMESPACE stands for the name of the namespace.
type podRefusal struct {
	begin, end func(*kubectl)
	// pods is a field of the pods.
	pods string
	// reason is in one word what the message says.
	reason, says string
}

var podRefusals = map[string]podRefusal{
	"quota": {
		begin: withQuota("pods", "0"), reason: "QuotaExceeded", says: "exceeded quota: tight",
		end: func(k *kubectl) {
			k.ok("patch", "quota", "tight", "--type=merge", "-p", `{"spec":{"hard":{"pods":"9"}}}`)
		},
	},
	"class": {
		pods: ", priorityClassName: NAMESPACE", reason: "AdmissionDenied", says: "no PriorityClass with name NAMESPACE was found",
		end: func(k *kubectl) {
			k.ok("create", "priorityclass", k.namespace, "--value=1")
			k.Cleanup(func() { k.run("", "delete", "priorityclass", k.namespace) })
		},
	},
	"account": {
		pods: ", serviceAccountName: trainer", reason: "AdmissionDenied", says: `serviceaccount "trainer" not found`,
		end: func(k *kubectl) { k.ok("create", "serviceaccount", "trainer") },
	},
}

// TestPodsThatAreRefused has the pods of each kind refused: the condition and the column of kubectl get -o wide say so
// at once, and no longer when pods are admitted.
func TestPodsThatAreRefused(t *testing.T) {
	tier.OnRequest(t, "a dozen controllers of jobs and pods in real time")
	t.Parallel()
	for kindName, kind := range refusedKinds {
		for refusalName, refusal := range podRefusals {
			t.Run(kindName+"/"+refusalName, func(t *testing.T) {
				t.Parallel()
				k := newKubectl(t)
				k.admitsPods()
				if refusal.begin != nil {
					refusal.begin(k)
				}
				k.arePodsRefused(kind, refusal)
			})
		}
	}
}

// arePodsRefused creates a set whose pods are refused, and ends the refusal once it shows.
func (k *kubectl) arePodsRefused(kind refusedKind, refusal podRefusal) {
	k.Helper()
	named := func(text string) string { return strings.ReplaceAll(text, "NAMESPACE", k.namespace) }
	reason, says := refusal.reason, named(refusal.says)
	pods := "terminationGracePeriodSeconds: 0, containers: [{name: c, image: busybox}]" + named(refusal.pods)
	k.okIn(fmt.Sprintf(kind.manifest, pods), "create", "-f", "-")
	created := time.Now()
	show := func() (condition, wide string) {
		return k.field(kind.object, `{range .status.conditions[?(@.type=="`+kind.condition+`")]}{.status} {.reason}: {.message}{end}`),
			k.ok("get", kind.object, "-o", "wide", "--no-headers")
	}
	k.eventually(func() string {
		condition, wide := show()
		if !strings.HasPrefix(condition, "True "+reason+": "+kind.message) || !strings.Contains(condition, says) {
			return fmt.Sprintf("condition %s is %q, must be True with the reason %s and say %q", kind.condition, condition, reason, says)
		}
		if !slices.Contains(strings.Fields(wide), reason) {
			return fmt.Sprintf("get -o wide prints %q, must have %s", wide, reason)
		}
		return ""
	})
	took := time.Since(created)
	kindOf, name, _ := strings.Cut(kind.object, "/")
	k.eventually(func() string {
		messages := k.ok("get", "events", "--field-selector=type=Warning,involvedObject.name="+name, "-o", "jsonpath={range .items[*]}{.involvedObject.kind} {.message}{\"\\n\"}{end}")
		for line := range strings.Lines(messages) {
			if strings.HasPrefix(strings.ToLower(line), kindOf+" "+strings.ToLower(kind.message)) && strings.Contains(line, says) {
				return ""
			}
		}
		return fmt.Sprintf("no event says %q: %s", says, messages)
	})
	if took > refusedPodsWithin {
		k.Errorf("the refusal showed after %v, must within %v", took, refusedPodsWithin)
	} else {
		k.Logf("the refusal showed after %v", took)
	}
	refusal.end(k)
	ended := time.Now()
	k.eventually(func() string {
		condition, wide := show()
		if !strings.HasPrefix(condition, "False ") {
			return fmt.Sprintf("condition %s is %q though the refusal has ended", kind.condition, condition)
		}
		if strings.Contains(wide, reason) {
			return fmt.Sprintf("get -o wide still prints %q", wide)
		}
		return ""
	})
	k.Logf("it was gone %v after its end", time.Since(ended))
}
