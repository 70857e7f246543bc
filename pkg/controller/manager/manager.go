// Copyright The jobset-apiserver Authors.
// SPDX-License-Identifier: Apache-2.0

// Package manager runs the controllers of one program, whatever kinds they are about.
package manager

import (
	"context"
	"fmt"
	"strings"
	"sync"
	"time"

	"k8s.io/apimachinery/pkg/util/wait"
	"k8s.io/klog/v2"
)

const (
	// cachesTimeout is how long a program waits for the caches of its controllers before it ends. One that cannot fill any is of
	// no use, and its end is seen by whoever runs it.
	cachesTimeout = 2 * time.Minute
	// cachesPoll is how often it looks.
	cachesPoll = 100 * time.Millisecond
)

// Controller runs the objects of one kind.
type Controller interface {
	// Name is the name of the controller in flags, logs and metrics.
	Name() string
	// Start fills the caches and keeps them current until the context ends. It returns at once.
	Start(ctx context.Context)
	// Unfilled returns the resources whose caches are not filled, each with the reason if it is known.
	Unfilled() []string
	// Run syncs objects until the context ends, and returns when all that was begun has ended. The caches are filled.
	Run(ctx context.Context)
}

// Manager runs controllers.
type Manager struct {
	controllers []Controller
}

// New returns a manager of controllers that are not started yet.
func New(controllers ...Controller) *Manager { return &Manager{controllers} }

// Start fills the caches of all controllers and keeps them current until the context ends. It returns at once.
func (m *Manager) Start(ctx context.Context) {
	for _, c := range m.controllers {
		c.Start(ctx)
	}
}

// Synced returns whether the caches of all controllers are filled.
func (m *Manager) Synced() bool { return len(m.unfilled()) == 0 }

// unfilled returns the resources whose caches are not filled.
func (m *Manager) unfilled() (resources []string) {
	for _, c := range m.controllers {
		resources = append(resources, c.Unfilled()...)
	}
	return resources
}

// Await waits until the caches of all controllers are filled, or the context ends. After two minutes those of one controller
// suffice, since an API that is not served must not stop the controllers that do not need it; it is an error if there is none.
func (m *Manager) Await(ctx context.Context) error {
	err := wait.PollUntilContextTimeout(ctx, cachesPoll, cachesTimeout, true, func(context.Context) (bool, error) {
		return m.Synced(), nil
	})
	if err == nil || ctx.Err() != nil {
		return nil
	}
	for _, c := range m.controllers {
		if len(c.Unfilled()) == 0 {
			return nil
		}
	}
	return fmt.Errorf("waiting for caches for %s: not filled are those of %s", cachesTimeout, strings.Join(m.unfilled(), "; "))
}

// Run runs each controller, as soon as its caches are filled, until the context ends. It returns when all that was begun has
// ended.
func (m *Manager) Run(ctx context.Context) {
	var running sync.WaitGroup
	for _, c := range m.controllers {
		running.Go(func() { runWhenFilled(ctx, c) })
	}
	running.Wait()
}

func runWhenFilled(ctx context.Context, c Controller) {
	logger := klog.FromContext(ctx).WithValues("controller", c.Name())
	if unfilled := c.Unfilled(); len(unfilled) > 0 {
		logger.Info("Waiting for caches before the controller begins", "unfilled", unfilled)
	}
	filled := func(context.Context) (bool, error) { return len(c.Unfilled()) == 0, nil }
	if err := wait.PollUntilContextCancel(ctx, cachesPoll, true, filled); err == nil {
		c.Run(klog.NewContext(ctx, logger))
	}
}
