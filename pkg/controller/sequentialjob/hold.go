// Copyright The jobset-apiserver Authors.
// SPDX-License-Identifier: Apache-2.0

package sequentialjob

import (
	"context"

	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/client-go/tools/cache"

	batchv1alpha1 "github.com/jobset-apiserver/jobset-apiserver/pkg/apis/batch/v1alpha1"
	"github.com/jobset-apiserver/jobset-apiserver/pkg/apis/batch/v1alpha1/helper"
	"github.com/jobset-apiserver/jobset-apiserver/pkg/controller/children"
	"github.com/jobset-apiserver/jobset-apiserver/pkg/controller/kueue"
	kueueplan "github.com/jobset-apiserver/jobset-apiserver/pkg/controller/kueue/plan"
	"github.com/jobset-apiserver/jobset-apiserver/pkg/controller/sequentialjob/plan"
)

// holds returns whether a sequence holds quota for all of its steps.
func (q queues) holds(sj *batchv1alpha1.SequentialJob) bool {
	return q.hold && sj.Labels[helper.QueueKey] != "" && !helper.ManagedElsewhere(sj)
}

// workloadOf returns the Workload that holds quota for a sequence; nil if there is none.
func (q queues) workloadOf(sj *batchv1alpha1.SequentialJob) *kueueplan.Workload {
	for _, w := range q.Holding(cache.MetaObjectToName(sj)) {
		if w.OwnerUID() == sj.UID && w.Name == kueueplan.WorkloadName(sj) {
			return w
		}
	}
	return nil
}

// observeHold returns what is known of the quota of a sequence.
func (q queues) observeHold(ctx context.Context, sj *batchv1alpha1.SequentialJob) (*plan.Hold, error) {
	w := q.workloadOf(sj)
	if w == nil {
		return &plan.Hold{}, nil
	}
	if !kueueplan.Holds(w) {
		return &plan.Hold{Message: kueueplan.Waiting(w)}, nil
	}
	flavors, err := q.Flavors(ctx, w)
	if err != nil {
		return nil, err
	}
	directives, err := kueueplan.DirectivesOf(w, flavors)
	if err != nil {
		return &plan.Hold{Message: err.Error()}, nil
	}
	return &plan.Hold{Admitted: true, Workload: w, Directives: directives, Key: kueueplan.KeyOf(directives)}, nil
}

// holdQuota brings the Workload of a sequence to where it should be, and ends those of sequences of that name which are gone. A
// snapshot is nil if there is no sequence.
func (c *Controller) holdQuota(ctx context.Context, key cache.ObjectName, obs *plan.Observed) error {
	if !c.HoldQuota && (obs == nil || !plan.MayQueue(obs.SequentialJob)) {
		return nil
	}
	if availability, _ := c.queues.Availability(); availability != kueue.Served {
		return nil
	}
	ctx, end := children.Finishing(ctx)
	defer end()
	now := metav1.NewTime(c.Clock.Now())
	ended := c.endOthers(ctx, key, obs, now)
	if obs == nil || helper.ManagedElsewhere(obs.SequentialJob) {
		return ended
	}
	sj := obs.SequentialJob
	h := kueueplan.Holding{
		SequentialJob: sj, Off: !c.HoldQuota, Workload: c.queues.workloadOf(sj),
		Started: plan.Current(*obs).UID != "", Busy: plan.Busy(*obs), Ready: plan.PodsReady(*obs),
	}
	if class := sj.Labels[kueueplan.PriorityClassKey]; class != "" && kueueplan.WantsPriority(h) {
		var err error
		if h.Priority, err = c.queues.Priority(ctx, class); err != nil {
			return children.FirstErrors(ended, err)
		}
	}
	return children.FirstErrors(ended, c.queues.ApplyHold(ctx, sj.Name, h.Workload, kueueplan.DecideHold(h), now))
}

// endOthers ends the Workloads of sequences of this name which are gone.
func (c *Controller) endOthers(ctx context.Context, key cache.ObjectName, obs *plan.Observed, now metav1.Time) error {
	var errs []error
	for _, w := range c.queues.Holding(key) {
		if obs == nil || w.OwnerUID() != obs.SequentialJob.UID {
			errs = append(errs, c.queues.ApplyHold(ctx, key.Name, w, kueueplan.DecideHold(kueueplan.Holding{Workload: w}), now))
		}
	}
	return children.FirstErrors(errs...)
}
