// Copyright The jobset-apiserver Authors.
// SPDX-License-Identifier: Apache-2.0

package children

import (
	"cmp"
	"context"
	"errors"
	"fmt"
	"maps"
	"slices"
	"sync"
	"time"

	apierrors "k8s.io/apimachinery/pkg/api/errors"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/util/sets"
	"k8s.io/klog/v2"

	"github.com/jobset-apiserver/jobset-apiserver/pkg/controller/host/plan"
)

const (
	// maxRefusals is how many more children than were created may be refused in one pass, each for a reason of its own, before
	// the rest is left to the next one. A webhook that denies all children gets no more requests than that.
	maxRefusals = 100
	// askBefore is how long before the next try a taken name may be looked at.
	askBefore = 100 * time.Millisecond
)

// Result is the result of the creation of one child.
type Result int

// Results of creations.
const (
	// NotTried children were not asked for: the pass was over, or the request was sure to be refused.
	NotTried Result = iota
	// Created children are new.
	Created
	// Exists is for children that the owner already has. The caches are about to show them.
	Exists
	// Repaired is for children that the owner already has, and that had lost what caches know them by.
	Repaired
	// NameTaken is for children whose name an object has that the owner does not control.
	NameTaken
	// NameFreed is for children whose name was taken a moment ago. No cache shows that it is free.
	NameFreed
	// Refused children may be refused for a reason of their own.
	Refused
	// TemplateRefused children are refused for a reason that all children of their template share.
	TemplateRefused
)

// Creations are children of one owner to create in one pass.
type Creations[T metav1.Object] struct {
	// Children are created in their order.
	Children []T
	// Template returns the name of the template that a child is made from.
	Template func(child T) string
	// Repair is called with a child that exists and that the owner controls. It returns Exists, Repaired or NameFreed, or why
	// no cache shows the child. err is the error of the creation.
	Repair func(ctx context.Context, existing T, err error) (Result, error)
	// Controller returns what controls a child; nil if the owner controls all.
	Controller func(child T) metav1.Object
	// Stored is called, by many goroutines, with each child that was created, and with what the API has made of it; nil if
	// that does not matter.
	Stored func(child, stored T)
	// FieldManager is the field manager of the creations; that of the client if it is empty.
	FieldManager string
	// TakenFor is for how long a name is not looked at again that another object has, at most NamesTakenFor.
	TakenFor time.Duration
}

// CreationResults are what became of Creations.
type CreationResults struct {
	// Results are in the order of the children; those of a panic are Refused.
	Results []Result
	// Errors are why each child was not created, in the order of the children; nil for those that were, and for those not tried.
	Errors []error
	// Accepted is the number of children that were created.
	Accepted int
	// Err summarizes why children were not created; nil if none was refused.
	Err error
	// Refusals are why, one for each reason, in the order of the children.
	Refusals []plan.Refusal
}

// CreateAll creates children. One that is refused keeps no other from being created, unless the others are sure to be refused
// too. If the namespace is being deleted, there is no error, because no user needs to act.
func (w *Writer[T]) CreateAll(ctx context.Context, owner metav1.Object, what Creations[T]) CreationResults {
	c := &creation[T]{Writer: w, Creations: what, owner: owner, results: make([]Result, len(what.Children)),
		errors: make([]error, len(what.Children)), templates: sets.New[string](), refusals: map[string]numbered{}}
	err := w.InOrder(ctx, owner, len(what.Children), c.create)
	if c.created > 0 {
		klog.FromContext(ctx).V(4).Info("Created children", "resource", w.resource, "created", c.created)
	}
	if missing := len(what.Children) - c.created - c.taken; err != nil && missing > 1 {
		err = fmt.Errorf("%d %ss could not be created: %w", missing, w.noun, err)
	}
	if c.quiet {
		err, c.refusals = nil, nil
		clear(c.errors)
	}
	return CreationResults{Results: c.results, Errors: c.errors, Accepted: c.created, Err: err, Refusals: c.inOrder()}
}

// creation is one pass of creations.
type creation[T metav1.Object] struct {
	*Writer[T]
	Creations[T]
	owner metav1.Object

	mu      sync.Mutex
	results []Result
	errors  []error
	// created and refused are numbers of children; others have names that are taken.
	created, taken, refused int
	// templates are the templates that were refused.
	templates sets.Set[string]
	// refusals are the first ones for each reason.
	refusals map[string]numbered
	// over is true when no other child is created in this pass, and quiet when the reason need not be reported.
	over, quiet bool
}

func (c *creation[T]) create(ctx context.Context, i int) error {
	if Ended(ctx) || !c.begin(i) {
		return ErrSkipped
	}
	result, err := c.createOne(ctx, c.Children[i])
	c.end(i, result, err)
	return err
}

// begin returns whether to ask for a child.
func (c *creation[T]) begin(i int) bool {
	c.mu.Lock()
	defer c.mu.Unlock()
	if c.over || c.templates.Has(c.Template(c.Children[i])) {
		return false
	}
	c.results[i] = Refused // unless it comes to an end
	return true
}

// end notes what became of a child.
func (c *creation[T]) end(i int, result Result, err error) {
	c.mu.Lock()
	defer c.mu.Unlock()
	if err == nil {
		if c.results[i] = result; result == Created {
			c.created++
		} else {
			c.taken++
		}
		return
	}
	if !NotAsked(err) {
		c.refused++
	}
	c.errors[i] = cmp.Or(errors.Unwrap(err), err)
	c.note(i, RefusalOf(cmp.Or(errors.Unwrap(err), err))) // createOne has added the name of the child
	switch reachOf(c.kind, c.Children[i].GetName(), err) {
	case allChildren:
		c.over, c.quiet = true, c.quiet || TerminatingNamespace(err)
	case sameTemplate:
		c.results[i] = TemplateRefused
		c.templates.Insert(c.Template(c.Children[i]))
	}
	c.over = c.over || c.refused-c.created >= maxRefusals
}

// numbered is the refusal of one child.
type numbered struct {
	plan.Refusal
	child int
}

// note remembers a refusal unless an earlier child was refused for the same reason.
func (c *creation[T]) note(child int, why plan.Refusal) {
	if first, found := c.refusals[why.Reason]; !found || child < first.child {
		c.refusals[why.Reason] = numbered{why, child}
	}
}

// inOrder returns the refusals in the order of the children.
func (c *creation[T]) inOrder() (refusals []plan.Refusal) {
	byChild := func(a, b numbered) int { return cmp.Compare(a.child, b.child) }
	for _, r := range slices.SortedFunc(maps.Values(c.refusals), byChild) {
		refusals = append(refusals, r.Refusal)
	}
	return refusals
}

// controllerOf returns what controls a child.
func (c *creation[T]) controllerOf(child T) metav1.Object {
	if c.Controller == nil {
		return c.owner
	}
	return c.Controller(child)
}

func (c *creation[T]) createOne(ctx context.Context, child T) (Result, error) {
	isChild := func(existing T) bool { return metav1.IsControlledBy(existing, c.controllerOf(child)) }
	if c.StillTaken(ctx, child, c.TakenFor, isChild) {
		return NameTaken, nil
	}
	what := c.creationOf(c.owner, child)
	what.Template, what.HasTemplate = c.Template(child), true
	stored, err := c.createAs(ctx, c.owner, child, what, metav1.CreateOptions{FieldManager: c.FieldManager})
	if apierrors.IsAlreadyExists(err) {
		existing, getErr := c.Get(ctx, child.GetNamespace(), child.GetName())
		switch {
		case apierrors.IsNotFound(getErr):
			return NameFreed, nil
		case getErr != nil: // the next pass will see who has the name
		case !isChild(existing):
			// No failure: the children of other names are created, and this one when its name is free.
			c.NameTaken(child, c.TakenFor)
			return NameTaken, nil
		default:
			var result Result
			if result, err = c.Repair(ctx, existing, err); err == nil {
				return result, nil
			}
			c.denials.Behind(c.owner, what, c.change(Ref{Name: child.GetName()}, ""), err)
		}
	}
	if err != nil {
		return Refused, fmt.Errorf("%s %q creation failed with error: %w", c.noun, child.GetName(), err)
	}
	if c.Stored != nil {
		c.Stored(child, stored)
	}
	return Created, nil
}
