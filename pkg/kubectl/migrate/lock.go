// Copyright The jobset-apiserver Authors.
// SPDX-License-Identifier: Apache-2.0

package migrate

import (
	"context"
	"fmt"
	"io"
	"sync/atomic"
	"time"

	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/client-go/kubernetes"
	"k8s.io/client-go/tools/leaderelection"
	"k8s.io/client-go/tools/leaderelection/resourcelock"
)

// Timing of the Lease. Another migration may begin leaseDuration after one was killed; a holder renews it every retryPeriod.
const (
	leaseDuration = 15 * time.Second
	renewDeadline = 10 * time.Second
	retryPeriod   = 2 * time.Second
	// longestWait is how long to wait for the Lease of one that may have been killed.
	longestWait = leaseDuration + 5*retryPeriod
)

// alone runs a function while no other migration runs. If one seems to, it waits until that one has ended, or has not renewed
// its Lease; it returns an error if it runs on. It ends the context of the function if the Lease is lost.
func alone(ctx context.Context, client kubernetes.Interface, identity string, out io.Writer, run func(context.Context) error) error {
	ctx, stop := context.WithCancelCause(ctx)
	defer stop(nil)
	var result atomic.Pointer[error]
	waiting := time.AfterFunc(longestWait, func() {
		stop(fmt.Errorf("another migration runs: it renews the Lease %s/%s; wait until it has ended", systemNamespace, journalName))
	})
	defer waiting.Stop()
	elector, err := leaderelection.NewLeaderElector(leaderelection.LeaderElectionConfig{
		Lock: &resourcelock.LeaseLock{
			LeaseMeta: metav1.ObjectMeta{Namespace: systemNamespace, Name: journalName},
			Client:    client.CoordinationV1(), LockConfig: resourcelock.ResourceLockConfig{Identity: identity},
		},
		LeaseDuration: leaseDuration, RenewDeadline: renewDeadline, RetryPeriod: retryPeriod, ReleaseOnCancel: true,
		Callbacks: leaderelection.LeaderCallbacks{
			OnStartedLeading: func(ctx context.Context) {
				waiting.Stop()
				err := run(ctx)
				result.Store(&err)
				stop(nil)
			},
			OnStoppedLeading: func() {},
			OnNewLeader: func(holder string) {
				if holder != identity {
					fmt.Fprintf(out, "Waiting up to %s: another migration, %s, runs, or was ended without notice\n", longestWait, holder)
				}
			},
		},
	})
	if err != nil {
		return err
	}
	elector.Run(ctx)
	if result := result.Load(); result != nil {
		return *result
	}
	if cause := context.Cause(ctx); cause != nil {
		return cause
	}
	return fmt.Errorf("the Lease %s/%s was lost: run the command again", systemNamespace, journalName)
}
