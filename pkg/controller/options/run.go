// Copyright The jobset-apiserver Authors.
// SPDX-License-Identifier: Apache-2.0

package options

import (
	"context"
	"fmt"

	"golang.org/x/sync/errgroup"
	"k8s.io/client-go/tools/events"
	"k8s.io/client-go/tools/leaderelection"
	"k8s.io/client-go/tools/leaderelection/resourcelock"
	"k8s.io/component-base/version"
	"k8s.io/klog/v2"

	"github.com/jobset-apiserver/jobset-apiserver/pkg/controller/host/manager"
)

// Run runs the controllers until the context ends, and returns when all that was begun has ended.
func (o *Options) Run(ctx context.Context) error {
	clients, err := o.newClients()
	if err != nil {
		return err
	}
	broadcaster := events.NewBroadcaster(&events.EventSinkImpl{Interface: clients.main.EventsV1()})
	defer broadcaster.Shutdown()
	if err := broadcaster.StartRecordingToSinkWithContext(context.WithoutCancel(ctx)); err != nil {
		return fmt.Errorf("setting up events: %w", err)
	}
	controllers := o.newManager(clients, broadcaster)
	lock, err := o.lock(clients.lease)
	if err != nil {
		return err
	}
	watchdog := leaderelection.NewLeaderHealthzAdaptor(watchdogGrace)
	endpoints, err := o.listen(clients, watchdog, controllers.Ready)
	if err != nil {
		return err
	}
	klog.FromContext(ctx).Info("Starting", "component", componentName, "version", version.Get().GitVersion)
	return runAll(ctx, endpoints, controllers, func(ctx context.Context) error {
		return o.work(ctx, lock, watchdog, controllers)
	})
}

// work runs the controllers once the program is ready, and while this process holds the lease, if there is one. A leader that
// cannot work would keep others from working.
func (o *Options) work(ctx context.Context, lock resourcelock.Interface, watchdog *leaderelection.HealthzAdaptor,
	controllers *manager.Manager) error {
	if err := controllers.Await(ctx); err != nil || ctx.Err() != nil {
		return err
	}
	if lock == nil {
		controllers.Run(ctx)
		return nil
	}
	return o.elected(ctx, lock, watchdog, controllers.Run)
}

// runAll keeps the endpoints and the caches up until the work has ended.
func runAll(ctx context.Context, endpoints []endpoint, controllers *manager.Manager, work func(context.Context) error) error {
	serving, endServing := context.WithCancel(context.WithoutCancel(ctx))
	defer endServing()
	group, working := errgroup.WithContext(ctx)
	for _, endpoint := range endpoints {
		group.Go(func() error { return endpoint.serve(serving) })
	}
	group.Go(func() error { return controllers.AwaitLoss(serving) })
	group.Go(func() error {
		defer endServing()
		controllers.Start(serving)
		return work(working)
	})
	return group.Wait()
}
