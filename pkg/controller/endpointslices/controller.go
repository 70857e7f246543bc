// Copyright The jobset-apiserver Authors.
// SPDX-License-Identifier: Apache-2.0

// Package endpoints writes the EndpointSlices of the headless Services of JobSets, for those sets that ask for it.
//
// The controllers of the cluster write all addresses of a Service once more whenever some of its pods have changed,
// which is quadratic in the number of pods, and they write them twice: as EndpointSlices and as Endpoints. Here the
// addresses of a set gather: plan says which writes are due, and pace decides when.
//
// The selector of a Service that is taken has one more label, which no pod carries, so that the controllers of the
// cluster empty what they have written. Our slices are written before the label is, and stay after it has gone
// until the cluster has written its own.
//
// Only what shows whether there is anything to do is always watched: JobSets, our slices and taken Services.
// Pods, all other Services and nodes are watched while a set needs it.
//
// The Service of a new set is created with that label if Handle says so, so that the controllers of the cluster never
// write its addresses.
//
// A set in the mode auto asks for our slices only while many of its pods come and go (activity.go). All else is as for other sets: its
// Service is taken when it begins to ask, and given back when it ends.
package endpoints

import (
	"context"
	"errors"
	"sync"

	"k8s.io/client-go/kubernetes"
	"k8s.io/client-go/tools/events"
	"k8s.io/klog/v2"
	"k8s.io/utils/clock"

	"github.com/jobset-apiserver/jobset-apiserver/pkg/controller/host/informers"
	"github.com/jobset-apiserver/jobset-apiserver/pkg/controller/host/queue"
	"github.com/jobset-apiserver/jobset-apiserver/pkg/generated/clientset/versioned"
)

const (
	// Name is the name of the controller in flags, metrics and events.
	Name = "endpoints"
)

// Resources that are written.
const (
	resourceSlices   = "endpointslices"
	resourceServices = "services"
)

// indexSet is the index of slices and of pods by their set, and indexService that of sets by their Service.
const (
	indexSet     = "set"
	indexService = "service"
)

// Config is what a Controller needs.
type Config struct {
	// JobSets is a client of the API that serves JobSets.
	JobSets versioned.Interface
	// Kube is a client of the main API.
	Kube kubernetes.Interface
	// Informers are the informers of endpoints. Their watches are built after the controller.
	Informers *informers.Kind
	// Recorder sends events about JobSets.
	Recorder events.EventRecorder
	// Clock provides the time.
	Clock clock.PassiveClock
	// Workers is the number of sets that are worked on at a time.
	Workers int
	// Mode is the mode of sets without the annotation, as that would have it.
	Mode string
	// Canary finds out whether the cluster resolves names from our slices; nil for no check.
	Canary *Canary
	// Handle is filled in while the controller runs; nil if no other controller uses it.
	Handle *Handle
}

// Controller writes the slices of sets.
type Controller struct {
	*Syncer
	queue  *queue.Queue
	demand *informers.OnDemand[view]
}

// New returns a controller, its informers not built yet.
func New(config Config) (*Controller, error) {
	switch {
	case config.Workers < 1:
		return nil, errors.New("the number of workers must be 1 or more")
	case !isMode(config.Mode):
		return nil, errors.New("the mode must be cluster, controller or auto")
	}
	c := &Controller{queue: queue.New(Name)}
	c.Syncer = newSyncer(config, c.queue, func(need informers.Need) Cache { return config.Informers.Informer(need) })
	c.demand = (&informers.OnDemand[view]{Name: Name, Kube: c.Kube, Declare: func(kind *informers.Kind) *view {
		return c.declareView(kind, func(need informers.Need) Cache { return kind.Informer(need) })
	}, Needed: c.Needed, Filled: c.LookAtAll}).Prepare()
	c.Syncer.demand = c.demand
	return c, nil
}

// Run writes slices until the context ends, and returns when all that was begun has ended. The caches are filled.
func (c *Controller) Run(ctx context.Context) {
	logger := klog.FromContext(ctx)
	logger.Info("Running endpoints", "workers", c.Workers, "mode", c.Mode)
	defer c.Prepare()()
	var watching sync.WaitGroup
	watching.Go(func() { c.demand.Run(ctx) })
	if c.Canary != nil {
		watching.Go(func() { c.Canary.Run(ctx, c.LookAtAll) })
	}
	c.queue.Run(ctx, c.Workers, c.Sync)
	watching.Wait()
	logger.Info("Stopped running endpoints")
}
