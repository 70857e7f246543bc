// Copyright The jobset-apiserver Authors.
// SPDX-License-Identifier: Apache-2.0

package disaggregatedset

import (
	"context"
	"errors"
	"fmt"

	apierrors "k8s.io/apimachinery/pkg/api/errors"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"

	"github.com/jobset-apiserver/jobset-apiserver/pkg/controller/host/children"
)

// create creates a child. One that exists and that the set controls is as good; if it has lost the labels by which
// caches know it, it gets them back. It returns whether there is one now.
func create[T metav1.Object](ctx context.Context, a *applier, w *children.Writer[T], child T) (bool, error) {
	isChild := func(existing T) bool { return metav1.IsControlledBy(existing, a.ds) || orphanFor(a.ds, existing) }
	if w.StillTaken(ctx, child, children.NamesTakenFor, isChild) {
		a.nameTaken(child.GetName())
		return false, nil
	}
	done, err := a.try(creating(child.GetName()), fmt.Sprintf("create %T", child), func() error {
		_, err := w.Create(ctx, a.ds, child)
		if apierrors.IsAlreadyExists(err) {
			existing, getErr := w.Get(ctx, a.ds.Namespace, child.GetName())
			switch {
			case apierrors.IsNotFound(getErr):
				return errNameFreed
			case getErr != nil:
			case metav1.IsControlledBy(existing, a.ds):
				return putLabelsBack(ctx, a, w, existing, child.GetLabels())
			case orphanFor(a.ds, existing):
				err = errOrphan
			default:
				return errNameTaken
			}
		}
		if err == nil || children.TerminatingNamespace(err) {
			return nil
		}
		return fmt.Errorf("creating %T %s/%s: %w", child, a.ds.Namespace, child.GetName(), err)
	})
	if errors.Is(err, errNameTaken) {
		w.NameTaken(child, children.NamesTakenFor)
		a.nameTaken(child.GetName())
		return false, nil
	}
	return done, err
}

// nameTaken notes that another object has the name of a child: that is a result, and no error.
func (a *applier) nameTaken(name string) {
	a.mu.Lock()
	defer a.mu.Unlock()
	a.results.NameTaken = true
	a.report(creating(name), errNameTaken)
}

func putLabelsBack[T metav1.Object](ctx context.Context, a *applier, w *children.Writer[T], child T, labels map[string]string) error {
	if child.GetDeletionTimestamp() != nil && len(children.Lost(child, labels)) > 0 {
		return errGoing
	}
	_, err := w.Relabel(ctx, a.ds, child, labels) // if it has lost none, the cache is about to show it
	return err
}
