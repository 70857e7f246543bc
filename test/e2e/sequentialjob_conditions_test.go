// Copyright The jobset-apiserver Authors.
// SPDX-License-Identifier: Apache-2.0

package e2e

import (
	"fmt"
	"strings"
	"testing"
	"time"

	"k8s.io/apimachinery/pkg/api/meta"
)

func TestSequenceWithoutQuota(t *testing.T) {
	k := newKubectl(t)
	k.ok("create", "quota", "tight", "--hard=count/jobs.batch=0")
	k.eventually(30*time.Second, func() string {
		if got := k.field("quota/tight", "{.status.hard}"); got == "" {
			return "the quota is not in force yet"
		}
		return ""
	})
	k.sequence("etl", atOnce)
	k.untilCondition("etl", "ResourcesUnavailable", "True/QuotaExceeded")
	k.ok("delete", "quota", "tight")
	k.ok("wait", "--for=condition=Complete", "sj/etl", "--timeout=180s")
	if got := condition(k.sequenceNamed("etl"), "ResourcesUnavailable"); got != "False/ResourcesAvailable" {
		t.Errorf("condition ResourcesUnavailable after the end: %q", got)
	}
}

func TestSequenceWaitsForANode(t *testing.T) {
	k := newKubectl(t)
	k.okIn(`apiVersion: batch.jobset-apiserver.io/v1alpha1
kind: SequentialJob
metadata: {name: etl}
spec:
  template: {spec: {nodeSelector: {kubernetes.io/hostname: nowhere}}}
  containers: [{image: busybox}]
`, "create", "-f", "-")
	sj := k.untilConditionWithin(90*time.Second, "etl", "ResourcesUnavailable", "True/Unschedulable")
	c := meta.FindStatusCondition(sj.Status.Conditions, "ResourcesUnavailable")
	if waited := c.LastTransitionTime.Sub(sj.Status.StartTime.Time); waited < 25*time.Second {
		t.Errorf("the condition came after %v, must come after 30 s", waited)
	}
}

// A webhook that does not answer fails each pass of the controller, until it is gone.
func TestSequenceThatCannotBeReconciled(t *testing.T) {
	k := newKubectl(t)
	k.okIn(fmt.Sprintf(`apiVersion: admissionregistration.k8s.io/v1
kind: ValidatingWebhookConfiguration
metadata: {name: %[1]s}
webhooks:
- name: silent.example.com
  clientConfig: {url: "https://127.0.0.1:1/"}
  rules: [{apiGroups: [batch], apiVersions: [v1], operations: [CREATE], resources: [jobs]}]
  namespaceSelector: {matchLabels: {kubernetes.io/metadata.name: %[1]s}}
  admissionReviewVersions: [v1]
  sideEffects: None
  failurePolicy: Fail
`, k.namespace), "create", "-f", "-")
	k.Cleanup(func() { k.run("", "delete", "validatingwebhookconfiguration", k.namespace) })
	k.untilRefused("job", "failed calling webhook")
	k.sequence("etl", atOnce)
	sj := k.untilCondition("etl", "Failed", "True/ReconciliationError")
	c := meta.FindStatusCondition(sj.Status.Conditions, "Failed")
	if !strings.HasPrefix(c.Message, "Failed to reconcile: ") || !strings.Contains(c.Message, "silent.example.com") {
		t.Errorf("message of Failed: %q", c.Message)
	}
	k.hasEvent("etl", "Warning ReconciliationFailed Failed to reconcile: ")
	k.ok("delete", "validatingwebhookconfiguration", k.namespace)
	k.ok("wait", "--for=condition=Complete", "sj/etl", "--timeout=180s")
	if got := condition(k.sequenceNamed("etl"), "Failed"); !strings.HasPrefix(got, "False/") {
		t.Errorf("condition Failed after passes succeeded: %q", got)
	}
}
