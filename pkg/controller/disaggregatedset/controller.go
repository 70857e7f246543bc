// Copyright The jobset-apiserver Authors.
// SPDX-License-Identifier: Apache-2.0

// Package disaggregatedset runs DisaggregatedSets: it observes a set and its LeaderWorkerSets, Services and scalers in
// informer caches, lets package plan decide, and applies the plan. One pass plans a bounded number of writes: a set has
// at most 100 slices of 10 roles.
package disaggregatedset

import (
	"context"
	"errors"
	"strings"
	"sync"

	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/client-go/kubernetes"
	"k8s.io/client-go/tools/cache"
	"k8s.io/client-go/tools/events"
	"k8s.io/klog/v2"
	"k8s.io/utils/clock"

	disaggregatedsetv1 "github.com/jobset-apiserver/jobset-apiserver/pkg/apis/disaggregatedset/v1"
	"github.com/jobset-apiserver/jobset-apiserver/pkg/controller/host/children"
	"github.com/jobset-apiserver/jobset-apiserver/pkg/controller/host/informers"
	"github.com/jobset-apiserver/jobset-apiserver/pkg/controller/host/namespaces"
	"github.com/jobset-apiserver/jobset-apiserver/pkg/controller/host/queue"
	"github.com/jobset-apiserver/jobset-apiserver/pkg/generated/clientset/versioned"
)

const (
	// Name is the name of the controller in flags, metrics and events.
	Name = "disaggregatedset"
	// maxParallel is the number of slices of one set that are worked on at a time.
	maxParallel = 20
)

// Config is what a Controller needs.
type Config struct {
	// Client is a client of the API that serves DisaggregatedSets and LeaderWorkerSets.
	Client versioned.Interface
	// Kube is a client of the main API.
	Kube kubernetes.Interface
	// Informers are the informers of DisaggregatedSets. Their watches are built after the controller.
	Informers *informers.Kind
	// Recorder sends events about DisaggregatedSets.
	Recorder events.EventRecorder
	// Clock provides the time.
	Clock clock.PassiveClock
	// Workers is the number of DisaggregatedSets synced at a time.
	Workers int
}

// Controller runs DisaggregatedSets.
type Controller struct {
	Config
	*Syncer
	caches caches
	queue  *queue.Queue
}

// New returns a controller, its informers not built yet.
func New(config Config) (*Controller, error) {
	if config.Workers < 1 {
		return nil, errors.New("the number of workers must be 1 or more")
	}
	registerMetrics()
	c := &Controller{Config: config, queue: queue.New(Name)}
	c.caches = newCaches(config.Informers, config.Client)
	watch := namespaces.New(config.Informers, config.Kube, config.Clock)
	c.Syncer = NewSyncer(SyncerConfig{
		Host: children.NewHost(config.Clock, maxParallel, c.caches.versions()), Caches: c.caches, Recorder: config.Recorder,
		Sets: func(namespace string) children.LiveOwnerClient[*disaggregatedsetv1.DisaggregatedSet] {
			return c.Client.DisaggregatedsetV1().DisaggregatedSets(namespace)
		},
		LeaderWorkerSets: children.In(c.Client.LeaderworkersetV1().LeaderWorkerSets),
		Services:         children.In(c.Kube.CoreV1().Services),
		Scalers: func(namespace string) ScalerClient {
			return c.Client.DisaggregatedsetV1().DisaggregatedSetRoleScalers(namespace)
		},
	})
	c.HoldOutdated(watch, func(ds *disaggregatedsetv1.DisaggregatedSet) *[]metav1.Condition { return &ds.Status.Conditions }, nil)
	c.handleEvents()
	return c, nil
}

// handleEvents makes changes of a set and of its children a reason to look at the set.
func (c *Controller) handleEvents() {
	c.caches.sets.AddEventHandler(handler(func(obj any) {
		if ds, ok := obj.(*disaggregatedsetv1.DisaggregatedSet); ok {
			c.queue.Add(cache.MetaObjectToName(ds))
		}
	}))
	c.caches.sets.AddEventHandler(cache.ResourceEventHandlerFuncs{
		AddFunc: countConditions, UpdateFunc: func(_, obj any) { countConditions(obj) },
		DeleteFunc: func(obj any) {
			if ds, ok := obj.(*disaggregatedsetv1.DisaggregatedSet); ok {
				conditions.Set(cache.MetaObjectToName(ds), nil)
			}
		},
	})
	c.caches.children.AddEventHandler(handler(c.enqueueOwner))
	c.caches.services.AddEventHandler(handler(c.enqueueOwner))
	c.caches.scalers.AddEventHandler(handler(c.enqueueOwner))
	c.caches.children.OnUnreadable(c.onUnreadable)
	c.caches.scalers.OnUnreadable(c.onUnreadable)
}

// handler calls a function with each object before and after a change.
func handler(changed func(obj any)) cache.ResourceEventHandlerFuncs {
	return cache.ResourceEventHandlerFuncs{
		AddFunc:    changed,
		UpdateFunc: func(before, after any) { changed(before); changed(after) },
		DeleteFunc: changed,
	}
}

// enqueueOwner enqueues the set that controls a child or may adopt it. It also enqueues a set that waits for the name
// of a scaler which another owner has.
func (c *Controller) enqueueOwner(obj any) {
	switch child := obj.(type) {
	case *watched:
		if owner := ownerOf(child); owner != nil {
			c.queue.AddSoon(cache.NewObjectName(child.Namespace, owner.Name))
		} else if child.orphan != nil {
			c.queue.AddSoon(cache.NewObjectName(child.Namespace, child.orphan.Set))
		}
	case *disaggregatedsetv1.DisaggregatedSetRoleScaler:
		if owner := ownerOf(child); owner != nil {
			c.queue.Add(cache.NewObjectName(child.Namespace, owner.Name))
			return
		}
		c.enqueueWaiting(child)
	}
}

// enqueueWaiting looks at the sets for whose role a scaler is in the way.
func (c *Controller) enqueueWaiting(scaler *disaggregatedsetv1.DisaggregatedSetRoleScaler) {
	for _, obj := range c.caches.sets.List() {
		ds, ok := obj.(*disaggregatedsetv1.DisaggregatedSet)
		if ok && ds.Namespace == scaler.Namespace && strings.HasPrefix(scaler.Name, ds.Name+"-") {
			c.queue.Add(cache.MetaObjectToName(ds))
		}
	}
}

// Run syncs DisaggregatedSets until the context ends, and returns when all that was begun has ended. The caches are filled.
func (c *Controller) Run(ctx context.Context) {
	logger := klog.FromContext(ctx)
	logger.Info("Running DisaggregatedSets", "workers", c.Workers)
	conditions.Show()
	var watching sync.WaitGroup
	watching.Go(func() { c.newOrphans().Run(ctx) })
	c.queue.Run(ctx, c.Workers, c.Sync)
	watching.Wait()
	logger.Info("Stopped running DisaggregatedSets")
}
