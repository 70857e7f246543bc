// Copyright The jobset-apiserver Authors.
// SPDX-License-Identifier: Apache-2.0

package leaderworkerset

import (
	"context"
	"errors"
	"fmt"
	"slices"
	"sync"

	appsv1 "k8s.io/api/apps/v1"
	corev1 "k8s.io/api/core/v1"
	apierrors "k8s.io/apimachinery/pkg/api/errors"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"
	"k8s.io/client-go/tools/cache"

	"github.com/jobset-apiserver/jobset-apiserver/pkg/apis/generic/reasons"
	leaderworkersetv1 "github.com/jobset-apiserver/jobset-apiserver/pkg/apis/leaderworkerset/v1"
	"github.com/jobset-apiserver/jobset-apiserver/pkg/controller/host/children"
	hostplan "github.com/jobset-apiserver/jobset-apiserver/pkg/controller/host/plan"
	"github.com/jobset-apiserver/jobset-apiserver/pkg/controller/kueue"
	"github.com/jobset-apiserver/jobset-apiserver/pkg/controller/leaderworkerset/plan"
)

// Apply writes the children of a plan, and returns what became of them. Applying the same plan twice does no harm: creations have fixed
// names, deletions and patches name the incarnation or the version that they mean. The error joins those of the results.
func (s *Syncer) Apply(ctx context.Context, obs *plan.Observed, p plan.Plan) (plan.Results, error) {
	a := &applier{Syncer: s, obs: obs, set: obs.Set, key: cache.MetaObjectToName(obs.Set)}
	s.readings.Note(a.key, p.Reading)
	adopted := a.adopt(ctx, p.Adopt)
	leader := a.applyLeader(ctx, p)
	services := a.createServices(ctx, p.CreateServices)
	err := children.FirstErrors(
		a.deleteLeaders(ctx, p.DeleteLeaders), a.createPodGroups(ctx, p.CreatePodGroups), a.touch(ctx, p),
		a.deleteRevisions(ctx, p.DeleteRevisions),
	)
	workers := a.createWorkers(ctx, p.CreateWorkers)
	a.results.IgnoredQueue = kueue.IgnoredQueue(ctx, s.deps.Kueue, s.queueReported, obs.Set, p.DespiteQueue)
	a.results.Interrupted = children.Ended(ctx)
	return a.results, children.FirstErrors(adopted, leader, services, err, workers)
}

// applier applies one plan.
type applier struct {
	*Syncer
	obs *plan.Observed
	set *leaderworkersetv1.LeaderWorkerSet
	key cache.ObjectName
	// mu guards the results while requests are made in parallel.
	mu      sync.Mutex
	results plan.Results
}

// accepted counts writes of children that were carried out.
func (a *applier) accepted(writes int) {
	a.mu.Lock()
	defer a.mu.Unlock()
	a.results.Accepted += writes
}

// errTaken is why a child is not created whose name is taken.
var errTaken = errors.New("it exists and is not controlled by the LeaderWorkerSet")

// failed notes that a write has failed, unless another version was met or everything here is about to be deleted: the next sync sees that.
func (a *applier) failed(ctx context.Context, action, kind, name string, err error) {
	if ctx.Err() != nil || apierrors.IsConflict(err) || children.TerminatingNamespace(err) {
		return
	}
	a.mu.Lock()
	defer a.mu.Unlock()
	if !slices.ContainsFunc(a.results.Failed, func(w plan.FailedWrite) bool { return w.Action == action && w.Kind == kind }) {
		a.results.Failed = append(a.results.Failed, plan.FailedWrite{Action: action, Kind: kind, Object: kind + " " + name, Error: err.Error()})
	}
}

// maxBlocked is how many blocked children of one pass are kept.
const maxBlocked = 100

// blocked notes that a child could not be created or updated, unless the next sync sees what has changed.
func (a *applier) blocked(ctx context.Context, child string, err error) {
	if ctx.Err() != nil || apierrors.IsConflict(err) || children.TerminatingNamespace(err) {
		return
	}
	t := hostplan.BlockedChild{What: child + " could not be created or updated", Refusal: children.RefusalOf(err)}
	if errors.Is(err, errTaken) {
		t.Reason, t.MayPass = reasons.NameConflict, false
	}
	a.mu.Lock()
	defer a.mu.Unlock()
	if len(a.results.Blocked) < maxBlocked {
		a.results.Blocked = append(a.results.Blocked, t)
	}
}

// createAll creates children of one kind. Each of them is controlled by what its own reference says.
func createAll[T metav1.Object](ctx context.Context, a *applier, w *children.Writer[T], wanted []T) children.CreationResults {
	if len(wanted) == 0 || children.Ended(ctx) {
		return children.CreationResults{Results: make([]children.Result, len(wanted)), Errors: make([]error, len(wanted))}
	}
	return w.CreateAll(ctx, a.set, children.Creations[T]{
		Children: wanted, TakenFor: plan.RetryNamesAfter(*a.obs),
		Template: func(child T) string { return child.GetLabels()[leaderworkersetv1.RevisionKey] },
		Controller: func(child T) metav1.Object {
			owner := metav1.GetControllerOfNoCopy(child)
			return &metav1.ObjectMeta{UID: owner.UID}
		},
		Repair: func(ctx context.Context, existing T, _ error) (children.Result, error) {
			// Without the label no cache shows the child.
			return w.Relabel(ctx, a.set, existing, map[string]string{leaderworkersetv1.SetNameLabelKey: a.set.Name})
		},
	})
}

// createRevision creates a revision, and returns whether it is there.
func (a *applier) createRevision(ctx context.Context, revision *appsv1.ControllerRevision) error {
	if revision == nil {
		return nil
	}
	done := createAll(ctx, a, a.revisions, []*appsv1.ControllerRevision{revision})
	a.accepted(done.Accepted)
	switch done.Results[0] {
	case children.Created, children.Exists, children.Repaired:
		return nil
	case children.NameTaken:
		a.failed(ctx, plan.ActionCreate, "revision", revision.Name, errTaken)
		a.blocked(ctx, "ControllerRevision "+revision.Name, errTaken)
		return fmt.Errorf("controllerrevision %s/%s: %w", revision.Namespace, revision.Name, errTaken)
	}
	if err := done.Errors[0]; err != nil {
		a.failed(ctx, plan.ActionCreate, "revision", revision.Name, err)
		a.blocked(ctx, "ControllerRevision "+revision.Name, err)
		return fmt.Errorf("creating controllerrevision %s/%s: %w", revision.Namespace, revision.Name, err)
	}
	return errNotTried
}

func (a *applier) createServices(ctx context.Context, services []*corev1.Service) error {
	done := createAll(ctx, a, a.services, services)
	a.accepted(done.Accepted)
	for i, err := range done.Errors {
		if err != nil {
			a.blocked(ctx, "Service "+services[i].Name, err)
		}
		switch {
		case done.Results[i] == children.NameTaken:
			a.results.TakenServices = append(a.results.TakenServices, services[i].Name)
		case err != nil && !apierrors.IsConflict(err) && a.results.ServiceError == "":
			a.results.ServiceError = err.Error()
		}
	}
	return done.Err
}

func (a *applier) createPodGroups(ctx context.Context, groups []*unstructured.Unstructured) error {
	done := createAll(ctx, a, a.podGroups, groups)
	a.accepted(done.Accepted)
	errs := []error{done.Err}
	for i, err := range done.Errors {
		if done.Results[i] == children.NameTaken {
			err = errTaken
			errs = append(errs, fmt.Errorf("creating podgroup %s/%s: %w", groups[i].GetNamespace(), groups[i].GetName(), err))
		}
		if err != nil {
			a.failed(ctx, plan.ActionCreate, "podgroup", groups[i].GetName(), err)
			a.blocked(ctx, "PodGroup "+groups[i].GetName(), err)
		}
	}
	return children.FirstErrors(errs...)
}

func (a *applier) createWorkers(ctx context.Context, wanted []plan.NewWorkers) error {
	sets := make([]*appsv1.StatefulSet, len(wanted))
	for i := range wanted {
		sets[i] = wanted[i].StatefulSet
	}
	done := createAll(ctx, a, a.statefulSets, sets)
	a.accepted(done.Accepted)
	for i, result := range done.Results {
		if done.Errors[i] != nil {
			a.blocked(ctx, "StatefulSet "+sets[i].Name, done.Errors[i])
		}
		switch {
		case result == children.Created:
			a.results.CreatedWorkers = append(a.results.CreatedWorkers, i)
		case result == children.NameTaken:
			a.results.TakenWorkers = append(a.results.TakenWorkers, sets[i].Name)
		case done.Errors[i] != nil && !apierrors.IsConflict(done.Errors[i]):
			if a.results.WorkerErrors == nil {
				a.results.WorkerErrors = map[string]string{}
			}
			a.results.WorkerErrors[sets[i].Name] = done.Errors[i].Error()
		}
	}
	return done.Err
}
