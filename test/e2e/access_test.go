// Copyright The jobset-apiserver Authors.
// SPDX-License-Identifier: Apache-2.0

package e2e

import (
	"encoding/json"
	"fmt"
	"os"
	"strings"
	"testing"

	"github.com/jobset-apiserver/jobset-apiserver/test/framework/tier"
)

// account makes a service account with one of the cluster's roles in the namespace (none with "") and returns kubectl
// that carries nothing but its token.
func (k *kubectl) account(name, clusterRole string) *kubectl {
	k.Helper()
	k.ok("create", "serviceaccount", name)
	if clusterRole != "" {
		k.ok("create", "rolebinding", name, "--clusterrole="+clusterRole, "--serviceaccount="+k.namespace+":"+name)
	}
	return k.as(strings.TrimSpace(k.ok("create", "token", name)))
}

func TestRolesDecideWhatUsersMayDo(t *testing.T) {
	tier.Safety(t)
	t.Parallel()
	k := newKubectl(t)
	k.okIn(manifest("train", runOn, "suspend: true"), "create", "-f", "-")
	other := manifest("other", runOn, "suspend: true")

	viewer := k.account("viewer", "view")
	viewer.eventually(func() string { // the authorizer learns of new bindings by watching
		if r := viewer.run("", "get", "jobset", "train"); r.code != 0 {
			return r.stderr
		}
		return ""
	})
	viewer.refused(other, []string{"create", "--validate=false", "-f", "-"}, "Forbidden", "cannot create resource")
	viewer.refused("", []string{"delete", "jobset", "train"}, "Forbidden", "cannot delete resource")
	viewer.refused("", []string{"patch", "jobset", "train", "--subresource=status", "--type=merge", "-p", `{"status":{"restarts":1}}`}, "Forbidden")

	editor := k.account("editor", "edit")
	editor.eventually(func() string {
		if r := editor.run(other, "apply", "-f", "-"); r.code != 0 {
			return r.stderr
		}
		return ""
	})
	editor.ok("patch", "jobset", "other", "--type=merge", "-p", `{"metadata":{"labels":{"a":"b"}}}`)
	editor.ok("delete", "jobset", "other", "--wait=false")
	if r := editor.run("", "get", "jobsets", "--all-namespaces"); r.code == 0 {
		t.Error("a role in one namespace opens all of them")
	}

	nobody := k.account("nobody", "")
	nobody.refused("", []string{"get", "jobsets"}, "Forbidden", "cannot list resource", k.namespace)

	// Impersonation goes through kube-apiserver and the request headers of the front proxy.
	k.refused("", []string{"get", "jobsets", "--as=somebody"}, "Forbidden", `User "somebody"`)
	k.ok("create", "rolebinding", "somebody", "--clusterrole=view", "--user=somebody")
	k.eventually(func() string {
		if r := k.run("", "get", "jobsets", "--as=somebody"); r.code != 0 {
			return r.stderr
		}
		return ""
	})
	k.refused("", []string{"get", "jobsets", "--as=system:anonymous", "--as-group=system:unauthenticated"}, "Forbidden")
}

func TestObjectCountQuota(t *testing.T) {
	tier.OnRequest(t, "waits for quota, webhooks or the audit log")
	t.Parallel()
	k := newKubectl(t)
	// The quota controller of the cluster looks for new kinds every 30 seconds, and counts a kind it has just found in
	// new quotas at once but in older ones only minutes later.
	k.eventually(func() string {
		k.ok("delete", "quota", "sets", "--ignore-not-found")
		k.ok("create", "quota", "sets", "--hard=count/jobsets.jobset.x-k8s.io=2")
		if r := k.run("", "wait", "--for=jsonpath={.status.used}", "quota/sets", "--timeout=3s"); r.code != 0 {
			return "the quota controller does not count JobSets: " + r.stderr
		}
		return ""
	})
	k.eventually(func() string { // the server learns of the status by watching
		if r := k.run(manifest("one", runOn, "suspend: true"), "create", "-f", "-"); r.code != 0 {
			return r.stderr
		}
		return ""
	})
	k.okIn(manifest("two", runOn, "suspend: true"), "create", "-f", "-")
	// The quota controller counts again whenever it finds new kinds, and may write a number from before the last creation.
	k.eventually(func() string {
		r := k.run(manifest("three", runOn, "suspend: true"), "create", "-f", "-")
		if r.code == 0 {
			k.ok("delete", "jobset", "three")
			return "the third set was created"
		}
		for _, word := range []string{"exceeded quota: sets", "used: count/jobsets.jobset.x-k8s.io=2", "limited: count/jobsets.jobset.x-k8s.io=2"} {
			if !strings.Contains(r.stderr, word) {
				return fmt.Sprintf("the refusal does not contain %q: %s", word, r.stderr)
			}
		}
		return ""
	})
	k.ok("delete", "jobset", "one")
	k.eventually(func() string { // the quota controller lowers the usage
		if r := k.run(manifest("three", runOn, "suspend: true"), "create", "-f", "-"); r.code != 0 {
			return r.stderr
		}
		return ""
	})
}

func TestValidatingAdmissionPolicyRefuses(t *testing.T) {
	t.Parallel()
	k := newKubectl(t)
	policy := "no-ttl-" + k.namespace
	k.okIn(fmt.Sprintf(`apiVersion: admissionregistration.k8s.io/v1
kind: ValidatingAdmissionPolicy
metadata: {name: %[1]s}
spec:
  failurePolicy: Fail
  matchConstraints:
    resourceRules:
    - {apiGroups: [jobset.x-k8s.io], apiVersions: [v1alpha2], operations: [CREATE, UPDATE], resources: [jobsets]}
  validations:
  - expression: "has(object.spec.ttlSecondsAfterFinished)"
    message: every set must say when it may go
---
apiVersion: admissionregistration.k8s.io/v1
kind: ValidatingAdmissionPolicyBinding
metadata: {name: %[1]s}
spec:
  policyName: %[1]s
  validationActions: [Deny]
  matchResources:
    namespaceSelector: {matchLabels: {kubernetes.io/metadata.name: %[2]s}}
`, policy, k.namespace), "create", "-f", "-")
	t.Cleanup(func() {
		k.run("", "delete", "validatingadmissionpolicybinding,validatingadmissionpolicy", policy)
	})
	k.eventually(func() string {
		r := k.run(manifest("train", runOn, "suspend: true"), "create", "--dry-run=server", "-f", "-")
		if r.code == 0 {
			return "the policy is not in force yet"
		}
		if !strings.Contains(r.stderr, "every set must say when it may go") {
			return "unexpected refusal: " + r.stderr
		}
		return ""
	})
	k.okIn(manifest("train", runOn, "suspend: true", "ttlSecondsAfterFinished: 9"), "create", "-f", "-")
}

func TestMutatingAdmissionPolicyChanges(t *testing.T) {
	tier.OnRequest(t, "waits for quota, webhooks or the audit log")
	t.Parallel()
	k := newKubectl(t)
	if r := k.run("", "get", "mutatingadmissionpolicies.v1.admissionregistration.k8s.io"); r.code != 0 {
		t.Fatalf("the control plane must serve MutatingAdmissionPolicy v1: %s", r.stderr)
	}
	policy := "queue-" + k.namespace
	k.okIn(fmt.Sprintf(`apiVersion: admissionregistration.k8s.io/v1
kind: MutatingAdmissionPolicy
metadata: {name: %[1]s}
spec:
  failurePolicy: Fail
  reinvocationPolicy: Never
  matchConstraints:
    resourceRules:
    - {apiGroups: [jobset.x-k8s.io], apiVersions: [v1alpha2], operations: [CREATE], resources: [jobsets]}
  mutations:
  - patchType: ApplyConfiguration
    applyConfiguration:
      expression: 'Object{metadata: Object.metadata{labels: {"queue": "default"}}}'
---
apiVersion: admissionregistration.k8s.io/v1
kind: MutatingAdmissionPolicyBinding
metadata: {name: %[1]s}
spec:
  policyName: %[1]s
  matchResources:
    namespaceSelector: {matchLabels: {kubernetes.io/metadata.name: %[2]s}}
`, policy, k.namespace), "create", "-f", "-")
	t.Cleanup(func() {
		k.run("", "delete", "mutatingadmissionpolicybinding,mutatingadmissionpolicy", policy)
	})
	k.eventually(func() string {
		got := k.okIn(manifest("train", runOn, "suspend: true"), "create", "--dry-run=server", "-f", "-", "-o", "jsonpath={.metadata.labels.queue}")
		if got != "default" {
			return fmt.Sprintf("label queue: %q", got)
		}
		return ""
	})
}

func TestValidatingWebhookRefuses(t *testing.T) {
	tier.OnRequest(t, "waits for quota, webhooks or the audit log")
	t.Parallel()
	k := newKubectl(t)
	url, ca := serveWebhook(t, "not on a Friday")
	k.okIn(fmt.Sprintf(`apiVersion: admissionregistration.k8s.io/v1
kind: ValidatingWebhookConfiguration
metadata: {name: %[1]s}
webhooks:
- name: friday.example.com
  admissionReviewVersions: [v1]
  sideEffects: None
  failurePolicy: Fail
  clientConfig: {url: %[2]q, caBundle: %[3]q}
  namespaceSelector: {matchLabels: {kubernetes.io/metadata.name: %[1]s}}
  rules:
  - {apiGroups: [jobset.x-k8s.io], apiVersions: [v1alpha2], operations: [CREATE], resources: [jobsets]}
`, k.namespace, url, ca), "create", "-f", "-")
	t.Cleanup(func() { k.run("", "delete", "validatingwebhookconfiguration", k.namespace) })
	k.eventually(func() string {
		r := k.run(manifest("train", runOn, "suspend: true"), "create", "--dry-run=server", "-f", "-")
		if r.code == 0 {
			return "the webhook is not in force yet"
		}
		if !strings.Contains(r.stderr, `admission webhook "friday.example.com" denied the request: not on a Friday`) {
			return "unexpected refusal: " + r.stderr
		}
		return ""
	})
}

func TestWritesAreAudited(t *testing.T) {
	tier.OnRequest(t, "waits for quota, webhooks or the audit log")
	t.Parallel()
	k := newKubectl(t)
	k.okIn(manifest("train", runOn, "suspend: true"), "create", "-f", "-")
	type line struct {
		Verb, Stage    string
		User           struct{ Username string }
		ObjectRef      struct{ Resource, Namespace, Name, APIGroup string }
		ResponseStatus struct{ Code int }
		RequestObject  struct{ Kind string }
	}
	k.eventually(func() string {
		content, err := os.ReadFile(auditLog(shared))
		if err != nil {
			return err.Error()
		}
		for _, text := range strings.Split(string(content), "\n") {
			var l line
			if json.Unmarshal([]byte(text), &l) != nil || l.ObjectRef.Namespace != k.namespace || l.Verb != "create" {
				continue
			}
			if l.ObjectRef.Resource != "jobsets" || l.ResponseStatus.Code != 201 || l.RequestObject.Kind != "JobSet" || l.User.Username == "" {
				return "audit line is incomplete: " + text
			}
			return ""
		}
		return "no audit line for the creation"
	})
}
