// Copyright The jobset-apiserver Authors.
// SPDX-License-Identifier: Apache-2.0

package simulation

import (
	"context"
	"errors"
	"iter"
	"time"

	"k8s.io/client-go/tools/cache"
	"k8s.io/klog/v2"

	"github.com/jobset-apiserver/jobset-apiserver/pkg/controller/host/children"
	"github.com/jobset-apiserver/jobset-apiserver/pkg/controller/host/consistency"
)

// Quiet is a context whose logger writes nothing.
var Quiet = klog.NewContext(context.Background(), klog.Logger{})

// Runner is a children.Runner that makes requests one after another, so that every interleaving of them with everything
// else can be repeated. It begins none once the time of a pass is over.
type Runner struct {
	// Order returns the order of n requests; nil for the order in which the controller asks for them.
	Order func(n int) iter.Seq[int]
	// Timid makes it one that sends no request after one that failed, which is a defect.
	Timid bool
}

// Do implements children.Runner.
func (r Runner) Do(ctx context.Context, _ cache.ObjectName, n int, do func(ctx context.Context, i int) error) error {
	order := r.Order
	if order == nil {
		order = inOrder
	}
	var errs []error
	for i := range order(n) {
		if children.Ended(ctx) {
			break
		}
		err := do(context.WithoutCancel(ctx), i)
		if errors.Is(err, children.ErrSkipped) {
			continue
		}
		if errs = append(errs, err); err != nil && r.Timid {
			break
		}
	}
	return children.FirstErrors(errs...)
}

func inOrder(n int) iter.Seq[int] {
	return func(yield func(int) bool) {
		for i := 0; i < n && yield(i); i++ {
		}
	}
}

// Forget implements children.Runner.
func (Runner) Forget(cache.ObjectName) {}

// Racing is a clock that goes faster than the clock of the world. Denials with this clock end too early, which is a defect.
type Racing struct{ *World }

// Now returns the time.
func (r Racing) Now() time.Time { return Beginning.Add(100 * r.World.now.Sub(Beginning)) }

// Denials returns the real memory of denials of a controller that has just started. Hurried ones ask again too early, which is a defect.
func (w *World) Denials(hurried bool) *children.Denials {
	if hurried {
		return children.NewDenials(Racing{w})
	}
	return children.NewDenials(w)
}

// Memory is the real memory of own writes. It is a children.Consistency.
type Memory struct {
	*consistency.ConsistencyStore
	world *World
	// forgetful controllers do not wait until the caches show what they wrote, which is a defect.
	forgetful bool
}

// NewMemory returns the memory of a controller that has just started, and has these caches.
func NewMemory(w *World, forgetful bool, caches map[string]consistency.Versioned) Memory {
	return Memory{consistency.NewConsistencyStore(w, caches), w, forgetful}
}

// VersionsShown implements children.Consistency.
func (m Memory) VersionsShown(owner cache.ObjectName) bool {
	return m.shown(m.ConsistencyStore.VersionsShown(owner))
}

// DeletionsShown implements children.Consistency.
func (m Memory) DeletionsShown(owner cache.ObjectName, owned []consistency.Child) bool {
	return m.shown(m.ConsistencyStore.DeletionsShown(owner, owned))
}

func (m Memory) shown(shown bool) bool {
	if !shown {
		m.world.Seen["syncs put off because a cache lagged"]++
	}
	return shown || m.forgetful
}
