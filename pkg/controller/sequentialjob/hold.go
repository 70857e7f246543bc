// Copyright The jobset-apiserver Authors.
// SPDX-License-Identifier: Apache-2.0

package sequentialjob

import (
	"context"
	"fmt"
	"time"

	apierrors "k8s.io/apimachinery/pkg/api/errors"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/types"
	"k8s.io/client-go/tools/cache"

	batchv1alpha1 "github.com/jobset-apiserver/jobset-apiserver/pkg/apis/batch/v1alpha1"
	"github.com/jobset-apiserver/jobset-apiserver/pkg/apis/batch/v1alpha1/helper"
	"github.com/jobset-apiserver/jobset-apiserver/pkg/controller/host/children"
	hostplan "github.com/jobset-apiserver/jobset-apiserver/pkg/controller/host/plan"
	"github.com/jobset-apiserver/jobset-apiserver/pkg/controller/kueue"
	kueueplan "github.com/jobset-apiserver/jobset-apiserver/pkg/controller/kueue/plan"
	"github.com/jobset-apiserver/jobset-apiserver/pkg/controller/sequentialjob/plan"
	"github.com/jobset-apiserver/jobset-apiserver/pkg/unreadable"
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

// directivesRetry is when directives that cannot be read are read again. Nothing shows when they can.
const directivesRetry = 30 * time.Second

// directives returns what the admission of a Workload adds to pods.
func (q queues) directives(ctx context.Context, w *kueueplan.Workload) (map[string]kueueplan.Directives, error) {
	flavors, err := q.Flavors(ctx, w)
	if err != nil {
		return nil, err
	}
	return kueueplan.DirectivesOf(w, flavors)
}

// observeHold returns what is known of the quota of a sequence.
func (q queues) observeHold(ctx context.Context, sj *batchv1alpha1.SequentialJob) *plan.Hold {
	w, known := q.workloadOf(sj)
	switch {
	case !known:
		return &plan.Hold{}
	case w == nil:
		return &plan.Hold{Admission: hostplan.None[plan.Admission]()}
	case !kueueplan.Holds(w):
		return &plan.Hold{Admission: hostplan.None[plan.Admission](), Message: kueueplan.Waiting(w)}
	}
	directives, err := q.directives(ctx, w)
	if err != nil {
		// There is quota, so that what runs may. What begins needs to know where.
		return &plan.Hold{Message: err.Error(), RetryAfter: directivesRetry}
	}
	return &plan.Hold{Admission: hostplan.Of(plan.Admission{Workload: w, Directives: directives, Key: kueueplan.KeyOf(directives)})}
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
	if obs == nil || helper.ManagedElsewhere(obs.SequentialJob) || len(plan.Unknown(*obs)) > 0 {
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
		what := children.Request{Verb: "get", Resource: "workloadpriorityclasses", Name: class}
		err := c.denials.Do(sj, what, func() (err error) {
			h.Priority, err = c.queues.Priority(ctx, class)
			return err
		})
		if err != nil {
			return children.FirstErrors(ended, err)
		}
	}
	return children.FirstErrors(ended, c.applyHold(ctx, obs, h.Workload, kueueplan.DecideHold(h), now))
}

// applyHold does what was decided about the Workload of a sequence, unless it was denied and its time has not come.
func (c *Controller) applyHold(ctx context.Context, obs *plan.Observed, w *kueueplan.Workload, p kueueplan.HoldPlan,
	now metav1.Time) error {
	if p.Empty() {
		return nil
	}
	sj, what := obs.SequentialJob, requestOfHold(w, p)
	err := c.denials.Do(sj, what, func() error {
		if p.GivesBack(w) {
			if run, err := c.stillRun(ctx, obs); run || err != nil {
				return err
			}
		}
		return c.queues.ApplyHold(ctx, sj, w, p, now)
	})
	if apierrors.IsAlreadyExists(err) {
		err = c.denials.Taken(sj, what, err)
	}
	return err
}

// stillRun asks the API whether pods run, or may, that the cache does not show. If so, the cache has stood still, or is about to show a
// child, and that brings about another look.
func (c *Controller) stillRun(ctx context.Context, obs *plan.Observed) (bool, error) {
	for _, ref := range plan.MayNeedQuota(*obs) {
		live, err := c.live(ctx, obs.SequentialJob, ref, "which may need the quota")
		if err != nil {
			return false, err
		}
		if child, found := live.Get(); found && child.MayRun() {
			return true, nil
		}
	}
	return false, nil
}

// requestOfHold names the request that a plan about a Workload makes.
func requestOfHold(w *kueueplan.Workload, p kueueplan.HoldPlan) children.Request {
	what := children.Request{Verb: "hold", Resource: "workloads", Change: p.Change()}
	if w != nil {
		what.Name, what.UID = w.Name, w.UID
	}
	return what
}

// endOthers ends the Workloads of sequences of this name which are gone.
func (c *Controller) endOthers(ctx context.Context, key cache.ObjectName, obs *plan.Observed, now metav1.Time) error {
	var errs []error
	workloads, _ := c.queues.Holding(key)
	others := &metav1.ObjectMeta{Namespace: key.Namespace, Name: key.Name} // sequences of this name that have no object
	ends := false
	for _, w := range workloads {
		if obs != nil && w.OwnerUID() == obs.SequentialJob.UID {
			continue
		}
		p := kueueplan.DecideHold(kueueplan.Holding{Workload: w})
		if p.Empty() {
			continue
		}
		ends = true
		errs = append(errs, c.ended.Do(others, requestOfHold(w, p), func() error {
			gone, err := c.sequenceGone(ctx, key, w.OwnerUID())
			if err != nil || !gone {
				return err
			}
			return c.queues.ApplyHold(ctx, others, w, p, now)
		}))
	}
	if !ends {
		c.ended.Forget(key)
	}
	return children.FirstErrors(errs...)
}

// sequenceGone asks the API whether a sequence is gone. The cache may not show it yet, or not show what it is because
// it cannot be read, and its step may run.
func (c *Controller) sequenceGone(ctx context.Context, key cache.ObjectName, uid types.UID) (bool, error) {
	live, err := c.Client.BatchV1alpha1().SequentialJobs(key.Namespace).Get(ctx, key.Name, metav1.GetOptions{})
	switch {
	case kueue.Gone(err):
		return true, nil
	case err != nil:
		return false, fmt.Errorf("reading sequentialjob %s, whose Workload holds quota: %w", key, err)
	case unreadable.Is(live) && live.UID == "":
		return false, nil
	}
	return live.UID != uid, nil
}
