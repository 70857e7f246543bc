// Copyright The jobset-apiserver Authors.
// SPDX-License-Identifier: Apache-2.0

package migrate

import (
	"context"
	"errors"
	"fmt"
	"maps"
	"slices"
	"sync"

	"golang.org/x/sync/errgroup"
	apierrors "k8s.io/apimachinery/pkg/api/errors"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"
	"k8s.io/apimachinery/pkg/types"
	"k8s.io/client-go/dynamic"
	"k8s.io/client-go/tools/pager"
	"k8s.io/utils/ptr"
)

// parallelWrites is how many objects are written to a CustomResourceDefinition at the same time.
const parallelWrites = 8

// custom is an object of a CustomResourceDefinition.
type custom = unstructured.Unstructured

// giver writes the objects of a resource that jobset-apiserver has into its CustomResourceDefinition.
type giver struct {
	client  dynamic.Interface
	subject subject
	// dryRun compares only: nothing is written.
	dryRun bool
	// lost is called in a dry run with the fields of an object that the CustomResourceDefinition does not know, unless it is nil.
	lost func(name types.NamespacedName, fields []string)
	// progress reports how many objects are done.
	progress *progress
	// written are objects that were written before; nil in a dry run.
	written *written
	// renew sets the UID that an owner has in its CustomResourceDefinition.
	renew func(ctx context.Context, namespace string, owner *metav1.OwnerReference) error
}

// given is the outcome of giver.run.
type given struct {
	mu sync.Mutex
	// objects is how many jobset-apiserver has.
	objects int
	// problems are the objects that the CustomResourceDefinition does not take, or does not have as jobset-apiserver has them, with the
	// reason.
	problems map[types.NamespacedName]error
	// replaced are the UIDs that objects have in the CustomResourceDefinition and had not in jobset-apiserver, by the latter.
	replaced map[types.UID]types.UID
	// created has the names of objects that the CustomResourceDefinition does not have yet.
	created []types.NamespacedName
}

func (g *given) problem(name types.NamespacedName, err error) {
	g.mu.Lock()
	defer g.mu.Unlock()
	g.problems[name] = err
}

// describe names objects with what is wrong with them.
func (g *given) describe(s subject) string {
	names := slices.SortedFunc(maps.Keys(g.problems), func(a, b types.NamespacedName) int {
		return slices.Compare([]string{a.Namespace, a.Name}, []string{b.Namespace, b.Name})
	})
	text := ""
	for i, name := range names[:min(len(names), shownProblems)] {
		if i > 0 {
			text += ", "
		}
		text += fmt.Sprintf("%s %s (%v)", s.resource.Resource, name, g.problems[name])
	}
	if more := len(names) - shownProblems; more > 0 {
		text += fmt.Sprintf(", and %d more", more)
	}
	return text
}

// run writes all objects, and deletes those that jobset-apiserver does not have any more.
func (g *giver) run(ctx context.Context) (*given, error) {
	from, err := g.list(ctx, g.client.Resource(g.subject.resource))
	if err != nil {
		return nil, fmt.Errorf("reading the %s of jobset-apiserver: %w", g.subject.resource.Resource, err)
	}
	to, err := g.list(ctx, g.client.Resource(g.subject.returning()))
	if err != nil {
		return nil, fmt.Errorf("reading the %s of the CustomResourceDefinition: %w", g.subject.resource.Resource, err)
	}
	out := &given{objects: len(from), problems: map[types.NamespacedName]error{}, replaced: map[types.UID]types.UID{}}
	writes, writing := errgroup.WithContext(ctx)
	writes.SetLimit(parallelWrites)
	g.progress.of(len(from))
	for name, object := range from {
		writes.Go(func() error {
			defer g.progress.add(1)
			return g.giveReadable(writing, name, object, to[name], out)
		})
	}
	for name, object := range to {
		if from[name] == nil {
			writes.Go(func() error { return g.forget(writing, name, object, out) })
		}
	}
	return out, writes.Wait()
}

func (g *giver) list(ctx context.Context, client dynamic.ResourceInterface) (objects map[types.NamespacedName]*custom, err error) {
	objects = map[types.NamespacedName]*custom{}
	pages := pager.New(pager.SimplePageFunc(func(opts metav1.ListOptions) (runtimeObject, error) { return client.List(ctx, opts) }))
	pages.PageSize = listPage
	err = pages.EachListItem(ctx, metav1.ListOptions{}, func(item runtimeObject) error {
		object, ok := item.(*custom)
		if !ok {
			return fmt.Errorf("an item of a list is a %T", item)
		}
		objects[nameOf(object)] = object
		return nil
	})
	return objects, err
}

func nameOf(object *custom) types.NamespacedName {
	return types.NamespacedName{Namespace: object.GetNamespace(), Name: object.GetName()}
}

// give writes one object. An error is one that ends the migration; an object that is not accepted is a problem of the object.
func (g *giver) give(ctx context.Context, name types.NamespacedName, object, there *custom, out *given) error {
	if g.written.has(object, there) {
		out.replace(object, there)
		return nil
	}
	client := g.client.Resource(g.subject.returning()).Namespace(name.Namespace)
	wanted, written, err := g.prepare(ctx, object)
	if err != nil {
		return err
	}
	if other := there != nil && there.GetUID() != object.GetUID(); other && out.known(object, there) {
		wanted.SetUID(there.GetUID())
	} else if other {
		if err := g.forget(ctx, name, there, out); err != nil || g.dryRun {
			return err
		}
		there = nil
	}
	if there == nil {
		out.mu.Lock()
		out.created = append(out.created, name)
		out.mu.Unlock()
		there, err = g.create(ctx, client, wanted)
	} else {
		there, err = g.update(ctx, client, wanted, there)
	}
	switch {
	case apierrors.IsInvalid(err), apierrors.IsBadRequest(err), errors.Is(err, errDiffers):
		// The UID of an object that is not there yet is not known.
		out.problem(name, err)
		return nil
	case err != nil:
		return fmt.Errorf("writing %s %s into the CustomResourceDefinition: %w", g.subject.resource.Resource, name, err)
	}
	written.note(object, there)
	out.replace(object, there)
	return nil
}

// replace notes that an object has another UID in the CustomResourceDefinition, if it has.
func (g *given) replace(object, there *custom) {
	if there.GetUID() != object.GetUID() {
		g.mu.Lock()
		defer g.mu.Unlock()
		g.replaced[object.GetUID()] = there.GetUID()
	}
}

// known returns whether an object of the CustomResourceDefinition with another UID is the one that an earlier attempt created.
func (g *given) known(object, there *custom) bool {
	return there.GetAnnotations()[formerUID] == string(object.GetUID())
}

// formerUID is the annotation of an object that was created again: the UID that it had in jobset-apiserver.
const formerUID = "migration.jobset-apiserver.io/former-uid"

// errOnlyThere is the problem of an object that jobset-apiserver does not have any more.
var errOnlyThere = errors.New("only the CustomResourceDefinition has it")

// errDiffers is the problem of an object that is not written yet, or has changed since.
var errDiffers = errors.New("the CustomResourceDefinition does not have it as jobset-apiserver has it")

func (g *giver) create(ctx context.Context, client dynamic.ResourceInterface, wanted *custom) (*custom, error) {
	annotations := wanted.GetAnnotations()
	if annotations == nil {
		annotations = map[string]string{}
	}
	annotations[formerUID] = string(wanted.GetUID())
	wanted.SetAnnotations(annotations)
	deleting := wanted.GetDeletionTimestamp() != nil
	wanted.SetUID("")
	wanted.SetDeletionTimestamp(nil)
	created, err := client.Create(ctx, wanted, metav1.CreateOptions{DryRun: g.dry()})
	g.compare(wanted, created, err)
	switch {
	case err != nil:
		return created, err
	case g.dryRun:
		return created, errDiffers
	case deleting:
		err = g.delete(ctx, client, created)
	}
	return created, err
}

// update writes an object over the one that is there. The second write changes nothing but the managed fields, which the first one
// has noted for this client.
func (g *giver) update(ctx context.Context, client dynamic.ResourceInterface, wanted, there *custom) (*custom, error) {
	deleting := wanted.GetDeletionTimestamp() != nil
	if wanted.GetUID() != there.GetUID() || there.GetAnnotations()[formerUID] != "" {
		annotations := wanted.GetAnnotations()
		if annotations == nil {
			annotations = map[string]string{}
		}
		annotations[formerUID] = there.GetAnnotations()[formerUID]
		wanted.SetAnnotations(annotations)
	}
	wanted.SetCreationTimestamp(there.GetCreationTimestamp())
	wanted.SetDeletionTimestamp(there.GetDeletionTimestamp())
	wanted.SetDeletionGracePeriodSeconds(there.GetDeletionGracePeriodSeconds())
	wanted.SetResourceVersion(there.GetResourceVersion())
	result, err := client.Update(ctx, wanted, metav1.UpdateOptions{DryRun: g.dry()})
	g.compare(wanted, result, err)
	if err != nil {
		return there, err
	}
	if g.dryRun {
		if !same(result, there) || deleting != (there.GetDeletionTimestamp() != nil) {
			return there, errDiffers
		}
		return there, nil
	}
	wanted.SetResourceVersion(result.GetResourceVersion())
	if result, err = client.Update(ctx, wanted, metav1.UpdateOptions{}); err != nil {
		return there, err
	}
	if deleting && result.GetDeletionTimestamp() == nil {
		err = g.delete(ctx, client, result)
	}
	return result, err
}

// delete begins the deletion of an object as its finalizers say.
func (g *giver) delete(ctx context.Context, client dynamic.ResourceInterface, object *custom) error {
	policy := metav1.DeletePropagationBackground
	switch finalizers := object.GetFinalizers(); {
	case slices.Contains(finalizers, metav1.FinalizerDeleteDependents):
		policy = metav1.DeletePropagationForeground
	case slices.Contains(finalizers, metav1.FinalizerOrphanDependents):
		policy = metav1.DeletePropagationOrphan
	}
	return client.Delete(ctx, object.GetName(), metav1.DeleteOptions{
		PropagationPolicy: &policy, Preconditions: &metav1.Preconditions{UID: ptr.To(object.GetUID())},
	})
}

// forget deletes an object that jobset-apiserver does not have any more. Its finalizers have done their work there.
func (g *giver) forget(ctx context.Context, name types.NamespacedName, object *custom, out *given) error {
	if g.dryRun {
		out.problem(name, errOnlyThere)
		return nil
	}
	client := g.client.Resource(g.subject.returning()).Namespace(name.Namespace)
	var err error
	if len(object.GetFinalizers()) > 0 {
		object = object.DeepCopy()
		object.SetFinalizers(nil)
		object, err = client.Update(ctx, object, metav1.UpdateOptions{})
	}
	if err == nil {
		err = client.Delete(ctx, name.Name, metav1.DeleteOptions{
			PropagationPolicy: ptr.To(metav1.DeletePropagationBackground), Preconditions: &metav1.Preconditions{UID: ptr.To(object.GetUID())},
		})
	}
	if err != nil && !apierrors.IsNotFound(err) {
		return fmt.Errorf("deleting %s %s from the CustomResourceDefinition: %w", g.subject.resource.Resource, name, err)
	}
	return nil
}

func (g *giver) dry() []string {
	if g.dryRun {
		return []string{metav1.DryRunAll}
	}
	return nil
}
