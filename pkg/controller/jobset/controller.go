// Copyright The jobset-apiserver Authors.
// SPDX-License-Identifier: Apache-2.0

// Package jobset runs JobSets: it observes a set and its children in informer caches, lets package plan decide, and
// applies the plan.
package jobset

import (
	"context"
	"errors"
	"sync"
	"sync/atomic"
	"time"

	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/client-go/dynamic"
	"k8s.io/client-go/kubernetes"
	"k8s.io/client-go/tools/events"
	"k8s.io/klog/v2"
	"k8s.io/utils/clock"

	"github.com/jobset-apiserver/jobset-apiserver/pkg/apis/jobset/gates"
	jobsetv1alpha2 "github.com/jobset-apiserver/jobset-apiserver/pkg/apis/jobset/v1alpha2"
	"github.com/jobset-apiserver/jobset-apiserver/pkg/apis/jobset/v1alpha2/helper"
	"github.com/jobset-apiserver/jobset-apiserver/pkg/controller/gang"
	gangplan "github.com/jobset-apiserver/jobset-apiserver/pkg/controller/gang/plan"
	"github.com/jobset-apiserver/jobset-apiserver/pkg/controller/host/children"
	"github.com/jobset-apiserver/jobset-apiserver/pkg/controller/host/failures"
	"github.com/jobset-apiserver/jobset-apiserver/pkg/controller/host/informers"
	"github.com/jobset-apiserver/jobset-apiserver/pkg/controller/host/namespaces"
	"github.com/jobset-apiserver/jobset-apiserver/pkg/controller/host/queue"
	"github.com/jobset-apiserver/jobset-apiserver/pkg/controller/host/restore"
	"github.com/jobset-apiserver/jobset-apiserver/pkg/controller/jobset/placer"
	"github.com/jobset-apiserver/jobset-apiserver/pkg/controller/jobset/plan"
	"github.com/jobset-apiserver/jobset-apiserver/pkg/controller/placement"
	"github.com/jobset-apiserver/jobset-apiserver/pkg/generated/clientset/versioned"
	"github.com/jobset-apiserver/jobset-apiserver/pkg/witness"
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
	// Dynamic is a client for groups of pods; nil without the feature gate.
	Dynamic dynamic.Interface
	// Gang is the scheduler of gangs. If it has no PodGroups of its own, the controller uses the PodGroups of the cluster's scheduler.
	Gang gangplan.Provider
	// Informers are the informers of JobSets. Their watches are built after the controller.
	Informers *informers.Kind
	// Recorder sends events about JobSets.
	Recorder events.EventRecorder
	// Clock provides the time.
	Clock clock.PassiveClock
	// Gates are the feature gates that change decisions.
	Gates gates.Gates
	// Workers is the number of JobSets synced at a time.
	Workers int
	// PlacementWhenFull is what becomes of sets with exclusive placement for whose Jobs there are not enough domains.
	PlacementWhenFull placement.WhenFull
	// PlacementMoveAfter is how long pods wait for nodes before their Job moves to another domain; 0 is placement.DefaultMoveAfter.
	PlacementMoveAfter time.Duration
	// AvoidFailedNodes is for how long pods keep off nodes on which an attempt failed, unless a JobSet says otherwise; 0 for not at all.
	AvoidFailedNodes time.Duration
	// Endpoints writes the addresses of headless Services in place of the cluster; nil for never.
	Endpoints Endpoints
}

// Controller runs JobSets.
type Controller struct {
	Config
	*Syncer
	caches caches
	queue  *queue.Queue
	// failures are the failures that the watch of pods has shown.
	failures *failures.Store
	// causes finds out why Jobs fail.
	causes *failures.Reader
	// placer finds topology domains; nil without exclusive placement.
	placer *placer.Placer
	// groups follows groups of pods; nil without the feature gate.
	groups *gang.Watch
	// restores finds out whether the store was restored from a backup.
	restores *restore.Reader
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
	c := &Controller{Config: config, queue: queue.New(Name), failures: failures.NewStore()}
	c.caches = newCaches(config.Informers, config.JobSets, config.Gates, config.Clock)
	c.causes = failures.NewReader(c.Kube, c.failures, c.caches.anyPod, c.queue.Failures())
	c.restores = restore.NewReader(c.Kube.CoreV1().ConfigMaps(witness.Namespace), config.Clock)
	watch := namespaces.New(config.Informers, config.Kube, config.Clock)
	if config.Gates.ExclusivePlacement {
		c.placer = c.newPlacer()
	}
	if config.Gates.JobSetWorkloadAwareSchedulingAPI {
		c.groups = c.newGroups()
	}
	c.Syncer = newSyncer(c, *children.NewHost(config.Clock, maxParallel, c.caches.versions()))
	c.HoldOutdated(watch, func(js *jobsetv1alpha2.JobSet) *[]metav1.Condition { return &js.Status.Conditions },
		func(js *jobsetv1alpha2.JobSet) bool {
			state, _ := helper.Finished(js)
			return plan.ManagedHere(js) && state == ""
		})
	c.handleEvents()
	if c.Endpoints != nil {
		c.Endpoints.OnChange(c.queue.AddSoon)
	}
	return c, nil
}

// Run syncs JobSets until the context ends, and returns when all that was begun has ended. The caches are filled.
func (c *Controller) Run(ctx context.Context) {
	logger := klog.FromContext(ctx)
	c.logger = logger
	c.leads.Store(true)
	readyRatio.shown.Store(true)
	phases.Show()
	conditions.Show()
	logger.Info("Running JobSets", "workers", c.Workers)
	var watching sync.WaitGroup
	watching.Go(func() { c.newOrphans().Run(ctx) })
	if c.placer != nil {
		watching.Go(func() { c.placer.Run(ctx) })
	}
	if c.groups != nil {
		watching.Go(func() { c.groups.Run(ctx) })
	}
	c.queue.Run(ctx, c.Workers, c.Sync)
	watching.Wait()
	logger.Info("Stopped running JobSets")
}

// firstCause returns why a Job failed; nil if that is not known yet, and may be known later.
func (c *Controller) firstCause(ctx context.Context, namespace string, job plan.FailedJob) *jobsetv1alpha2.FailureCause {
	return c.causes.FirstCause(ctx, namespace, failures.Job{
		Name: job.Name, UID: job.UID, Decided: job.Decided, InContainers: job.InContainers, Failure: job.Failure,
	})
}

// restoreState returns what is known of an object if the store was restored from a backup.
func (c *Controller) restoreState(ctx context.Context, js *jobsetv1alpha2.JobSet) (restore.State, error) {
	o := restore.Object{UID: js.UID, ResourceVersion: js.ResourceVersion, Live: func(ctx context.Context) (metav1.Object, error) {
		return c.JobSets.JobsetV1alpha2().JobSets(js.Namespace).Get(ctx, js.Name, metav1.GetOptions{})
	}}
	switch a := helper.CurrentAttempt(&js.Status); {
	case a == nil:
	case a.EndUser != "":
		o.Acted = a.EndTime
	case a.User != "":
		o.Acted = a.RequestTime
	}
	return c.restores.StateOf(ctx, o)
}
