// Copyright The jobset-apiserver Authors.
// SPDX-License-Identifier: Apache-2.0

package e2e

import (
	"fmt"
	"strings"
	"testing"

	"github.com/jobset-apiserver/jobset-apiserver/test/framework/tier"
)

// openDefinition serves JobSets as custom resources, as upstream does, with a schema that lets everything through.
const openDefinition = `apiVersion: apiextensions.k8s.io/v1
kind: CustomResourceDefinition
metadata: {name: jobsets.jobset.x-k8s.io}
spec:
  group: jobset.x-k8s.io
  scope: Namespaced
  names: {kind: JobSet, listKind: JobSetList, plural: jobsets, singular: jobset}
  versions:
  - name: v1alpha2
    served: true
    storage: true
    subresources: {status: {}}
    schema: {openAPIV3Schema: {type: object, x-kubernetes-preserve-unknown-fields: true}}
`

// Where JobSets are custom resources the plugin shows what is there, and says what that server does not have.
func TestPluginWorksWithCustomResources(t *testing.T) {
	tier.OnRequest(t, "needs a cluster in which upstream's definitions are installed")
	t.Parallel() // its cluster is its own
	c := startCluster(t, "custom", "CLUSTER_COMPONENTS=none", "CLUSTER_NODES=2")
	k := newKubectlFor(t, c)
	k.okIn(openDefinition, "apply", "-f", "-")
	k.wait("--for=condition=Established", "crd/jobsets.jobset.x-k8s.io")
	k.eventually(func() string {
		if r := k.run(manifest("train", runOn), "apply", "-f", "-"); r.code != 0 {
			return r.stderr
		}
		return ""
	})
	k.okIn(childJob(k.field("jobset/train", "{.metadata.uid}")), "create", "-f", "-")
	k.ok("patch", "jobset", "train", "--subresource=status", "--type=merge",
		"-p", `{"status":{"restarts":0,"replicatedJobsStatus":[{"name":"workers","ready":1,"succeeded":0,"failed":0,"active":1,"suspended":0}]}}`)
	k.wait("--for=jsonpath={.status.ready}=1", "job/train-workers-0")

	for name, tc := range map[string]struct {
		args []string
		code int
		want []string
	}{
		"tree":     {[]string{"tree", "train"}, 0, []string{"jobset/train", "job/train-workers-0", "pod/train-workers-0-0-"}},
		"top":      {[]string{"top", "train"}, 0, []string{"jobset/train", "workers"}},
		"why":      {[]string{"why", "train"}, 0, []string{"jobset " + k.namespace + "/train"}},
		"timeline": {[]string{"timeline", "train"}, 0, []string{"status.attempts", "jobset-apiserver"}},
		"restart":  {[]string{"restart", "train"}, 1, []string{"jobset-apiserver"}},
		"retry":    {[]string{"retry", "train"}, 1, []string{"jobset-apiserver"}},
		"cancel":   {[]string{"cancel", "train", "--yes"}, 1, []string{"jobset-apiserver"}},
		"suspend":  {[]string{"suspend", "train"}, 1, []string{"kubectl patch jobset train", `{"spec":{"suspend":true}}`}},
		"resume":   {[]string{"resume", "train"}, 1, []string{"kubectl patch jobset train", `{"spec":{"suspend":false}}`}},
	} {
		t.Run(name, func(t *testing.T) {
			r := k.plugin(tc.args...)
			if r.code != tc.code {
				t.Errorf("exit code %d, want %d", r.code, tc.code)
			}
			for _, text := range tc.want {
				if !strings.Contains(r.stdout+r.stderr, text) {
					t.Errorf("%q is missing", text)
				}
			}
			if t.Failed() {
				t.Logf("kubectl jobset %s\n%s%s", strings.Join(tc.args, " "), r.stdout, r.stderr)
			}
		})
	}
}

// childJob is what a controller of JobSets would create for the set of the UID.
func childJob(uid string) string {
	labels := "{jobset.sigs.k8s.io/jobset-name: train, jobset.sigs.k8s.io/replicatedjob-name: workers, jobset.sigs.k8s.io/job-index: '0', jobset.sigs.k8s.io/restart-attempt: '0'}"
	return fmt.Sprintf(`apiVersion: batch/v1
kind: Job
metadata:
  name: train-workers-0
  labels: %[2]s
  ownerReferences: [{apiVersion: jobset.x-k8s.io/v1alpha2, kind: JobSet, name: train, uid: %[1]s, controller: true}]
spec:
  completionMode: Indexed
  completions: 1
  parallelism: 1
  template:
    metadata: {labels: %[2]s, annotations: {jobset-apiserver.io/kwok-outcome: running}}
    spec:
      restartPolicy: Never
      containers: [{name: main, image: busybox}]
`, uid, labels)
}
