// Copyright The jobset-apiserver Authors.
// SPDX-License-Identifier: Apache-2.0

package kueue

import (
	"context"
	"sync"
	"time"

	apierrors "k8s.io/apimachinery/pkg/api/errors"
	"k8s.io/apimachinery/pkg/runtime/schema"
	"k8s.io/client-go/kubernetes"
	"k8s.io/klog/v2"
	"k8s.io/utils/clock"

	"github.com/jobset-apiserver/jobset-apiserver/pkg/controller/host/informers"
	"github.com/jobset-apiserver/jobset-apiserver/pkg/controller/kueue/plan"
)

const (
	// presenceKept is how long an answer is used, and unknownKept how long after a failure discovery is asked again.
	presenceKept, unknownKept = 10 * time.Minute, time.Minute
)

// presenceVersions are the versions of the API that releases of Kueue in use serve. Each of them means that Kueue is there.
var presenceVersions = []string{plan.Version, "v1beta1"}

// Presence finds out whether the cluster has Kueue, and follows nothing of it. It asks nothing before a caller wants to know, and then
// discovery every ten minutes at most, with one request for each version.
type Presence struct {
	kube  kubernetes.Interface
	clock clock.PassiveClock

	// mu is never held during a request.
	mu    sync.Mutex
	known Availability
	until time.Time
	// answered is closed when the requests under way have ended; nil if there are none.
	answered chan struct{}
}

// NewPresence returns a Presence that has asked nothing.
func NewPresence(kube kubernetes.Interface, clock clock.PassiveClock) *Presence {
	return &Presence{kube: kube, clock: clock}
}

// Of returns Absent if discovery says that the API is not served in any version, Served if it is served in one, and
// Unknown if discovery does not answer. One caller at a time asks. Others meanwhile get the answer before, and wait
// only if there is none.
func (p *Presence) Of(ctx context.Context) Availability {
	p.mu.Lock()
	known, pending := p.known, p.answered
	due := pending == nil && !p.clock.Now().Before(p.until)
	if due {
		p.answered = make(chan struct{})
	}
	p.mu.Unlock()
	switch {
	case due:
		return p.ask(ctx)
	case pending == nil || known != Unknown:
		return known
	}
	select {
	case <-pending:
	case <-ctx.Done():
	}
	p.mu.Lock()
	defer p.mu.Unlock()
	return p.known
}

// ask asks discovery, and lets those go on that wait for the answer.
func (p *Presence) ask(ctx context.Context) (known Availability) {
	defer func() {
		p.mu.Lock()
		defer p.mu.Unlock()
		kept := presenceKept
		if known == Unknown {
			kept = unknownKept
		}
		p.known, p.until = known, p.clock.Now().Add(kept)
		close(p.answered)
		p.answered = nil
	}()
	ctx, cancel := context.WithTimeout(ctx, groupTimeout)
	defer cancel()
	factory := informers.NewFactory(p.kube)
	for _, version := range presenceVersions {
		switch err := factory.Served(ctx, schema.GroupVersion{Group: plan.Group, Version: version}, workloads.Resource); {
		case err == nil:
			return Served
		case !apierrors.IsNotFound(err):
			klog.FromContext(ctx).V(4).Info("Could not ask whether Kueue is served", "reason", err)
			return Unknown
		}
	}
	return Absent
}
