// Copyright The jobset-apiserver Authors.
// SPDX-License-Identifier: Apache-2.0

package e2e

import (
	"fmt"
	"strings"
	"testing"
	"time"

	"k8s.io/apimachinery/pkg/api/meta"

	"github.com/jobset-apiserver/jobset-apiserver/test/framework/tier"
)

func TestSequenceWithoutQuota(t *testing.T) {
	tier.OnRequest(t, "waits for quota, nodes and webhooks in real time")
	t.Parallel()
	k := newKubectl(t)
	k.ok("create", "quota", "tight", "--hard=count/jobs.batch=0")
	k.eventually(func() string {
		if got := k.field("quota/tight", "{.status.hard}"); got == "" {
			return "the quota is not in force yet"
		}
		return ""
	})
	k.sequence("etl", atOnce)
	k.untilCondition("etl", "ResourcesUnavailable", "True/QuotaExceeded")
	k.ok("delete", "quota", "tight")
	k.wait("--for=condition=Complete", "sqj/etl")
	if got := condition(k.sequenceNamed("etl"), "ResourcesUnavailable"); got != "False/ResourcesAvailable" {
		t.Errorf("condition ResourcesUnavailable after the end: %q", got)
	}
}

func TestSequenceWaitsForANode(t *testing.T) {
	tier.OnRequest(t, "waits for quota, nodes and webhooks in real time")
	t.Parallel()
	k := newKubectl(t)
	k.okIn(`apiVersion: batch.jobset-apiserver.io/v1alpha1
kind: SequentialJob
metadata: {name: etl}
spec:
  template: {spec: {nodeSelector: {kubernetes.io/hostname: nowhere}}}
  containers: [{image: busybox}]
`, "create", "-f", "-")
	sj := k.untilCondition("etl", "ResourcesUnavailable", "True/Unschedulable")
	c := meta.FindStatusCondition(sj.Status.Conditions, "ResourcesUnavailable")
	if waited := c.LastTransitionTime.Sub(sj.Status.StartTime.Time); waited < 25*time.Second {
		t.Errorf("the condition came after %v, must come after 30 s", waited)
	}
}

// A webhook that does not answer holds a step up until it is gone, and does not make the sequence fail.
func TestSequenceWhoseWebhookIsAway(t *testing.T) {
	tier.OnRequest(t, "waits for quota, nodes and webhooks in real time")
	t.Parallel()
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
	sj := k.untilCondition("etl", "ResourcesUnavailable", "True/ClusterOverloaded")
	c := meta.FindStatusCondition(sj.Status.Conditions, "ResourcesUnavailable")
	if !strings.Contains(c.Message, "silent.example.com") {
		t.Errorf("message of ResourcesUnavailable: %q", c.Message)
	}
	if got := condition(sj, "Failed"); strings.HasPrefix(got, "True/") {
		t.Errorf("condition Failed while a webhook is away: %q", got)
	}
	k.hasEvent("etl", "Warning ClusterOverloaded ")
	k.ok("delete", "validatingwebhookconfiguration", k.namespace)
	k.wait("--for=condition=Complete", "sqj/etl")
	if got := condition(k.sequenceNamed("etl"), "ResourcesUnavailable"); !strings.HasPrefix(got, "False/") {
		t.Errorf("condition ResourcesUnavailable after the webhook was gone: %q", got)
	}
}
