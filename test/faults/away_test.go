// Copyright The jobset-apiserver Authors.
// SPDX-License-Identifier: Apache-2.0

package faults

import (
	"context"
	"time"
)

// program is a server or a member of etcd, which can be killed and started again.
type program interface {
	Kill()
	Start() error
}

// away kills programs, starts them again after a pause, and waits until they work.
func away[P program](ctx context.Context, pause time.Duration, await func(context.Context) error, programs ...P) error {
	for _, p := range programs {
		p.Kill()
	}
	time.Sleep(pause)
	for _, p := range programs {
		if err := p.Start(); err != nil {
			return err
		}
	}
	return await(ctx)
}

// eachAway is away for one program after the other.
func eachAway[P program](ctx context.Context, await func(context.Context) error, programs ...P) error {
	for _, p := range programs {
		if err := away(ctx, restartPause, await, p); err != nil {
			return err
		}
	}
	return nil
}
