// Copyright The jobset-apiserver Authors.
// SPDX-License-Identifier: Apache-2.0

package top

import (
	"cmp"
	"fmt"
	"slices"

	corev1 "k8s.io/api/core/v1"
	"k8s.io/apimachinery/pkg/api/meta"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"

	jobsetv1alpha2 "github.com/jobset-apiserver/jobset-apiserver/pkg/apis/jobset/v1alpha2"
	"github.com/jobset-apiserver/jobset-apiserver/pkg/apis/jobset/v1alpha2/helper"
	"github.com/jobset-apiserver/jobset-apiserver/pkg/kubectl/cli"
	"github.com/jobset-apiserver/jobset-apiserver/pkg/kubectl/snapshot"
)

// JobDomain is the topology domain of a Job with exclusive placement.
type JobDomain struct {
	Job           string `json:"job"`
	ReplicatedJob string `json:"replicatedJob"`
	// TopologyKey is the label of nodes whose values are the domains.
	TopologyKey string `json:"topologyKey"`
	// Domain is the value of the label. It is absent while the scheduler has not chosen it.
	Domain string `json:"domain,omitempty"`
	// ByScheduler reports that the scheduler chooses the domain, because there was none with room when the Job was placed,
	// and that the status does not show it yet.
	ByScheduler bool `json:"byScheduler,omitempty"`
	// Nodes is how many nodes of the domain the pods could use when the Job was placed.
	Nodes int `json:"nodes,omitempty"`
	// Pods is the number of pods that the Job has, and Ready how many of them are ready or have succeeded.
	Pods  int `json:"pods"`
	Ready int `json:"ready"`
}

// topology returns the label of nodes by which the first Jobs with exclusive placement of a set are placed; empty if there are none.
func topology(js *jobsetv1alpha2.JobSet) string {
	if js.Status.Placement == nil {
		return ""
	}
	for i := range js.Status.Placement.ReplicatedJobs {
		return js.Status.Placement.ReplicatedJobs[i].TopologyKey
	}
	return ""
}

// addPlacement adds the domains of Jobs with exclusive placement, Jobs with most pods that are not ready first. If the scheduler placed a
// Job, its domain is the domain of its pods, if domains by the label are known.
func (t *Top) addPlacement(s *snapshot.Set, domains map[string]string) {
	status := &s.JobSet.Status
	if c := meta.FindStatusCondition(status.Conditions, jobsetv1alpha2.PlacementPending); c != nil && c.Status == metav1.ConditionTrue {
		t.PlacementPending = cli.Clean(c.Message)
	}
	if status.Placement == nil || status.Placement.Restarts != status.Restarts {
		return
	}
	pods := podsByJob(s)
	for i := range status.Placement.ReplicatedJobs {
		rj := &status.Placement.ReplicatedJobs[i]
		for index, at := range rj.Jobs {
			row := JobDomain{
				Job: helper.JobName(s.JobSet.Name, rj.Name, index), ReplicatedJob: rj.Name, TopologyKey: rj.TopologyKey,
				Domain: at.Domain, ByScheduler: at.Domain == "", Nodes: int(at.Nodes),
			}
			for _, pod := range pods[row.Job] {
				row.add(pod)
				if row.Domain == "" && rj.TopologyKey == t.DomainLabel && pod.Spec.NodeName != "" {
					row.Domain = domains[pod.Spec.NodeName]
				}
			}
			t.JobDomains = append(t.JobDomains, row)
		}
	}
	slices.SortStableFunc(t.JobDomains, func(a, b JobDomain) int { return cmp.Compare(b.Pods-b.Ready, a.Pods-a.Ready) })
}

// podsByJob returns the pods of the current attempt by the name of their Job.
func podsByJob(s *snapshot.Set) map[string][]*corev1.Pod {
	names := map[any]string{}
	for _, job := range s.Jobs {
		if !s.Outdated(job) {
			names[job.UID] = job.Name
		}
	}
	pods := map[string][]*corev1.Pod{}
	for _, pod := range s.Pods {
		if owner := metav1.GetControllerOfNoCopy(pod); owner != nil && names[owner.UID] != "" {
			pods[names[owner.UID]] = append(pods[names[owner.UID]], pod)
		}
	}
	return pods
}

func (d *JobDomain) add(pod *corev1.Pod) {
	if pod.Status.Phase == corev1.PodFailed {
		return
	}
	d.Pods++
	if ready(pod) || pod.Status.Phase == corev1.PodSucceeded {
		d.Ready++
	}
}

// placementLines are the table of Jobs with their domains.
func (t *Top) placementLines(terminal cli.Terminal, all bool) []string {
	rows := rowsOf(t.JobDomains, mostDomains, all, "Job", func(d *JobDomain) []string {
		domain := d.Domain
		switch {
		case domain == "":
			domain = "(chosen by the scheduler)"
		case d.ByScheduler:
			domain += " (by the scheduler)"
		}
		return []string{d.Job, domain, terminal.Paint(shareColor(d.Ready, d.Pods), fmt.Sprintf("%d/%d", d.Ready, d.Pods)), d.TopologyKey}
	})
	columns := []cli.Column{{Title: "JOB"}, {Title: "DOMAIN"}, {Title: "PODS READY"}, {Title: "LABEL OF DOMAINS", Drop: dropOther}}
	return table(terminal, columns, rows)
}
