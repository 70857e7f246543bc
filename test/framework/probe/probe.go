// Copyright The jobset-apiserver Authors.
// SPDX-License-Identifier: Apache-2.0

// Package probe asks for JobSets all the time, while a test breaks things, and reports what went wrong and for how long.
//
// Every 50 ms one request of each operation begins, whether or not earlier ones have been answered. None is repeated: what
// a client would try again counts as a failure here. The events of a watch, which is begun again at once when it ends, are
// compared with the acknowledged writes.
package probe

import (
	"context"
	"errors"
	"fmt"
	"sync"
	"time"

	corev1 "k8s.io/api/core/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/util/sets"
	"k8s.io/apimachinery/pkg/util/wait"
	"k8s.io/client-go/kubernetes"
	"k8s.io/client-go/rest"

	"github.com/jobset-apiserver/jobset-apiserver/pkg/generated/clientset/versioned"
)

const (
	// period is the time between two requests of an operation.
	period = 50 * time.Millisecond
	// requestTimeout is how long a client waits for an answer.
	requestTimeout = 20 * time.Second
	// pending is how many requests of an operation wait for an answer at most.
	pending = int(requestTimeout/period) + 1
	// recoveryTimeout is how long the system has to work again after what the test has done to it.
	recoveryTimeout = 2 * time.Minute
	pollInterval    = 100 * time.Millisecond
)

// Options are how a probe asks.
type Options struct {
	// Period is the time between two requests of an operation, at least 50 ms, which is the default.
	Period time.Duration
	// AllWrites adds updates and deletions.
	AllWrites bool
}

// Probe asks all the time.
type Probe struct {
	options   Options
	client    rest.Interface
	kube      kubernetes.Interface
	namespace string
	stop      context.CancelFunc
	requests  sync.WaitGroup
	recorders []*recorder
	writes    *writes
	watch     *watcher
}

// Start creates a namespace and begins to ask for JobSets in it. It returns when each operation has succeeded.
func Start(ctx context.Context, config *rest.Config, options Options) (*Probe, error) {
	options.Period = max(options.Period, period)
	config = rest.CopyConfig(config)
	config.QPS = -1
	kube, err := kubernetes.NewForConfig(config)
	if err != nil {
		return nil, err
	}
	jobSets, err := versioned.NewForConfig(config)
	if err != nil {
		return nil, err
	}
	namespace, err := kube.CoreV1().Namespaces().Create(ctx,
		&corev1.Namespace{ObjectMeta: metav1.ObjectMeta{GenerateName: "probe-"}}, metav1.CreateOptions{})
	if err != nil {
		return nil, err
	}
	p := &Probe{options: options, client: jobSets.JobsetV1alpha2().RESTClient(), kube: kube, namespace: namespace.Name}
	p.writes = &writes{client: p.client, namespace: p.namespace, created: map[string]time.Time{}, applied: map[string]*applied{}}
	if err := p.prepare(ctx); err != nil {
		return nil, fmt.Errorf("preparing the probe: %w", err)
	}
	ctx, p.stop = context.WithCancel(ctx)
	p.begin(ctx)
	return p, p.AwaitSuccess(ctx)
}

// prepare creates what is read.
func (p *Probe) prepare(ctx context.Context) error {
	for i := range listed {
		create := func(ctx context.Context) (bool, error) {
			return p.writes.put(ctx, fmt.Sprintf("read-%d", i), map[string]string{readKey: "true"}) == nil, nil
		}
		if err := wait.PollUntilContextTimeout(ctx, pollInterval, recoveryTimeout, true, create); err != nil {
			return err
		}
	}
	return nil
}

// operation is a kind of request, which is sent again and again, with a number that grows.
type operation struct {
	name string
	do   func(ctx context.Context, n int) error
}

func (p *Probe) begin(ctx context.Context) {
	operations := []operation{{"get", p.get}, {"list", p.list}, {"create", p.writes.create}, {"apply", p.writes.apply}}
	if p.options.AllWrites {
		operations = append(operations, operation{"update", p.writes.update}, operation{"delete", p.writes.remove})
	}
	for _, operation := range operations {
		r := &recorder{name: operation.name}
		p.recorders = append(p.recorders, r)
		p.requests.Go(func() { p.repeat(ctx, r, operation.do) })
	}
	r := &recorder{name: "watch"}
	p.recorders = append(p.recorders, r)
	p.watch = startWatcher(context.WithoutCancel(ctx), p.client, p.namespace, r)
}

// repeat begins requests of one operation.
func (p *Probe) repeat(ctx context.Context, r *recorder, do func(ctx context.Context, n int) error) {
	var requests sync.WaitGroup
	defer requests.Wait()
	free := make(chan struct{}, pending)
	ticker := time.NewTicker(p.options.Period)
	defer ticker.Stop()
	for n := 0; ; n++ {
		select {
		case <-ctx.Done():
			return
		case <-ticker.C:
		}
		select {
		case free <- struct{}{}:
		default:
			continue
		}
		requests.Go(func() {
			defer func() { <-free }()
			// A request that was begun before the end may finish.
			limited, cancel := context.WithTimeout(context.WithoutCancel(ctx), requestTimeout)
			defer cancel()
			begin := time.Now()
			if err := do(limited, n); !errors.Is(err, errSkipped) {
				r.record(begin, err)
			}
		})
	}
}

// errSkipped says that no request was sent.
var errSkipped = errors.New("skipped")

// AwaitSuccess waits until each operation has succeeded with a request that began after now.
func (p *Probe) AwaitSuccess(ctx context.Context) error {
	now := time.Now()
	waiting := sets.New[string]()
	err := wait.PollUntilContextTimeout(ctx, pollInterval, recoveryTimeout, true, func(context.Context) (bool, error) {
		waiting.Clear()
		for _, r := range p.recorders {
			if !r.succeededSince(now) {
				waiting.Insert(r.name)
			}
		}
		return waiting.Len() == 0, nil
	})
	if err != nil {
		return fmt.Errorf("%v did not succeed within %s: %w", sets.List(waiting), recoveryTimeout, err)
	}
	return nil
}

// Stop waits until everything works, ends the probe, compares what is stored with what was acknowledged, and removes it.
func (p *Probe) Stop(ctx context.Context) (*Report, error) {
	defer p.watch.stop()
	failure := p.AwaitSuccess(ctx)
	for _, r := range p.recorders {
		r.end()
	}
	p.stop()
	p.requests.Wait()
	report := p.report()
	if failure != nil {
		return report, failure
	}
	var err error
	report.Lost, err = p.compare(ctx)
	return report, errors.Join(err, p.remove(ctx))
}

// compare lists the acknowledged writes that are not stored, or that the watch has not shown exactly once.
func (p *Probe) compare(ctx context.Context) (lost []string, err error) {
	created := p.writes.acknowledged()
	err = wait.PollUntilContextTimeout(ctx, pollInterval, recoveryTimeout, true, func(ctx context.Context) (bool, error) {
		stored, err := p.writes.stored(ctx)
		if err != nil {
			return false, nil //nolint:nilerr // asked again
		}
		lost = append(p.writes.missing(created, stored), p.watch.wrong(created)...)
		return len(lost) == 0, nil
	})
	if wait.Interrupted(err) {
		return lost, nil
	}
	return lost, err
}

func (p *Probe) remove(ctx context.Context) error {
	return p.kube.CoreV1().Namespaces().Delete(ctx, p.namespace, metav1.DeleteOptions{})
}
