// Copyright The jobset-apiserver Authors.
// SPDX-License-Identifier: Apache-2.0

// Package manager runs the controllers of one program, whatever kinds they are about.
//
// A controller starts when the API groups that it needs are served: its caches are filled. It runs when they are filled and
// this process works. A group that is absent costs one question about every ten seconds, and one line in the log.
//
// The program is ready when every controller that counts has filled its caches, and at least one has. A controller does
// not count if an API group that it needs is absent, if it could not be built, or if it has not filled its caches two
// minutes after it started. Once ready, the program stays ready. It does not end because an API server is away, however
// long that takes: whoever restarts it would wait for minutes in between.
package manager

import (
	"context"
	"fmt"
	"slices"
	"sync"
	"time"

	apierrors "k8s.io/apimachinery/pkg/api/errors"
	"k8s.io/apimachinery/pkg/runtime/schema"
	"k8s.io/apimachinery/pkg/util/wait"
	"k8s.io/klog/v2"

	"github.com/jobset-apiserver/jobset-apiserver/pkg/controller/host/informers"
)

const (
	// startTimeout is how long the program waits for a controller that fills its caches.
	startTimeout = 2 * time.Minute
	// reportEvery is how often the log says why no controller can work.
	reportEvery = 30 * time.Second
	// cachesPoll is how often it looks at caches.
	cachesPoll = 100 * time.Millisecond
	// groupsPoll is how often it asks for API groups that are absent, and firstGroupsPoll is so while no controller has started, or while a
	// question is not answered: the main API may have just come back.
	groupsPoll, firstGroupsPoll = 10 * time.Second, time.Second
	// groupsTimeout is the time for the answer.
	groupsTimeout = 5 * time.Second
)

// Controller runs the objects of one kind.
type Controller interface {
	// Run syncs objects until the context ends, and returns when all that was begun has ended. The caches are filled.
	Run(ctx context.Context)
}

// Descriptor describes a controller.
type Descriptor struct {
	// Name is the name of the controller in flags, logs and metrics.
	Name string
	// Own are the API groups and versions whose objects the controller runs: it does not start where kube-apiserver serves them from a
	// CustomResourceDefinition, because they belong to another controller. Needs are others that have to be served.
	Own, Needs []schema.GroupVersion
	// New returns the controller, which has declared the informers that it needs. It is called once.
	New func(kind *informers.Kind) (Controller, error)
}

// Manager runs controllers.
type Manager struct {
	factory *informers.Factory
	members []*member
	// begun is when the controllers were first asked to start.
	begun time.Time

	mu    sync.Mutex
	ready bool
}

// member is a controller and how far it is.
type member struct {
	Descriptor
	// started is closed when the caches are being filled. Then controller and kind are set.
	started    chan struct{}
	controller Controller
	kind       *informers.Kind

	// The rest is guarded by the manager.

	// since is when the controller started; before that, when the manager did.
	since time.Time
	// reason is why the controller has not started. It is absent if that is due to an API group, and failed if it never will.
	reason         string
	absent, failed bool
}

// New returns a manager of controllers that are not started yet.
func New(factory *informers.Factory, controllers ...Descriptor) *Manager {
	m := &Manager{factory: factory, begun: time.Now()}
	for _, d := range controllers {
		m.members = append(m.members, &member{Descriptor: d, started: make(chan struct{}), since: m.begun, reason: "not started"})
	}
	return m
}

// Start starts each controller as soon as the API groups that it needs are served, and keeps its caches current until the
// context ends. It returns at once.
func (m *Manager) Start(ctx context.Context) {
	go func() {
		for waiting := m.members; len(waiting) > 0 && ctx.Err() == nil; {
			waiting = m.startServed(ctx, waiting)
			pause := firstGroupsPoll
			if m.onlyAbsent(waiting) {
				pause = groupsPoll
			}
			select {
			case <-ctx.Done():
			case <-time.After(pause):
			}
		}
	}()
}

// startServed starts those members together whose API groups are served, and returns the others, which wait for their groups.
func (m *Manager) startServed(ctx context.Context, members []*member) (waiting []*member) {
	var served []*member
	var kinds []*informers.Kind
	for _, c := range members {
		switch err := m.served(ctx, c); {
		case err != nil:
			m.wait(ctx, c, err)
			waiting = append(waiting, c)
		default:
			kind := m.factory.For(c.Name)
			if c.controller, err = c.New(kind); err != nil {
				m.fail(ctx, c, err)
				continue
			}
			c.kind = kind
			for _, gv := range c.Own {
				m.factory.Claim(gv)
			}
			served, kinds = append(served, c), append(kinds, kind)
		}
	}
	watches, err := m.factory.Build(kinds...)
	if err == nil {
		watches.Start(ctx)
	}
	for _, c := range served {
		if err != nil {
			m.fail(ctx, c, err)
			continue
		}
		m.mu.Lock()
		c.since, c.reason, c.absent = time.Now(), "", false
		m.mu.Unlock()
		close(c.started)
	}
	return waiting
}

// served asks for the API groups that a controller needs. One whose server is away is served.
func (m *Manager) served(ctx context.Context, c *member) error {
	ctx, cancel := context.WithTimeout(ctx, groupsTimeout)
	defer cancel()
	for _, gv := range c.Own {
		if err := m.factory.Own(ctx, gv); err != nil && !apierrors.IsServiceUnavailable(err) {
			return fmt.Errorf("%s is not served: %w", gv, err)
		}
	}
	for _, gv := range c.Needs {
		if err := m.factory.Served(ctx, gv); err != nil && !apierrors.IsServiceUnavailable(err) {
			return fmt.Errorf("%s is not served: %w", gv, err)
		}
	}
	return nil
}

// AwaitLoss returns an error when an API group has been given to another controller, and nil when the context ends. The program has to
// end then: its caches have objects that it must not run any more.
func (m *Manager) AwaitLoss(ctx context.Context) error {
	select {
	case err := <-m.factory.Lost():
		return fmt.Errorf("the controller ends, and leaves the group alone when it is started again: %w", err)
	case <-ctx.Done():
		return nil
	}
}

// wait notes why a controller has not started.
func (m *Manager) wait(ctx context.Context, c *member, reason error) {
	m.mu.Lock()
	defer m.mu.Unlock()
	absent := apierrors.IsNotFound(reason)
	if absent && !c.absent {
		klog.FromContext(ctx).Info("An API group is absent, and the controller starts when it is served", "controller", c.Name, "reason", reason)
	}
	c.absent = absent
	c.reason = reason.Error()
}

// fail notes that a controller never starts.
func (m *Manager) fail(ctx context.Context, c *member, err error) {
	klog.FromContext(ctx).Error(err, "Could not build a controller", "controller", c.Name)
	m.mu.Lock()
	defer m.mu.Unlock()
	c.reason, c.failed = err.Error(), true
}

// onlyAbsent returns whether a controller has started, and all that wait do so for API groups that are absent.
func (m *Manager) onlyAbsent(waiting []*member) bool {
	m.mu.Lock()
	defer m.mu.Unlock()
	return slices.ContainsFunc(m.members, (*member).hasStarted) && !slices.ContainsFunc(waiting, func(c *member) bool { return !c.absent })
}

func (c *member) hasStarted() bool {
	select {
	case <-c.started:
		return true
	default:
		return false
	}
}

// Run runs each controller, as soon as its caches are filled, until the context ends. It returns when all that was begun has
// ended.
func (m *Manager) Run(ctx context.Context) {
	var running sync.WaitGroup
	for _, c := range m.members {
		running.Go(func() { c.run(ctx) })
	}
	running.Wait()
}

func (c *member) run(ctx context.Context) {
	select {
	case <-ctx.Done():
		return
	case <-c.started:
	}
	logger := klog.FromContext(ctx).WithValues("controller", c.Name)
	if unfilled := c.kind.Unfilled(); len(unfilled) > 0 {
		logger.Info("Waiting for caches before the controller begins", "unfilled", unfilled)
	}
	filled := func(context.Context) (bool, error) { return len(c.kind.Unfilled()) == 0, nil }
	if err := wait.PollUntilContextCancel(ctx, cachesPoll, true, filled); err == nil {
		c.controller.Run(klog.NewContext(ctx, logger))
	}
}
