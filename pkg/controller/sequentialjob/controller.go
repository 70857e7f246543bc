// Copyright The jobset-apiserver Authors.
// SPDX-License-Identifier: Apache-2.0

// Package sequentialjob runs SequentialJobs: it observes a sequence and its children in informer caches, lets package plan
// decide, and applies the plan.
package sequentialjob

import (
	"context"
	"errors"
	"sync"
	"sync/atomic"

	apierrors "k8s.io/apimachinery/pkg/api/errors"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/client-go/dynamic"
	"k8s.io/client-go/kubernetes"
	"k8s.io/client-go/tools/cache"
	"k8s.io/client-go/tools/events"
	"k8s.io/klog/v2"
	"k8s.io/utils/clock"

	batchv1alpha1 "github.com/jobset-apiserver/jobset-apiserver/pkg/apis/batch/v1alpha1"
	"github.com/jobset-apiserver/jobset-apiserver/pkg/apis/batch/v1alpha1/helper"
	"github.com/jobset-apiserver/jobset-apiserver/pkg/controller/host/children"
	"github.com/jobset-apiserver/jobset-apiserver/pkg/controller/host/consistency"
	"github.com/jobset-apiserver/jobset-apiserver/pkg/controller/host/failures"
	"github.com/jobset-apiserver/jobset-apiserver/pkg/controller/host/informers"
	"github.com/jobset-apiserver/jobset-apiserver/pkg/controller/host/namespaces"
	"github.com/jobset-apiserver/jobset-apiserver/pkg/controller/host/queue"
	"github.com/jobset-apiserver/jobset-apiserver/pkg/controller/host/restore"
	"github.com/jobset-apiserver/jobset-apiserver/pkg/controller/sequentialjob/plan"
	"github.com/jobset-apiserver/jobset-apiserver/pkg/generated/clientset/versioned"
	"github.com/jobset-apiserver/jobset-apiserver/pkg/witness"
)

// Name is the name of the controller in flags and metrics.
const Name = "sequentialjob"

// Reporter is the name of the controller in events.
const Reporter = "sequentialjob-controller"

// Config is what a Controller needs.
type Config struct {
	// Client is a client of the API that serves SequentialJobs and JobSets.
	Client versioned.Interface
	// Kube is a client of the main API.
	Kube kubernetes.Interface
	// Informers are the informers of SequentialJobs. Their watches are built after the controller.
	Informers *informers.Kind
	// Dynamic is a client for the Workloads of Kueue.
	Dynamic dynamic.Interface
	// HoldQuota lets sequences with a queue hold quota for all of their steps, by one Workload.
	HoldQuota bool
	// Recorder sends events about SequentialJobs.
	Recorder events.EventRecorder
	// Clock provides the time.
	Clock clock.PassiveClock
	// Workers is the number of SequentialJobs synced at a time.
	Workers int
}

// Controller runs SequentialJobs.
type Controller struct {
	Config
	*Syncer
	caches caches
	queue  *queue.Queue
	// failures are the failures that the watch of pods has shown, and causes finds out why Jobs fail.
	failures *failures.Store
	causes   *failures.Reader
	// restores finds out whether the store was restored from a backup.
	restores *restore.Reader
	// logger is the logger of Run; it is set before leads is.
	logger klog.Logger
	// leads is true while this controller acts, and does not wait to.
	leads  atomic.Bool
	queues *queues
	// ended knows which requests about Workloads of sequences that are gone were denied.
	ended *children.Denials
}

// New returns a controller, its informers not built yet.
func New(config Config) (*Controller, error) {
	if config.Workers < 1 {
		return nil, errors.New("the number of workers must be 1 or more")
	}
	registerMetrics()
	c := &Controller{Config: config, queue: queue.New(Name), failures: failures.NewStore(), ended: children.NewDenials(config.Clock)}
	c.caches = newCaches(config.Informers, config.Client, config.Clock)
	c.causes = failures.NewReader(c.Kube, c.failures, c.caches.anyPod, c.queue.Failures())
	c.restores = restore.NewReader(c.Kube.CoreV1().ConfigMaps(witness.Namespace), config.Clock)
	watch := namespaces.New(config.Informers, config.Kube, config.Clock)
	c.queues = c.newQueues()
	c.Syncer = NewSyncer(SyncerConfig{
		Host: &children.Host{
			Runner: inOrder{}, Consistency: consistency.NewConsistencyStore(config.Clock, c.caches.versions()), Clock: config.Clock,
			Shuffle: firstToLast,
		},
		Caches: c.caches, Recorder: c.Recorder, Queues: c.queues, FirstCause: c.firstCause,
		Restore:        c.restoreState,
		Running:        c.running,
		SequentialJobs: func(namespace string) Client { return c.Client.BatchV1alpha1().SequentialJobs(namespace) },
		Jobs:           children.In(c.Kube.BatchV1().Jobs), JobSets: children.In(c.Client.JobsetV1alpha2().JobSets),
	})
	c.HoldOutdated(watch, func(sj *batchv1alpha1.SequentialJob) *[]metav1.Condition { return &sj.Status.Conditions },
		func(sj *batchv1alpha1.SequentialJob) bool {
			return !helper.ManagedElsewhere(sj) && helper.Finished(sj) == nil
		})
	c.Loop.Kind = withQuota{Kind: c.Loop.Kind, c: c}
	c.handleEvents()
	return c, nil
}

// inOrder makes requests one after another. A sequence has one child at a time, so that there is nothing to do in parallel.
type inOrder struct{}

var _ children.Runner = inOrder{}

// Do implements children.Runner.
func (inOrder) Do(ctx context.Context, _ cache.ObjectName, n int, do func(ctx context.Context, i int) error) error {
	calls, end := children.Finishing(ctx)
	defer end()
	var errs []error
	for i := 0; i < n && !children.Ended(ctx); i++ {
		if err := queue.Guarded(func() error { return do(calls, i) }); !errors.Is(err, children.ErrSkipped) {
			errs = append(errs, err)
		}
	}
	return children.FirstErrors(errs...)
}

// Forget implements children.Runner.
func (inOrder) Forget(cache.ObjectName) {}

func firstToLast(n int) []int {
	order := make([]int, n)
	for i := range order {
		order[i] = i
	}
	return order
}

// Run syncs SequentialJobs until the context ends, and returns when all that was begun has ended. The caches are filled.
func (c *Controller) Run(ctx context.Context) {
	logger := klog.FromContext(ctx)
	c.logger = logger
	c.leads.Store(true)
	phases.Show()
	logger.Info("Running SequentialJobs", "workers", c.Workers)
	var following sync.WaitGroup
	if c.HoldQuota {
		c.queues.Want() // there may be Workloads of sequences that are gone
	}
	following.Go(func() { c.queues.Run(ctx) })
	following.Go(func() { c.newOrphans().Run(ctx) })
	c.queue.Run(ctx, c.Workers, c.Sync)
	following.Wait()
	logger.Info("Stopped running SequentialJobs")
}

// withQuota is the kind with Workloads that hold the quota of whole sequences.
type withQuota struct {
	Kind
	c *Controller
}

// Absent ends the Workloads of sequences that are gone.
func (q withQuota) Absent(ctx context.Context, key cache.ObjectName) error {
	return q.c.holdQuota(ctx, key, nil)
}

// Apply writes children, and brings the quota of the sequence to where it should be before that.
func (q withQuota) Apply(ctx context.Context, obs *plan.Observed, p plan.Plan) (plan.Results, error) {
	held := q.c.holdQuota(ctx, cache.MetaObjectToName(obs.SequentialJob), obs)
	results, err := q.Kind.Apply(ctx, obs, p)
	if held != nil && !apierrors.IsConflict(held) && results.Error == "" {
		results.Error = held.Error()
	}
	return results, children.FirstErrors(held, err)
}

// restoreState returns what is known of an object if the store was restored from a backup.
func (c *Controller) restoreState(ctx context.Context, sj *batchv1alpha1.SequentialJob) (restore.State, error) {
	o := restore.Object{UID: sj.UID, ResourceVersion: sj.ResourceVersion, Live: func(ctx context.Context) (metav1.Object, error) {
		return c.Client.BatchV1alpha1().SequentialJobs(sj.Namespace).Get(ctx, sj.Name, metav1.GetOptions{})
	}}
	if last := sj.Status.LastAction; last != nil {
		o.Acted = last.Time
	}
	return c.restores.StateOf(ctx, o)
}
