// Copyright The jobset-apiserver Authors.
// SPDX-License-Identifier: Apache-2.0

package e2e

import (
	"regexp"
	"strings"
	"testing"

	"github.com/jobset-apiserver/jobset-apiserver/test/framework/tier"
)

// scaleResponse is what kubectl logs at level 6 about a response to a request for a scale.
var scaleResponse = regexp.MustCompile(`jobsets/train/scale\S*" status="[0-9]`)

// elastic is a set with one replicatedJob whose size may change.
const elastic = `apiVersion: jobset.x-k8s.io/v1alpha2
kind: JobSet
metadata: {name: train}
spec:
  replicatedJobs:
  - name: workers
    template:
      spec:
        completionMode: Indexed
        parallelism: 2
        completions: 2
        template:
          metadata: {annotations: {jobset-apiserver.io/kwok-outcome: running}}
          spec: {containers: [{name: main, image: registry.example/trainer:v1}]}
`

func TestScaleNeedsElasticSizing(t *testing.T) {
	t.Parallel()
	k := newKubectl(t)
	k.okIn(elastic, "create", "-f", "-")
	const reason = "spec.replicatedJobs: Forbidden: cannot be scaled while the feature gate ElasticJobSet is off; ask an administrator of the cluster to turn it on"
	const read, write = `Error from server (NotFound): JobSet.jobset.x-k8s.io "train" has no scale: ` + reason, `The JobSet "train" is invalid: ` + reason
	for command, want := range map[string]string{
		"get jobset/train --subresource=scale": read, "scale jobset/train --replicas=3": write, "scale jobset/train --current-replicas=2 --replicas=3": read,
	} {
		// kubectl scale repeats for five minutes what a Conflict refuses. The log of level 6 has one line for each response.
		r := k.run("", append(strings.Fields(command), "-v=6")...)
		lines := strings.Split(strings.TrimSpace(r.stderr), "\n")
		if got := strings.TrimPrefix(lines[len(lines)-1], "error: "); got != want || r.code == 0 {
			t.Errorf("kubectl %s: code %d, refusal %q, want %q", command, r.code, got, want)
		}
		if refused := len(scaleResponse.FindAllString(r.stderr, -1)); refused != 1 {
			t.Errorf("kubectl %s: %d responses about the scale, want 1:\n%s", command, refused, r.stderr)
		}
	}
}

// TestScaleByHandAndByAutoscaler needs the feature gate.
func TestScaleByHandAndByAutoscaler(t *testing.T) {
	tier.OnRequest(t, "waits for the autoscaler")
	t.Parallel() // the shared cluster does not run it
	k := newKubectlFor(t, gated.use(t))
	k.okIn(elastic, "create", "-f", "-")
	running := func(want int) {
		t.Helper()
		k.eventually(func() string {
			if got := k.ok("get", "pods", "--field-selector=status.phase=Running", "-o", "name"); strings.Count(got, "\n") != want {
				return "pods that run: " + got
			}
			return ""
		})
	}
	running(2)

	editor := k.account("editor", "edit")
	editor.mayEventually("update", "jobsets.jobset.x-k8s.io", "--subresource=scale")
	editor.ok("scale", "jobset/train", "--current-replicas=2", "--replicas=4")
	running(4)
	if got := k.field("jobset/train", "{.spec.replicatedJobs[0].template.spec['parallelism','completions']}"); got != "4 4" {
		t.Errorf("parallelism and completions: got %q, want 4 4", got)
	}
	k.refused("", []string{"scale", "jobset/train", "--replicas=0"}, "spec.replicas", "must be at least 1; suspend the JobSet to run no pods")

	// There are no metrics in this cluster. The bounds are kept without them, and show that the autoscaler finds, reads and
	// writes the scale.
	k.okIn(`apiVersion: autoscaling/v2
kind: HorizontalPodAutoscaler
metadata: {name: train}
spec:
  scaleTargetRef: {apiVersion: jobset.x-k8s.io/v1alpha2, kind: JobSet, name: train}
  minReplicas: 6
  maxReplicas: 8
  metrics: [{type: Resource, resource: {name: cpu, target: {type: Utilization, averageUtilization: 50}}}]
`, "create", "-f", "-")
	k.wait("--for=condition=AbleToScale", "hpa/train")
	running(6)
	if got := k.ok("get", "jobset", "train", "--subresource=scale", "-o", "jsonpath={.spec.replicas} {.status.selector}"); !strings.HasPrefix(got, "6 ") ||
		!strings.Contains(got, "jobset.sigs.k8s.io/jobset-name=train") {
		t.Errorf("scale: %q", got)
	}
}
