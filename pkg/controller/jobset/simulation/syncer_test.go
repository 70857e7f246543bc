// Copyright The jobset-apiserver Authors.
// SPDX-License-Identifier: Apache-2.0

package simulation

import (
	"context"
	"errors"

	batchv1 "k8s.io/api/batch/v1"
	corev1 "k8s.io/api/core/v1"
	"k8s.io/apimachinery/pkg/runtime"
	"k8s.io/apimachinery/pkg/types"
	"k8s.io/apimachinery/pkg/util/sets"
	"k8s.io/client-go/tools/cache"
	"k8s.io/klog/v2"

	jobsetv1alpha2 "github.com/jobset-apiserver/jobset-apiserver/pkg/apis/jobset/v1alpha2"
	"github.com/jobset-apiserver/jobset-apiserver/pkg/apis/jobset/v1alpha2/helper"
	"github.com/jobset-apiserver/jobset-apiserver/pkg/controller/children"
	"github.com/jobset-apiserver/jobset-apiserver/pkg/controller/consistency"
	"github.com/jobset-apiserver/jobset-apiserver/pkg/controller/jobset"
	"github.com/jobset-apiserver/jobset-apiserver/pkg/controller/jobset/plan"
	"github.com/jobset-apiserver/jobset-apiserver/pkg/controller/refusals"
	"github.com/jobset-apiserver/jobset-apiserver/pkg/controller/restore"
)

// quiet is a context whose logger writes nothing.
var quiet = klog.NewContext(context.Background(), klog.Logger{})

// newSyncer returns the real Syncer with the caches and the clients of a simulated process.
func newSyncer(p *process) *jobset.Syncer {
	return jobset.NewSyncer(jobset.SyncerConfig{
		Host:   &children.Host{Runner: runner{p}, Consistency: consistencyStore{p}, Clock: p, Shuffle: p.dice.Perm},
		Caches: caches{p}, Recorder: noEvents{}, Gates: p.gates, FirstCause: p.firstCause, Restore: p.restoreState,
		JobSets: func(string) children.OwnerClient[*jobsetv1alpha2.JobSet] { return setClient{p} },
		Jobs: func(string) children.Client[*batchv1.Job] {
			return jobClient{childClient[*batchv1.Job]{process: p, in: &p.env.jobs}}
		},
		Services: func(string) children.Client[*corev1.Service] {
			return childClient[*corev1.Service]{process: p, in: &p.env.services, copy: (*corev1.Service).DeepCopy}
		},
		Claims: func(string) children.Client[*corev1.PersistentVolumeClaim] {
			return childClient[*corev1.PersistentVolumeClaim]{process: p, in: &p.env.claims, copy: (*corev1.PersistentVolumeClaim).DeepCopy}
		},
	})
}

// firstCause is what the failed Job says, unless its pods cannot be read and may be read later.
func (p *process) firstCause(_ context.Context, _ string, job plan.FailedJob) *jobsetv1alpha2.FailureCause {
	if !job.Decided && p.dice.percent(20) {
		return nil
	}
	p.seen[causes]++
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
	js, _ := c.jobSets.get(setName)
	return js, nil
}

func (c caches) Jobs(js *jobsetv1alpha2.JobSet) ([]*batchv1.Job, error) {
	return ownedBy(js.UID, c.jobs.objects), nil
}

func (c caches) HasService(name cache.ObjectName) (bool, error) {
	_, found := c.services.get(name.Name)
	return found, nil
}

func (c caches) HasClaim(name cache.ObjectName) (bool, error) {
	_, found := c.claims.get(name.Name)
	return found, nil
}

func (c caches) Waiting(cache.ObjectName) (map[types.UID]plan.Waiting, error) { return nil, nil }

func (c caches) Landed(types.UID) (string, error) { return "", nil }

func (c caches) Priorities() map[string]int32 { return nil }

func (c caches) Unschedulable(cache.ObjectName) (int, string, error) {
	return c.unschedulable, "no node fits", nil
}

func (c caches) PodRefusal(_ types.UID, lacks bool) *refusals.Refusal {
	if !c.refusesPods || !lacks {
		return nil
	}
	return &refusals.Refusal{Reason: children.QuotaExceeded, Message: "exceeded quota: q", At: c.now}
}

func (c caches) ShutOut(cache.ObjectName) (sets.Set[types.UID], error) { return nil, nil }

func (caches) InPlace([]*batchv1.Job) map[types.UID]plan.InPlace { return nil }

func (caches) PodFailure(cache.ObjectName) (*helper.PodFailure, error) { return nil, nil }

// consistencyStore is the real memory of own writes, which forgetful controllers do not ask.
type consistencyStore struct{ *process }

func (c consistencyStore) Wrote(owner cache.ObjectName, resource, version string) {
	c.writes.Wrote(owner, resource, version)
	c.lastWrite = c.now
	switch resource {
	case resourceJobSets:
		c.knows.note(number(version), 0)
		c.wrote.note(number(version), 0)
	case resourceJobs:
		c.knows.note(0, number(version))
		c.wrote.note(0, number(version))
	}
}

func (c consistencyStore) Deleted(owner cache.ObjectName, child types.UID) {
	c.writes.Deleted(owner, child)
	c.lastWrite = c.now
}

func (c consistencyStore) VersionsShown(owner cache.ObjectName) bool {
	return c.shown(c.writes.VersionsShown(owner))
}

func (c consistencyStore) DeletionsShown(owner cache.ObjectName, children []consistency.Child) bool {
	shown := c.shown(c.writes.DeletionsShown(owner, children))
	if shown {
		c.checkFreshness()
	}
	return shown
}

func (c consistencyStore) shown(shown bool) bool {
	shown = shown || c.forgetful
	c.seen[lags] += int(one(!shown))
	return shown
}

func (c consistencyStore) Forget(owner cache.ObjectName) {
	c.writes.Forget(owner)
	c.process.knows, c.process.wrote = progress{}, progress{}
}
