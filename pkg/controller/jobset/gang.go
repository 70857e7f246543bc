// Copyright The jobset-apiserver Authors.
// SPDX-License-Identifier: Apache-2.0

package jobset

import (
	"cmp"
	"context"
	"fmt"
	"slices"

	apierrors "k8s.io/apimachinery/pkg/api/errors"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"
	"k8s.io/apimachinery/pkg/runtime/schema"
	"k8s.io/apimachinery/pkg/types"
	"k8s.io/client-go/dynamic"
	"k8s.io/client-go/tools/cache"

	jobsetv1alpha2 "github.com/jobset-apiserver/jobset-apiserver/pkg/apis/jobset/v1alpha2"
	"github.com/jobset-apiserver/jobset-apiserver/pkg/controller/gang"
	gangplan "github.com/jobset-apiserver/jobset-apiserver/pkg/controller/gang/plan"
	"github.com/jobset-apiserver/jobset-apiserver/pkg/controller/host/children"
	"github.com/jobset-apiserver/jobset-apiserver/pkg/controller/jobset/plan"
	jobsetgang "github.com/jobset-apiserver/jobset-apiserver/pkg/controller/jobset/plan/gang"
)

// Groups are the Workloads and PodGroups of the main API.
type Groups interface {
	// Ask returns how much is known of them, and begins to watch them.
	Ask() gang.State
	// Of returns those that an owner controls, as far as they are known.
	Of(owner types.UID) []*unstructured.Unstructured
	// Provider returns the scheduler with an own kind of PodGroups, which has no Workloads; empty for Kubernetes.
	Provider() gangplan.Provider
	// Client returns a client of objects of one kind.
	Client(api jobsetgang.API, kind, namespace string) children.Client[*unstructured.Unstructured]
}

// groups are the groups of a watch.
type groups struct {
	*gang.Watch
	client   dynamic.Interface
	provider gangplan.Provider
}

// Provider implements Groups.
func (g groups) Provider() gangplan.Provider { return g.provider }

// Client implements Groups.
func (g groups) Client(api jobsetgang.API, kind, namespace string) children.Client[*unstructured.Unstructured] {
	for _, k := range g.Kinds {
		if k.Kind == kind {
			return gang.ObjectsOf(g.client, api.GroupVersion().WithResource(k.Resource), namespace)
		}
	}
	return nil // plans have no other kinds
}

// ownGroups returns the scheduler of gangs if it has its own kind of PodGroups; empty if it uses the PodGroups of Kubernetes.
func (c *Controller) ownGroups() gangplan.Provider {
	if c.Gang.OwnKind() {
		return c.Gang
	}
	return ""
}

// newGroups returns the watch of the groups of pods.
func (c *Controller) newGroups() *gang.Watch {
	versions, kinds := []schema.GroupVersion{c.Gang.Resource().GroupVersion()}, []gang.Kind{gang.PodGroups}
	if c.ownGroups() == "" {
		versions, kinds = nil, []gang.Kind{gang.Workloads, gang.PodGroups}
		for _, api := range jobsetgang.APIs {
			versions = append(versions, api.GroupVersion())
		}
	}
	return gang.NewWatch(gang.Config{
		Kube: c.Kube, Dynamic: c.Dynamic, Versions: versions, Kinds: kinds, Label: jobsetv1alpha2.JobSetNameKey,
		Needed:  func() bool { return len(c.caches.byGroups(asking)) > 0 },
		Changed: c.enqueueNamed,
		Turned: func() {
			for _, key := range c.caches.byGroups(grouped) {
				c.queue.AddSoon(key)
			}
		},
	})
}

// groupingOf indexes a JobSet by what it has to do with groups of pods.
func groupingOf(obj any) ([]string, error) {
	js, ok := obj.(*jobsetv1alpha2.JobSet)
	switch {
	case !ok:
		return nil, fmt.Errorf("indexing by groups: %T is no JobSet", obj)
	case !plan.ManagedHere(js) || !jobsetgang.AskedFor(js):
		return nil, nil
	case js.Status.TerminalState != "":
		return []string{grouped}, nil
	}
	return []string{grouped, asking}, nil
}

// byGroups returns the names of the sets for which the index has the value.
func (c caches) byGroups(value string) (keys []cache.ObjectName) {
	objs, err := c.jobSets.ByIndex(indexGroups, value)
	if err != nil {
		return nil // the index exists
	}
	for _, obj := range objs {
		if js, ok := obj.(metav1.Object); ok {
			keys = append(keys, cache.MetaObjectToName(js))
		}
	}
	return keys
}

// observeGroups returns what is known of the groups of a set; nil without the feature gate. A set that asks for none leads to no watch.
func (s *Syncer) observeGroups(js *jobsetv1alpha2.JobSet) *jobsetgang.Observed {
	if s.deps.Groups == nil || !s.deps.Gates.JobSetWorkloadAwareSchedulingAPI {
		return nil
	}
	out := &jobsetgang.Observed{Provider: s.deps.Groups.Provider()}
	if plan.ManagedHere(js) && jobsetgang.AskedFor(js) {
		state := s.deps.Groups.Ask()
		out.API, out.Absent, out.Problem = jobsetgang.APIOf(state.Version), state.Absent, state.Problem
	}
	out.Objects = s.deps.Groups.Of(js.UID)
	return out
}

// deleteGroups deletes groups, those of one kind in any order: what is refused for one kind may be allowed for another.
// The scheduler keeps a PodGroup until no pod uses it.
func (a *applier) deleteGroups(ctx context.Context, grouped *jobsetgang.Observed, refs []jobsetgang.Ref) error {
	var errs []error
	order, all := a.deps.Shuffle(len(refs)), map[string]*children.Attempts{}
	slices.SortStableFunc(order, func(i, j int) int { return cmp.Compare(refs[i].Kind, refs[j].Kind) })
	for _, i := range order {
		ref := refs[i]
		if all[ref.Kind] == nil {
			all[ref.Kind] = children.NewAttempts()
		}
		attempts := all[ref.Kind]
		if children.Ended(ctx) || attempts.Over() {
			continue
		}
		err := a.deleteGroup(ctx, grouped.APIOf(ref), ref)
		switch {
		case err == nil || apierrors.IsNotFound(err) || apierrors.IsConflict(err):
			a.deps.Consistency.Deleted(cache.MetaObjectToName(a.js), ref.UID)
			attempts.Note(nil)
		default:
			attempts.Note(err)
			errs = append(errs, fmt.Errorf("deleting %s %s/%s: %w", ref.Kind, a.js.Namespace, ref.Name, err))
		}
	}
	return children.FirstErrors(errs...)
}

// deleteGroup deletes a group, unless another party creates it again each time. One that differs from what the set asks for is replaced so,
// unless its successors were changed each time.
func (a *applier) deleteGroup(ctx context.Context, api jobsetgang.API, ref jobsetgang.Ref) error {
	guard, object := a.guardOf(ref.Kind), &metav1.ObjectMeta{Namespace: a.js.Namespace, Name: ref.Name, UID: ref.UID}
	may, done := guard.Removing, guard.Removed
	if ref.Differs {
		may = func(js, group metav1.Object) error { return guard.Replacing(js, group, "the spec") }
		done = guard.Replaced
	}
	if err := may(a.js, object); err != nil {
		if ref.Differs {
			a.refused("the "+ref.Kind+" "+ref.Name, children.RefusalOf(err))
		}
		return err
	}
	err := a.denials.Do(a.js, children.Request{Verb: "delete", Resource: ref.Kind, Name: ref.Name, UID: ref.UID}, func() error {
		guard.Deleting(a.js.Namespace, ref.Name)
		return a.deps.Groups.Client(api, ref.Kind, a.js.Namespace).Delete(ctx, ref.Name, children.Background(ref.UID))
	})
	if err == nil {
		done(a.js, object)
	}
	return err
}

// createGroups creates groups in their order. The refusal of the Workload ends that, because all groups need it; that
// of a PodGroup does not.
func (a *applier) createGroups(ctx context.Context, objects []*unstructured.Unstructured) error {
	var errs []error
	for _, object := range objects {
		if children.Ended(ctx) {
			break
		}
		err := a.createGroup(ctx, object)
		if errs = append(errs, err); err != nil && object.GetKind() == gang.Workloads.Kind {
			break
		}
	}
	return children.FirstErrors(errs...)
}

func (a *applier) createGroup(ctx context.Context, object *unstructured.Unstructured) error {
	ctx, end := children.Finishing(ctx)
	defer end()
	client, guard := a.deps.Groups.Client(jobsetgang.APIOf(object.GroupVersionKind().GroupVersion()), object.GetKind(), object.GetNamespace()),
		a.guardOf(object.GetKind())
	what := children.Request{Verb: "create", Resource: object.GetKind(), Kind: object.GroupVersionKind().GroupKind(), Name: object.GetName()}
	err := guard.Creating(a.js, object)
	if err == nil {
		err = a.denials.Do(a.js, what, func() error {
			_, err := client.Create(ctx, object, metav1.CreateOptions{})
			return err
		})
		if err == nil {
			guard.Created(a.js, object)
		}
	}
	if apierrors.IsAlreadyExists(err) && !children.NotAsked(err) {
		existing, getErr := client.Get(ctx, object.GetName(), metav1.GetOptions{})
		if apierrors.IsNotFound(getErr) || getErr == nil && metav1.IsControlledBy(existing, a.js) {
			return nil // the watch is about to show it, or that it is gone
		}
		err = fmt.Errorf("%w, and the JobSet does not control it", err)
		if getErr == nil {
			err = a.denials.Taken(a.js, what, err)
		}
	}
	if err == nil || children.TerminatingNamespace(err) {
		return nil
	}
	a.refused("the "+object.GetKind()+" "+object.GetName(), children.RefusalOf(err))
	return fmt.Errorf("creating %s %s/%s: %w", object.GetKind(), object.GetNamespace(), object.GetName(), err)
}

// guardOf returns the guard of the groups of one kind.
func (s *Syncer) guardOf(kind string) *children.Guard {
	if kind == gang.Workloads.Kind {
		return s.workloads
	}
	return s.podGroups
}
