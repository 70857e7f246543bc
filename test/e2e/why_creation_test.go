// Copyright The jobset-apiserver Authors.
// SPDX-License-Identifier: Apache-2.0

package e2e

import (
	"fmt"
	"strings"

	corev1 "k8s.io/api/core/v1"
	"k8s.io/utils/ptr"

	jobsetv1alpha2 "github.com/jobset-apiserver/jobset-apiserver/pkg/apis/jobset/v1alpha2"
	"github.com/jobset-apiserver/jobset-apiserver/pkg/kubectl/why"
)

// What the API of the main cluster refuses, and names that are taken.
var creationFaults = map[string]fault{
	"the Job template is refused by the API": {
		seed: makes(podSpecs(func(p *corev1.PodSpec) {
			p.Containers[0].VolumeMounts = []corev1.VolumeMount{{Name: "data", MountPath: "/data"}}
		})),
		want: why.JobTemplateRefused, words: []string{"spec.replicatedJobs[0].template.spec.template.spec.containers[0].volumeMounts[0].name", `Not found: "data"`},
	},
	"a quota refuses the Jobs": {
		seed: inTurn(withQuota("count/jobs.batch", "1"), makes()),
		want: why.JobRefusedByQuota, words: []string{"quota tight", "count/jobs.batch"},
	},
	"a webhook refuses the Jobs": {
		seed: inTurn(withWebhook("batch", "v1", "jobs", "ask the data team first"), makes()),
		want: why.JobRefusedByWebhook, words: []string{"webhook refuse.example.com", "ask the data team first"},
	},
	"a policy refuses the Jobs": {
		seed: inTurn(func(k *kubectl) {
			k.okIn(fmt.Sprintf(`apiVersion: admissionregistration.k8s.io/v1
kind: ValidatingAdmissionPolicy
metadata: {name: %[1]s}
spec:
  matchConstraints: {resourceRules: [{apiGroups: [batch], apiVersions: [v1], operations: [CREATE], resources: [jobs]}]}
  validations: [{expression: "false", message: "no jobs on fridays"}]
---
apiVersion: admissionregistration.k8s.io/v1
kind: ValidatingAdmissionPolicyBinding
metadata: {name: %[1]s}
spec:
  policyName: %[1]s
  validationActions: [Deny]
  matchResources: {namespaceSelector: {matchLabels: {kubernetes.io/metadata.name: %[1]s}}}
`, k.namespace), "create", "-f", "-")
			k.Cleanup(func() {
				k.run("", "delete", "validatingadmissionpolicy,validatingadmissionpolicybinding", k.namespace)
			})
			k.untilRefused("job", "no jobs on fridays")
		}, makes()),
		want: why.JobRefusedByPolicy, words: []string{"no jobs on fridays"},
	},
	"pod security refuses the pods": {
		seed: inTurn(func(k *kubectl) {
			k.ok("label", "namespace", k.namespace, "pod-security.kubernetes.io/enforce=restricted")
		}, makes()),
		want: why.PodsRefusedBySecurity, words: []string{"restricted:latest", "allowPrivilegeEscalation"},
	},
	"a quota refuses the pods": {
		seed: inTurn(withQuota("pods", "0"), makes()),
		want: why.PodsRefusedByQuota, words: []string{"quota tight", "pods"},
	},
	"a webhook refuses the pods": {
		seed: inTurn(withWebhook("", "v1", "pods", "no pods today"), makes()),
		want: why.PodsRefusedByWebhook, words: []string{"webhook refuse.example.com", "no pods today"},
	},
	"the service account of the pods is missing": {
		seed: makes(podSpecs(func(p *corev1.PodSpec) { p.ServiceAccountName = "trainer" })),
		want: why.PodCreationFailed, words: []string{`serviceaccount "trainer" not found`},
	},
	"somebody suspended a Job": {
		seed: inTurn(becomesReady(), func(k *kubectl) {
			k.ok("patch", "job", "train-workers-1", "--type=merge", "-p", `{"spec":{"suspend":true}}`)
		}),
		want: why.JobSuspendedByOther, words: []string{"train-workers-1"},
	},
	"the name of a Job is taken": {
		seed: inTurn(func(k *kubectl) { k.okIn(foreignJob, "create", "-f", "-") }, makes()),
		want: why.JobNameTaken, words: []string{"train-workers-1", "has no owner"},
	},
	"a Service of that name is foreign": {
		seed: inTurn(func(k *kubectl) { k.ok("create", "service", "clusterip", "train", "--tcp=80") }, becomesReady()),
		want: why.ServiceForeign, words: []string{"Service train", "selector", "not headless"},
	},
	"hostnames are disabled, but there is a coordinator": {
		seed: becomesReady(noHostnames, func(js *jobsetv1alpha2.JobSet) {
			js.Spec.Coordinator = &jobsetv1alpha2.Coordinator{ReplicatedJob: "workers"}
		}),
		want: why.CoordinatorWithoutHostname, words: []string{"enableDNSHostnames is false", "train-workers-0"},
	},
	"hostnames are disabled, but a container uses one": {
		seed: becomesReady(noHostnames, podSpecs(func(p *corev1.PodSpec) {
			p.Containers[0].Env = []corev1.EnvVar{{Name: "MASTER", Value: "train-workers-0-0.train"}}
		})),
		want: why.CoordinatorWithoutHostname, words: []string{"container main", "train-workers-0-0.train"},
	},
	"the Service is gone": {
		seed: inTurn(becomesReady(), func(k *kubectl) {
			// The controller makes a new one at its next look. What a user can meet is the time before.
			withWebhook("", "v1", "services", "no services")(k)
			k.ok("delete", "service", "train")
		}),
		want: why.ServiceMissing, words: []string{"Service train"},
	},
}

const foreignJob = `apiVersion: batch/v1
kind: Job
metadata: {name: train-workers-1}
spec:
  suspend: true
  template: {spec: {restartPolicy: Never, containers: [{name: main, image: "registry.example/other:v1"}]}}
`

func noHostnames(js *jobsetv1alpha2.JobSet) {
	js.Spec.Network = &jobsetv1alpha2.Network{EnableDNSHostnames: ptr.To(false)}
}

// withQuota limits one resource of the namespace.
func withQuota(name, hard string) func(*kubectl) {
	return func(k *kubectl) {
		k.Helper()
		k.ok("create", "quota", "tight", "--hard="+name+"="+hard)
		k.wait("--for=jsonpath={.status.hard}", "quota/tight")
	}
}

// withWebhook has a webhook refuse to create a resource in the namespace.
func withWebhook(group, version, resource, message string) func(*kubectl) {
	return func(k *kubectl) {
		k.Helper()
		url, ca := serveWebhook(k.T, message)
		k.okIn(fmt.Sprintf(`apiVersion: admissionregistration.k8s.io/v1
kind: ValidatingWebhookConfiguration
metadata: {name: %[1]s}
webhooks:
- name: refuse.example.com
  admissionReviewVersions: [v1]
  sideEffects: None
  clientConfig: {url: %[2]q, caBundle: %[3]s}
  namespaceSelector: {matchLabels: {kubernetes.io/metadata.name: %[1]s}}
  rules: [{apiGroups: [%[4]q], apiVersions: [%[5]q], operations: [CREATE], resources: [%[6]q]}]
`, k.namespace, url, ca, group, version, resource), "create", "-f", "-")
		k.Cleanup(func() { k.run("", "delete", "validatingwebhookconfiguration", k.namespace) })
		k.untilRefused(strings.TrimSuffix(resource, "s"), message)
	}
}

// untilRefused waits until what was set up refuses an object of the kind.
func (k *kubectl) untilRefused(kind, message string) {
	k.Helper()
	args := map[string][]string{
		"job":     {"create", "job", "probe", "--image=registry.example/probe:v1"},
		"pod":     {"run", "probe", "--image=registry.example/probe:v1"},
		"service": {"create", "service", "clusterip", "probe", "--tcp=80"},
	}[kind]
	k.eventually(func() string {
		r := k.run("", append(args, "--dry-run=server")...)
		if !strings.Contains(r.stderr, message) {
			return "not refused: " + r.stdout + r.stderr
		}
		return ""
	})
}
