// Copyright The jobset-apiserver Authors.
// SPDX-License-Identifier: Apache-2.0

package sequentialjob

import (
	"context"
	"errors"
	"fmt"
	"net/http"
	"slices"
	"strings"
	"time"

	apierrors "k8s.io/apimachinery/pkg/api/errors"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/client-go/tools/cache"
	"k8s.io/utils/ptr"

	batchv1alpha1 "github.com/jobset-apiserver/jobset-apiserver/pkg/apis/batch/v1alpha1"
	"github.com/jobset-apiserver/jobset-apiserver/pkg/apis/generic/reasons"
	"github.com/jobset-apiserver/jobset-apiserver/pkg/controller/host/children"
	"github.com/jobset-apiserver/jobset-apiserver/pkg/controller/sequentialjob/plan"
)

// Apply writes the children of a plan, and returns what became of them. Applying the same plan twice does no harm: creations
// have fixed names, deletions and patches name the incarnation that they mean. The error joins those of the results.
func (s *Syncer) Apply(ctx context.Context, obs *plan.Observed, p plan.Plan) (plan.Results, error) {
	run := &applier{Syncer: s, sj: obs.SequentialJob, retryNamesAfter: plan.RetryNamesAfter(*obs)}
	err := children.FirstErrors(run.delete(ctx, p.Delete), run.suspend(ctx, p.Suspend), run.setActive(ctx, p.SetWorkloadActive),
		notRelabelled(*obs))
	created := run.create(ctx, p)
	run.failed(err)
	run.results.Interrupted = children.Ended(ctx)
	return run.results, children.FirstErrors(err, created)
}

// moved returns whether a sequence is at another step or in another attempt than the one that was observed, or has ended meanwhile.
func moved(observed, now *batchv1alpha1.SequentialJob) bool {
	attempts := func(a, b batchv1alpha1.SequentialJobStepStatus) bool { return a.Attempts == b.Attempts }
	was, is := &observed.Status, &now.Status
	return was.State != is.State || !ptr.Equal(was.Progress.CurrentIndex, is.Progress.CurrentIndex) ||
		!slices.EqualFunc(was.Steps, is.Steps, attempts)
}

// applier applies one plan. There is one child as a rule, so that requests are made one after another.
type applier struct {
	*Syncer
	sj *batchv1alpha1.SequentialJob
	// retryNamesAfter is when a taken name is asked for again.
	retryNamesAfter time.Duration
	results         plan.Results
}

// notRelabelled returns why the API refuses to give a child its label back.
func notRelabelled(obs plan.Observed) error {
	if why := obs.Stripped; why != nil && why.Reason != reasons.UndoneByOthers {
		return errors.New(why.Message)
	}
	return nil
}

// failed notes why something was not written. That something has changed meanwhile is no failure.
func (a *applier) failed(err error) {
	if err == nil || apierrors.IsConflict(err) {
		return
	}
	why := children.RefusalOf(err)
	a.results.Error, a.results.MayPass = why.Message, why.MayPass
}

func (a *applier) delete(ctx context.Context, deletions []plan.Deletion) error {
	var errs []error
	attempts := children.NewAttempts()
	for _, i := range a.deps.Shuffle(len(deletions)) {
		if children.Ended(ctx) || attempts.Over() {
			break
		}
		child := deletions[i]
		refs := []children.Ref{{Name: child.Name, UID: child.UID}}
		var err error
		if child.Kind == batchv1alpha1.StepKindJobSet {
			_, err = a.jobSets.Delete(ctx, a.sj, refs)
		} else {
			_, err = a.jobs.Delete(ctx, a.sj, refs)
		}
		switch {
		case err == nil:
			a.results.Deleted = append(a.results.Deleted, i)
			attempts.Note(nil)
		case apierrors.IsForbidden(err) && a.sj.DeletionTimestamp != nil:
			a.results.Forbidden = append(a.results.Forbidden, i)
		default:
			attempts.Note(err)
			errs = append(errs, err)
		}
	}
	slices.Sort(a.results.Deleted)
	slices.Sort(a.results.Forbidden)
	return children.FirstErrors(errs...)
}

func (a *applier) suspend(ctx context.Context, patches []plan.SuspendPatch) error {
	var errs []error
	attempts := children.NewAttempts()
	for _, i := range a.deps.Shuffle(len(patches)) {
		if children.Ended(ctx) || attempts.Over() {
			break
		}
		patch := patches[i]
		calls, end := children.Finishing(ctx)
		steps := []children.Operation{children.Set("/spec/suspend", patch.Suspend)}
		var version string
		var err error
		if child := (children.Ref{Name: patch.Name, UID: patch.UID}); patch.Kind == batchv1alpha1.StepKindJobSet {
			version, err = a.jobSets.Patch(calls, a.sj, child, patch.ResourceVersion, steps)
		} else {
			version, err = a.jobs.Patch(calls, a.sj, child, patch.ResourceVersion, steps)
		}
		end()
		a.noteSuspension(patch, version != "", err)
		attempts.Note(err)
		errs = append(errs, err)
	}
	return children.FirstErrors(errs...)
}

// theSuspension is what another party may change back when a child is resumed.
const theSuspension = "spec.suspend"

// noteSuspension counts resumptions, of which none is a reversal after a suspension by the controller itself. An API that does not know the
// child has not stored any. One without an answer counts once the child has changed: it has been suspended again since.
func (a *applier) noteSuspension(patch plan.SuspendPatch, stored bool, err error) {
	key, child, guard := cache.MetaObjectToName(a.sj), nameOf(patch.ChildRef), a.guardOf(patch.Kind)
	if last := a.unheard.Noted(key); last.UID == patch.UID && last.ResourceVersion != patch.ResourceVersion {
		guard.Changed(a.sj, child, theSuspension)
		a.unheard.Forget(key)
	}
	switch {
	case patch.Suspend:
		guard.Reverting(child, theSuspension)
		a.unheard.Forget(key)
	case stored:
		guard.Changed(a.sj, child, theSuspension)
		a.unheard.Forget(key)
	case withoutAnswer(err):
		a.unheard.Note(key, patch)
	}
}

// withoutAnswer returns whether a write may have been stored although it failed.
func withoutAnswer(err error) bool {
	var answer apierrors.APIStatus
	return err != nil && !children.NotAsked(err) && (!errors.As(err, &answer) || answer.Status().Code >= http.StatusInternalServerError)
}

// guardOf returns the guard of the children of a kind.
func (s *Syncer) guardOf(kind batchv1alpha1.StepKind) *children.Guard {
	if kind == batchv1alpha1.StepKindJobSet {
		return s.jobSets.Guard()
	}
	return s.jobs.Guard()
}

// nameOf names a child to a guard.
func nameOf(child plan.ChildRef) metav1.Object {
	return &metav1.ObjectMeta{Name: child.Name, UID: child.UID}
}

func (a *applier) setActive(ctx context.Context, patch *plan.WorkloadPatch) error {
	if patch == nil || children.Ended(ctx) {
		return nil
	}
	ctx, end := children.Finishing(ctx)
	defer end()
	what := children.Request{Verb: "patch", Resource: "workloads", Name: patch.Name, UID: patch.UID}
	if err := a.denials.Do(a.sj, what, func() error { return a.deps.Queues.SetActive(ctx, a.sj, *patch) }); err != nil {
		return fmt.Errorf("setting spec.active of workload %s/%s to %t: %w", a.sj.Namespace, patch.Name, patch.Active, err)
	}
	return nil
}

// create creates the child, and before that adds the finalizer. A child without it could outlive the sequence for a moment.
func (a *applier) create(ctx context.Context, p plan.Plan) error {
	if children.Ended(ctx) {
		return nil
	}
	if p.AddFinalizer {
		if err := a.addFinalizer(ctx); err != nil {
			a.failed(err)
			return err
		}
	}
	switch {
	case p.CreateJob != nil:
		return a.created(createOne(ctx, a, a.jobs, p.CreateJob, plan.ChildOfJob))
	case p.CreateJobSet != nil:
		return a.created(createOne(ctx, a, a.jobSets, p.CreateJobSet, plan.ChildOfJobSet))
	}
	return nil
}

// createOne creates one child.
func createOne[T metav1.Object](ctx context.Context, a *applier, w *children.Writer[T], child T,
	view func(T) plan.Child) children.CreationResults {
	return w.CreateAll(ctx, a.sj, children.Creations[T]{
		Children: []T{child}, Template: func(T) string { return "" }, TakenFor: a.retryNamesAfter,
		Repair: func(ctx context.Context, existing T, _ error) (children.Result, error) {
			result, err := putLabelBack(ctx, w, a.sj, existing)
			if err != nil {
				a.results.Existing = ptr.To(view(existing))
			}
			return result, err
		},
	})
}

// creations are the results of creations in the words of the plan.
var creations = map[children.Result]plan.Creation{
	children.NotTried: plan.NotTried, children.Created: plan.Created, children.Exists: plan.Created, children.Repaired: plan.Created,
	children.NameTaken: plan.NameTaken, children.NameFreed: plan.NameFreed, children.Refused: plan.Refused,
	children.TemplateRefused: plan.Refused,
}

// refusalOf describes an error; nil for none.
func refusalOf(err error) *plan.Refusal {
	if err == nil {
		return nil
	}
	why := children.RefusalOf(err)
	return &why
}

// created notes what became of the creation. An API that fails, and does not ask for a later retry, is an error of the
// pass.
func (a *applier) created(done children.CreationResults) error {
	a.results.Creation = creations[done.Results[0]]
	if len(done.Refusals) == 0 {
		return done.Err
	}
	why := done.Refusals[0]
	if why.MayPass && !overloaded(done.Err) {
		a.failed(done.Err)
		return done.Err
	}
	a.results.Refusal = &why
	return done.Err
}

// webhookAway is how kube-apiserver says that it cannot ask a webhook.
const webhookAway = "failed calling webhook"

// overloaded returns whether the API asks for fewer requests, takes too long, or has to ask a webhook that does not
// answer. All of them pass without a change of the sequence.
func overloaded(err error) bool {
	return apierrors.IsInternalError(err) && strings.Contains(err.Error(), webhookAway) || apierrors.IsTooManyRequests(err) ||
		apierrors.IsTimeout(err) || apierrors.IsServerTimeout(err) || errors.Is(err, context.DeadlineExceeded)
}
