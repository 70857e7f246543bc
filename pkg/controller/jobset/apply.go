// Copyright The jobset-apiserver Authors.
// SPDX-License-Identifier: Apache-2.0

package jobset

import (
	"context"
	"errors"
	"fmt"
	"math/rand/v2"
	"net/http"
	"slices"
	"sync"
	"sync/atomic"
	"time"

	apierrors "k8s.io/apimachinery/pkg/api/errors"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/types"
	"k8s.io/client-go/tools/cache"
	"k8s.io/klog/v2"
	"k8s.io/utils/ptr"

	jobsetv1alpha2 "github.com/jobset-apiserver/jobset-apiserver/pkg/apis/jobset/v1alpha2"
	"github.com/jobset-apiserver/jobset-apiserver/pkg/controller"
	"github.com/jobset-apiserver/jobset-apiserver/pkg/controller/jobset/plan"
)

const (
	// maxParallel is the number of requests that one sync has under way at a time.
	maxParallel = 50
	// continueAfter is when a set is looked at again whose plan was full, or took longer than a pass may. If nothing of that plan
	// was accepted, the queue decides.
	continueAfter = time.Nanosecond
	// maxTaken is the number of names of others that are remembered. More are asked for again.
	maxTaken = 10_000
	// claimsForgottenAfter is how long a volume claim that somebody else made is taken to exist without asking.
	claimsForgottenAfter = 10 * time.Minute
	// statusTimeout is how long a status write may take. It begins when the children are done, however long that took.
	statusTimeout = 10 * time.Second
	// namesAskedBefore is how long before the next try a taken name of a Job is forgotten.
	namesAskedBefore = 100 * time.Millisecond
)

// apply carries a plan out. Applying the same plan twice does no harm: creations have fixed names, deletions and patches
// name the incarnation that they mean. The status is written even if a child could not be, because it tells what was
// observed and not what was done. When the context ends, no other child is written, but the status is.
//
// It returns after which time to look again; 0 for never.
func (c *Controller) apply(ctx context.Context, key cache.ObjectName, obs *plan.Observed, p plan.Plan) (time.Duration, error) {
	for _, problem := range p.Problems {
		klog.FromContext(ctx).Info("Ignored a malformed child", "reason", problem)
	}
	run := &applier{Controller: c, key: key, js: obs.JobSet, namesKept: plan.RetryNamesAfter(*obs)}
	p = run.withFirstCause(ctx, obs, p) // before the pods are gone
	errs := []error{
		run.deleteJobs(ctx, p.DeleteJobs),
		run.patchJobs(ctx, p.PatchJobs),
		run.create(ctx, p),
	}
	p = run.heldBack(*obs, plan.WithTakenNames(*obs, p, run.takenNames()))
	stored, err := run.writeStatus(ctx, p)
	if errs = append(errs, err); err == nil && p.DeleteJobSet && ctx.Err() == nil {
		errs = append(errs, run.deleteJobSet(ctx, stored))
	}
	if run.freed > 0 {
		p.RequeueAfter = earlier(p.RequeueAfter, run.namesKept)
	}
	if (p.More || ctx.Err() != nil) && run.accepted.Load() > 0 {
		p.RequeueAfter = continueAfter
	}
	return p.RequeueAfter, controller.FirstErrors(errs...)
}

// earlier returns the shorter of two times to wait; 0 is never.
func earlier(a, b time.Duration) time.Duration {
	if a == 0 || b != 0 && b < a {
		return b
	}
	return a
}

// applier applies one plan.
type applier struct {
	*Controller
	key cache.ObjectName
	js  *jobsetv1alpha2.JobSet

	// namesKept is how long a name of a Job counts as taken without asking.
	namesKept time.Duration

	// accepted is the number of requests about Jobs that were carried out.
	accepted atomic.Int64

	mu sync.Mutex
	// taken are the names of Jobs that could not be created because others have them.
	taken []string
	// freed is the number of those names that have become free meanwhile.
	freed int
}

func (a *applier) takenNames() []string {
	slices.Sort(a.taken)
	return a.taken
}

// deleteJobs deletes Jobs in any order. When the time of a pass is over before all have had their turn, those that take long
// must not come first in the next one again.
func (a *applier) deleteJobs(ctx context.Context, jobs []plan.JobRef) error {
	order := rand.Perm(len(jobs))
	return a.slowStart.Do(ctx, a.key, len(jobs), func(ctx context.Context, i int) error {
		ref := jobs[order[i]]
		err := a.Kube.BatchV1().Jobs(a.js.Namespace).Delete(ctx, ref.Name, foreground(ref.UID, ""))
		// A conflict means that another Job has the name now, or that this one changed meanwhile: the next pass will see.
		if err != nil && !apierrors.IsNotFound(err) {
			return fmt.Errorf("deleting job %s/%s: %w", a.js.Namespace, ref.Name, err)
		}
		a.accepted.Add(1)
		a.writes.Deleted(a.key, ref.UID)
		return nil
	})
}

func (a *applier) count(one func()) {
	a.mu.Lock()
	defer a.mu.Unlock()
	one()
}

// heldBack takes the status out of the plan if it may be written later.
func (a *applier) heldBack(obs plan.Observed, p plan.Plan) plan.Plan {
	if p.Status == nil {
		a.held.forget(a.key)
		return p
	}
	noted, wait := plan.HoldBack(obs, p)
	if wait == 0 {
		return p // what is noted is needed again if the write fails
	}
	a.held.note(a.key, noted)
	p.Status, p.Events = nil, nil // what the events tell is found again then
	p.RequeueAfter = earlier(p.RequeueAfter, wait)
	return p
}

// writeStatus stores the next status and then reports what it tells. It returns the set as it is stored now.
func (a *applier) writeStatus(ctx context.Context, p plan.Plan) (*jobsetv1alpha2.JobSet, error) {
	stored := a.js
	var notKept error
	if p.Status != nil {
		next := a.js.DeepCopy()
		next.Status = *p.Status
		ctx, cancel := context.WithTimeout(context.WithoutCancel(ctx), statusTimeout)
		defer cancel()
		var err error
		stored, err = a.JobSets.JobsetV1alpha2().JobSets(next.Namespace).UpdateStatus(ctx, next, metav1.UpdateOptions{})
		if apierrors.IsNotFound(err) {
			return a.js, nil
		}
		if err != nil {
			return nil, fmt.Errorf("updating status of jobset %s: %w", a.key, err)
		}
		a.writes.Wrote(a.key, resourceJobSets, stored.ResourceVersion)
		a.held.forget(a.key)
		notKept = a.dropped.notice(p.Status, &stored.Status)
		if a.js.Status.TerminalState == "" {
			countFinish(stored)
		}
	}
	a.report(a.js, p.Events...)
	for _, event := range p.Events {
		klog.FromContext(ctx).V(2).Info("JobSet changed", "reason", event.Reason, "message", event.Note)
	}
	return stored, notKept
}

// deleteJobSet deletes a set whose time is over, unless it was changed meanwhile: the time may have been.
func (a *applier) deleteJobSet(ctx context.Context, stored *jobsetv1alpha2.JobSet) error {
	ctx, end := controller.Finishing(ctx)
	defer end()
	options := foreground(stored.UID, stored.ResourceVersion)
	client := a.JobSets.JobsetV1alpha2().JobSets(stored.Namespace)
	err := client.Delete(ctx, stored.Name, options)
	if refusedForSpace(err) {
		// A deletion in the foreground writes first, which a full store refuses. One in the background makes space.
		options.PropagationPolicy = ptr.To(metav1.DeletePropagationBackground)
		err = client.Delete(ctx, stored.Name, options)
	}
	if err != nil && !apierrors.IsNotFound(err) {
		return fmt.Errorf("deleting jobset %s after its time to live: %w", a.key, err)
	}
	klog.FromContext(ctx).V(2).Info("Deleted the set after its time to live")
	return nil
}

// refusedForSpace reports whether the store of JobSets has no space for a write.
func refusedForSpace(err error) bool {
	var status apierrors.APIStatus
	return errors.As(err, &status) && status.Status().Code == http.StatusInsufficientStorage
}

// foreground asks for a deletion that waits for the children, of this very incarnation.
func foreground(uid types.UID, version string) metav1.DeleteOptions {
	options := metav1.DeleteOptions{
		PropagationPolicy: ptr.To(metav1.DeletePropagationForeground),
		Preconditions:     &metav1.Preconditions{UID: &uid},
	}
	if version != "" {
		options.Preconditions.ResourceVersion = &version
	}
	return options
}
