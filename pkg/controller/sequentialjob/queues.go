// Copyright The jobset-apiserver Authors.
// SPDX-License-Identifier: Apache-2.0

package sequentialjob

import (
	"context"

	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/client-go/tools/cache"

	batchv1alpha1 "github.com/jobset-apiserver/jobset-apiserver/pkg/apis/batch/v1alpha1"
	"github.com/jobset-apiserver/jobset-apiserver/pkg/controller/host/informers"
	hostplan "github.com/jobset-apiserver/jobset-apiserver/pkg/controller/host/plan"
	"github.com/jobset-apiserver/jobset-apiserver/pkg/controller/kueue"
	kueueplan "github.com/jobset-apiserver/jobset-apiserver/pkg/controller/kueue/plan"
	"github.com/jobset-apiserver/jobset-apiserver/pkg/controller/sequentialjob/plan"
)

// queues is what the controller knows of Kueue.
type queues struct {
	*kueue.Watch
	// hold is true if sequences with a queue hold quota for all of their steps.
	hold bool
}

var _ Queues = queues{}

// newQueues returns what looks at a sequence when the Workload of its child changes.
func (c *Controller) newQueues() *queues {
	return &queues{hold: c.HoldQuota, Watch: kueue.NewWatch(kueue.Config{
		Kube: c.Kube, Dynamic: c.Dynamic, Changed: c.enqueueOwnerOf, AvailabilityChanged: c.enqueueQueued, Clock: c.Clock,
	})}
}

// enqueueOwnerOf looks at the sequence that a Workload belongs to, by its child. A child that is not known yet is looked at when it
// appears.
func (c *Controller) enqueueOwnerOf(w *kueueplan.Workload) {
	owner := w.Owner()
	if owner == nil {
		return
	}
	var children *informers.Informer
	switch owner.Kind {
	case "Job":
		children = c.caches.jobs
	case "JobSet":
		children = c.caches.jobSets
	case "SequentialJob":
		c.queue.Add(cache.NewObjectName(w.Namespace, owner.Name))
		return
	default:
		return
	}
	obj, err := children.GetByKey(cache.NewObjectName(w.Namespace, owner.Name).String())
	if child, ok := obj.(*watchedChild); ok && err == nil && child.UID == owner.UID {
		c.enqueueOwner(child)
	}
}

// enqueueQueued looks at all sequences that may have a queue, and at those that have gone while the Workloads were not known.
func (c *Controller) enqueueQueued() {
	for _, name := range c.queues.Sequences() {
		c.queue.Add(name)
	}
	for _, obj := range c.caches.sequentialJobs.List() {
		if sj, ok := obj.(*batchv1alpha1.SequentialJob); ok && plan.MayQueue(sj) {
			c.queue.Add(cache.MetaObjectToName(sj))
		}
	}
}

// Queue implements Queues.
func (q queues) Queue(ctx context.Context, sj *batchv1alpha1.SequentialJob, child plan.ChildRef) (plan.Queue, error) {
	availability, unreadable := q.Availability()
	known := plan.Queue{Served: availability != kueue.Absent, Unreadable: unreadable}
	if q.holds(sj) {
		known.Hold = q.observeHold(ctx, sj)
	}
	known.Workload = q.workloadOfChild(availability, child)
	return known, nil
}

// workloadOfChild returns what is known of the Workload of a child.
func (q queues) workloadOfChild(availability kueue.Availability, child plan.ChildRef) hostplan.Known[*plan.Workload] {
	w, known := q.Of(child.UID)
	switch {
	case availability == kueue.Absent:
		return hostplan.None[*plan.Workload]() // what is left of Kueue starts nothing
	case !known:
		return hostplan.Known[*plan.Workload]{}
	case w == nil || w.DeletionTimestamp != nil:
		return hostplan.None[*plan.Workload]()
	}
	_, deactivated := w.Annotations[batchv1alpha1.DeactivatedByKey]
	return hostplan.Of(&plan.Workload{
		Name: w.Name, ResourceVersion: w.ResourceVersion, UID: w.UID, Active: w.Active(), Deactivated: deactivated, Message: kueueplan.Waiting(w),
	})
}

// SetActive implements Queues.
func (q queues) SetActive(ctx context.Context, sj *batchv1alpha1.SequentialJob, patch plan.WorkloadPatch) error {
	w := &kueueplan.Workload{ObjectMeta: metav1.ObjectMeta{Namespace: sj.Namespace, Name: patch.Name, UID: patch.UID,
		ResourceVersion: patch.ResourceVersion}}
	activation := kueueplan.Deactivate
	if patch.Active {
		activation = kueueplan.Activate
	}
	return q.Watch.SetActive(ctx, w, sj, activation)
}
