// Copyright The jobset-apiserver Authors.
// SPDX-License-Identifier: Apache-2.0

package why

import (
	"cmp"
	"context"
	"fmt"
	"slices"
	"strings"

	corev1 "k8s.io/api/core/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/labels"

	jobsetv1alpha2 "github.com/jobset-apiserver/jobset-apiserver/pkg/apis/jobset/v1alpha2"
	"github.com/jobset-apiserver/jobset-apiserver/pkg/apis/jobset/v1alpha2/helper"
	"github.com/jobset-apiserver/jobset-apiserver/pkg/kubectl/cli"
	"github.com/jobset-apiserver/jobset-apiserver/pkg/kubectl/snapshot"
)

// What became of the room in the domain of a Job that was placed.

// placedJob is a Job with a domain in which pods of it find no node.
type placedJob struct {
	name, topology, domain string
	// nodes is how many the pods could use when the Job was placed.
	nodes int
	// moves are the moves from one domain to another; nil for none.
	moves *jobsetv1alpha2.JobMoves
	pods  []*corev1.Pod
}

// domain is what was read about a domain: its nodes, and the pods on them.
type domain struct {
	nodes []corev1.Node
	pods  []corev1.Pod
	// whole reports that the nodes are all of them.
	whole bool
}

// placementOf returns where the Jobs of the replicatedJob are to which a Job or pod belongs; nil if that is not decided.
func (d *diagnosis) placementOf(o metav1.Object) *jobsetv1alpha2.ReplicatedJobPlacement {
	if d.JobSet == nil {
		return nil
	}
	name := snapshot.ReplicatedJob(o)
	for i := range d.JobSet.Spec.ReplicatedJobs {
		if rj := &d.JobSet.Spec.ReplicatedJobs[i]; rj.Name == name {
			return helper.PlacementOf(&d.JobSet.Status, name, helper.ExclusiveTopology(d.JobSet, rj))
		}
	}
	return nil
}

// placedJobs returns the Jobs with a domain whose pods the scheduler finds no node for, at most maxNamed of them.
func (d *diagnosis) placedJobs() (out []*placedJob) {
	jobs := map[string]*placedJob{}
	for _, pod := range d.live {
		job := d.jobByID[ownerUID(pod)]
		if job == nil || !snapshot.PodUnschedulable(pod) {
			continue
		}
		known := jobs[job.Name]
		if known == nil {
			entry, index := d.placementOf(job), snapshot.JobIndex(job)
			if entry == nil || index < 0 || index >= len(entry.Jobs) || entry.Jobs[index].Domain == "" {
				continue
			}
			at := &entry.Jobs[index]
			known = &placedJob{name: job.Name, topology: entry.TopologyKey, domain: at.Domain, nodes: int(at.Nodes), moves: at.Moves}
			jobs[job.Name] = known
			out = append(out, known)
		}
		known.pods = append(known.pods, pod)
	}
	slices.SortFunc(out, func(a, b *placedJob) int { return strings.Compare(a.name, b.name) })
	return out[:min(len(out), maxNamed)]
}

// key identifies the domain.
func (j *placedJob) key() string { return j.topology + "=" + j.domain }

// domainRoom explains why pods find no node in the domain of their Job: it has fewer nodes than it had, or others use them.
func domainRoom(d *diagnosis) []Finding {
	var findings []Finding
	for _, job := range d.placedJobs() {
		first := job.pods[0]
		c := snapshot.PodCondition(first, corev1.PodScheduled)
		f := Finding{
			Evidence: []Fact{{Object: object("pod", first.Name), Text: "has no node: " + oneLine(c.Message), Time: at(c.LastTransitionTime.Time)}},
			Commands: []string{"kubectl get nodes -l " + job.key(), d.plugin("top %s", d.ref())},
		}
		where := fmt.Sprintf("%s no node in %s=%s, the domain of the job %s", podsDo(len(job.pods), "finds", "find"), job.topology, job.domain,
			job.name)
		read, nodes := d.Domains[job.key()], []Fact(nil)
		usable := job.nodes
		if read != nil && read.whole {
			usable, nodes = read.usable(first)
		}
		cause := d.unschedulable(first, c.Message)
		switch {
		case usable < job.nodes:
			f.Cause = DomainLostNodes
			f.Summary = fmt.Sprintf("%s: they could use %s there when the job was placed, and can use %s now", where, count(job.nodes, "node"),
				cli.Number(usable))
			f.Evidence = append(f.Evidence, nodes...)
		case cause == UnschedulableResources, cause == UnschedulableAffinity && strings.Contains(c.Message, "anti-affinity"):
			f.Cause, f.Summary = DomainFull, where+", which is full"
			if users := read.users(job); len(users) > 0 {
				f.Summary += ": others have pods there"
				f.Evidence = append(f.Evidence, users...)
			}
		default:
			continue // the rules on scheduling say more
		}
		if moves := job.moves; moves != nil && len(moves.Left) > 0 {
			fact := Fact{Object: object("job", job.name), Text: "has left " + some(moves.Left, maxFacts) + ", where its pods found no nodes"}
			if moves.LastTime != nil {
				fact.Time = at(moves.LastTime.Time)
			}
			f.Evidence = append(f.Evidence, fact)
		}
		findings = append(findings, f)
	}
	return findings
}

// usable returns how many nodes a pod may use, and why not the others, some of them.
func (r *domain) usable(pod *corev1.Pod) (n int, facts []Fact) {
	for i := range r.nodes {
		node := &r.nodes[i]
		text := ""
		switch taints := untolerated(pod, node); {
		case lost(node):
			text = "is not ready"
		case node.Spec.Unschedulable:
			text = "is cordoned"
		case len(taints) > 0:
			text = "has the taint " + strings.Join(taints, ", ")
		case !fitsNode(pod, node):
			text = "does not have the labels that the pods require"
		default:
			n++
			continue
		}
		if len(facts) < maxFacts {
			facts = append(facts, Fact{Object: object("node", node.Name), Text: text})
		}
	}
	if len(r.nodes) == 0 {
		facts = append(facts, Fact{Object: "nodes", Text: "none of the domain is left"})
	}
	return n, facts
}

// users returns who else has pods in the domain, those with most pods first. Those of DaemonSets are on all nodes, and not mentioned.
func (r *domain) users(job *placedJob) (facts []Fact) {
	if r == nil {
		return nil
	}
	own := ownerUID(job.pods[0])
	pods := map[string]int{}
	for i := range r.pods {
		pod := &r.pods[i]
		owner := metav1.GetControllerOfNoCopy(pod)
		if owner != nil && (owner.UID == own || owner.Kind == "DaemonSet") || snapshot.PodEnded(pod) {
			continue
		}
		pods[userOf(pod, owner)+" in namespace "+pod.Namespace]++
	}
	users := sortedKeys(pods)
	slices.SortStableFunc(users, func(a, b string) int { return cmp.Compare(pods[b], pods[a]) })
	for _, user := range users[:min(len(users), maxFacts)] {
		facts = append(facts, Fact{Object: user, Text: "has " + count(pods[user], "pod") + " in the domain"})
	}
	return facts
}

// userOf names what a pod belongs to.
func userOf(pod *corev1.Pod, owner *metav1.OwnerReference) string {
	switch set := pod.Labels[jobsetv1alpha2.JobSetNameKey]; {
	case set != "":
		return object("jobset", set)
	case owner != nil:
		return object(owner.Kind, owner.Name)
	}
	return object("pod", pod.Name)
}

// readPlacement reads what explains why Jobs with exclusive placement have no domain, or no room in it.
func (l *loader) readPlacement(ctx context.Context, d *diagnosis) {
	if l.e.JobSet.Status.Placement == nil || finished(l.e.JobSet) {
		return
	}
	if slices.ContainsFunc(l.e.Jobs, byAffinity) {
		list, err := l.Kube.CoreV1().Events(l.Namespace).List(ctx, metav1.ListOptions{
			FieldSelector: "reason=" + helper.ReasonNoDomain + ",involvedObject.kind=JobSet,involvedObject.name=" + l.e.Name, Limit: maxNamed,
		})
		if !l.got("events", err) {
			return
		}
		l.e.Placing = slices.DeleteFunc(list.Items, func(e corev1.Event) bool {
			return e.InvolvedObject.UID != l.e.JobSet.UID || e.Reason != helper.ReasonNoDomain
		})
	}
	domains := map[string]*domain{}
	for _, job := range d.placedJobs() {
		if domains[job.key()] == nil {
			domains[job.key()] = l.readDomain(ctx, job)
		}
	}
	l.e.Domains = domains
}

// readDomain reads the nodes of a domain, and the pods on the first of them; nil if the nodes cannot be read.
func (l *loader) readDomain(ctx context.Context, job *placedJob) *domain {
	selector := labels.SelectorFromSet(labels.Set{job.topology: job.domain})
	nodes, err := l.Kube.CoreV1().Nodes().List(ctx, metav1.ListOptions{LabelSelector: selector.String(), Limit: maxNodes})
	if !l.got("nodes", err) {
		return nil
	}
	out := &domain{nodes: nodes.Items, whole: nodes.Continue == ""}
	for i := range out.nodes[:min(len(out.nodes), maxNamed)] {
		pods, err := l.Kube.CoreV1().Pods(metav1.NamespaceAll).List(ctx, metav1.ListOptions{FieldSelector: "spec.nodeName=" + out.nodes[i].Name,
			Limit: maxNodes})
		if !l.got("pods of other namespaces", err) {
			break
		}
		out.pods = append(out.pods, slices.DeleteFunc(pods.Items, func(pod corev1.Pod) bool { return pod.Spec.NodeName != out.nodes[i].Name })...)
	}
	return out
}
