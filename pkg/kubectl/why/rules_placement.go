// Copyright The jobset-apiserver Authors.
// SPDX-License-Identifier: Apache-2.0

package why

import (
	"fmt"
	"strings"

	batchv1 "k8s.io/api/batch/v1"
	corev1 "k8s.io/api/core/v1"

	jobsetv1alpha2 "github.com/jobset-apiserver/jobset-apiserver/pkg/apis/jobset/v1alpha2"
	"github.com/jobset-apiserver/jobset-apiserver/pkg/apis/jobset/v1alpha2/helper"
	"github.com/jobset-apiserver/jobset-apiserver/pkg/controller/placement/shortage"
	"github.com/jobset-apiserver/jobset-apiserver/pkg/kubectl/snapshot"
)

// Why Jobs with exclusive placement have no domain.

// shortageSays is how the sentence about each cause begins.
var shortageSays = map[Cause]string{
	TopologyLabelMissing: "there are no domains for exclusive placement",
	TooFewDomains:        "the cluster has too few domains for exclusive placement",
	DomainsUnsuitable:    "the pods may not run on the nodes of enough domains",
	DomainsLackRoom:      "too few domains have room for the pods",
	NoFreeDomain:         "other jobs have the domains that exclusive placement needs",
}

// domainsPending explains why a set waits for domains, and creates no Jobs.
func domainsPending(d *diagnosis) []Finding {
	c := isTrue(d.JobSet, jobsetv1alpha2.PlacementPending)
	if c == nil {
		return nil
	}
	f := Finding{Evidence: []Fact{{
		Object: d.set(), Text: fmt.Sprintf("waits for domains: condition %s, reason %s", c.Type, c.Reason), Time: at(c.LastTransitionTime.Time),
	}}}
	switch c.Reason {
	case helper.ReasonNodesUnknown:
		f.Cause, f.Summary = NodesUnknown, "the controller does not know the nodes and pods of the cluster, so that it cannot choose domains: "+
			oneLine(c.Message)
		f.Commands = []string{
			fmt.Sprintf("kubectl auth can-i list %s --as=system:serviceaccount:%s:jobset-controller-manager", unknownResource(c.Message),
				leaseNamespace),
			fmt.Sprintf("kubectl -n %s logs -l control-plane=controller-manager --tail=50", leaseNamespace),
		}
	case helper.ReasonInvalidTemplate:
		f.Cause, f.Summary = JobTemplateRefused, "the controller finds no domain for a pod template that is invalid: "+oneLine(c.Message)
		f.Commands = []string{d.kubectl("get jobset %s -o yaml", d.Name)}
	default:
		d.explainShortage(&f, c.Message)
	}
	return []Finding{f}
}

// domainsSearched explains why pods wait for which the scheduler is to find a domain.
func domainsSearched(d *diagnosis) []Finding {
	var waiting []*corev1.Pod
	for _, pod := range d.live {
		if job := d.jobByID[ownerUID(pod)]; job != nil && byAffinity(job) && snapshot.PodUnschedulable(pod) {
			waiting = append(waiting, pod)
		}
	}
	if len(waiting) == 0 {
		return nil
	}
	first := waiting[0]
	c := snapshot.PodCondition(first, corev1.PodScheduled)
	f := Finding{Evidence: []Fact{{Object: object("pod", first.Name), Text: "has no node: " + oneLine(c.Message),
		Time: at(c.LastTransitionTime.Time)}}}
	event := latest(d.Placing)
	switch {
	case event != nil:
		d.explainShortage(&f, event.Message)
		f.Summary = fmt.Sprintf("%s for the scheduler to find a domain, as there was none when the jobs were created: %s",
			podsDo(len(waiting), "waits", "wait"), f.Summary)
		f.Evidence = append(f.Evidence, Fact{Object: d.set(), Text: "event " + event.Reason + " when the jobs were created",
			Time: at(seen(event))})
	case strings.Contains(c.Message, "anti-affinity") || strings.Contains(c.Message, "pod affinity"):
		f.Cause = NoFreeDomain
		f.Summary = fmt.Sprintf("%s for the scheduler to find a domain, in which no other job with exclusive placement runs",
			podsDo(len(waiting), "waits", "wait"))
		f.Commands = d.domainCommands(NoFreeDomain, &shortage.Shortage{Topology: d.exclusiveLabel(first)})
	default:
		return nil // the rules on scheduling say more
	}
	return []Finding{f}
}

// byAffinity reports whether the scheduler chooses the domain of a Job.
func byAffinity(job *batchv1.Job) bool {
	return job.Annotations[jobsetv1alpha2.PlacementKey] == jobsetv1alpha2.PlacementByAffinity
}

// latest returns the newest of the events; nil if there are none.
func latest(events []corev1.Event) (newest *corev1.Event) {
	for i := range events {
		if newest == nil || seen(&events[i]).After(seen(newest)) {
			newest = &events[i]
		}
	}
	return newest
}

// unknownResource returns the first resource that the controller waits for, by the message of the condition; nodes if it names none.
func unknownResource(message string) string {
	_, resources, _ := strings.Cut(message, ": ")
	if fields := strings.FieldsFunc(resources, func(r rune) bool { return r < 'a' || r > 'z' }); len(fields) > 0 &&
		strings.HasPrefix(resources, fields[0]) {
		return fields[0]
	}
	return "nodes"
}

// explainShortage completes a finding by the message of a placement.
func (d *diagnosis) explainShortage(f *Finding, message string) {
	s, read := shortage.Parse(message)
	f.Cause = NoFreeDomain
	if read {
		f.Cause = shortageCause(&s)
	}
	f.Summary = shortageSays[f.Cause] + ": " + oneLine(message)
	for _, taker := range s.TakenBy {
		namespace, name, _ := strings.Cut(taker.Set, "/")
		text := fmt.Sprintf("in namespace %s has %s", namespace, count(taker.Domains, "domain"))
		if namespace == d.Namespace && name == d.Name {
			text = fmt.Sprintf("has %s already, for other jobs of the set", count(taker.Domains, "domain"))
		}
		f.Evidence = append(f.Evidence, Fact{Object: object("jobset", name), Text: text})
	}
	f.Commands = d.domainCommands(f.Cause, &s)
}

// shortageCause returns what has to change first for a set to get its domains. What would not help if nothing else changed comes later: of
// domains that others have and domains that lack room, those of others are the cause if they would be enough.
func shortageCause(s *shortage.Shortage) Cause {
	need := s.Jobs + s.Others
	switch {
	case s.Domains == 0:
		return TopologyLabelMissing
	case s.Domains < need:
		return TooFewDomains
	case s.Taken > 0 && s.Usable+s.Taken >= need:
		return NoFreeDomain
	case s.Lacking > 0 && s.Usable+s.Taken+s.Lacking >= need:
		return DomainsLackRoom
	case s.Unsuitable > 0:
		return DomainsUnsuitable
	}
	return NoFreeDomain
}

// domainCommands are what to run about a shortage of domains.
func (d *diagnosis) domainCommands(cause Cause, s *shortage.Shortage) []string {
	var commands []string
	switch {
	case s.Topology == "":
		return []string{d.plugin("top %s", d.ref())}
	case cause == TopologyLabelMissing:
		return []string{"kubectl get nodes --show-labels", fmt.Sprintf("kubectl label node NODE %s=VALUE", s.Topology)}
	case cause == DomainsUnsuitable:
		commands = []string{"kubectl get nodes -o custom-columns=NAME:.metadata.name,TAINTS:.spec.taints[*].key"}
	case cause == DomainsLackRoom && s.Closest != "":
		commands = []string{fmt.Sprintf("kubectl describe nodes -l %s=%s | grep -A 8 'Allocated resources'", s.Topology, s.Closest)}
	case cause == NoFreeDomain:
		for _, taker := range s.TakenBy {
			if namespace, name, found := strings.Cut(taker.Set, "/"); found {
				commands = append(commands, fmt.Sprintf("kubectl jobset -n %s top %s", namespace, name))
			}
		}
	}
	return append(commands, "kubectl get nodes -L "+s.Topology)
}

// exclusiveLabel is the label of nodes whose values are the domains of the Job of a pod; empty if it asks for none.
func (d *diagnosis) exclusiveLabel(pod *corev1.Pod) string {
	if at := d.placementOf(pod); at != nil {
		return at.TopologyKey
	}
	return ""
}
