// Copyright The jobset-apiserver Authors.
// SPDX-License-Identifier: Apache-2.0

package simulation

import (
	"context"
	"errors"
	"iter"

	batchv1 "k8s.io/api/batch/v1"
	corev1 "k8s.io/api/core/v1"
	"k8s.io/apimachinery/pkg/runtime"
	"k8s.io/apimachinery/pkg/types"
	"k8s.io/apimachinery/pkg/util/sets"
	"k8s.io/client-go/tools/cache"

	"github.com/jobset-apiserver/jobset-apiserver/pkg/apis/generic/reasons"
	jobsetv1alpha2 "github.com/jobset-apiserver/jobset-apiserver/pkg/apis/jobset/v1alpha2"
	"github.com/jobset-apiserver/jobset-apiserver/pkg/apis/jobset/v1alpha2/helper"
	"github.com/jobset-apiserver/jobset-apiserver/pkg/controller/host/children"
	"github.com/jobset-apiserver/jobset-apiserver/pkg/controller/host/consistency"
	hostplan "github.com/jobset-apiserver/jobset-apiserver/pkg/controller/host/plan"
	"github.com/jobset-apiserver/jobset-apiserver/pkg/controller/host/restore"
	"github.com/jobset-apiserver/jobset-apiserver/pkg/controller/jobset"
	"github.com/jobset-apiserver/jobset-apiserver/pkg/controller/jobset/plan"
	"github.com/jobset-apiserver/jobset-apiserver/pkg/controller/jobset/plan/domains"
	planinplace "github.com/jobset-apiserver/jobset-apiserver/pkg/controller/jobset/plan/inplace"
	"github.com/jobset-apiserver/jobset-apiserver/test/simulation"
)

// newSyncer returns the real Syncer with the caches and the clients of a simulated process.
func newSyncer(p *process) *jobset.Syncer {
	config := jobset.SyncerConfig{
		Host:   &children.Host{Runner: simulation.Runner{Order: p.inBatches, Timid: p.timid}, Consistency: memory{p.memory, p}, Clock: p, Denials: p.Denials(p.hurried), Shuffle: p.Dice.Perm},
		Caches: caches{p}, Recorder: noEvents{}, Gates: p.gates, FirstCause: p.firstCause, Restore: p.restoreState,
		JobSets: func(string) children.OwnerClient[*jobsetv1alpha2.JobSet] { return setClient{p} },
		Jobs: func(string) children.Client[*batchv1.Job] {
			return jobClient{simulation.Client[*batchv1.Job]{Resource: p.env.jobs, Sender: p.sender}, p}
		},
		Services: func(string) children.Client[*corev1.Service] { return creator(p, p.env.services) },
		Claims:   func(string) children.Client[*corev1.PersistentVolumeClaim] { return creator(p, p.env.claims) },
	}
	if p.gangs != nil {
		config.Groups = processGroups{p}
	}
	return jobset.NewSyncer(config)
}

// inBatches is the order of requests that begin in batches of growing size: any order within a batch.
func (p *process) inBatches(n int) iter.Seq[int] {
	return func(yield func(int) bool) {
		for begin, size := 0, 1; begin < n; begin, size = begin+size, 2*size {
			size = min(size, n-begin)
			for _, i := range p.Dice.Perm(size) {
				if !yield(begin + i) {
					return
				}
			}
		}
	}
}

// firstCause is what the failed Job says, unless its pods cannot be read and may be read later.
func (p *process) firstCause(_ context.Context, _ string, job plan.FailedJob) *jobsetv1alpha2.FailureCause {
	if !job.Decided && p.Dice.Percent(20) {
		return nil
	}
	p.Seen["first causes told"]++
	return helper.FirstCause(job.Name, job.Failure, nil)
}

// restoreState returns what is known after the store was restored.
func (p *process) restoreState(_ context.Context, js *jobsetv1alpha2.JobSet) (restore.State, error) {
	if number(js.ResourceVersion) <= p.restoredAt {
		return restore.State{Restored: true}, nil
	}
	r := p.invariants.restored
	if r == nil || p.invariants.uid != js.UID {
		return restore.State{}, nil
	}
	if live := p.invariants.set(); live == nil || live.ResourceVersion != js.ResourceVersion {
		return restore.State{}, errors.New("the cache does not show the last write")
	}
	return restore.State{Restored: !r.written, Edited: true, Acted: r.acted}, nil
}

// noEvents drops events.
type noEvents struct{}

func (noEvents) Eventf(runtime.Object, runtime.Object, string, string, string, string, ...any) {}

// caches are the caches of a process.
type caches struct{ *process }

func (c caches) JobSet(cache.ObjectName) (*jobsetv1alpha2.JobSet, error) {
	js, _ := c.jobSets.Get(setName)
	return js, nil
}

func (c caches) Jobs(js *jobsetv1alpha2.JobSet) ([]*batchv1.Job, error) {
	return ownedBy(js.UID, c.jobs.Objects), nil
}

func (c caches) HasService(name cache.ObjectName) (bool, error) {
	_, found := c.services.Get(name.Name)
	return found, nil
}

func (c caches) HasClaim(name cache.ObjectName) (bool, error) {
	_, found := c.claims.Get(name.Name)
	return found, nil
}

func (c caches) Waiting(cache.ObjectName) (map[types.UID]domains.Waiting, error) { return nil, nil }

func (c caches) Landed(types.UID) (string, error) { return "", nil }

func (c caches) Priorities() map[string]int32 { return nil }

func (c caches) Unschedulable(cache.ObjectName) (int, string, error) {
	return c.unschedulable, "no node fits", nil
}

func (c caches) PodRefusal(_ types.UID, lacks bool) *hostplan.Refusal {
	if !c.refusesPods || !lacks {
		return nil
	}
	return &hostplan.Refusal{Reason: reasons.QuotaExceeded, Message: "exceeded quota: q", At: c.Now()}
}

func (c caches) ShutOut(cache.ObjectName) (sets.Set[types.UID], error) { return nil, nil }

func (caches) InPlace([]*batchv1.Job) map[types.UID]planinplace.State { return nil }

func (caches) PodFailure(cache.ObjectName) (*helper.PodFailure, error) { return nil, nil }

// memory is the memory of own writes, which notes how far the process must see.
type memory struct {
	simulation.Memory
	p *process
}

func (m memory) Wrote(owner cache.ObjectName, resource, version string) {
	m.Memory.Wrote(owner, resource, version)
	m.p.lastWrite = m.p.Now()
	switch resource {
	case resourceJobSets:
		m.p.knows.note(number(version), 0)
		m.p.wrote.note(number(version), 0)
	case resourceJobs:
		m.p.knows.note(0, number(version))
		m.p.wrote.note(0, number(version))
	}
}

func (m memory) Deleted(owner cache.ObjectName, child types.UID) {
	m.Memory.Deleted(owner, child)
	m.p.lastWrite = m.p.Now()
}

func (m memory) DeletionsShown(owner cache.ObjectName, owned []consistency.Child) bool {
	shown := m.Memory.DeletionsShown(owner, owned)
	if shown {
		m.p.checkFreshness()
	}
	return shown
}

func (m memory) Forget(owner cache.ObjectName) {
	m.Memory.Forget(owner)
	m.p.knows, m.p.wrote = progress{}, progress{}
}
