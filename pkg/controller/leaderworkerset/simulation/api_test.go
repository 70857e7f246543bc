// Copyright The jobset-apiserver Authors.
// SPDX-License-Identifier: Apache-2.0

package simulation

import (
	"context"
	"encoding/json"
	"maps"
	"reflect"

	jsonpatch "gopkg.in/evanphx/json-patch.v4"
	appsv1 "k8s.io/api/apps/v1"
	corev1 "k8s.io/api/core/v1"
	"k8s.io/apimachinery/pkg/api/equality"
	apierrors "k8s.io/apimachinery/pkg/api/errors"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/types"

	leaderworkersetv1 "github.com/jobset-apiserver/jobset-apiserver/pkg/apis/leaderworkerset/v1"
	"github.com/jobset-apiserver/jobset-apiserver/test/simulation"
)

// This file holds the clients through which the controller writes. The API servers decide what they answer. What happens on
// the way is drawn.

// setClient is a client of LeaderWorkerSets.
type setClient struct{ p *process }

func (c setClient) UpdateStatus(_ context.Context, wanted *leaderworkersetv1.LeaderWorkerSet, _ metav1.UpdateOptions) (*leaderworkersetv1.LeaderWorkerSet, error) {
	c.p.writes++
	return simulation.Send(c.p.sender, wanted, func(bool) (*leaderworkersetv1.LeaderWorkerSet, error) {
		if c.p.outage || c.p.hidden != nil {
			return nil, simulation.ErrServer
		}
		current, refusal := c.p.set(), c.p.deniedChild(updateStatus, wanted)
		switch {
		case refusal != nil:
			return nil, refusal
		case current == nil:
			return nil, simulation.ErrNotFound
		case (current.ResourceVersion != wanted.ResourceVersion || current.UID != wanted.UID) && !c.p.overwriting:
			c.p.Seen["conflicts"]++
			return nil, simulation.ErrConflict
		}
		next := current.DeepCopy()
		wanted.Status.DeepCopyInto(&next.Status)
		c.p.rules.statusStored(current, next)
		c.p.env.sets.Put(next)
		c.p.Note("  stores the status %s", describeStatus(&next.Status))
		return next, nil
	})
}

func (c setClient) Get(context.Context, string, metav1.GetOptions) (*leaderworkersetv1.LeaderWorkerSet, error) {
	return simulation.Read(c.p.sender, func() (*leaderworkersetv1.LeaderWorkerSet, error) {
		switch set := c.p.set(); {
		case c.p.outage, c.p.hidden != nil:
			return nil, simulation.ErrServer
		case set == nil:
			return nil, simulation.ErrNotFound
		default:
			return set, nil
		}
	})
}

func (setClient) Delete(context.Context, string, metav1.DeleteOptions) error {
	panic("nobody deletes a set but users")
}

// childClient is a client of children of one kind.
type childClient[T metav1.Object] struct {
	p    *process
	in   *simulation.Store[T]
	kind string
	copy func(T) T
}

func (c childClient[T]) Create(_ context.Context, wanted T, options metav1.CreateOptions) (T, error) {
	c.p.writes++
	return simulation.Send(c.p.sender, wanted, func(bool) (T, error) {
		if _, taken := c.in.Get(wanted.GetName()); taken {
			return wanted, simulation.ErrExists
		}
		request := "create " + c.kind
		if options.FieldManager != "" {
			request = "apply " + c.kind // the leader StatefulSet is created, and then applied
		}
		if err := c.p.deniedChild(request, wanted); err != nil {
			return wanted, err
		}
		child := c.copy(wanted)
		child.SetUID(c.p.NewUID(c.kind))
		child.SetCreationTimestamp(c.p.stored())
		child.SetGeneration(1)
		c.p.Note("  creates %s %s (%s)", c.kind, child.GetName(), child.GetUID())
		if sts, ok := any(child).(*appsv1.StatefulSet); ok && options.FieldManager != "" {
			sts.ManagedFields = []metav1.ManagedFieldsEntry{{
				Manager: options.FieldManager, Operation: metav1.ManagedFieldsOperationUpdate, FieldsV1: metav1.NewFieldsV1("{}"),
			}}
			c.p.store(sts)
			c.p.rules.applied(nil, sts)
		} else {
			c.p.rules.created(child)
		}
		c.in.Put(child)
		return child, nil
	})
}

func (c childClient[T]) Get(_ context.Context, name string, _ metav1.GetOptions) (T, error) {
	return simulation.Read(c.p.sender, func() (T, error) {
		child, found := c.in.Get(name)
		if !found {
			return child, simulation.ErrNotFound
		}
		return child, nil
	})
}

func (c childClient[T]) Delete(_ context.Context, name string, options metav1.DeleteOptions) error {
	var none T
	c.p.writes++
	_, err := simulation.Send(c.p.sender, none, func(bool) (T, error) {
		child, found := c.in.Get(name)
		switch {
		case !found:
			return none, simulation.ErrNotFound
		case child.GetUID() != *options.Preconditions.UID:
			return none, simulation.ErrConflict
		}
		if err := c.p.deniedChild("delete "+c.kind, child); err != nil {
			return none, err
		}
		c.p.Note("  deletes %s %s (%s)", c.kind, name, child.GetUID())
		c.p.rules.touched(child)
		if pod, ok := any(child).(*corev1.Pod); ok {
			c.p.rules.leaderDeleted(pod)
			c.p.deletePod(pod, *options.PropagationPolicy == metav1.DeletePropagationForeground)
			return none, nil
		}
		c.in.Remove(name)
		return none, nil
	})
	return err
}

func (c childClient[T]) Patch(_ context.Context, name string, kind types.PatchType, body []byte, _ metav1.PatchOptions, _ ...string) (T, error) {
	var none T
	c.p.writes++
	if kind == types.JSONPatchType {
		return c.change(name, body)
	}
	var wanted appsv1.StatefulSet
	sts, ok := any(c.in).(*simulation.Store[*appsv1.StatefulSet])
	if !ok || json.Unmarshal(body, &wanted) != nil {
		panic("a patch that nobody expects: " + string(body))
	}
	return simulation.Send(c.p.sender, any(wanted.DeepCopy()).(T), func(bool) (T, error) {
		stored, err := c.p.patchStatefulSet(sts, name, kind, wanted.DeepCopy())
		if err != nil {
			return none, err
		}
		return any(stored).(T), nil
	})
}

// change is what the API server does with a JSON patch of one version of a child.
func (c childClient[T]) change(name string, body []byte) (T, error) {
	var none T
	patch, err := jsonpatch.DecodePatch(body)
	if err != nil {
		panic(err)
	}
	answer, _ := c.in.Get(name) // for a controller that was deposed
	return simulation.Send(c.p.sender, answer, func(bool) (T, error) {
		live, found := c.in.Get(name)
		if !found {
			return none, simulation.ErrNotFound
		}
		before, err := json.Marshal(live)
		if err != nil {
			panic(err)
		}
		after, err := patch.Apply(before)
		next := reflect.New(reflect.TypeOf(live).Elem()).Interface().(T)
		if err == nil {
			err = json.Unmarshal(after, next)
		}
		switch {
		case err != nil:
			panic(err)
		case next.GetResourceVersion() != live.GetResourceVersion():
			return none, simulation.ErrConflict
		}
		if err := c.p.deniedChild("patch "+c.kind, live); err != nil {
			return none, err
		}
		c.p.Note("  patches %s %s (%s)", c.kind, name, live.GetUID())
		c.p.rules.touched(live)
		if !equality.Semantic.DeepEqual(live.GetOwnerReferences(), next.GetOwnerReferences()) {
			c.p.rules.adopted(live, next)
		}
		c.in.Put(next)
		return next, nil
	})
}

// patchStatefulSet is what the API server does with a patch of a StatefulSet.
func (p *process) patchStatefulSet(in *simulation.Store[*appsv1.StatefulSet], name string, kind types.PatchType, wanted *appsv1.StatefulSet) (*appsv1.StatefulSet, error) {
	live, found := in.Get(name)
	request, change := "patch statefulset", "touch"
	if kind == types.ApplyPatchType {
		request, change = "apply statefulset", "apply"
	}
	switch {
	case !found && kind == types.ApplyPatchType:
		return nil, simulation.ErrConflict // it has a UID, so that nothing is created
	case !found:
		return nil, simulation.ErrNotFound
	}
	if err := p.deniedChild(request, live, change); err != nil {
		return nil, err
	}
	switch {
	case kind == types.ApplyPatchType && wanted.UID == "":
		panic("an apply that may be merged into any StatefulSet of the name: " + name)
	case wanted.UID != "" && wanted.UID != live.UID, wanted.ResourceVersion != "" && wanted.ResourceVersion != live.ResourceVersion:
		p.Seen["conflicts of applies"]++
		return nil, simulation.ErrConflict
	}
	next := live.DeepCopy()
	next.Annotations = mergedInto(next.Annotations, wanted.Annotations)
	if kind == types.ApplyPatchType {
		if !equality.Semantic.DeepEqual(live.Spec.Selector, wanted.Spec.Selector) {
			return nil, apierrors.NewInvalid(appsv1.SchemeGroupVersion.WithKind("StatefulSet").GroupKind(), name, nil)
		}
		p.rules.touched(live)
		next.Labels = mergedInto(next.Labels, wanted.Labels)
		next.Spec, next.OwnerReferences = wanted.Spec, wanted.OwnerReferences
		p.store(next)
		if !equality.Semantic.DeepEqual(live.Spec, next.Spec) {
			next.Generation++
		}
		p.Note("  applies statefulset %s (%s) %s", name, next.UID, describeLeader(next))
		p.rules.applied(live, next)
	}
	if !equality.Semantic.DeepEqual(live, next) {
		in.Put(next)
	}
	return next, nil
}

// store drops what the API drops.
func (e *env) store(sts *appsv1.StatefulSet) {
	if e.dropping {
		sts.Spec.UpdateStrategy.RollingUpdate.MaxUnavailable = nil
	}
}

func mergedInto(have, wanted map[string]string) map[string]string {
	if have == nil {
		return wanted
	}
	maps.Copy(have, wanted)
	return have
}
