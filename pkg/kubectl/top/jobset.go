// Copyright The jobset-apiserver Authors.
// SPDX-License-Identifier: Apache-2.0

package top

import (
	"context"
	"time"

	corev1 "k8s.io/api/core/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/types"
	"k8s.io/utils/ptr"

	"github.com/jobset-apiserver/jobset-apiserver/pkg/apis/jobset/v1alpha2/helper"
	"github.com/jobset-apiserver/jobset-apiserver/pkg/kubectl/cli"
	"github.com/jobset-apiserver/jobset-apiserver/pkg/kubectl/snapshot"
)

// JobSet is the Loader of JobSets.
func JobSet(ctx context.Context, c *cli.Clients, name string) (Subject, error) {
	return snapshot.Read(ctx, c, name, snapshot.Load, func(set *snapshot.Set) Subject { return jobs{set} })
}

// jobs is a JobSet as a Subject.
type jobs struct{ *snapshot.Set }

func (j jobs) placed() []*corev1.Pod { return j.Pods }

func (j jobs) topology() string { return topology(j.JobSet) }

func (j jobs) figures(domainLabel string, domains map[string]string) View {
	return New(j.Set, domainLabel, domains)
}

// Top is what -o json prints. Its fields are described in docs/kubectl.md.
type Top struct {
	Name      string `json:"name"`
	Namespace string `json:"namespace"`
	snapshot.Summary
	Totals
	Restarts       int             `json:"restarts"`
	Counted        int             `json:"countedRestarts"`
	Limit          int             `json:"restartLimit"`
	Attempts       *Attempts       `json:"attempts,omitempty"`
	ReadyShare     *ReadyShare     `json:"readyShare,omitempty"`
	Goodput        *Goodput        `json:"goodput,omitempty"`
	ReplicatedJobs []ReplicatedJob `json:"replicatedJobs"`
	// PlacementPending is why Jobs with exclusive placement have no domains yet. Absent if they have, or if the set has no such Jobs.
	PlacementPending string `json:"placementPending,omitempty"`
	// JobDomains are the topology domains of Jobs with exclusive placement.
	JobDomains []JobDomain `json:"jobDomains,omitempty"`
	Placement
}

// Totals are the figures of all pods of a set.
type Totals struct {
	Pods     Pods      `json:"pods"`
	Requests Resources `json:"requests"`
}

// Pods counts the pods of the current attempt: Wanted is how many the set wants, Existing how many exist, and of these, Ready are ready,
// Succeeded have succeeded and Failed have failed. Leaving are pods of Jobs of an earlier attempt, and pods of groups that are being
// deleted, counted nowhere else. Removed are pods that do not exist because the set has finished or is being deleted.
type Pods struct {
	Wanted    int `json:"wanted"`
	Existing  int `json:"existing"`
	Ready     int `json:"ready"`
	Succeeded int `json:"succeeded"`
	Failed    int `json:"failed"`
	Leaving   int `json:"leaving"`
	Removed   int `json:"removed,omitempty"`
}

// Resources are sums of requests by name of the resource.
type Resources = corev1.ResourceList

// Attempts counts the attempts of the set. ByTrigger counts those that are still listed, which are the last ten.
type Attempts struct {
	Number    int            `json:"number"`
	ByTrigger map[string]int `json:"byTrigger"`
	listed    []string
}

// ReadyShare is the share of the life of the set in which all Jobs were ready.
type ReadyShare struct {
	ReadySeconds float64 `json:"readySeconds"`
	LifeSeconds  float64 `json:"lifeSeconds"`
	Share        float64 `json:"share"`
}

// Goodput is the share of the life of the set in which it did work that a checkpoint has kept.
type Goodput struct {
	GoodSeconds float64 `json:"goodSeconds"`
	LifeSeconds float64 `json:"lifeSeconds"`
	Share       float64 `json:"share"`
	// Step and Time describe the last checkpoint in the listed attempts. Absent if there is none.
	Step *int64            `json:"step,omitempty"`
	Time *metav1.MicroTime `json:"time,omitempty"`
	// ago is how long ago that was.
	ago time.Duration
}

// ReplicatedJob is a replicatedJob.
type ReplicatedJob struct {
	Name      string    `json:"name"`
	Jobs      int       `json:"jobs"`
	JobsReady int       `json:"jobsReady"`
	Pods      Pods      `json:"pods"`
	Restarts  int       `json:"restarts"`
	Requests  Resources `json:"requests"`
}

// New derives the figures from what was read. Domains are by name of node, nil when they are not known.
func New(s *snapshot.Set, domainLabel string, domains map[string]string) *Top {
	js := s.JobSet
	t := &Top{
		Name: js.Name, Namespace: js.Namespace, Summary: snapshot.Summarize(js), Totals: Totals{Requests: Resources{}},
		Restarts: int(js.Status.Restarts), Counted: int(helper.CountedRestarts(&js.Status)), Limit: int(helper.RestartLimit(js)),
		Placement: Placement{DomainLabel: domainLabel}, ReplicatedJobs: []ReplicatedJob{},
	}
	t.addHistory(s)
	groups, leaving, places := map[string]*ReplicatedJob{}, map[types.UID]bool{}, newPlaces(domains)
	for i := range js.Spec.ReplicatedJobs {
		rj := &js.Spec.ReplicatedJobs[i]
		counts := helper.CountReplicatedJob(js, rj.Name)
		t.ReplicatedJobs = append(t.ReplicatedJobs, ReplicatedJob{Name: rj.Name, Jobs: int(counts.Wanted), JobsReady: int(counts.Up),
			Requests: Resources{}})
	}
	for i := range t.ReplicatedJobs {
		g, spec := &t.ReplicatedJobs[i], &js.Spec.ReplicatedJobs[i].Template.Spec
		groups[g.Name] = g
		g.Pods.Wanted = g.Jobs * int(ptr.Deref(spec.Completions, ptr.Deref(spec.Parallelism, 1)))
		t.Pods.Wanted += g.Pods.Wanted
		for index := range g.Jobs {
			g.Restarts += s.JobRestarts(g.Name, index)
		}
	}
	for _, job := range s.Jobs {
		state := s.JobState(job)
		leaving[job.UID] = state == snapshot.JobTerminating || state == snapshot.JobOutdated
	}
	for _, pod := range s.Pods {
		requests := Resources{}
		if !snapshot.PodEnded(pod) {
			requests = snapshot.PodRequests(&pod.Spec)
			places.add(pod, requests)
		}
		old := leaving[metav1.GetControllerOfNoCopy(pod).UID]
		t.Pods.add(pod, old)
		snapshot.AddResources(t.Requests, requests)
		if g := groups[snapshot.ReplicatedJob(pod)]; g != nil {
			g.Pods.add(pod, old)
			snapshot.AddResources(g.Requests, requests)
		}
	}
	t.Nodes, t.Domains = places.sorted()
	t.addPlacement(s, domains)
	if helper.Ended(js) {
		t.Pods.removed()
		for i := range t.ReplicatedJobs {
			t.ReplicatedJobs[i].Pods.removed()
		}
	}
	return t
}

func (t *Top) addHistory(s *snapshot.Set) {
	last := helper.CurrentAttempt(&s.JobSet.Status)
	if last == nil {
		if snapshot.LacksAttempts(s.JobSet) {
			t.Notes = append(t.Notes, snapshot.NoAttempts(s.JobSet))
		}
		return
	}
	t.Attempts = &Attempts{Number: int(last.Number), ByTrigger: map[string]int{}}
	for _, attempt := range s.JobSet.Status.Attempts {
		if t.Attempts.ByTrigger[string(attempt.Trigger)] == 0 {
			t.Attempts.listed = append(t.Attempts.listed, string(attempt.Trigger))
		}
		t.Attempts.ByTrigger[string(attempt.Trigger)]++
	}
	ready, life := helper.ReadyShareOf(s.JobSet).At(s.Now)
	t.ReadyShare = &ReadyShare{ReadySeconds: ready.Seconds(), LifeSeconds: life.Seconds()}
	if life > 0 {
		t.ReadyShare.Share = ready.Seconds() / life.Seconds()
	}
	t.addGoodput(s)
}

func (p *Pods) add(pod *corev1.Pod, leaving bool) {
	if leaving {
		p.Leaving++
		return
	}
	p.Existing++
	switch {
	case pod.Status.Phase == corev1.PodSucceeded:
		p.Succeeded++
	case pod.Status.Phase == corev1.PodFailed:
		p.Failed++
	case ready(pod):
		p.Ready++
	}
}

// removed counts the pods that do not exist as those that are not needed any more.
func (p *Pods) removed() { p.Removed = max(0, p.Wanted-p.Existing) }

func ready(pod *corev1.Pod) bool {
	return pod.DeletionTimestamp == nil && snapshot.PodReady(pod) && !snapshot.PodEnded(pod)
}

// addGoodput adds the goodput of a set whose job reports its checkpoints.
func (t *Top) addGoodput(s *snapshot.Set) {
	goodput, reports := helper.GoodputOf(s.JobSet)
	if !reports {
		return
	}
	good, life := goodput.At(s.Now)
	t.Goodput = &Goodput{GoodSeconds: good.Seconds(), LifeSeconds: life.Seconds(), Share: goodput.Ratio(s.Now)}
	if last := helper.LastCheckpoint(&s.JobSet.Status); last != nil && last.Time != nil {
		t.Goodput.Step, t.Goodput.Time, t.Goodput.ago = ptr.To(last.Step), last.Time, s.Now.Sub(last.Time.Time)
	}
}
