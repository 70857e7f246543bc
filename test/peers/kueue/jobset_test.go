// Copyright The jobset-apiserver Authors.
// SPDX-License-Identifier: Apache-2.0

package kueue

import (
	"fmt"
	"strings"
	"testing"

	"github.com/jobset-apiserver/jobset-apiserver/test/framework/kubectl"
)

// jobSet makes a JobSet in the queue of the test, with two Jobs of one pod that asks for a CPU. Further lines are added to its metadata and to its spec.
func jobSet(k *kubectl.Kubectl, name, metadata, spec string) {
	k.Helper()
	k.OKIn(fmt.Sprintf(`apiVersion: jobset.x-k8s.io/v1alpha2
kind: JobSet
metadata:
  name: %s
  labels: {kueue.x-k8s.io/queue-name: team%s}
spec:
  %s
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
`, name, metadata, spec), "create", "-f", "-")
}

// runs awaits that all Jobs of a set are ready, and ended that it has ended as the state says.
func runs(k *kubectl.Kubectl, set string) {
	k.Helper()
	k.Awaits(timeout, "jobset/"+set, "{.spec.suspend} {.status.replicatedJobsStatus[0].ready}", "false 2")
}

func ended(k *kubectl.Kubectl, set, state string) {
	k.Helper()
	k.Awaits(timeout, "jobset/"+set, "{.status.terminalState}", state)
}

// why awaits a cause in what the plugin says of an object.
func why(k *kubectl.Kubectl, object string, texts ...string) {
	k.Helper()
	k.Eventually(timeout, func() string {
		said := k.PluginOK("why", object)
		for _, text := range texts {
			if !strings.Contains(said, text) {
				return fmt.Sprintf("why %s lacks %q:\n%s", object, text, said)
			}
		}
		return ""
	})
}

// The quota of a set that has completed admits the next one, and nothing stays reserved in the end.
func TestJobSetLife(t *testing.T) {
	k := kubectl.New(t, cluster)
	queue(k, 2)
	jobSet(k, "first", "", "")
	runs(k, "first")
	reserved(k, "2")
	jobSet(k, "second", "", "")
	why(k, "second", "QuotaNotReserved", "it has place 1 of 1 in the queue")
	if got := k.Field("pods", "{.items[?(@.metadata.labels.jobset\\.sigs\\.k8s\\.io/jobset-name=='second')].metadata.name}"); got != "" {
		t.Errorf("pods without quota: %s", got)
	}
	ends(k, "jobset.sigs.k8s.io/jobset-name=first", "succeeded")
	runs(k, "second")
	ended(k, "first", "Completed")
	ends(k, "jobset.sigs.k8s.io/jobset-name=second", "succeeded")
	ended(k, "second", "Completed")
	reserved(k, "0")
}
