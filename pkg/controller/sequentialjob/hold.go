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
	kueueplan "github.com/jobset-apiserver/jobset-apiserver/pkg/controller/kueue/plan"
	"github.com/jobset-apiserver/jobset-apiserver/pkg/controller/sequentialjob/plan"
)

// holds returns whether a sequence holds quota for all of its steps.
func (q queues) holds(sj *batchv1alpha1.SequentialJob) bool {
	return q.hold && sj.Labels[helper.QueueKey] != "" && !helper.ManagedElsewhere(sj)
}

// workloadOf returns the Workload that holds quota for a sequence; nil if there is none. It returns false if that is not known.
func (q queues) workloadOf(sj *batchv1alpha1.SequentialJob) (*kueueplan.Workload, bool) {
	workloads, known := q.Holding(cache.MetaObjectToName(sj))
	for _, w := range workloads {
		if w.OwnerUID() == sj.UID && w.Name == kueueplan.WorkloadName(sj) {
			return w, known
		}
	}
	return nil, known
}

// observeHold returns what is known of the quota of a sequence.
func (q queues) observeHold(ctx context.Context, sj *batchv1alpha1.SequentialJob) (*plan.Hold, error) {
	w, known := q.workloadOf(sj)
	switch {
	case !known:
		return &plan.Hold{}, nil
	case w == nil:
		return &plan.Hold{Quota: plan.QuotaMissing}, nil
	case !kueueplan.Holds(w):
		return &plan.Hold{Quota: plan.QuotaMissing, Message: kueueplan.Waiting(w)}, nil
	}
	flavors, err := q.Flavors(ctx, w)
	if err != nil {
		return nil, err
	}
	directives, err := kueueplan.DirectivesOf(w, flavors)
	if err != nil {
		return &plan.Hold{Quota: plan.QuotaMissing, Message: err.Error()}, nil
	}
	return &plan.Hold{Quota: plan.QuotaHeld, Workload: w, Directives: directives, Key: kueueplan.KeyOf(directives)}, nil
}

// holdQuota brings the Workload of a sequence to where it should be, and ends those of sequences of that name which are gone. A
// snapshot is nil if there is no sequence.
func (c *Controller) holdQuota(ctx context.Context, key cache.ObjectName, obs *plan.Observed) error {
	if !c.HoldQuota && (obs == nil || !plan.MayQueue(obs.SequentialJob)) {
		return nil
	}
	if _, known := c.queues.Holding(key); !known {
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
	w, known := c.queues.workloadOf(sj)
	if !known {
		return ended
	}
	h := kueueplan.Holding{
		SequentialJob: sj, Off: !c.HoldQuota, Workload: w,
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
	workloads, _ := c.queues.Holding(key)
	for _, w := range workloads {
		if obs == nil || w.OwnerUID() != obs.SequentialJob.UID {
			errs = append(errs, c.queues.ApplyHold(ctx, key.Name, w, kueueplan.DecideHold(kueueplan.Holding{Workload: w}), now))
		}
	}
	return children.FirstErrors(errs...)
}
