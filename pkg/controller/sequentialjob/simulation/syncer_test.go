// Copyright The jobset-apiserver Authors.
// SPDX-License-Identifier: Apache-2.0

package simulation

import (
	"context"
	"slices"
	"strconv"

	batchv1 "k8s.io/api/batch/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/types"
	"k8s.io/apimachinery/pkg/util/sets"
	"k8s.io/client-go/tools/cache"

	batchv1alpha1 "github.com/jobset-apiserver/jobset-apiserver/pkg/apis/batch/v1alpha1"
	jobsetv1alpha2 "github.com/jobset-apiserver/jobset-apiserver/pkg/apis/jobset/v1alpha2"
	"github.com/jobset-apiserver/jobset-apiserver/pkg/apis/jobset/v1alpha2/helper"
	"github.com/jobset-apiserver/jobset-apiserver/pkg/controller/host/children"
	hostplan "github.com/jobset-apiserver/jobset-apiserver/pkg/controller/host/plan"
	"github.com/jobset-apiserver/jobset-apiserver/pkg/controller/host/restore"
	"github.com/jobset-apiserver/jobset-apiserver/pkg/controller/sequentialjob"
	"github.com/jobset-apiserver/jobset-apiserver/pkg/controller/sequentialjob/plan"
	"github.com/jobset-apiserver/jobset-apiserver/pkg/unreadable"
	"github.com/jobset-apiserver/jobset-apiserver/test/simulation"
)

// newSyncer returns the real Syncer with the caches and the clients of a simulated process.
func newSyncer(p *process) *sequentialjob.Syncer {
	return sequentialjob.NewSyncer(sequentialjob.SyncerConfig{
		Host:   &children.Host{Runner: simulation.Runner{}, Consistency: p.memory, Clock: p, Denials: p.Denials(p.hurried), Shuffle: p.Dice.Perm},
		Caches: caches{p}, Recorder: p, Restore: p.restoreState, FirstCause: p.firstCause, Queues: queues{p}, Running: p.running,
		SequentialJobs: func(string) sequentialjob.Client { return sequenceClient{p} },
		Jobs: func(string) children.Client[*batchv1.Job] {
			return childClient[*batchv1.Job]{p, &p.env.jobs, (*batchv1.Job).DeepCopy}
		},
		JobSets: func(string) children.Client[*jobsetv1alpha2.JobSet] {
			return childClient[*jobsetv1alpha2.JobSet]{p, &p.env.jobSets, (*jobsetv1alpha2.JobSet).DeepCopy}
		},
	})
}

// firstCause is what the failed Job says, unless its pods cannot be read and may be read later.
func (p *process) firstCause(_ context.Context, _ string, job plan.FailedJob) *jobsetv1alpha2.FailureCause {
	if p.Dice.Percent(20) {
		return nil
	}
	return helper.FirstCause(job.Name, job.Failure, nil)
}

// restoreState returns what is known after the store was restored.
func (p *process) restoreState(_ context.Context, sj *batchv1alpha1.SequentialJob) (restore.State, error) {
	n, err := strconv.Atoi(sj.ResourceVersion)
	return restore.State{Restored: n <= p.restoredAt}, err
}

// caches are the caches of a process.
type caches struct{ p *process }

func (c caches) SequentialJob(cache.ObjectName) (*batchv1alpha1.SequentialJob, error) {
	sj, _ := c.p.sequences.Get(name)
	return sj, nil
}

func (c caches) Children(sj *batchv1alpha1.SequentialJob) (owned []plan.Child, err error) {
	c.p.busy = sets.New[types.UID]()
	for _, job := range c.p.jobs.Objects {
		if plan.ChildOfJob(job).Busy {
			c.p.busy.Insert(job.UID)
		}
		if c.p.hasty {
			job = job.DeepCopy()
			job.Status.Terminating = nil
		}
		if metav1.IsControlledBy(job, sj) || c.p.greedy {
			owned = append(owned, plan.ChildOfJob(job))
		}
	}
	for _, js := range c.p.jobSets.Objects {
		if plan.ChildOfJobSet(js).Busy {
			c.p.busy.Insert(js.UID)
		}
		if metav1.IsControlledBy(js, sj) || c.p.greedy {
			owned = append(owned, plan.ChildOfJobSet(js))
		}
	}
	return owned, nil
}

func (c caches) Unreadable(sj *batchv1alpha1.SequentialJob) (all []plan.Unreadable, err error) {
	c.p.blind = slices.ContainsFunc(c.p.jobSets.Objects, func(js *jobsetv1alpha2.JobSet) bool {
		return unreadable.Is(js) && !slices.ContainsFunc(sj.Status.Steps, func(step batchv1alpha1.SequentialJobStepStatus) bool {
			return step.ChildUID == js.UID && step.CompletionTime != nil // nothing depends on the child of a step that has ended
		})
	})
	for _, js := range c.p.jobSets.Objects {
		if unreadable.Is(js) && metav1.IsControlledBy(js, sj) && !c.p.credulous {
			all = append(all, plan.Unreadable{Name: js.Name, UID: js.UID, Cause: js.Annotations[unreadable.Annotation]})
		}
	}
	return all, nil
}

func (caches) PodRefusal(types.UID, bool) *hostplan.Refusal { return nil }

func (caches) Unschedulable(*batchv1alpha1.SequentialJob) (int, string, error) { return 0, "", nil }
