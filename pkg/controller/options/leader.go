// Copyright The jobset-apiserver Authors.
// SPDX-License-Identifier: Apache-2.0

package options

import (
	"context"
	"errors"
	"fmt"
	"os"
	"sync/atomic"
	"time"

	"k8s.io/apimachinery/pkg/util/uuid"
	"k8s.io/client-go/kubernetes"
	"k8s.io/client-go/tools/leaderelection"
	"k8s.io/client-go/tools/leaderelection/resourcelock"
	"k8s.io/component-base/version"

	"github.com/jobset-apiserver/jobset-apiserver/pkg/apis/jobset/v1alpha2/helper"
	"github.com/jobset-apiserver/jobset-apiserver/pkg/features"
)

// watchdogGrace is how long after its lease has run out a leader counts as healthy, to end by itself.
const watchdogGrace = 20 * time.Second

var errLeaseLost = errors.New("the lease of the leader was lost")

// elected calls run while this process holds the lease. When the context ends, the lease is given up only after run has
// returned, so that no other process works when the next leader begins. A lost lease is an error at once: this process must end, since
// another one may be working already.
func (o *Options) elected(ctx context.Context, lock resourcelock.Interface, watchdog *leaderelection.HealthzAdaptor,
	run func(context.Context)) error {
	election, endElection := context.WithCancel(context.WithoutCancel(ctx))
	defer endElection()
	var leads atomic.Bool
	elector, err := leaderelection.NewLeaderElector(leaderelection.LeaderElectionConfig{
		Name:            componentName,
		Lock:            lock,
		LeaseDuration:   o.LeaderElection.LeaseDuration.Duration,
		RenewDeadline:   o.LeaderElection.RenewDeadline.Duration,
		RetryPeriod:     o.LeaderElection.RetryPeriod.Duration,
		ReleaseOnCancel: true,
		WatchDog:        watchdog,
		Callbacks: leaderelection.LeaderCallbacks{
			OnStartedLeading: func(leading context.Context) {
				leads.Store(true)
				work, stop := context.WithCancel(leading)
				defer stop()
				defer context.AfterFunc(ctx, stop)()
				run(work)
				endElection()
			},
			OnStoppedLeading: func() {},
		},
	})
	if err != nil {
		return fmt.Errorf("setting up leader election: %w", err)
	}
	watchdog.SetLeaderElection(elector)
	// One that waits for the lease has nothing to finish. One that gets it right now finds its work ended already.
	defer context.AfterFunc(ctx, func() {
		if !leads.Load() {
			endElection()
		}
	})()
	elector.Run(election)
	if ctx.Err() == nil {
		return errLeaseLost
	}
	return nil
}

// lock returns the lease to hold while working; nil without leader election.
func (o *Options) lock(client kubernetes.Interface) (resourcelock.Interface, error) {
	if !o.LeaderElection.LeaderElect {
		return nil, nil
	}
	namespace, err := o.leaseNamespace()
	if err != nil {
		return nil, err
	}
	host, err := os.Hostname()
	if err != nil {
		return nil, fmt.Errorf("naming this process for leader election: %w", err)
	}
	identity := helper.ControllerIdentity(host, string(uuid.NewUUID()), version.Get().GitVersion)
	lock, err := resourcelock.NewWithLabels(o.LeaderElection.ResourceLock, namespace, o.LeaderElection.ResourceName,
		client.CoreV1(), client.CoordinationV1(), resourcelock.ResourceLockConfig{Identity: identity},
		helper.ControllerGateLabels(features.States(o.gate)))
	if err != nil {
		return nil, o.flagError("leader-elect-resource-lock", "%w", err)
	}
	return lock, nil
}
