// Copyright The jobset-apiserver Authors.
// SPDX-License-Identifier: Apache-2.0

package multikueue

import (
	"encoding/base64"
	"fmt"
	"strings"
	"testing"

	"github.com/jobset-apiserver/jobset-apiserver/test/framework/kubectl"
)

// sites holds one kubectl for each cluster. The test has a namespace of the same name in both.
type sites struct{ manager, worker *kubectl.Kubectl }

// queue creates a LocalQueue named team and its ClusterQueue, which has that many CPUs and the further lines of the spec.
func queue(k *kubectl.Kubectl, cpus int, spec string) {
	k.Helper()
	k.OKIn(fmt.Sprintf(`apiVersion: kueue.x-k8s.io/v1beta2
kind: ResourceFlavor
metadata: {name: %[1]s}
---
apiVersion: kueue.x-k8s.io/v1beta2
kind: ClusterQueue
metadata: {name: %[1]s}
spec:
  namespaceSelector: {matchLabels: {kubernetes.io/metadata.name: %[1]s}}
  resourceGroups:
  - coveredResources: [cpu]
    flavors:
    - name: %[1]s
      resources: [{name: cpu, nominalQuota: %[2]d}]
  %[3]s
---
apiVersion: kueue.x-k8s.io/v1beta2
kind: LocalQueue
metadata: {name: team}
spec: {clusterQueue: %[1]s}
`, k.Namespace, cpus, spec), "apply", "-f", "-")
	k.Cleanup(func() { k.Run("", "delete", "clusterqueue,resourceflavor", k.Namespace, "--wait=false") })
}

// begin makes the namespace and the queue of a test in both clusters, with so many CPUs at the worker, which the manager knows as east.
func begin(t *testing.T, cpus int) sites {
	t.Helper()
	s := sites{kubectl.New(t, manager.Cluster), nil}
	s.worker = kubectl.In(s.manager, worker.Cluster)
	s.manager.OKIn(fmt.Sprintf(`apiVersion: v1
kind: Secret
metadata: {name: worker, namespace: kueue-system}
data: {kubeconfig: %s}
`, base64.StdEncoding.EncodeToString(link.Kubeconfig)), "apply", "--namespace=kueue-system", "-f", "-")
	s.manager.OKIn(`apiVersion: kueue.x-k8s.io/v1beta2
kind: MultiKueueCluster
metadata: {name: east}
spec: {clusterSource: {kubeConfig: {locationType: Secret, location: worker}}}
---
apiVersion: kueue.x-k8s.io/v1beta2
kind: MultiKueueConfig
metadata: {name: multikueue}
spec: {clusters: [east]}
---
apiVersion: kueue.x-k8s.io/v1beta2
kind: AdmissionCheck
metadata: {name: multikueue}
spec:
  controllerName: kueue.x-k8s.io/multikueue
  parameters: {apiGroup: kueue.x-k8s.io, kind: MultiKueueConfig, name: multikueue}
`, "apply", "-f", "-")
	queue(s.manager, 4, "admissionChecksStrategy: {admissionChecks: [{name: multikueue}]}")
	queue(s.worker, cpus, "")
	s.manager.Awaits("clusterqueue/"+s.manager.Namespace, `{.status.conditions[?(@.type=="Active")].status}`, "True")
	return s
}

// jobSet creates a JobSet in the manager cluster. It has two Jobs with one pod each; a pod requests one CPU and runs
// until the test ends it.
func (s sites) jobSet(name string) {
	s.manager.Helper()
	s.manager.OKIn(fmt.Sprintf(`apiVersion: jobset.x-k8s.io/v1alpha2
kind: JobSet
metadata: {name: %s, labels: {kueue.x-k8s.io/queue-name: team}}
spec:
  failurePolicy: {maxRestarts: 1}
  replicatedJobs:
  - name: workers
    replicas: 2
    template:
      spec:
        backoffLimit: 0
        template:
          metadata: {annotations: {jobset-apiserver.io/kwok-outcome: running}}
          spec:
            restartPolicy: Never
            containers: [{name: main, image: busybox, resources: {requests: {cpu: "1"}}}]
`, name), "create", "-f", "-")
}

// runs awaits that all Jobs of the set are ready, as the manager sees it.
func (s sites) runs(name string) {
	s.manager.Helper()
	s.manager.Awaits("jobset/"+name, "{.spec.suspend} {.status.replicatedJobsStatus[0].ready}", "false 2")
}

// ends gives the pods that the selector matches in the worker cluster the outcome, so that they end.
func (s sites) ends(selector, outcome string) {
	s.worker.Helper()
	s.worker.OK("annotate", "pods", "-l", selector, "--overwrite", "jobset-apiserver.io/kwok-outcome="+outcome)
}

// gone awaits that the worker has no object of the name.
func (s sites) gone(object string) {
	s.worker.Helper()
	s.worker.Eventually(func() string {
		if s.worker.Field(object, "{.metadata.name}") != "" {
			return object + " exists at the worker"
		}
		return ""
	})
}

// says awaits that a command of the plugin at the manager prints the texts.
func (s sites) says(command string, texts ...string) {
	s.manager.Helper()
	s.manager.Eventually(func() string {
		said := s.manager.PluginOK(strings.Fields(command)...)
		for _, text := range texts {
			if !strings.Contains(strings.Join(strings.Fields(said), " "), text) {
				return fmt.Sprintf("kubectl jobset %s lacks %q:\n%s", command, text, said)
			}
		}
		return ""
	})
}
