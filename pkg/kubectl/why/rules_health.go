// Copyright The jobset-apiserver Authors.
// SPDX-License-Identifier: Apache-2.0

package why

import (
	"fmt"
	"strings"
	"time"

	corev1 "k8s.io/api/core/v1"

	jobsetv1alpha2 "github.com/jobset-apiserver/jobset-apiserver/pkg/apis/jobset/v1alpha2"
	"github.com/jobset-apiserver/jobset-apiserver/pkg/apis/jobset/v1alpha2/helper"
	"github.com/jobset-apiserver/jobset-apiserver/pkg/kubectl/snapshot"
)

// What is normal: an order that is kept, a restart, a start, a run, an end.

// counts returns what the status says of a replicatedJob.
func (d *diagnosis) counts(name string) jobsetv1alpha2.ReplicatedJobStatus {
	for _, c := range d.JobSet.Status.ReplicatedJobsStatus {
		if c.Name == name {
			return c
		}
	}
	return jobsetv1alpha2.ReplicatedJobStatus{Name: name}
}

func (d *diagnosis) replicatedJob(name string) *jobsetv1alpha2.ReplicatedJob {
	for i := range d.JobSet.Spec.ReplicatedJobs {
		if d.JobSet.Spec.ReplicatedJobs[i].Name == name {
			return &d.JobSet.Spec.ReplicatedJobs[i]
		}
	}
	return nil
}

// wanting reports whether Jobs of the replicatedJob are missing.
func (d *diagnosis) wanting(rj *jobsetv1alpha2.ReplicatedJob) bool {
	have := 0
	for _, job := range d.current {
		if job.Labels[jobsetv1alpha2.ReplicatedJobNameKey] == rj.Name {
			have++
		}
	}
	return have < int(helper.Replicas(rj))
}

// dependencies looks for replicatedJobs that wait for others.
func dependencies(d *diagnosis) []Finding {
	var findings []Finding
	for i := range d.JobSet.Spec.ReplicatedJobs {
		rj := &d.JobSet.Spec.ReplicatedJobs[i]
		if !d.wanting(rj) {
			continue
		}
		for _, on := range rj.DependsOn {
			other := d.replicatedJob(on.Name)
			if other == nil {
				continue
			}
			c, want, have, word := d.counts(on.Name), int(helper.Replicas(other)), 0, "ready"
			if have = int(c.Ready + c.Succeeded + c.Failed); on.Status == jobsetv1alpha2.DependencyComplete {
				have, word = int(c.Succeeded), "complete"
			}
			if have == want {
				continue
			}
			findings = append(findings, Finding{
				Cause:   DependsOn,
				Summary: fmt.Sprintf("%s waits until %s is %s: %d of %s are %[3]s", rj.Name, on.Name, word, have, count(want, "job")),
				Evidence: []Fact{{Object: d.set(), Text: fmt.Sprintf("replicatedJob %s dependsOn %s with status %s", rj.Name, on.Name, on.Status)},
					d.countsFact(on.Name, want)},
				Commands: []string{d.plugin("tree %s", d.Name), d.kubectl("get pods -l %s=%s,%s=%s", jobsetv1alpha2.JobSetNameKey, d.Name,
					jobsetv1alpha2.ReplicatedJobNameKey, on.Name)},
			})
		}
	}
	return findings
}

func (d *diagnosis) countsFact(name string, want int) Fact {
	c := d.counts(name)
	return Fact{Object: d.set(), Text: fmt.Sprintf("replicatedJob %s: of %s %d ready, %d succeeded, %d failed, %d active", name,
		count(want, "job"), c.Ready, c.Succeeded, c.Failed, c.Active)}
}

// startupOrder looks how far an ordered start is.
func startupOrder(d *diagnosis) []Finding {
	policy := d.JobSet.Spec.StartupPolicy
	if policy == nil || policy.StartupPolicyOrder != jobsetv1alpha2.InOrder {
		return nil
	}
	jobs := d.JobSet.Spec.ReplicatedJobs
	for i := range jobs[:max(len(jobs)-1, 0)] {
		c, want := d.counts(jobs[i].Name), int(helper.Replicas(&jobs[i]))
		if have := int(c.Ready + c.Succeeded + c.Failed); have < want {
			var rest []string
			for j := i + 1; j < len(jobs); j++ {
				rest = append(rest, jobs[j].Name)
			}
			f := Finding{
				Cause: StartupOrder,
				Summary: fmt.Sprintf("%s waits until %s has started (startupPolicyOrder InOrder): %d of %s are ready", strings.Join(rest, ", "),
					jobs[i].Name, have, count(want, "job")),
				Evidence: []Fact{d.countsFact(jobs[i].Name, want)},
				Commands: []string{d.plugin("tree %s", d.Name), d.kubectl("get pods -l %s=%s,%s=%s", jobsetv1alpha2.JobSetNameKey, d.Name,
					jobsetv1alpha2.ReplicatedJobNameKey, jobs[i].Name)},
			}
			if p := isTrue(d.JobSet, jobsetv1alpha2.JobSetStartupPolicyInProgress); p != nil {
				f.Evidence = append(f.Evidence, conditionFact(d.set(), p))
			}
			return []Finding{f}
		}
	}
	return nil
}

// health says what the set does when nothing else is to be said.
func health(d *diagnosis) []Finding {
	want, readyJobs, succeeded := d.tally()
	progress := fmt.Sprintf("%d of %s ready", readyJobs, count(want, "job"))
	if succeeded > 0 {
		progress += fmt.Sprintf(", %d succeeded", succeeded)
	}
	watch := d.plugin("tree %s", d.Name)
	switch {
	case want == 0:
		return []Finding{d.empty()}
	case d.summary().State != helper.PhaseRestarting && d.allUp():
		f := Finding{Cause: Running, Summary: fmt.Sprintf("runs: %s%s", progress, d.attemptWords()), Commands: []string{watch}}
		f.Evidence = append(f.Evidence, d.history()...)
		return []Finding{f}
	case d.restarts():
		f := Finding{Cause: Restarting, Summary: "a restart is in progress: " + progress + d.attemptWords(), Commands: []string{watch}}
		if c := isTrue(d.JobSet, jobsetv1alpha2.JobSetRestarting); c != nil {
			f.Evidence = append(f.Evidence, conditionFact(d.set(), c))
		}
		if n := len(d.previous); n > 0 {
			f.Evidence = append(f.Evidence, Fact{Object: d.set(), Text: fmt.Sprintf("%s of the earlier attempt not deleted yet", count(n, "job"))})
		}
		f.Evidence = append(f.Evidence, d.history()...)
		return []Finding{f}
	}
	return append(notReady(d), Finding{
		Cause: Starting, Summary: fmt.Sprintf("starting, no problem found: %s%s", progress, d.attemptWords()),
		Evidence: []Fact{{Object: d.set(), Text: fmt.Sprintf("%s exist, with %s", count(len(d.current), "job"), count(len(d.live), "live pod")),
			Time: at(d.JobSet.CreationTimestamp.Time)}},
		Commands: []string{watch},
	})
}

// readyGrace is how long a pod may take from its binding to a node until it is ready.
const readyGrace = 30 * time.Second

// explained returns whether another finding says why a pod with a node is not ready.
func (d *diagnosis) explained(pod *corev1.Pod) bool {
	if cause, _ := containerTrouble(pod); cause != "" || d.stuckOnVolumes(pod) != nil {
		return true
	}
	node, read := d.Nodes[pod.Spec.NodeName]
	return read && lost(node)
}

// notReady looks for pods that have run for a while and are not ready, unless another finding says why.
func notReady(d *diagnosis) []Finding {
	var late []*corev1.Pod
	for _, pod := range d.live {
		if pod.Spec.NodeName == "" || snapshot.PodReady(pod) || d.explained(pod) {
			continue
		}
		if c := snapshot.PodCondition(pod, corev1.PodScheduled); c != nil && d.Now.Sub(c.LastTransitionTime.Time) > readyGrace {
			late = append(late, pod)
		}
	}
	if len(late) == 0 {
		return nil
	}
	f := Finding{
		Cause:   PodsNotReady,
		Summary: fmt.Sprintf("%s not ready: %s", podsDo(len(late), "has a node but is", "have a node but are"), some(podNames(late), maxFacts)),
		Evidence: []Fact{{Object: object("pod", late[0].Name), Text: fmt.Sprintf("phase %s on node %s", late[0].Status.Phase,
			late[0].Spec.NodeName), Time: at(late[0].CreationTimestamp.Time)}},
		Commands: []string{d.kubectl("describe pod %s", late[0].Name)},
	}
	if c := snapshot.PodCondition(late[0], corev1.PodReady); c != nil {
		f.Evidence[0].Text += fmt.Sprintf("; condition Ready %s: %s, %s", c.Status, c.Reason, oneLine(c.Message))
	}
	if events := d.about(late[0].UID); len(events) > 0 {
		f.Evidence = append(f.Evidence, eventFact(&events[0]))
	}
	return []Finding{f}
}

// attemptWords says which attempt runs, and since when.
func (d *diagnosis) attemptWords() string {
	a := helper.CurrentAttempt(&d.JobSet.Status)
	if a == nil || a.EndTime != nil {
		if n := d.JobSet.Status.Restarts; n > 0 {
			return fmt.Sprintf("; restarted %s (%s)", count(int(n), "time"), d.noHistory())
		}
		return ""
	}
	words := fmt.Sprintf("; attempt %d (%s)", a.Number, a.Trigger)
	if a.User != "" {
		words += " by " + a.User + quoted(a.Reason)
	}
	switch {
	case a.ReadyTime != nil:
		words += ", ready for " + span(d.Now, a.ReadyTime.Time)
	case a.RequestTime != nil:
		words += ", began " + ago(d.Now, a.RequestTime.Time)
	}
	return words
}

func completed(d *diagnosis) []Finding {
	c := d.endCondition()
	want, _, succeeded := d.tally()
	return []Finding{{
		Cause: Completed,
		Summary: fmt.Sprintf("completed %s: %d of %s succeeded, after %s", ago(d.Now, c.LastTransitionTime.Time), succeeded, count(want, "job"),
			count(int(d.JobSet.Status.Restarts), "restart")),
		Evidence: append([]Fact{conditionFact(d.set(), c)}, d.history()...),
		Commands: []string{d.plugin("timeline %s", d.Name)},
	}}
}

// empty says that the spec of a set asks for no Jobs, so that it neither runs nor ends.
func (d *diagnosis) empty() Finding {
	f := Finding{
		Cause:    NoJobs,
		Summary:  "the spec asks for no jobs: all replicatedJobs have 0 replicas; the set waits, and never completes",
		Evidence: []Fact{{Object: d.set(), Text: "spec.replicatedJobs have 0 replicas in all"}},
		Commands: []string{d.kubectl("get jobset %s -o yaml", d.Name)},
	}
	if len(d.JobSet.Spec.ReplicatedJobs) == 0 {
		f.Summary = "the spec has no replicatedJobs, so that no jobs are created and the set never completes; delete it, and create it with a " +
			"spec"
		f.Evidence[0].Text = "spec.replicatedJobs is empty"
		f.Commands = append(f.Commands, d.kubectl("delete jobset %s", d.Name))
	}
	return f
}
