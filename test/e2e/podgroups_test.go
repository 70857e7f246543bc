// Copyright The jobset-apiserver Authors.
// SPDX-License-Identifier: Apache-2.0

package e2e

import (
	"encoding/json"
	"fmt"
	"strings"
	"testing"
	"time"

	"github.com/google/go-cmp/cmp"
	corev1 "k8s.io/api/core/v1"

	"github.com/jobset-apiserver/jobset-apiserver/pkg/controller/podgroup/plan"
	"github.com/jobset-apiserver/jobset-apiserver/test/framework/tier"
)

// member returns a pod template of a group, or the metadata and spec of a pod, on one line. Pods run until they are told otherwise.
func member(prefix plan.Prefix, group string, labels ...string) string {
	all := fmt.Sprintf("%s: %s", prefix.GroupKey, group)
	for _, label := range labels {
		all += ", " + label
	}
	return fmt.Sprintf(`metadata: {labels: {app: %s, %s}, annotations: {jobset-apiserver.io/kwok-outcome: running}}, `+
		`spec: {restartPolicy: Never, containers: [{name: main, image: busybox}]}`, group, all)
}

// members are manifests of so many pods of a group, by what owns them.
func members(prefix plan.Prefix, group string, n int) map[string]string {
	template := member(prefix, group)
	always := strings.Replace(template, "restartPolicy: Never", "restartPolicy: Always", 1)
	var bare strings.Builder
	for i := range n {
		labeled := member(prefix, group, fmt.Sprintf("%s: %q", prefix.SizeKey, fmt.Sprint(n)))
		fmt.Fprintf(&bare, "---\n{apiVersion: v1, kind: Pod, %s}\n", strings.Replace(labeled, "metadata: {", fmt.Sprintf("metadata: {name: %s-%d, ", group, i), 1))
	}
	return map[string]string{
		"Job": fmt.Sprintf("{apiVersion: batch/v1, kind: Job, metadata: {name: %s}, spec: {parallelism: %d, template: {%s}}}", group, n, template),
		// The second replicatedJob has pods that no node takes. They are not of the group, so that it does not wait for them.
		"JobSet": fmt.Sprintf(`{apiVersion: jobset.x-k8s.io/v1alpha2, kind: JobSet, metadata: {name: %s}, spec: {replicatedJobs: [`+
			`{name: workers, replicas: %d, template: {spec: {parallelism: 1, completions: 1, template: {%s}}}}, `+
			`{name: others, template: {spec: {template: {spec: {restartPolicy: Never, nodeSelector: {none: such}, containers: [{name: main, image: busybox}]}}}}}]}}`,
			group, n, template),
		"StatefulSet": fmt.Sprintf(`{apiVersion: apps/v1, kind: StatefulSet, metadata: {name: %s}, spec: {serviceName: none, replicas: %d, `+
			`selector: {matchLabels: {app: %s}}, template: {%s}}}`, group, n, group, always),
		"Deployment": fmt.Sprintf(`{apiVersion: apps/v1, kind: Deployment, metadata: {name: %s}, spec: {replicas: %d, `+
			`selector: {matchLabels: {app: %s}}, template: {%s}}}`, group, n, group, always),
		"bare pods": bare.String(),
	}
}

// groupPods returns the pods of a group that exist.
func (k *kubectl) groupPods(prefix plan.Prefix, group string) []corev1.Pod {
	k.Helper()
	list := corev1.PodList{}
	if err := json.Unmarshal([]byte(k.ok("get", "pods", "-l", prefix.GroupKey+"="+group, "-o", "json")), &list); err != nil {
		k.Fatal(err)
	}
	return list.Items
}

// labeled returns how many of the pods carry the label that says that the group is ready.
func labeled(prefix plan.Prefix, pods []corev1.Pod) (n int) {
	for i := range pods {
		if pods[i].Labels[prefix.ReadyKey] == "true" {
			n++
		}
	}
	return n
}

// untilLabeled waits until so many pods of the group carry the label. Before as many pods run as the group needs, none may.
func (k *kubectl) untilLabeled(prefix plan.Prefix, group string, needs, want int) {
	k.Helper()
	k.eventually(func() string {
		pods := k.groupPods(prefix, group)
		has := labeled(prefix, pods)
		if has > 0 && len(pods) < needs {
			k.T.Fatalf("%d of %d existing pods are labeled, and the group needs %d", has, len(pods), needs) // k would only repeat the check
		}
		if has != want {
			return fmt.Sprintf("%d of %d pods are labeled, want %d", has, len(pods), want)
		}
		return ""
	})
}

// groupFigures returns how far a group is, as the plugin prints it.
func (k *kubectl) groupFigures(group string) string {
	k.Helper()
	return k.pluginOK("groups", group, "-o",
		"jsonpath={range .items[*]}{.family} {.size} by {.source}: {.running}/{.pods} run, {.ready} ready, {.state}{end}")
}

// TestPodGroupsOfEachOwner has a group of each prefix for each owner. The label comes when all pods run, and not before: those of a
// StatefulSet are created one after the other, each when the one before runs.
func TestPodGroupsOfEachOwner(t *testing.T) {
	t.Parallel()
	const n = 3
	sources := map[string]plan.Source{"bare pods": plan.FromPods}
	for number, prefix := range plan.Prefixes {
		for owner, manifest := range members(prefix, "gang", n) {
			t.Run(fmt.Sprintf("%s/%d", owner, number), func(t *testing.T) {
				t.Parallel()
				k := newKubectl(t)
				k.admitsPods()
				k.okIn(manifest, "apply", "-f", "-")
				k.untilLabeled(prefix, "gang", n, n)
				source := plan.FromOwners
				if sources[owner] != "" {
					source = sources[owner]
				}
				want := fmt.Sprintf("%s %d by %s: %d/%d run, %d ready, Ready", prefix.Name, n, source, n, n, n)
				if d := cmp.Diff(want, k.groupFigures("gang")); d != "" {
					t.Errorf("figures (-want +got):\n%s", d)
				}
			})
		}
	}
}

// TestPodGroupWaitsForItsSize has two of three pods at first, of each kind of owner that can be made larger later.
func TestPodGroupWaitsForItsSize(t *testing.T) {
	t.Parallel()
	k, prefix := newKubectl(t), plan.Prefixes[1]
	k.okIn("{apiVersion: batch.jobset-apiserver.io/v1alpha1, kind: PodReadinessGroup, metadata: {name: gang}, spec: {minMember: 3}}", "apply", "-f", "-")
	k.okIn(members(prefix, "gang", 2)["Job"], "apply", "-f", "-")
	k.untilGroup("gang", "Pending 2/2 0 False PodsNotRunning 2 of 3 pods run")

	// One that fails is replaced by the Job. Neither its old self nor the failure counts.
	first := k.groupPods(prefix, "gang")[0].Name
	k.ok("annotate", "pod", first, "--overwrite", "jobset-apiserver.io/kwok-outcome=failed", "jobset-apiserver.io/kwok-run-seconds=0")
	k.eventually(func() string {
		if pods := k.groupPods(prefix, "gang"); len(pods) != 3 {
			return fmt.Sprintf("%d pods, and no replacement", len(pods))
		}
		return ""
	})
	k.untilGroup("gang", "Pending 2/2 0 False PodsNotRunning 2 of 3 pods run")
	k.ok("patch", "job", "gang", "--type=merge", "-p", `{"spec":{"parallelism":3}}`)
	k.untilGroup("gang", "Ready 3/3 3 True PodsRunning 3 of 3 pods run")
	if got := k.field("pod/"+first, `{.metadata.labels.podgroup\.jhwagner\.github\.io/ready}`); got != "" {
		t.Errorf("the pod that has failed carries the label %q", got)
	}

	// A replacement in a group that was ready waits until the group is so again.
	second := k.runningPod(prefix)
	k.ok("delete", "pod", second)
	k.untilGroup("gang", "Ready 3/3 3 True PodsRunning 3 of 3 pods run")
	k.ok("patch", "job", "gang", "--type=merge", "-p", `{"spec":{"parallelism":2}}`)
	k.untilGroup("gang", "Degraded 2/2 2 False PodsNotRunning 2 of 3 pods run")
	third := k.runningPod(prefix)
	k.ok("label", "pod", third, prefix.ReadyKey+"-")
	k.untilGroup("gang", "Degraded 2/2 1 False PodsNotRunning 2 of 3 pods run")
	k.ok("patch", "podreadinessgroup", "gang", "--type=merge", "-p", `{"spec":{"minMember":2}}`)
	k.untilGroup("gang", "Ready 2/2 2 True PodsRunning 2 of 2 pods run")
}

// runningPod returns a pod of the gang that runs.
func (k *kubectl) runningPod(prefix plan.Prefix) string {
	k.Helper()
	for _, pod := range k.groupPods(prefix, "gang") {
		if pod.Status.Phase == corev1.PodRunning && pod.DeletionTimestamp == nil {
			return pod.Name
		}
	}
	k.Fatal("no pod runs")
	return ""
}

// untilGroup waits until the status of a PodReadinessGroup is as wanted.
func (k *kubectl) untilGroup(name, want string) {
	k.Helper()
	k.eventually(func() string {
		return cmp.Diff(want, k.field("podreadinessgroup/"+name, "{.status.phase} {.status.running}/{.status.pods} {.status.ready} "+
			"{.status.conditions[0].status} {.status.conditions[0].reason} {.status.conditions[0].message}"))
	})
}

// TestSucceededPodsOfGroupsCount has a pod that succeeds before the other exists.
func TestSucceededPodsOfGroupsCount(t *testing.T) {
	tier.OnRequest(t, "more cases of pod groups")
	t.Parallel()
	k, prefix := newKubectl(t), plan.Prefixes[1]
	template := member(prefix, "gang", fmt.Sprintf("%s: %q", prefix.SizeKey, "2"))
	create := func(name, template string) {
		k.okIn(fmt.Sprintf("{apiVersion: batch/v1, kind: Job, metadata: {name: %s}, spec: {template: {%s}}}", name, template), "apply", "-f", "-")
	}
	create("first", strings.Replace(template, "kwok-outcome: running", "kwok-outcome: succeeded", 1))
	k.wait("--for=condition=Complete", "job/first")
	if pods := k.groupPods(prefix, "gang"); labeled(prefix, pods) > 0 {
		t.Errorf("a pod is labeled before there are two: %v", pods)
	}
	create("second", template)
	k.untilLabeled(prefix, "gang", 2, 2)
}

// TestPodsBeingDeletedDoNotCount has a pod that is being deleted for as long as it has a finalizer.
func TestPodsBeingDeletedDoNotCount(t *testing.T) {
	tier.OnRequest(t, "more cases of pod groups")
	t.Parallel()
	k, prefix := newKubectl(t), plan.Prefixes[1]
	k.admitsPods()
	pod := func(name string) string {
		return "{apiVersion: v1, kind: Pod, " + strings.Replace(member(prefix, "gang", fmt.Sprintf("%s: %q", prefix.SizeKey, "2")),
			"metadata: {", "metadata: {finalizers: [example.com/hold], name: "+name+", ", 1) + "}"
	}
	k.Cleanup(func() {
		k.run("", "patch", "pods", "a", "b", "c", "--type=merge", "-p", `{"metadata":{"finalizers":null}}`)
	})
	k.okIn(pod("a"), "apply", "-f", "-")
	k.wait("--for=jsonpath={.status.phase}=Running", "pod/a")
	k.ok("delete", "pod", "a", "--wait=false")
	k.okIn(pod("b"), "apply", "-f", "-")
	k.wait("--for=jsonpath={.status.phase}=Running", "pod/b")
	want := prefix.Name + " 2 by label: 1/1 run, 0 ready, Pending"
	k.eventually(func() string { return cmp.Diff(want, k.groupFigures("gang")) })
	k.okIn(pod("c"), "apply", "-f", "-")
	k.untilLabeled(prefix, "gang", 2, 2)
	if got := k.field("pod/a", `{.metadata.labels.podgroup\.jhwagner\.github\.io/ready}`); got != "" {
		t.Errorf("the pod that is being deleted carries the label %q", got)
	}
}

// TestGroupsOfUnknownSizeStabilize has a pod whose group nothing states the size of.
func TestGroupsOfUnknownSizeStabilize(t *testing.T) {
	tier.OnRequest(t, "more cases of pod groups")
	t.Parallel()
	k, prefix := newKubectl(t), plan.Prefixes[1]
	k.admitsPods()
	k.okIn("{apiVersion: v1, kind: Pod, "+strings.Replace(member(prefix, "gang"), "metadata: {", "metadata: {name: a, ", 1)+"}", "apply", "-f", "-")
	k.untilLabeled(prefix, "gang", 1, 1)
	pod := k.groupPods(prefix, "gang")[0]
	for _, managed := range pod.ManagedFields {
		// Times are whole seconds.
		if managed.Manager == "jobset-controller" && managed.Time.Sub(pod.CreationTimestamp.Time) < plan.StabilizationWindow-time.Second {
			t.Errorf("labeled at %s, less than %s after the pod was created at %s", managed.Time, plan.StabilizationWindow, pod.CreationTimestamp)
		}
	}
}

// TestMalformedSizesOfGroupsAreReported has a pod that states a size which is no number, and one that states a smaller one.
func TestMalformedSizesOfGroupsAreReported(t *testing.T) {
	tier.OnRequest(t, "more cases of pod groups")
	t.Parallel()
	k, prefix := newKubectl(t), plan.Prefixes[0]
	k.admitsPods()
	for name, size := range map[string]string{"a": "many", "b": "2"} {
		k.okIn("{apiVersion: v1, kind: Pod, "+strings.Replace(member(prefix, "gang", fmt.Sprintf("%s: %q", prefix.SizeKey, size)),
			"metadata: {", "metadata: {name: "+name+", ", 1)+"}", "apply", "-f", "-")
	}
	k.untilLabeled(prefix, "gang", 2, 2)
	k.eventually(func() string {
		events := k.ok("get", "events", "--field-selector", "involvedObject.kind=Pod,reason="+plan.EventInvalidSize, "-o", "jsonpath={.items[*].message}")
		if want := "must be a number from 1 to 100000"; !strings.Contains(events, want) {
			return fmt.Sprintf("events %q, want %q", events, want)
		}
		return ""
	})
}

// gangIsLabeled and pairIsShown look at the examples of pod groups once they run.
func gangIsLabeled(k *kubectl) {
	k.Helper()
	if pods := k.groupPods(plan.Prefixes[1], "train"); labeled(plan.Prefixes[1], pods) != 8 {
		k.Errorf("%d of %d pods are labeled", labeled(plan.Prefixes[1], pods), len(pods))
	}
}

func pairIsShown(k *kubectl) {
	k.Helper()
	table := k.pluginOK("groups", "-A", "-o", "wide")
	for _, want := range []string{"NAMESPACE", "SOURCE", "MESSAGE", "2 of 2 pods run", "minMember"} {
		if !strings.Contains(table, want) {
			k.Errorf("the table lacks %q:\n%s", want, table)
		}
	}
	if r := k.plugin("groups", "none"); r.code != 1 || !strings.Contains(r.stderr, `no pod group "none"`) {
		k.Errorf("a group that does not exist: exit code %d, %q", r.code, r.stderr)
	}
}
