// Copyright The jobset-apiserver Authors.
// SPDX-License-Identifier: Apache-2.0

// Package podgroup gives the pods of a group a label once all of them run: it observes the pods of a group in informer caches, lets
// package plan decide, and patches the pods.
//
// Pods are watched by the labels of groups, one watch for each prefix, so that pods of no group cost nothing. They share no watch with
// other controllers, whose pods carry other labels: one watch of all pods would cost a cluster more than the second copy of the
// few pods that two controllers follow.
package podgroup

import (
	"context"
	"errors"
	"sync/atomic"

	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/client-go/dynamic"
	"k8s.io/client-go/kubernetes"
	"k8s.io/client-go/tools/cache"
	"k8s.io/client-go/tools/events"
	"k8s.io/klog/v2"
	"k8s.io/utils/clock"

	batchv1alpha1 "github.com/jobset-apiserver/jobset-apiserver/pkg/apis/batch/v1alpha1"
	"github.com/jobset-apiserver/jobset-apiserver/pkg/controller/host/children"
	"github.com/jobset-apiserver/jobset-apiserver/pkg/controller/host/consistency"
	"github.com/jobset-apiserver/jobset-apiserver/pkg/controller/host/informers"
	"github.com/jobset-apiserver/jobset-apiserver/pkg/controller/host/queue"
	"github.com/jobset-apiserver/jobset-apiserver/pkg/controller/podgroup/members"
	"github.com/jobset-apiserver/jobset-apiserver/pkg/controller/podgroup/plan"
	"github.com/jobset-apiserver/jobset-apiserver/pkg/generated/clientset/versioned"
)

const (
	// Name is the name of the controller in metrics and events.
	Name = "podgroup"
	// maxParallel is the number of requests that one sync has under way at a time.
	maxParallel = 50
)

// Config is what a Controller needs.
type Config struct {
	// Groups is a client of the API that serves PodReadinessGroups and JobSets.
	Groups versioned.Interface
	// Kube is a client of the main API.
	Kube kubernetes.Interface
	// Dynamic is a client of kinds that this program does not know.
	Dynamic dynamic.Interface
	// Informers are the informers of pod groups. Their watches are built after the controller.
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
	// groups are PodReadinessGroups, and pods those of each prefix.
	groups *informers.Informer
	pods   []*informers.Informer
	syncer *Syncer
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
	versions := c.declareInformers()
	c.syncer = NewSyncer(SyncerConfig{
		Host:     children.NewHost(config.Clock, maxParallel, versions),
		Caches:   caches{c},
		Sizes:    members.NewSizes(config.Kube, config.Groups, config.Dynamic, config.Clock),
		Recorder: config.Recorder,
		Pods:     func(namespace string) PodClient { return config.Kube.CoreV1().Pods(namespace) },
		Groups:   func(namespace string) GroupClient { return config.Groups.BatchV1alpha1().PodReadinessGroups(namespace) },
	})
	return c, nil
}

// declareInformers returns what the caches show of versions, by resource.
func (c *Controller) declareInformers() map[string]consistency.Versioned {
	gv := batchv1alpha1.SchemeGroupVersion
	groups := informers.NewResource(c.Informers.Aggregated(gv), gv.WithResource(resourceGroups), &batchv1alpha1.PodReadinessGroup{},
		c.Groups, c.Groups.BatchV1alpha1().PodReadinessGroups(metav1.NamespaceAll))
	c.groups = c.Informers.Informer(informers.Need{Resource: groups, Transform: transformGroup})
	c.groups.AddEventHandler(c.onGroups())
	versions := map[string]consistency.Versioned{resourceGroups: c.groups}
	for i, prefix := range plan.Prefixes {
		pods := c.Informers.Informer(informers.Need{
			Resource: c.Informers.Pods(), Label: prefix.GroupKey, Transform: members.Transform(prefix),
			Indexers: cache.Indexers{indexGroup + prefix.Name: members.GroupIndex},
		})
		pods.AddEventHandler(c.onPods(i))
		c.pods = append(c.pods, pods)
		versions[podsOf(prefix)] = pods
	}
	return versions
}

// Run syncs groups until the context ends, and returns when all that was begun has ended. The caches are filled.
func (c *Controller) Run(ctx context.Context) {
	logger := klog.FromContext(ctx)
	c.leads.Store(true)
	logger.Info("Running pod groups", "workers", c.Workers)
	c.queue.Run(ctx, c.Workers, c.syncer.Sync)
	logger.Info("Stopped running pod groups")
}

// caches are the caches of a controller.
type caches struct{ *Controller }

// Group implements Caches.
func (c caches) Group(key cache.ObjectName) (*batchv1alpha1.PodReadinessGroup, error) {
	return informers.ByKey[batchv1alpha1.PodReadinessGroup](c.groups, key)
}

// Pods implements Caches.
func (c caches) Pods(prefix int, key cache.ObjectName) ([]*members.Pod, error) {
	objs, err := c.pods[prefix].ByIndex(indexGroup+plan.Prefixes[prefix].Name, key.String())
	if err != nil {
		return nil, err
	}
	pods := make([]*members.Pod, 0, len(objs))
	for _, obj := range objs {
		if pod, ok := obj.(*members.Pod); ok {
			pods = append(pods, pod)
		}
	}
	return pods, nil
}
