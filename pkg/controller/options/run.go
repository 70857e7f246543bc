// Copyright The jobset-apiserver Authors.
// SPDX-License-Identifier: Apache-2.0

package options

import (
	"context"
	"fmt"

	"golang.org/x/sync/errgroup"
	"k8s.io/client-go/tools/events"
	"k8s.io/client-go/tools/leaderelection"
	"k8s.io/component-base/version"
	"k8s.io/klog/v2"
	"k8s.io/utils/clock"

	"github.com/jobset-apiserver/jobset-apiserver/pkg/controller/jobset"
	"github.com/jobset-apiserver/jobset-apiserver/pkg/controller/jobset/plan"
	"github.com/jobset-apiserver/jobset-apiserver/pkg/features"
	"github.com/jobset-apiserver/jobset-apiserver/pkg/generated/clientset/versioned/scheme"
)

// Run runs the controller until the context ends, and returns when all that was begun has ended.
func (o *Options) Run(ctx context.Context) error {
	klog.FromContext(ctx).Info("Starting", "component", componentName, "version", version.Get().GitVersion)
	clients, err := o.newClients()
	if err != nil {
		return err
	}
	broadcaster := events.NewBroadcaster(&events.EventSinkImpl{Interface: clients.main.EventsV1()})
	defer broadcaster.Shutdown()
	if err := broadcaster.StartRecordingToSinkWithContext(context.WithoutCancel(ctx)); err != nil {
		return fmt.Errorf("setting up events: %w", err)
	}
	controller, err := jobset.New(jobset.Config{
		JobSets:  clients.jobSets,
		Kube:     clients.main,
		Recorder: broadcaster.NewRecorder(scheme.Scheme, jobset.Name),
		Clock:    clock.RealClock{},
		Gates: plan.Gates{
			RestartJob:    o.gate.Enabled(features.RestartJob),
			ElasticJobSet: o.gate.Enabled(features.ElasticJobSet),
		},
		Workers: o.Workers,
	})
	if err != nil {
		return err
	}
	watchdog := leaderelection.NewLeaderHealthzAdaptor(watchdogGrace)
	endpoints, err := o.listen(clients, watchdog, controller.Synced)
	if err != nil {
		return err
	}
	return o.runAll(ctx, clients, controller, watchdog, endpoints)
}

// runAll keeps the endpoints up until the controller has ended.
func (o *Options) runAll(ctx context.Context, clients clients, controller *jobset.Controller, watchdog *leaderelection.HealthzAdaptor, endpoints []endpoint) error {
	serving, endServing := context.WithCancel(context.WithoutCancel(ctx))
	group, working := errgroup.WithContext(ctx)
	for _, endpoint := range endpoints {
		group.Go(func() error { return endpoint.serve(serving) })
	}
	group.Go(func() error {
		defer endServing()
		// The informers outlive the workers, which finish what they have begun.
		caching, endCaching := context.WithCancel(context.WithoutCancel(ctx))
		defer endCaching()
		controller.Start(caching)
		if !o.LeaderElection.LeaderElect {
			controller.Run(working)
			return nil
		}
		return o.elected(working, clients.lease, watchdog, controller.Run)
	})
	return group.Wait()
}
