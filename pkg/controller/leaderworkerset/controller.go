// Copyright The jobset-apiserver Authors.
// SPDX-License-Identifier: Apache-2.0

// Package leaderworkerset runs LeaderWorkerSets: it observes a set and its children in informer caches, lets package plan decide, and
// applies the plan.
package leaderworkerset

import (
	"context"
	"errors"
	"sync"
	"sync/atomic"

	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"
	"k8s.io/client-go/dynamic"
	"k8s.io/client-go/kubernetes"
	"k8s.io/client-go/tools/events"
	"k8s.io/klog/v2"
	"k8s.io/utils/clock"

	leaderworkersetv1 "github.com/jobset-apiserver/jobset-apiserver/pkg/apis/leaderworkerset/v1"
	"github.com/jobset-apiserver/jobset-apiserver/pkg/controller/gang"
	"github.com/jobset-apiserver/jobset-apiserver/pkg/controller/host/children"
	"github.com/jobset-apiserver/jobset-apiserver/pkg/controller/host/informers"
	"github.com/jobset-apiserver/jobset-apiserver/pkg/controller/host/namespaces"
	"github.com/jobset-apiserver/jobset-apiserver/pkg/controller/host/queue"
	"github.com/jobset-apiserver/jobset-apiserver/pkg/controller/kueue"
	"github.com/jobset-apiserver/jobset-apiserver/pkg/controller/leaderworkerset/plan"
	"github.com/jobset-apiserver/jobset-apiserver/pkg/generated/clientset/versioned"
)

const (
	// Name is the name of the controller in flags, metrics and events.
	Name = "leaderworkerset"
	// kindSet is the kind of the sets.
	kindSet = "LeaderWorkerSet"
	// maxParallel is the number of requests that one sync has under way at a time.
	maxParallel = 50
)

// Config is what a Controller needs.
type Config struct {
	// Sets is a client of the API that serves LeaderWorkerSets.
	Sets versioned.Interface
	// Kube is a client of the main API.
	Kube kubernetes.Interface
	// Dynamic is a client for PodGroups.
	Dynamic dynamic.Interface
	// Gang is the scheduler of gangs; empty for none.
	Gang plan.GangProvider
	// Informers are the informers of LeaderWorkerSets. Their watches are built after the controller.
	Informers *informers.Kind
	// Recorder sends events about LeaderWorkerSets.
	Recorder events.EventRecorder
	// Clock provides the time.
	Clock clock.PassiveClock
	// Workers is the number of LeaderWorkerSets synced at a time.
	Workers int
}

// Controller runs LeaderWorkerSets.
type Controller struct {
	Config
	*Syncer
	caches caches
	queue  *queue.Queue
	// logger is the logger of Run; it is set before leads is.
	logger klog.Logger
	// leads is true while this controller acts, and does not wait to.
	leads atomic.Bool
}

// New returns a controller, its informers not built yet.
func New(config Config) (*Controller, error) {
	if config.Workers < 1 {
		return nil, errors.New("the number of workers must be 1 or more")
	}
	registerMetrics()
	c := &Controller{Config: config, queue: queue.New(Name)}
	c.caches = newCaches(config)
	watch := namespaces.New(config.Informers, config.Kube, config.Clock)
	c.Syncer = NewSyncer(SyncerConfig{
		Host: children.NewHost(config.Clock, maxParallel, c.caches.versions()), Caches: c.caches, Recorder: config.Recorder, Gang: config.Gang,
		Kueue:       kueue.NewPresence(config.Kube, config.Clock).Of,
		ServedSince: config.Informers.Aggregated(leaderworkersetv1.SchemeGroupVersion).ServedSince,
		Clients:     c.clients(),
	})
	c.HoldOutdated(watch, func(set *leaderworkersetv1.LeaderWorkerSet) *[]metav1.Condition { return &set.Status.Conditions }, nil)
	c.handleEvents()
	return c, nil
}

// clients returns the clients of the API servers.
func (c *Controller) clients() Clients {
	all := Clients{
		Sets: func(namespace string) children.LiveOwnerClient[*leaderworkersetv1.LeaderWorkerSet] {
			return c.Sets.LeaderworkersetV1().LeaderWorkerSets(namespace)
		},
		StatefulSets: children.In(c.Kube.AppsV1().StatefulSets), Revisions: children.In(c.Kube.AppsV1().ControllerRevisions),
		Pods: children.In(c.Kube.CoreV1().Pods), Services: children.In(c.Kube.CoreV1().Services),
		Leaders: c.readLeaders,
	}
	if c.Gang != "" {
		all.PodGroups = func(namespace string) children.Client[*unstructured.Unstructured] {
			return gang.ObjectsOf(c.Dynamic, c.Gang.Resource(), namespace)
		}
	}
	return all
}

// Run syncs LeaderWorkerSets until the context ends, and returns when all that was begun has ended. The caches are filled.
func (c *Controller) Run(ctx context.Context) {
	logger := klog.FromContext(ctx)
	c.logger = logger
	c.leads.Store(true)
	phases.Show()
	conditions.Show()
	logger.Info("Running LeaderWorkerSets", "workers", c.Workers)
	var following sync.WaitGroup
	following.Go(func() { c.caches.nodes.Run(ctx) })
	following.Go(func() { c.newOrphans().Run(ctx) })
	c.queue.Run(ctx, c.Workers, c.Sync)
	following.Wait()
	logger.Info("Stopped running LeaderWorkerSets")
}
