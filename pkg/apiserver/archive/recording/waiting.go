// Copyright The jobset-apiserver Authors.
// SPDX-License-Identifier: Apache-2.0

package recording

import (
	"context"
	"time"

	"k8s.io/apimachinery/pkg/util/wait"
)

const (
	minBackoff = time.Second
	maxBackoff = time.Minute
	jitter     = 0.2
)

// newBackoff returns how long to wait after failures in a row.
func newBackoff() wait.Backoff {
	return wait.Backoff{Duration: minBackoff, Factor: 2, Jitter: jitter, Steps: 10, Cap: maxBackoff}
}

// wait waits, or until the channel has a value. It returns false if the context ends before.
func (r *Recorder) wait(ctx context.Context, time time.Duration, early <-chan struct{}) bool {
	timer := r.Clock.NewTimer(time)
	defer timer.Stop()
	select {
	case <-ctx.Done():
		return false
	case <-timer.C():
	case <-early:
	}
	return true
}
