// Copyright The jobset-apiserver Authors.
// SPDX-License-Identifier: Apache-2.0

package informers

import (
	"context"
	"sync"
	"sync/atomic"
	"testing"
	"testing/synctest"
	"time"

	corev1 "k8s.io/api/core/v1"
	apierrors "k8s.io/apimachinery/pkg/api/errors"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/runtime"
	"k8s.io/apimachinery/pkg/watch"
	"k8s.io/client-go/kubernetes/fake"
	clienttesting "k8s.io/client-go/testing"
)

// TestOnDemand watches nodes from the first question on, until no caller needs them, and again from the next question on.
func TestOnDemand(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		d := newDemand()
		ctx, cancel := context.WithCancel(t.Context())
		var running sync.WaitGroup
		running.Go(func() { d.Run(ctx) })
		d.shows(t, time.Hour, "before a question", 0, 0, 0)
		if d.View() != nil {
			t.Error("there is a view at once")
		}
		d.shows(t, time.Second, "after a question", 1, 1, 1)
		d.shows(t, time.Hour, "while they are needed", 1, 1, 1)
		d.needed.Store(false)
		d.shows(t, needPoll+time.Second, "when nobody needs them", 0, 0, 1)
		d.shows(t, time.Hour, "later", 0, 0, 1)
		d.needed.Store(true)
		d.View()
		d.shows(t, time.Second, "after another question", 1, 1, 2)
		cancel()
		running.Wait()
		d.shows(t, time.Second, "at the end", 0, 0, 2)
	})
}

// TestOnDemandEndsBeforeItIsFilled ends watches that cannot be filled when no caller needs them any more.
func TestOnDemandEndsBeforeItIsFilled(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		d := newDemand()
		var lists atomic.Int32
		d.Kube.(*fake.Clientset).PrependReactor("list", "nodes", func(clienttesting.Action) (bool, runtime.Object, error) {
			lists.Add(1)
			return true, nil, apierrors.NewForbidden(corev1.Resource("nodes"), "", nil)
		})
		ctx, cancel := context.WithCancel(t.Context())
		var running sync.WaitGroup
		running.Go(func() { d.Run(ctx) })
		d.View()
		time.Sleep(10 * time.Minute)
		d.needed.Store(false)
		time.Sleep(needPoll + time.Second)
		before := lists.Load()
		time.Sleep(time.Hour)
		if after := lists.Load(); before == 0 || after != before {
			t.Errorf("%d lists while nodes were needed, %d more when nobody needed them", before, after-before)
		}
		cancel()
		running.Wait()
	})
}

// demand is for one node.
type demand struct {
	*OnDemand[Informer]
	needed atomic.Bool
	// open is how many watches there are, and filled how often a cache was filled.
	open, filled atomic.Int32
}

func newDemand() *demand {
	d, kube := &demand{}, fake.NewClientset(&corev1.Node{ObjectMeta: metav1.ObjectMeta{Name: "a"}})
	kube.PrependWatchReactor("nodes", func(clienttesting.Action) (bool, watch.Interface, error) {
		d.open.Add(1)
		return true, &counted{FakeWatcher: watch.NewFake(), open: &d.open}, nil
	})
	d.needed.Store(true)
	d.OnDemand = (&OnDemand[Informer]{
		Name: "nodes", Kube: kube, Needed: d.needed.Load, Filled: func() { d.filled.Add(1) },
		Declare: func(kind *Kind) *Informer {
			return kind.Informer(Need{Resource: kind.Nodes(), Transform: func(obj any) (any, error) { return obj, nil }})
		},
	}).Prepare()
	return d
}

// shows checks after a time how many nodes are known and watches open, and how often a cache was filled.
func (d *demand) shows(t *testing.T, after time.Duration, when string, nodes, open, filled int) {
	t.Helper()
	time.Sleep(after)
	synctest.Wait()
	known := 0
	if view := d.Current(); view != nil {
		known = len(view.List())
	}
	diff(t, "nodes "+when, nodes, known)
	diff(t, "watches "+when, int32(open), d.open.Load())
	diff(t, "caches filled "+when, int32(filled), d.filled.Load())
}

// counted is a watch that is counted while it is open.
type counted struct {
	*watch.FakeWatcher
	open *atomic.Int32
	once sync.Once
}

func (c *counted) Stop() {
	c.once.Do(func() { c.open.Add(-1) })
	c.FakeWatcher.Stop()
}
