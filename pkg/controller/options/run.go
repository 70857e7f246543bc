// Copyright The jobset-apiserver Authors.
// SPDX-License-Identifier: Apache-2.0

package options

import (
	"context"
	"fmt"
	"strings"
	"time"

	"golang.org/x/sync/errgroup"
	"k8s.io/apimachinery/pkg/util/wait"
	"k8s.io/client-go/tools/events"
	"k8s.io/client-go/tools/leaderelection"
	"k8s.io/client-go/tools/leaderelection/resourcelock"
	"k8s.io/component-base/version"
	"k8s.io/klog/v2"
	"k8s.io/utils/clock"

	"github.com/jobset-apiserver/jobset-apiserver/pkg/controller/jobset"
	"github.com/jobset-apiserver/jobset-apiserver/pkg/controller/jobset/plan"
	"github.com/jobset-apiserver/jobset-apiserver/pkg/features"
	"github.com/jobset-apiserver/jobset-apiserver/pkg/generated/clientset/versioned/scheme"
)

const (
	// cachesTimeout is how long this program waits for its caches before it ends. One that cannot fill them is of no use, and
	// its end is seen by whoever runs it.
	cachesTimeout = 2 * time.Minute
	// cachesPoll is how often it looks.
	cachesPoll = 100 * time.Millisecond
)

// Run runs the controller until the context ends, and returns when all that was begun has ended.
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
	controller, err := jobset.New(jobset.Config{
		JobSets:  clients.jobSets,
		Kube:     clients.main,
		Recorder: broadcaster.NewRecorder(scheme.Scheme, jobset.Name),
		Clock:    clock.RealClock{},
		Gates: plan.Gates{
			RestartJob:             o.gate.Enabled(features.RestartJob),
			ElasticJobSet:          o.gate.Enabled(features.ElasticJobSet),
			InPlaceRestart:         o.gate.Enabled(features.InPlaceRestart),
			ActiveDeadline:         o.gate.Enabled(features.JobSetActiveDeadlineSeconds),
			ExecutionAttempts:      o.gate.Enabled(features.ExecutionAttemptsTracking),
			MutableResources:       o.gate.Enabled(features.MutablePodResourcesForSuspendedJobSets),
			RestartOnFailureTarget: o.gate.Enabled(features.RestartOnFailureTarget),
		},
		Workers: o.Workers,
	})
	if err != nil {
		return err
	}
	lock, err := o.lock(clients.lease)
	if err != nil {
		return err
	}
	watchdog := leaderelection.NewLeaderHealthzAdaptor(watchdogGrace)
	endpoints, err := o.listen(clients, watchdog, controller.Synced)
	if err != nil {
		return err
	}
	klog.FromContext(ctx).Info("Starting", "component", componentName, "version", version.Get().GitVersion)
	return runAll(ctx, endpoints, controller, func(ctx context.Context) error {
		return o.work(ctx, lock, watchdog, controller.Unfilled, controller.Run)
	})
}

// work calls run once the caches are filled, and while this process holds the lease, if there is one. A leader that cannot
// work would keep others from working.
func (o *Options) work(ctx context.Context, lock resourcelock.Interface, watchdog *leaderelection.HealthzAdaptor,
	unfilled func() []string, run func(context.Context)) error {
	if err := awaitCaches(ctx, unfilled); err != nil || ctx.Err() != nil {
		return err
	}
	if lock == nil {
		run(ctx)
		return nil
	}
	return o.elected(ctx, lock, watchdog, run)
}

// awaitCaches waits until no cache is left that is not filled, or the context ends.
func awaitCaches(ctx context.Context, unfilled func() []string) error {
	err := wait.PollUntilContextTimeout(ctx, cachesPoll, cachesTimeout, true, func(context.Context) (bool, error) {
		return len(unfilled()) == 0, nil
	})
	if err == nil || ctx.Err() != nil {
		return nil
	}
	return fmt.Errorf("waiting for caches for %s: not filled are those of %s", cachesTimeout, strings.Join(unfilled(), "; "))
}

// runAll keeps the endpoints and the caches up until the work has ended.
func runAll(ctx context.Context, endpoints []endpoint, controller *jobset.Controller, work func(context.Context) error) error {
	serving, endServing := context.WithCancel(context.WithoutCancel(ctx))
	defer endServing()
	group, working := errgroup.WithContext(ctx)
	for _, endpoint := range endpoints {
		group.Go(func() error { return endpoint.serve(serving) })
	}
	group.Go(func() error {
		defer endServing()
		controller.Start(serving)
		return work(working)
	})
	return group.Wait()
}
