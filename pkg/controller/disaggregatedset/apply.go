// Copyright The jobset-apiserver Authors.
// SPDX-License-Identifier: Apache-2.0

package disaggregatedset

import (
	"cmp"
	"context"
	"errors"
	"fmt"
	"strconv"
	"sync"

	apierrors "k8s.io/apimachinery/pkg/api/errors"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/client-go/tools/cache"

	disaggregatedsetv1 "github.com/jobset-apiserver/jobset-apiserver/pkg/apis/disaggregatedset/v1"
	"github.com/jobset-apiserver/jobset-apiserver/pkg/controller/disaggregatedset/plan"
	"github.com/jobset-apiserver/jobset-apiserver/pkg/controller/host/children"
)

// maxRefusals is how many refusals of one pass are reported.
const maxRefusals = 3

// maxRefused is by how many the refused writes of a pass may exceed the accepted ones. Then the remaining writes are
// left to the next pass, which follows after a backoff of at most two minutes.
const maxRefused = 4

var (
	// errNameFreed means that the object which had the name of a child has just gone.
	errNameFreed = errors.New("the object that had the name has just gone")
	// errGoing means that no cache shows when the name is free.
	errGoing = errors.New("an object without labels has the name, and is being deleted")
	// errOrphan means that the set may adopt the object that has the name of a child, and that no cache shows it yet.
	errOrphan    = errors.New("an object that nobody controls has the name, and is adopted soon")
	errOver      = errors.New("the time of the pass was over before anything was written")
	errNameTaken = errors.New("another object that this DisaggregatedSet does not control has the name: delete it, or rename the " +
		"DisaggregatedSet or the role")
)

// applier applies one plan.
type applier struct {
	*Syncer
	ds *disaggregatedsetv1.DisaggregatedSet

	mu      sync.Mutex
	results plan.Results
	// refused is the number of writes that were, and over are kinds of writes that are sure to be.
	refused int
	over    map[string]bool
	// superseded returns whether what was decided on holds no more.
	superseded func() bool
}

// Apply writes what a plan says, and returns what became of each write. Slices are written in parallel: one that is
// refused something keeps no other from being written.
func (s *Syncer) Apply(ctx context.Context, obs *plan.Observed, p plan.Plan) (plan.Results, error) {
	ds := obs.Set
	a := &applier{Syncer: s, ds: ds, over: map[string]bool{}}
	a.superseded = func() bool { return children.Ended(ctx) && children.Superseded(ctx) }
	a.results.Slices = make([]plan.SliceResult, len(p.Slices))
	errs := []error{a.adopt(ctx, p.Adopt), a.applyScalers(ctx, p)}
	order := s.deps.Shuffle(len(p.Slices)) // if the time of a pass is over, others come first in the next one
	errs = append(errs, s.deps.Runner.Do(ctx, cache.MetaObjectToName(ds), len(p.Slices), func(ctx context.Context, n int) error {
		i := order[n]
		err := a.applySlice(ctx, p.Slices[i], &a.results.Slices[i])
		if err != nil {
			err = fmt.Errorf("slice %d: %w", p.Slices[i].Slice, err)
		}
		return err
	}))
	for _, scaler := range p.ScalerStatuses {
		errs = append(errs, a.storeStatus(ctx, scalerBefore(obs, scaler), scaler))
	}
	if p.Invalid != "" {
		errs = append(errs, errors.New(p.Invalid))
	}
	a.results.Interrupted = children.Ended(ctx)
	err := children.FirstErrors(errs...)
	if err == nil && a.results.Interrupted && a.results.Accepted == 0 && !p.Empty() && !children.Superseded(ctx) {
		err = errOver
	}
	return a.results, err
}

// scalerBefore returns a scaler as it was observed.
func scalerBefore(obs *plan.Observed,
	scaler *disaggregatedsetv1.DisaggregatedSetRoleScaler) *disaggregatedsetv1.DisaggregatedSetRoleScaler {
	for _, s := range obs.Scalers {
		if s.UID == scaler.UID {
			return s
		}
	}
	return scaler
}

// storeStatus stores the status of a scaler, even if the time of the pass is over, unless another party changes it back each time.
func (a *applier) storeStatus(ctx context.Context, before, scaler *disaggregatedsetv1.DisaggregatedSetRoleScaler) error {
	_, err := a.try(updating(scaler.Name), "update scalers/status", func() error {
		guard := children.StatusGuardOf(a.Host)
		if err := guard.Storing("disaggregatedsetrolescaler", before, scaler); err != nil {
			return err
		}
		var stored *disaggregatedsetv1.DisaggregatedSetRoleScaler
		err := a.scalers.Changing(a.ds, plan.Ref{Name: scaler.Name, UID: scaler.UID}, "status", func() (err error) {
			stored, err = children.UpdateStatus(ctx, a.deps.Scalers(a.ds.Namespace), scaler)
			return err
		})
		switch {
		case apierrors.IsNotFound(err):
			return nil
		case err != nil:
			return fmt.Errorf("updating status of disaggregatedsetrolescaler %s/%s: %w", a.ds.Namespace, scaler.Name, err)
		}
		a.deps.Consistency.Wrote(cache.MetaObjectToName(a.ds), resourceScalers, stored.ResourceVersion)
		guard.Stored(before, scaler, stored)
		return nil
	})
	return err
}

// try makes a write, unless it is sure to be refused or enough others were, and reports why it was refused. It returns
// whether the write was made.
func (a *applier) try(what plan.FailedWrite, kind string, write func() error) (done bool, err error) {
	a.mu.Lock()
	stop := a.over[kind] || a.refused-a.results.Accepted >= maxRefused || a.superseded()
	a.mu.Unlock()
	if stop {
		a.mu.Lock()
		defer a.mu.Unlock()
		a.results.Skipped = true
		return false, nil
	}
	if err = write(); err == nil {
		a.mu.Lock()
		defer a.mu.Unlock()
		a.results.Accepted++
		return true, nil
	}
	a.refuse(what, kind, err)
	return false, err
}

// refuse reports why a request was refused, unless the next pass sees what has changed.
func (a *applier) refuse(what plan.FailedWrite, kind string, err error) {
	a.mu.Lock()
	defer a.mu.Unlock()
	if apierrors.IsConflict(err) || errors.Is(err, errNameFreed) || errors.Is(err, errOrphan) || errors.Is(err, errNameTaken) {
		return
	}
	if !children.NotAsked(err) {
		a.refused++
	}
	a.over[kind] = a.over[kind] || children.RefusesAll(err) && !errors.Is(err, errGoing)
	a.report(what, err)
}

// report adds to the refusals that are reported. The caller holds mu.
func (a *applier) report(what plan.FailedWrite, err error) {
	if len(a.results.Failed) < maxRefusals {
		if what.Verb == plan.Create || what.Verb == plan.Update {
			a.results.Blocked = append(a.results.Blocked, blockedOf(what, cmp.Or(errors.Unwrap(err), err)))
		}
		what.Note = fmt.Sprintf("%s: %v", what.Note, cmp.Or(errors.Unwrap(err), err))
		a.results.Failed = append(a.results.Failed, what)
	}
}

func adopting(kind plan.OrphanKind, name string) plan.FailedWrite {
	return plan.FailedWrite{Verb: plan.Adopt, Note: fmt.Sprintf("Could not adopt %s %s", kind, name)}
}
func creating(name string) plan.FailedWrite {
	return plan.FailedWrite{Verb: plan.Create, Note: "Could not create " + name}
}
func updating(name string) plan.FailedWrite {
	return plan.FailedWrite{Verb: plan.Update, Note: "Could not update " + name}
}
func deleting(name string) plan.FailedWrite {
	return plan.FailedWrite{Verb: plan.Delete, Note: "Could not delete " + name}
}

func (a *applier) applyScalers(ctx context.Context, p plan.Plan) error {
	ctx, end := children.Finishing(ctx)
	defer end()
	var errs []error
	for i, scaler := range p.CreateScalers {
		done, err := create(ctx, a, a.scalers, scaler)
		if errs = append(errs, err); done {
			a.results.CreatedScalers = append(a.results.CreatedScalers, i)
		}
	}
	for i, ref := range p.DeleteScalers {
		done, err := a.remove(ctx, a.deps.Scalers(a.ds.Namespace), a.scalers.Removing, "disaggregatedsetrolescaler", ref)
		if errs = append(errs, err); done {
			a.results.DeletedScalers = append(a.results.DeletedScalers, i)
		}
	}
	return children.FirstErrors(errs...)
}

// applySlice writes what is planned for a slice, in this order: what is no longer wanted goes first, and what is scaled
// down relies on what was scaled up.
func (a *applier) applySlice(ctx context.Context, p plan.SlicePlan, result *plan.SliceResult) error {
	var errs []error
	for _, ref := range p.DeleteServices {
		_, err := a.remove(ctx, a.deps.Services(a.ds.Namespace), a.services.Removing, "service", ref)
		errs = append(errs, err)
	}
	for i, deletion := range p.DeleteChildren {
		done, err := a.remove(ctx, a.deps.LeaderWorkerSets(a.ds.Namespace), a.sets.Removing, "leaderworkerset", deletion.Ref)
		if errs = append(errs, err); done {
			result.DeletedChildren = append(result.DeletedChildren, i)
		}
	}
	for _, service := range p.CreateServices {
		_, err := create(ctx, a, a.services, service)
		errs = append(errs, err)
	}
	var err error
	result.Done, err = a.applySets(ctx, p, result)
	return children.FirstErrors(append(errs, err)...)
}

// applySets writes LeaderWorkerSets. It returns whether all were written.
func (a *applier) applySets(ctx context.Context, p plan.SlicePlan, result *plan.SliceResult) (bool, error) {
	var errs []error
	all := true
	for _, annotation := range p.Annotate {
		done, _, err := a.patch(ctx, annotation.Ref, annotation.ResourceVersion, annotate(annotation))
		errs, all = append(errs, err), all && done
	}
	for _, child := range p.Create {
		done, err := create(ctx, a, a.sets, child.Child(a.ds))
		errs, all = append(errs, err), all && done
	}
	if !all {
		return false, children.FirstErrors(errs...)
	}
	for i, scaling := range p.Scale {
		done, gone, err := a.patch(ctx, scaling.Ref, scaling.ResourceVersion, []children.Operation{children.Set("/spec/replicas", scaling.To)})
		switch {
		case !done:
			return false, err
		case gone:
			return true, nil // the next pass sees what is left
		}
		result.Scaled = append(result.Scaled, i)
	}
	return true, nil
}

// patch changes a LeaderWorkerSet. It returns whether that was done, and whether it was because there is none.
func (a *applier) patch(ctx context.Context, child plan.Ref, version string, steps []children.Operation) (done, gone bool, err error) {
	done, err = a.try(updating(child.Name), "patch leaderworkersets", func() error {
		stored, err := a.sets.Patch(ctx, a.ds, child, version, steps)
		gone = stored == ""
		return err
	})
	return done, gone, err
}

func annotate(a plan.Annotation) []children.Operation {
	const path = "/metadata/annotations"
	key := disaggregatedsetv1.InitialReplicasAnnotationKey
	switch {
	case a.Initial == nil:
		return []children.Operation{children.Remove(children.Key(path, key))}
	case !a.Annotated:
		return []children.Operation{children.Set(path, map[string]string{key: strconv.FormatInt(*a.Initial, 10)})}
	}
	return children.SetKeys(path, map[string]string{key: strconv.FormatInt(*a.Initial, 10)})
}

// remover deletes objects of one kind in one namespace.
type remover interface {
	Delete(ctx context.Context, name string, options metav1.DeleteOptions) error
}

// deletions make a request that deletes a child, unless it was denied and its time has not come. Writers have them.
type deletions func(owner metav1.Object, ref plan.Ref, do func() error) error

// remove deletes one incarnation of a child in the background. One that is gone is no error.
func (a *applier) remove(ctx context.Context, client remover, do deletions, noun string, ref plan.Ref) (bool, error) {
	return a.try(deleting(ref.Name), "delete "+noun, func() error {
		err := do(a.ds, ref, func() error { return client.Delete(ctx, ref.Name, children.Background(ref.UID)) })
		if err != nil && !apierrors.IsNotFound(err) {
			return fmt.Errorf("deleting %s %s/%s: %w", noun, a.ds.Namespace, ref.Name, err)
		}
		a.deps.Consistency.Deleted(cache.MetaObjectToName(a.ds), ref.UID)
		return nil
	})
}
