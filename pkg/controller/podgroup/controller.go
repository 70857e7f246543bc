// Copyright The jobset-apiserver Authors.
// SPDX-License-Identifier: Apache-2.0

// Package podgroup gives the pods of a group a label once all of them run: it observes the pods of a group in informer caches, lets
// package plan decide, and patches the pods.
//
// Pods are watched by the labels of groups, one watch for each family, so that pods of no group cost nothing. They share no watch with
// other controllers, whose pods carry other labels: one watch of all pods would cost a cluster more than the second copy of the
// few pods that two controllers follow.
package podgroup

import (
	"context"
	"errors"
	"sync/atomic"
	"time"

	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/client-go/dynamic"
	"k8s.io/client-go/kubernetes"
	"k8s.io/client-go/tools/cache"
	"k8s.io/client-go/tools/events"
	"k8s.io/klog/v2"
	"k8s.io/utils/clock"

	batchv1alpha1 "github.com/jobset-apiserver/jobset-apiserver/pkg/apis/batch/v1alpha1"
	"github.com/jobset-apiserver/jobset-apiserver/pkg/controller/children"
	"github.com/jobset-apiserver/jobset-apiserver/pkg/controller/consistency"
	"github.com/jobset-apiserver/jobset-apiserver/pkg/controller/informers"
	"github.com/jobset-apiserver/jobset-apiserver/pkg/controller/podgroup/members"
	"github.com/jobset-apiserver/jobset-apiserver/pkg/controller/podgroup/plan"
	"github.com/jobset-apiserver/jobset-apiserver/pkg/controller/queue"
	"github.com/jobset-apiserver/jobset-apiserver/pkg/generated/clientset/versioned"
)

const (
	// Name is the name of the controller in metrics and events.
	Name = "podgroup"
	// maxParallel is the number of requests that one sync has under way at a time.
	maxParallel = 50
	// lagRetry is when to look again while an informer lags behind our own writes. Its event usually comes first.
	lagRetry = time.Second
)

// Config is what a Controller needs.
type Config struct {
	// Groups is a client of the API that serves PodReadinessGroups and JobSets.
	Groups versioned.Interface
	// Kube is a client of the main API.
	Kube kubernetes.Interface
	// Dynamic is a client of kinds that this program does not know.
	Dynamic dynamic.Interface
	// Informers are those of pod groups. Their watches are built after the controller.
	Informers *informers.Kind
	// Recorder sends events about PodReadinessGroups.
	Recorder events.EventRecorder
	// Clock provides the time.
	Clock clock.PassiveClock
	// Workers is the number of groups synced at a time.
	Workers int
}

// Controller labels the pods of groups.
type Controller struct {
	Config
	queue *queue.Queue
	// groups are PodReadinessGroups, and pods those of each family.
	groups *informers.Informer
	pods   []*informers.Informer

	sizes       *members.Sizes
	runner      *children.SlowStart
	consistency *consistency.ConsistencyStore
	memory      *memory
	// leads is true while this controller acts, and does not wait to.
	leads atomic.Bool
}

// New returns a controller, its informers not built yet.
func New(config Config) (*Controller, error) {
	if config.Workers < 1 {
		return nil, errors.New("the number of workers must be 1 or more")
	}
	registerMetrics()
	c := &Controller{
		Config: config, queue: queue.New(Name), memory: newMemory(), runner: children.NewSlowStart(maxParallel),
		sizes: members.NewSizes(config.Kube, config.Groups, config.Dynamic, config.Clock),
	}
	c.declareInformers()
	return c, nil
}

func (c *Controller) declareInformers() {
	gv := batchv1alpha1.SchemeGroupVersion
	groups := informers.NewResource(c.Informers.Aggregated(gv), gv.WithResource(resourceGroups), &batchv1alpha1.PodReadinessGroup{},
		c.Groups, c.Groups.BatchV1alpha1().PodReadinessGroups(metav1.NamespaceAll))
	c.groups = c.Informers.Informer(informers.Need{Resource: groups, Transform: transformGroup})
	c.groups.AddEventHandler(c.onGroups())
	versions := map[string]consistency.Versioned{resourceGroups: c.groups}
	for i, family := range plan.Families {
		pods := c.Informers.Informer(informers.Need{
			Resource: c.Informers.Pods(), Label: family.GroupKey, Transform: members.Transform(family),
			Indexers: cache.Indexers{indexGroup + family.Name: members.GroupIndex},
		})
		pods.AddEventHandler(c.onPods(i))
		c.pods = append(c.pods, pods)
		versions[podsOf(family)] = pods
	}
	c.consistency = consistency.NewConsistencyStore(c.Clock, versions)
}

// Run syncs groups until the context ends, and returns when all that was begun has ended. The caches are filled.
func (c *Controller) Run(ctx context.Context) {
	logger := klog.FromContext(ctx)
	c.leads.Store(true)
	logger.Info("Running pod groups", "workers", c.Workers)
	c.queue.Run(ctx, c.Workers, c.sync)
	logger.Info("Stopped running pod groups")
}

func (c *Controller) sync(ctx context.Context, key cache.ObjectName) (queue.Due, error) {
	// What was read before the question could be older than the answer.
	if !c.consistency.VersionsShown(key) {
		return queue.Caches(lagRetry), nil
	}
	c.consistency.Forget(key)
	snapshots, err := c.observe(key)
	if err != nil || len(snapshots) == 0 {
		return queue.Due{}, err
	}
	var after time.Duration
	var errs []error
	for _, obs := range snapshots {
		p, err := c.decide(ctx, key, obs)
		errs = append(errs, err, c.apply(ctx, key, obs, p), c.finish(ctx, key, obs, p))
		if p.LookAgain > 0 && (after == 0 || p.LookAgain < after) {
			after = p.LookAgain
		}
	}
	return queue.After(after), children.FirstErrors(errs...)
}
