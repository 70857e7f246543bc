// Copyright The jobset-apiserver Authors.
// SPDX-License-Identifier: Apache-2.0

package disaggregatedset

import (
	"context"
	"errors"
	"fmt"
	"maps"
	"math/rand/v2"
	"strconv"
	"sync"

	apierrors "k8s.io/apimachinery/pkg/api/errors"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/client-go/tools/cache"
	"k8s.io/klog/v2"
	"k8s.io/utils/ptr"

	disaggregatedsetv1 "github.com/jobset-apiserver/jobset-apiserver/pkg/apis/disaggregatedset/v1"
	"github.com/jobset-apiserver/jobset-apiserver/pkg/controller/children"
	"github.com/jobset-apiserver/jobset-apiserver/pkg/controller/disaggregatedset/plan"
)

// maxRefusals is how many refusals of one pass are reported.
const maxRefusals = 3

// applier applies one plan.
type applier struct {
	*Controller
	ds *disaggregatedsetv1.DisaggregatedSet

	mu      sync.Mutex
	results plan.Results
}

// apply writes what a plan says, and returns what became of each write. Slices are written in parallel: one that is refused something keeps no other
// from being written.
func (c *Controller) apply(ctx context.Context, ds *disaggregatedsetv1.DisaggregatedSet, p plan.Plan) (plan.Results, error) {
	a := &applier{Controller: c, ds: ds}
	a.results.Slices = make([]plan.SliceResult, len(p.Slices))
	errs := []error{a.applyScalers(ctx, p)}
	key := cache.MetaObjectToName(ds)
	order := rand.Perm(len(p.Slices)) // if the time of a pass is over, others come first in the next one
	errs = append(errs, c.runner.Do(ctx, key, len(p.Slices), func(ctx context.Context, n int) error {
		i := order[n]
		err := a.applySlice(ctx, p.Slices[i], &a.results.Slices[i])
		if err != nil {
			err = fmt.Errorf("slice %d: %w", p.Slices[i].Slice, err)
		}
		return err
	}))
	for _, scaler := range p.ScalerStatuses {
		stored, err := c.Client.DisaggregatedsetV1().DisaggregatedSetRoleScalers(ds.Namespace).UpdateStatus(ctx, scaler, metav1.UpdateOptions{})
		if err == nil {
			c.consistency.Wrote(key, resourceScalers, stored.ResourceVersion)
		} else if !apierrors.IsNotFound(err) {
			errs = append(errs, fmt.Errorf("updating status of disaggregatedsetrolescaler %s/%s: %w", ds.Namespace, scaler.Name, err))
		}
	}
	if p.Invalid != "" {
		errs = append(errs, errors.New(p.Invalid))
	}
	return a.results, children.FirstErrors(errs...)
}

func (a *applier) applyScalers(ctx context.Context, p plan.Plan) error {
	var errs []error
	for i, scaler := range p.CreateScalers {
		if err := create(ctx, a, a.scalers, scaler); err != nil {
			errs = append(errs, err)
			continue
		}
		a.results.CreatedScalers = append(a.results.CreatedScalers, i)
	}
	for i, ref := range p.DeleteScalers {
		if err := a.remove(ctx, a.Client.DisaggregatedsetV1().DisaggregatedSetRoleScalers(a.ds.Namespace), "disaggregatedsetrolescaler", ref); err != nil {
			errs = append(errs, err)
			continue
		}
		a.results.DeletedScalers = append(a.results.DeletedScalers, i)
	}
	return children.FirstErrors(errs...)
}

// applySlice writes what is planned for a slice, in this order: what is no longer wanted goes first, and what is scaled down relies on what was
// scaled up.
func (a *applier) applySlice(ctx context.Context, p plan.SlicePlan, result *plan.SliceResult) error {
	var errs []error
	for _, ref := range p.DeleteServices {
		errs = append(errs, a.remove(ctx, a.Kube.CoreV1().Services(a.ds.Namespace), "service", ref))
	}
	for i, deletion := range p.DeleteChildren {
		err := a.remove(ctx, a.Client.LeaderworkersetV1().LeaderWorkerSets(a.ds.Namespace), "leaderworkerset", deletion.Ref)
		if err == nil {
			result.DeletedChildren = append(result.DeletedChildren, i)
		}
		errs = append(errs, err)
	}
	for _, service := range p.CreateServices {
		errs = append(errs, create(ctx, a, a.services, service))
	}
	err := a.applySets(ctx, p, result)
	result.Done = err == nil
	return children.FirstErrors(append(errs, err)...)
}

func (a *applier) applySets(ctx context.Context, p plan.SlicePlan, result *plan.SliceResult) error {
	var errs []error
	for _, annotation := range p.Annotate {
		_, err := a.sets.Patch(ctx, a.ds, annotation.Name, annotation.ResourceVersion, annotate(annotation))
		errs = append(errs, err)
	}
	for _, child := range p.Create {
		errs = append(errs, create(ctx, a, a.sets, child.Child(a.ds)))
	}
	if err := children.FirstErrors(errs...); err != nil {
		return err
	}
	for i, scaling := range p.Scale {
		version, err := a.sets.Patch(ctx, a.ds, scaling.Name, scaling.ResourceVersion, []children.Operation{children.Set("/spec/replicas", scaling.To)})
		if err != nil {
			return err
		}
		if version == "" {
			return nil // it is gone: the next pass sees what is left
		}
		result.Scaled = append(result.Scaled, i)
	}
	return nil
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

// create creates a child. One that exists and that the set controls is as good; if it has lost the labels by which caches know it, it gets them back.
func create[T metav1.Object](ctx context.Context, a *applier, w *children.Writer[T], child T) error {
	_, err := w.Create(ctx, a.ds, child)
	if apierrors.IsAlreadyExists(err) {
		existing, getErr := w.Get(ctx, a.ds.Namespace, child.GetName())
		switch {
		case apierrors.IsNotFound(getErr):
			return getErr // the next pass tries again
		case getErr != nil:
		case metav1.IsControlledBy(existing, a.ds):
			return restoreLabels(ctx, a, w, existing, child.GetLabels())
		default:
			err = errors.New("another object that this DisaggregatedSet does not control has the name: delete it, or rename the DisaggregatedSet or the role")
		}
	}
	if err == nil || children.TerminatingNamespace(err) {
		return nil
	}
	err = fmt.Errorf("creating %T %s/%s: %w", child, a.ds.Namespace, child.GetName(), err)
	a.refused(fmt.Sprintf("Could not create %s: %v", child.GetName(), errors.Unwrap(err)))
	return err
}

func restoreLabels[T metav1.Object](ctx context.Context, a *applier, w *children.Writer[T], child T, labels map[string]string) error {
	const path = "/metadata/labels"
	all := maps.Clone(child.GetLabels())
	if all == nil {
		all = map[string]string{}
	}
	maps.Copy(all, labels)
	if child.GetDeletionTimestamp() != nil || maps.Equal(all, child.GetLabels()) {
		return nil // the cache is about to show it
	}
	_, err := w.Patch(ctx, a.ds, child.GetName(), child.GetResourceVersion(), []children.Operation{children.Set(path, all)})
	return err
}

// refused reports why a child was not created.
func (a *applier) refused(note string) {
	a.mu.Lock()
	defer a.mu.Unlock()
	if len(a.results.Refusals) < maxRefusals {
		a.results.Refusals = append(a.results.Refusals, note)
	}
}

// remover deletes objects of one kind in one namespace.
type remover interface {
	Delete(ctx context.Context, name string, options metav1.DeleteOptions) error
}

// remove deletes one incarnation of a child in the background. One that is gone is no error.
func (a *applier) remove(ctx context.Context, client remover, noun string, ref plan.Ref) error {
	err := client.Delete(ctx, ref.Name, metav1.DeleteOptions{
		PropagationPolicy: ptr.To(metav1.DeletePropagationBackground), Preconditions: &metav1.Preconditions{UID: &ref.UID},
	})
	if err != nil && !apierrors.IsNotFound(err) {
		return fmt.Errorf("deleting %s %s/%s: %w", noun, a.ds.Namespace, ref.Name, err)
	}
	a.consistency.Deleted(cache.MetaObjectToName(a.ds), ref.UID)
	return nil
}

// finish stores the next status, and then reports what was done.
func (c *Controller) finish(ctx context.Context, obs *plan.Observed, p plan.Plan, out plan.Outcome) error {
	ds, key := obs.Set, cache.MetaObjectToName(obs.Set)
	if out.Status != nil {
		next := *ds // shares the rest, which is not changed
		next.Status = *out.Status
		stored, err := children.UpdateStatus(ctx, c.Client.DisaggregatedsetV1().DisaggregatedSets(ds.Namespace), &next)
		switch {
		case apierrors.IsNotFound(err):
			return nil
		case err == nil:
			c.consistency.Wrote(key, resourceSets, stored.ResourceVersion)
		default:
			// Children were written all the same, and nobody will say so later.
			c.report(ctx, ds, out.Events)
			return fmt.Errorf("updating status of disaggregatedset %s: %w", key, err)
		}
	}
	c.report(ctx, ds, out.Events)
	c.noteConflicts(key, p.Conflicts)
	return nil
}

func (c *Controller) noteConflicts(key cache.ObjectName, names []string) {
	if len(names) == 0 {
		c.conflicts.Forget(key)
		return
	}
	noted := map[string]bool{}
	for _, name := range names {
		noted[name] = true
	}
	c.conflicts.Note(key, noted)
}

func (c *Controller) report(ctx context.Context, ds *disaggregatedsetv1.DisaggregatedSet, events []plan.Event) {
	for _, event := range events {
		send(c.Recorder, ds, event)
		klog.FromContext(ctx).V(4).Info("Reported an event", "reason", event.Reason)
	}
}
