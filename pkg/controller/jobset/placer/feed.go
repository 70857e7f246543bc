// Copyright The jobset-apiserver Authors.
// SPDX-License-Identifier: Apache-2.0

package placer

import (
	"context"
	"fmt"

	appsv1 "k8s.io/api/apps/v1"
	corev1 "k8s.io/api/core/v1"
	nodev1 "k8s.io/api/node/v1"
	schedulingv1 "k8s.io/api/scheduling/v1"
	"k8s.io/apimachinery/pkg/runtime"
	"k8s.io/client-go/tools/cache"

	"github.com/jobset-apiserver/jobset-apiserver/pkg/controller/host/informers"
)

// source is where a Placer sees nodes and pods.
type source interface {
	// Run watches until the context ends.
	Run(ctx context.Context)
	// View returns what is watched; nil while it is not known. Current does so without a wish for it.
	View() *view
	Current() *view
	// Unfilled returns what is not known, each resource with why it is not if that is known.
	Unfilled() []string
}

// Feed shows a Placer nodes, pods, and what else a placement depends on, one change after the other. It takes the place of watches in
// simulations, in which nothing may happen by itself.
type Feed struct {
	seen    *view
	handler cache.ResourceEventHandler
}

// NewFed returns a Placer that knows what its Feed shows.
func NewFed(config Config) (*Placer, *Feed, error) {
	p, f := newPlacer(config), &Feed{}
	factory := informers.NewFactory(config.Kube)
	kind := factory.For("placement")
	f.seen, f.handler = declare(kind, func(*informers.Informer) {}), p.handler()
	f.seen.now = config.Clock.Now
	if _, err := factory.Build(kind); err != nil {
		return nil, nil, fmt.Errorf("setting up caches of a placer: %w", err)
	}
	p.watch = f
	return p, f, nil
}

// Show shows an object as it is now. The caller must not change it afterwards. An object of a kind that placements do
// not depend on is an error.
func (f *Feed) Show(obj runtime.Object) error {
	informer, err := f.seen.informerOf(obj)
	if err != nil {
		return err
	}
	kept, err := informer.Transform(obj)
	if err != nil {
		return fmt.Errorf("reducing an object: %w", err)
	}
	indexer := informer.GetIndexer()
	before, found, err := indexer.Get(kept)
	if err != nil {
		return fmt.Errorf("looking for an object: %w", err)
	}
	if err := indexer.Add(kept); err != nil {
		return fmt.Errorf("keeping an object: %w", err)
	}
	if found {
		f.handler.OnUpdate(before, kept)
	} else {
		f.handler.OnAdd(kept, false)
	}
	return nil
}

// Remove shows that an object is gone.
func (f *Feed) Remove(obj runtime.Object) error {
	informer, err := f.seen.informerOf(obj)
	if err != nil {
		return err
	}
	indexer := informer.GetIndexer()
	kept, found, err := indexer.Get(obj)
	if err != nil || !found {
		return err
	}
	if err := indexer.Delete(kept); err != nil {
		return fmt.Errorf("dropping an object: %w", err)
	}
	f.handler.OnDelete(kept)
	return nil
}

// Run returns when the context ends.
func (f *Feed) Run(ctx context.Context) { <-ctx.Done() }

// View returns what was shown.
func (f *Feed) View() *view { return f.seen }

// Current returns what was shown.
func (f *Feed) Current() *view { return f.seen }

// Unfilled returns nothing.
func (f *Feed) Unfilled() []string { return nil }

// informerOf returns the informer of objects of a kind.
func (v *view) informerOf(obj runtime.Object) (*informers.Informer, error) {
	switch obj.(type) {
	case *corev1.Node:
		return v.nodes, nil
	case *corev1.Pod:
		return v.pods, nil
	case *appsv1.DaemonSet:
		return v.daemons, nil
	case *corev1.LimitRange:
		return v.ranges, nil
	case *nodev1.RuntimeClass:
		return v.runtimeClasses, nil
	case *schedulingv1.PriorityClass:
		return v.priorityClasses, nil
	}
	return nil, fmt.Errorf("no placement depends on a %T", obj)
}
