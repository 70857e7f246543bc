// Copyright The jobset-apiserver Authors.
// SPDX-License-Identifier: Apache-2.0

package why

import (
	"fmt"
	"strings"
	"time"

	corev1 "k8s.io/api/core/v1"
	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"
	"k8s.io/utils/ptr"

	"github.com/jobset-apiserver/jobset-apiserver/pkg/kubectl/cli"
	"github.com/jobset-apiserver/jobset-apiserver/pkg/kubectl/snapshot"
)

// What keeps pods from getting a node.

// schedulerGrace is how long the scheduler may take to consider a new pod.
const schedulerGrace = 30 * time.Second

// schedulingRefused looks at the pods that have no node, by what the scheduler says of them.
func schedulingRefused(d *diagnosis) []Finding {
	groups := map[Cause][]*corev1.Pod{}
	for _, pod := range d.live {
		if pod.Spec.NodeName == "" {
			groups[d.whyWithoutNode(pod)] = append(groups[d.whyWithoutNode(pod)], pod)
		}
	}
	var findings []Finding
	for _, cause := range Causes {
		if pods := groups[cause]; len(pods) > 0 {
			findings = append(findings, d.withoutNode(cause, pods))
		}
	}
	return findings
}

func (d *diagnosis) whyWithoutNode(pod *corev1.Pod) Cause {
	c := snapshot.PodCondition(pod, corev1.PodScheduled)
	switch {
	case d.explainedByQueue(pod):
		return ""
	case len(pod.Spec.SchedulingGates) > 0:
		return SchedulingGate
	case d.claimLacking(pod) != nil:
		return DeviceClaimMissing
	case c == nil || c.Status == corev1.ConditionTrue:
		if d.Now.Sub(pod.CreationTimestamp.Time) < schedulerGrace {
			return ""
		}
		if d.gangIncomplete(pod) {
			return PodGroupWaits
		}
		return SchedulerSilent
	}
	return d.unschedulable(pod, c.Message)
}

func (d *diagnosis) withoutNode(cause Cause, pods []*corev1.Pod) Finding {
	first := pods[0]
	f := Finding{Cause: cause, Commands: []string{d.kubectl("describe pod %s", first.Name)}}
	n := len(pods)
	c := snapshot.PodCondition(first, corev1.PodScheduled)
	fact := Fact{Object: object("pod", first.Name), Text: "has no node", Time: at(first.CreationTimestamp.Time)}
	if c != nil && c.Message != "" {
		fact.Text, fact.Time = "has no node: "+oneLine(c.Message), at(c.LastTransitionTime.Time)
	}
	f.Evidence = []Fact{fact}
	if len(pods) > 1 {
		f.Evidence = append(f.Evidence, Fact{Object: "pods", Text: some(podNames(pods), maxFacts) + " wait for the same reason"})
	}
	switch cause {
	case SchedulingGate:
		var gates []string
		for _, gate := range first.Spec.SchedulingGates {
			gates = append(gates, gate.Name)
		}
		f.Summary = fmt.Sprintf("%s by the scheduling gate %s, which its owner has to remove", podsDo(n, "is held", "are held"),
			strings.Join(gates, ", "))
		if strings.HasPrefix(gates[0], kueueGroup) {
			f.Summary = fmt.Sprintf("%s by the scheduling gate %s: Kueue has not assigned a place yet", podsDo(n, "is held", "are held"), gates[0])
			f.Commands = append(f.Commands, d.kubectl("get workloads.%s", kueueGroup))
		}
	case SchedulerSilent:
		f.Summary = fmt.Sprintf("the scheduler %s has not considered %s: it does not run, or no scheduler has this name",
			first.Spec.SchedulerName, count(n, "pod"))
		f.Commands = append(f.Commands, "kubectl -n kube-system get pods,leases")
	case PodGroupWaits:
		d.incompleteGang(&f, first, n)
	case UnboundClaim:
		d.unbound(&f, first, n)
	case DeviceClaimMissing:
		d.deviceClaimMissing(&f, first, n)
	default:
		d.noNodeFits(&f, first, n, c.Message)
	}
	return f
}

// unbound names the claims that a pod waits for.
func (d *diagnosis) unbound(f *Finding, pod *corev1.Pod, n int) {
	var open, absent []string
	for _, name := range claimsOf(pod) {
		claim, read := d.Claims[name]
		switch {
		case !read:
			continue
		case claim == nil:
			absent = append(absent, name)
			f.Evidence = append(f.Evidence, Fact{Object: object("persistentvolumeclaim", name), Text: "does not exist"})
			continue
		case claim.Status.Phase == corev1.ClaimBound:
			continue
		}
		open = append(open, name)
		f.Evidence = append(f.Evidence, Fact{Object: object("persistentvolumeclaim", name), Time: at(claim.CreationTimestamp.Time),
			Text: fmt.Sprintf(
				"is %s, storage class %q", claim.Status.Phase, ptr.Deref(claim.Spec.StorageClassName, ""))})
		if events := d.about(claim.UID); len(events) > 0 {
			f.Evidence = append(f.Evidence, eventFact(&events[0]))
		}
		f.Commands = append(f.Commands, d.kubectl("describe persistentvolumeclaim %s", name))
	}
	waits := podsDo(n, "waits", "wait")
	if len(absent) > 0 {
		f.Summary = fmt.Sprintf("%s for the volume claim %s, which does not exist", waits, some(absent, maxFacts))
		f.Commands = append(f.Commands, d.kubectl("get persistentvolumeclaims  # create it, or correct its name in the %s", d.noun()))
		return
	}
	f.Summary = waits + " for volume claims that are not bound"
	if len(open) > 0 {
		f.Summary = fmt.Sprintf("%s for the volume claim %s, which is not bound", waits, some(open, maxFacts))
	}
	f.Commands = append(f.Commands, "kubectl get storageclasses")
}

// noNodeFits says why no node takes the pod.
func (d *diagnosis) noNodeFits(f *Finding, pod *corev1.Pod, n int, message string) {
	parts := []string{}
	for _, p := range schedulerReasons(message) {
		if p.cause == f.Cause {
			parts = append(parts, fmt.Sprintf("%s: %s", count(p.nodes, "node"), p.text))
		}
	}
	detail := strings.Join(parts, ", ")
	if detail == "" {
		detail = oneLine(message)
	}
	switch f.Cause {
	case UnschedulableResources:
		f.Summary = fmt.Sprintf("%s no node with enough room: %s", podsDo(n, "finds", "find"), detail)
		f.Evidence = append(f.Evidence, Fact{Object: object("pod", pod.Name), Text: "requests " + requests(pod)})
		f.Commands = append(f.Commands, "kubectl describe nodes | grep -A 8 'Allocated resources'")
	case UnschedulableTaint:
		f.Summary = fmt.Sprintf("%s not tolerate the taints of the nodes that they may run on: %s", podsDo(n, "does", "do"), detail)
		d.tainted(f, pod, n)
		f.Commands = append(f.Commands, "kubectl get nodes -o custom-columns=NAME:.metadata.name,TAINTS:.spec.taints[*].key")
	case UnschedulableAffinity:
		f.Summary = fmt.Sprintf("%s no node by node selector or affinity: %s", podsDo(n, "fits", "fit"), detail)
		if len(pod.Spec.NodeSelector) > 0 {
			var wants []string
			for _, key := range sortedKeys(pod.Spec.NodeSelector) {
				wants = append(wants, key+"="+pod.Spec.NodeSelector[key])
			}
			f.Evidence = append(f.Evidence, Fact{Object: object("pod", pod.Name), Text: "node selector " + strings.Join(wants, ",")})
			f.Commands = append(f.Commands, "kubectl get nodes -l "+strings.Join(wants, ","))
		}
	case RestartRulesMissing:
		oldNodes(f, n)
	default:
		f.Summary = fmt.Sprintf("%s cannot be scheduled: %s", count(n, "pod"), detail)
	}
}

// tainted names the taints of the nodes that a pod asks for.
func (d *diagnosis) tainted(f *Finding, pod *corev1.Pod, n int) {
	named := 0
	for i := range d.Candidates {
		taints := untolerated(pod, &d.Candidates[i])
		if len(taints) == 0 || named == maxFacts {
			continue
		}
		if named++; named == 1 {
			f.Summary = fmt.Sprintf("%s not tolerate the taint %s of node %s (%s by selector and affinity)", podsDo(n, "does", "do"),
				strings.Join(taints, ", "), d.Candidates[i].Name, fits(len(d.Candidates)))
		}
		f.Evidence = append(f.Evidence, Fact{Object: object("node", d.Candidates[i].Name), Text: "has the taint " + strings.Join(taints, ", ")})
	}
}

func fits(nodes int) string {
	if nodes == 1 {
		return "1 node fits"
	}
	return cli.Number(nodes) + " nodes fit"
}

func untolerated(pod *corev1.Pod, node *corev1.Node) []string {
	var out []string
	for i := range node.Spec.Taints {
		taint := &node.Spec.Taints[i]
		if taint.Effect != corev1.TaintEffectPreferNoSchedule && !tolerated(pod, taint) {
			out = append(out, taintText(taint))
		}
	}
	return out
}

func requests(pod *corev1.Pod) string {
	var out []string
	for i := range pod.Spec.Containers {
		c := &pod.Spec.Containers[i]
		for _, name := range sortedKeys(resources(c.Resources.Requests)) {
			quantity := c.Resources.Requests[corev1.ResourceName(name)]
			out = append(out, fmt.Sprintf("%s %s (container %s)", quantity.String(), name, c.Name))
		}
	}
	if len(out) == 0 {
		return "nothing"
	}
	return strings.Join(out, ", ")
}

// podGroups looks at the groups whose pods are scheduled together.
func podGroups(d *diagnosis) []Finding {
	var findings []Finding
	for _, name := range sortedKeys(d.PodGroups) {
		group := d.PodGroups[name]
		f := Finding{Cause: PodGroupWaits, Commands: []string{d.kubectl("describe podgroup %s", name)}}
		if group == nil {
			f.Summary = fmt.Sprintf("the pods wait for the pod group %s, which does not exist", name)
			f.Evidence = []Fact{{Object: object("podgroup", name), Text: "does not exist"}}
			findings = append(findings, f)
			continue
		}
		for _, conditionType := range []string{"PodGroupInitiallyScheduled", "PodGroupScheduled"} {
			if c := conditionOf(group, conditionType); c != nil && c.Status != "True" {
				f.Summary = fmt.Sprintf("the pod group %s is not scheduled, and its pods are only scheduled together: %s", name, oneLine(c.Message))
				f.Evidence = append(f.Evidence, conditionFact(object("podgroup", name), c))
				findings = append(findings, f)
				break
			}
		}
	}
	return findings
}

func podNames(pods []*corev1.Pod) []string {
	names := make([]string, len(pods))
	for i, pod := range pods {
		names[i] = pod.Name
	}
	return names
}

// gangSize returns the pod group of a pod, and how many pods of it must exist before the scheduler looks at any of
// them; 0 unless it is a gang that was read.
func (d *diagnosis) gangSize(pod *corev1.Pod) (group string, size int64) {
	if pod.Spec.SchedulingGroup == nil {
		return "", 0
	}
	group = ptr.Deref(pod.Spec.SchedulingGroup.PodGroupName, "")
	if object := d.PodGroups[group]; object != nil {
		size, _, _ = unstructured.NestedInt64(object.Object, "spec", "schedulingPolicy", "gang", "minCount")
	}
	return group, size
}

// gangPods returns how many pods of a group have not ended.
func (d *diagnosis) gangPods(group string) (n int64) {
	for _, pod := range d.Pods {
		if g := pod.Spec.SchedulingGroup; g != nil && ptr.Deref(g.PodGroupName, "") == group && !snapshot.PodEnded(pod) {
			n++
		}
	}
	return n
}

// gangIncomplete reports whether the scheduler does not look at a pod because too few pods of its gang exist. Nothing in the API says so.
func (d *diagnosis) gangIncomplete(pod *corev1.Pod) bool {
	group, size := d.gangSize(pod)
	return size > 0 && d.gangPods(group) < size
}

// incompleteGang says what the pods of a gang wait for.
func (d *diagnosis) incompleteGang(f *Finding, pod *corev1.Pod, n int) {
	group, size := d.gangSize(pod)
	f.Summary = fmt.Sprintf("%s for the pod group %s: the scheduler looks at a gang only while %d of its pods exist that have not ended, "+
		"and there are %d",
		podsDo(n, "waits", "wait"), group, size, d.gangPods(group))
	f.Commands = append(f.Commands, d.kubectl("describe podgroup %s", group))
}
