// Copyright The jobset-apiserver Authors.
// SPDX-License-Identifier: Apache-2.0

package informers

import (
	"context"
	"sync/atomic"
	"time"

	"k8s.io/apimachinery/pkg/util/wait"
	"k8s.io/client-go/kubernetes"
	"k8s.io/klog/v2"
)

const (
	// fillPoll is how often a cache is looked at while it is being filled.
	fillPoll = 100 * time.Millisecond
	// needPoll is how often it is asked whether a watch is still needed.
	needPoll = time.Minute
)

// OnDemand watches what few objects need: from the first question for it on, until nothing needs it.
type OnDemand[V any] struct {
	// Name is the name of the kind.
	Name string
	// Kube is a client of the main API.
	Kube kubernetes.Interface
	// Declare returns the view of the informers of a new kind.
	Declare func(*Kind) *V
	// Needed returns whether anything still needs the watches; nil for those that last.
	Needed func() bool
	// Outdone returns whether what is being watched for the first time can no longer be had, so that its caches would
	// never be filled; nil for never.
	Outdone func() bool
	// Filled is called when the caches are filled.
	Filled func()

	wanted chan struct{}
	view   atomic.Pointer[V]
	// filling is the kind whose caches are being filled, and then followed.
	filling atomic.Pointer[Kind]
}

// Prepare makes the watches ready to be asked for.
func (d *OnDemand[V]) Prepare() *OnDemand[V] {
	d.wanted = make(chan struct{}, 1)
	return d
}

// View returns the view once its caches are filled; nil before. Asking is what begins the watches.
func (d *OnDemand[V]) View() *V {
	view := d.view.Load()
	if view == nil {
		select {
		case d.wanted <- struct{}{}:
		default:
		}
	}
	return view
}

// Current returns the view without asking for one.
func (d *OnDemand[V]) Current() *V { return d.view.Load() }

// Unfilled returns the resources whose caches are not filled, each with why it is not if that is known.
func (d *OnDemand[V]) Unfilled() []string {
	if kind := d.filling.Load(); kind != nil {
		return kind.Unfilled()
	}
	return nil
}

// Outdated returns the resources that could not be followed for at least that long, each with why.
func (d *OnDemand[V]) Outdated(after time.Duration) []string {
	if kind := d.filling.Load(); kind != nil {
		return kind.Outdated(after)
	}
	return nil
}

func (d *OnDemand[V]) needed() bool { return d.Needed == nil || d.Needed() }

// Run watches whenever a caller has asked, until the context ends.
func (d *OnDemand[V]) Run(ctx context.Context) {
	for {
		select {
		case <-ctx.Done():
			return
		case <-d.wanted:
			d.watch(ctx)
		}
	}
}

func (d *OnDemand[V]) watch(ctx context.Context) {
	ctx, cancel := context.WithCancel(ctx)
	defer cancel()
	factory := NewFactory(d.Kube) // one of its own, which ends with the watches
	kind := factory.For(d.Name)
	view := d.Declare(kind)
	watches, err := factory.Build(kind)
	if err != nil {
		klog.FromContext(ctx).Error(err, "Could not set up watches", "kind", d.Name)
		return
	}
	watches.Start(ctx)
	d.filling.Store(kind)
	defer d.filling.Store(nil)
	begun := time.Now()
	filled := func(context.Context) (bool, error) {
		if d.Outdone != nil && d.Outdone() || time.Since(begun) >= needPoll && !d.needed() {
			return false, context.Canceled
		}
		return len(kind.Unfilled()) == 0, nil
	}
	if wait.PollUntilContextCancel(ctx, fillPoll, true, filled) != nil {
		return
	}
	d.view.Store(view)
	defer d.view.Store(nil)
	select { // who asked while the caches were being filled has the answer
	case <-d.wanted:
	default:
	}
	d.Filled()
	unneeded := func(context.Context) (bool, error) { return !d.needed(), nil }
	_ = wait.PollUntilContextCancel(ctx, needPoll, false, unneeded) // ends with the context, or when nothing needs the watches
}
