// Copyright The jobset-apiserver Authors.
// SPDX-License-Identifier: Apache-2.0

// Package jobset runs JobSets: it observes a set and its children in informer caches, lets package plan decide, and
// applies the plan.
package jobset

import (
	"context"
	"errors"
	"sync/atomic"
	"time"

	expiring "k8s.io/apimachinery/pkg/util/cache"
	"k8s.io/client-go/kubernetes"
	"k8s.io/client-go/tools/cache"
	"k8s.io/client-go/tools/events"
	"k8s.io/klog/v2"
	"k8s.io/utils/clock"

	"github.com/jobset-apiserver/jobset-apiserver/pkg/apis/jobset/gates"
	"github.com/jobset-apiserver/jobset-apiserver/pkg/controller/children"
	"github.com/jobset-apiserver/jobset-apiserver/pkg/controller/consistency"
	"github.com/jobset-apiserver/jobset-apiserver/pkg/controller/informers"
	"github.com/jobset-apiserver/jobset-apiserver/pkg/controller/jobset/plan"
	"github.com/jobset-apiserver/jobset-apiserver/pkg/controller/queue"
	"github.com/jobset-apiserver/jobset-apiserver/pkg/generated/clientset/versioned"
)

// maxParallel is the number of requests that one sync has under way at a time.
const maxParallel = 50

// Name is the name of the controller in metrics and events.
const Name = "jobset"

// Config is what a Controller needs.
type Config struct {
	// JobSets is a client of the API that serves JobSets.
	JobSets versioned.Interface
	// Kube is a client of the main API.
	Kube kubernetes.Interface
	// Informers are those of JobSets. Their watches are built after the controller.
	Informers *informers.Kind
	// Recorder sends events about JobSets.
	Recorder events.EventRecorder
	// Clock provides the time.
	Clock clock.PassiveClock
	// Gates are the feature gates that change decisions.
	Gates gates.Gates
	// Workers is the number of JobSets synced at a time.
	Workers int
}

// Controller runs JobSets.
type Controller struct {
	Config
	*Syncer
	caches caches
	queue  *queue.Queue
	// failures are those that the watch of pods has shown.
	failures *podFailures
	// causes are those that were read from the API, by the UID of the Job.
	causes *expiring.Expiring
	// logger is that of Run; it is set before leads is.
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
	c := &Controller{Config: config, queue: queue.New(Name), failures: newPodFailures(), causes: expiring.NewExpiring()}
	c.caches = newCaches(config.Informers, config.JobSets, config.Gates)
	c.Syncer = newSyncer(c, children.Host{
		Runner: children.NewSlowStart(maxParallel), Consistency: consistency.NewConsistencyStore(config.Clock, c.caches.versions()), Clock: config.Clock,
	})
	c.handleEvents()
	return c, nil
}

// Run syncs JobSets until the context ends, and returns when all that was begun has ended. The caches are filled.
func (c *Controller) Run(ctx context.Context) {
	logger := klog.FromContext(ctx)
	c.logger = logger
	c.leads.Store(true)
	readyRatio.shown.Store(true)
	phases.shown.Store(true)
	logger.Info("Running JobSets", "workers", c.Workers)
	c.queue.Run(ctx, c.Workers, c.sync)
	logger.Info("Stopped running JobSets")
}

func (c *Controller) sync(ctx context.Context, key cache.ObjectName) (time.Duration, error) {
	obs, wait, err := c.Observe(ctx, key)
	if obs == nil || err != nil {
		return wait, err
	}
	p := plan.Decide(*obs)
	results, err := c.Apply(ctx, obs, p)
	out := plan.Finish(*obs, p, results)
	return out.RequeueAfter, children.FirstErrors(err, c.Finish(ctx, obs.JobSet, out))
}
