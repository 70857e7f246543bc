// Copyright The jobset-apiserver Authors.
// SPDX-License-Identifier: Apache-2.0

package simulation

import (
	"context"
	"iter"
	"maps"
	"slices"
	"strings"

	batchv1 "k8s.io/api/batch/v1"
	corev1 "k8s.io/api/core/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/types"
	"k8s.io/apimachinery/pkg/util/sets"
	"k8s.io/client-go/tools/cache"
	"k8s.io/utils/ptr"

	jobsetv1alpha2 "github.com/jobset-apiserver/jobset-apiserver/pkg/apis/jobset/v1alpha2"
	"github.com/jobset-apiserver/jobset-apiserver/pkg/apis/jobset/v1alpha2/helper"
	"github.com/jobset-apiserver/jobset-apiserver/pkg/controller/host/children"
	hostplan "github.com/jobset-apiserver/jobset-apiserver/pkg/controller/host/plan"
	"github.com/jobset-apiserver/jobset-apiserver/pkg/controller/host/restore"
	"github.com/jobset-apiserver/jobset-apiserver/pkg/controller/jobset"
	"github.com/jobset-apiserver/jobset-apiserver/pkg/controller/jobset/plan"
	"github.com/jobset-apiserver/jobset-apiserver/pkg/controller/jobset/plan/domains"
	planinplace "github.com/jobset-apiserver/jobset-apiserver/pkg/controller/jobset/plan/inplace"
	"github.com/jobset-apiserver/jobset-apiserver/test/simulation"
)

// This file holds the caches and the clients of a controller in a world.

func newWorldSyncer(p *worldProcess) *jobset.Syncer {
	var places jobset.Placer = p.placer
	if p.wrap != nil {
		places = p.wrap(p, places)
	}
	return jobset.NewSyncer(jobset.SyncerConfig{
		Host:   &children.Host{Runner: simulation.Runner{Order: p.inAnyOrder}, Consistency: p.memory, Clock: p, Shuffle: p.Dice.Perm},
		Caches: worldCaches{p}, Recorder: noEvents{}, Gates: p.gates, FirstCause: p.firstCause, Placer: places, Nodes: p.countNodes,
		Restore: func(context.Context, *jobsetv1alpha2.JobSet) (restore.State, error) { return restore.State{}, nil },
		JobSets: func(string) children.OwnerClient[*jobsetv1alpha2.JobSet] { return worldSetClient{p} },
		Jobs:    func(string) children.Client[*batchv1.Job] { return worldJobClient{p} },
	})
}

// firstCause is what the failed Job says, and on which node that was, unless that cannot be read and may be read later.
func (p *worldProcess) firstCause(_ context.Context, _ string, job plan.FailedJob) *jobsetv1alpha2.FailureCause {
	if !job.Decided && p.Dice.Percent(p.faults.unread) {
		return nil
	}
	cause := helper.FirstCause(job.Name, job.Failure, nil)
	if node := p.lostOn[job.UID]; node != "" {
		cause.Node, cause.Reason = node, "NodeLost"
	}
	return cause
}

// countNodes returns how many nodes there are, unless that cannot be read.
func (p *worldProcess) countNodes(context.Context) int {
	n := len(p.world.nodes.Objects)
	if p.Dice.Percent(p.faults.unread / 2) {
		n = 0
	}
	p.counted = n
	if p.miscounting {
		n = 100
	}
	return n
}

func (p *worldProcess) inAnyOrder(n int) iter.Seq[int] { return slices.Values(p.Dice.Perm(n)) }

type worldCaches struct{ p *worldProcess }

func (c worldCaches) JobSet(key cache.ObjectName) (*jobsetv1alpha2.JobSet, error) {
	js, _ := c.p.sets.Get(key.Name)
	if js != nil && c.p.cached != nil {
		js = c.p.cached(c.p, js)
	}
	return js, nil
}

// Jobs returns what the real cache keeps: pod templates of suspended Jobs, and domains of those that run.
func (c worldCaches) Jobs(js *jobsetv1alpha2.JobSet) ([]*batchv1.Job, error) {
	jobs := ownedBy(js.UID, c.p.jobs.Objects)
	for i, job := range jobs {
		if !jobIsSuspended(job) {
			kept := *job
			kept.Spec.Template = corev1.PodTemplateSpec{}
			if !c.p.domainless {
				kept.Spec.Template.Spec.NodeSelector = job.Spec.Template.Spec.NodeSelector
			}
			jobs[i] = &kept
		}
	}
	return jobs, nil
}

func (worldCaches) HasService(cache.ObjectName) (bool, error) { return true, nil }

func (worldCaches) HasClaim(cache.ObjectName) (bool, error) { return true, nil }

func (worldCaches) Priorities() map[string]int32 { return priorities }

func (c worldCaches) InPlace(jobs []*batchv1.Job) map[types.UID]planinplace.State {
	out := map[types.UID]planinplace.State{}
	for _, job := range jobs {
		if pods, found := c.p.tally.Of(job.UID); found {
			out[job.UID] = pods
		}
	}
	if c.p.counts != nil {
		c.p.counts(out)
	}
	return out
}

func (c worldCaches) PodFailure(name cache.ObjectName) (*helper.PodFailure, error) {
	pod, found := c.p.pods.Get(name.Name)
	if !found {
		return nil, nil
	}
	return helper.FailureOfPod(pod), nil
}

// each calls f for each pod of a set that waits for a node.
func (c worldCaches) each(key cache.ObjectName, f func(pod *corev1.Pod, waits *corev1.PodCondition)) {
	for _, pod := range c.p.pods.Objects {
		if waits := scheduled(pod); waits != nil && pod.Labels[jobsetv1alpha2.JobSetNameKey] == key.Name {
			f(pod, waits)
		}
	}
}

func (worldCaches) PodRefusal(types.UID, bool) *hostplan.Refusal { return nil }

func (c worldCaches) Unschedulable(key cache.ObjectName) (pods int, reason string, err error) {
	c.each(key, func(_ *corev1.Pod, waits *corev1.PodCondition) { pods, reason = pods+1, waits.Message })
	return pods, reason, nil
}

func (c worldCaches) Waiting(key cache.ObjectName) (map[types.UID]domains.Waiting, error) {
	out := map[types.UID]domains.Waiting{}
	c.each(key, func(pod *corev1.Pod, waits *corev1.PodCondition) {
		job := pod.OwnerReferences[0].UID
		w := out[job]
		if since := waits.LastTransitionTime.Time; w.Since.IsZero() || since.Before(w.Since) {
			w.Since, w.Reason = since, waits.Message
		}
		w.Nominated = w.Nominated || pod.Status.NominatedNodeName != ""
		out[job] = w
	})
	return out, nil
}

// Landed returns the first node on which a pod of a Job is.
func (c worldCaches) Landed(job types.UID) (node string, err error) {
	for _, pod := range c.p.pods.Objects {
		own := len(pod.OwnerReferences) > 0 && pod.OwnerReferences[0].UID == job
		if at := pod.Spec.NodeName; own && at != "" && (node == "" || at < node) {
			node = at
		}
	}
	return node, nil
}

func (c worldCaches) ShutOut(key cache.ObjectName) (sets.Set[types.UID], error) {
	out := sets.New[types.UID]()
	c.each(key, func(pod *corev1.Pod, waits *corev1.PodCondition) {
		if strings.Contains(waits.Message, "node affinity") {
			out.Insert(pod.OwnerReferences[0].UID)
		}
	})
	return out, nil
}

// worldSetClient is a client of JobSets.
type worldSetClient struct{ p *worldProcess }

func (c worldSetClient) UpdateStatus(_ context.Context, wanted *jobsetv1alpha2.JobSet, _ metav1.UpdateOptions) (*jobsetv1alpha2.JobSet, error) {
	at := c.p.observed
	return simulation.Send(c.p.sender, wanted, func(known bool) (*jobsetv1alpha2.JobSet, error) {
		current, found := c.p.world.sets.Get(wanted.Name)
		switch {
		case !found:
			return nil, simulation.ErrNotFound
		case current.ResourceVersion != wanted.ResourceVersion:
			c.p.Seen["conflicts"]++
			return nil, simulation.ErrConflict
		}
		next := *current
		next.Status = asStored(&wanted.Status)
		c.p.Note("  stores the status of %s%s", next.Name, describePlacement(&next.Status))
		c.p.rules.stored(at, current, &next, known)
		c.p.world.sets.Put(&next)
		return &next, nil
	})
}

func (worldSetClient) Delete(context.Context, string, metav1.DeleteOptions) error {
	panic("no set of a world has a time to live")
}

// worldJobClient is a client of Jobs.
type worldJobClient struct{ p *worldProcess }

func (c worldJobClient) Create(_ context.Context, wanted *batchv1.Job, _ metav1.CreateOptions) (*batchv1.Job, error) {
	at := c.p.observed
	return simulation.Send(c.p.sender, wanted, func(bool) (*batchv1.Job, error) {
		if _, taken := c.p.world.jobs.Get(wanted.Name); taken {
			return nil, simulation.ErrExists
		}
		job := *wanted
		job.UID, job.CreationTimestamp = c.p.NewUID("job"), c.p.Stored()
		job.Spec.Template.Labels = maps.Clone(job.Spec.Template.Labels)
		job.Spec.Template.Labels["controller-uid"] = string(job.UID)
		c.p.Note("  creates job %s: %v", job.Name, job.Spec.Template.Spec.NodeSelector)
		c.p.rules.created(at.Observed, &job)
		c.p.world.jobs.Put(&job)
		return &job, nil
	})
}

func (c worldJobClient) Get(_ context.Context, name string, _ metav1.GetOptions) (*batchv1.Job, error) {
	return simulation.Read(c.p.sender, func() (*batchv1.Job, error) {
		job, found := c.p.world.jobs.Get(name)
		if !found {
			return nil, simulation.ErrNotFound
		}
		return job, nil
	})
}

func (c worldJobClient) Delete(_ context.Context, name string, options metav1.DeleteOptions) error {
	_, err := simulation.Send(c.p.sender, nil, func(bool) (*batchv1.Job, error) {
		job, found := c.p.world.jobs.Get(name)
		switch {
		case !found:
			return nil, simulation.ErrNotFound
		case job.UID != *options.Preconditions.UID:
			return nil, simulation.ErrConflict
		}
		c.p.Note("  deletes job %s", name)
		c.p.deleteJob(job)
		return nil, nil
	})
	return err
}

func (c worldJobClient) Patch(_ context.Context, name string, _ types.PatchType, patch []byte, _ metav1.PatchOptions, subresources ...string) (*batchv1.Job, error) {
	at := c.p.observed
	return simulation.Send(c.p.sender, &batchv1.Job{}, func(bool) (*batchv1.Job, error) {
		job, found := c.p.world.jobs.Get(name)
		if !found {
			return nil, simulation.ErrNotFound
		}
		next, err := patched(job, patch)
		switch {
		case err != nil:
			return nil, errInvalid
		case next.ResourceVersion != job.ResourceVersion:
			return nil, simulation.ErrConflict
		case slices.Contains(subresources, "status") && !jobIsSuspended(job):
			return nil, errInvalid
		}
		c.p.Note("  patches job %s: suspend %t, %v", name, jobIsSuspended(next), next.Spec.Template.Spec.NodeSelector)
		if jobIsSuspended(job) && !jobIsSuspended(next) {
			next.Spec.Suspend = ptr.To(false)
			c.p.rules.created(at.Observed, next)
		}
		c.p.world.jobs.Put(next)
		return next, nil
	})
}
