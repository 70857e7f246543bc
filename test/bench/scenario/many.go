// Copyright The jobset-apiserver Authors.
// SPDX-License-Identifier: Apache-2.0

package scenario

import (
	"context"
	"errors"
	"fmt"
	"slices"
	"strconv"
	"strings"
	"sync"
	"time"

	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/utils/ptr"

	jobsetv1alpha2 "github.com/jobset-apiserver/jobset-apiserver/pkg/apis/jobset/v1alpha2"
	"github.com/jobset-apiserver/jobset-apiserver/test/bench/cluster"
	"github.com/jobset-apiserver/jobset-apiserver/test/bench/report"
)

const (
	// tenantKey is the label of the sets of a tenant, who has several namespaces.
	tenantKey = "jobset-apiserver.io/bench-tenant"
	// namespacesOfTenant is how many.
	namespacesOfTenant = 10
)

// many has the sets of many tenants, who watch them: at rest, and completed. It is done once, because its namespaces
// take long to be removed.
func many(ctx context.Context, r *runner) (err error) {
	r = r.sized(r.Sizes.ManyNamespaces * r.Sizes.ManySets)
	t := &tenants{space: &space{runner: r, name: metav1.NamespaceAll}}
	if r.Beside {
		if err := r.addMemoryBefore(); err != nil {
			return err
		}
	}
	if !r.Keep {
		defer func() { err = errors.Join(err, r.remove(ctx, t.namespaces...)) }()
	}
	if t.namespaces, err = r.createNamespaces(ctx, r.Sizes.ManyNamespaces); err != nil {
		return err
	}
	watching, stop := context.WithCancel(ctx)
	var watchers sync.WaitGroup
	defer watchers.Wait()
	defer stop()
	if err := t.watch(watching, watchedSets); err != nil {
		return err
	}
	if r.Beside {
		return t.liveBeside(ctx)
	}
	if err := t.startWatchers(watching, &watchers); err != nil {
		return err
	}
	return t.live(ctx)
}

// tenants are namespaces with suspended sets. The namespace of their space is none, so that all are watched and listed.
type tenants struct {
	*space
	namespaces []string
	deliveries deliveries
}

func (t *tenants) count() int { return len(t.namespaces) * t.Sizes.ManySets }

// at returns the namespace and the name of a set. Sets that follow each other are in different namespaces; the names
// are unique in the cluster.
func (t *tenants) at(i int) (*space, string) {
	namespace := i % len(t.namespaces)
	return &space{runner: t.runner, name: t.namespaces[namespace]}, fmt.Sprintf("tenant-%04d-%02d", namespace, i/len(t.namespaces))
}

// tenantOf is whose namespace it is.
func tenantOf(namespace int) string { return strconv.Itoa(namespace / namespacesOfTenant) }

func isTenants(js *jobsetv1alpha2.JobSet) bool { return js.Labels[tenantKey] != "" }

// live creates the sets, leaves them alone, lists them, restarts the controller, and lets the sets run to completion.
func (t *tenants) live(ctx context.Context) error {
	before, err := t.Cluster.Memory()
	if err != nil {
		return err
	}
	if err := t.create(ctx, before); err != nil {
		return err
	}
	if err := t.rest(ctx, report.AtRest); err != nil {
		return err
	}
	if err := t.listAll(ctx); err != nil {
		return err
	}
	if err := t.restartController(ctx); err != nil {
		return err
	}
	addControllerWrites(t.to.Phase(report.ControllerRestarted))
	if err := t.complete(ctx, before); err != nil {
		return err
	}
	return t.rest(ctx, report.AtRestCompleted)
}

// create is done when the status of all sets shows their Jobs as suspended.
func (t *tenants) create(ctx context.Context, before map[string]int64) error {
	n := t.count()
	phase, err := t.measure(ctx, "create", func(ctx context.Context) error {
		if err := all(ctx, n, writers, func(i int) error { return t.createOne(ctx, i) }); err != nil {
			return err
		}
		return t.sets.untilSome(ctx, "the status of all sets shows their Jobs as suspended", n, func(js *jobsetv1alpha2.JobSet) bool {
			return isTenants(js) && has(jobsetv1alpha2.JobSetSuspended)(js) && showsJobs(0, 1, 0)(js)
		})
	})
	if err != nil {
		return err
	}
	addEach(phase, "set", n)
	if !t.Beside {
		t.deliveries.addTo(phase, t.Sizes.ManyWatchers)
	}
	if err := t.addStored(ctx, phase, t.namespaces...); err != nil {
		return err
	}
	return t.addMemory(ctx, before, phase, "set", n)
}

func (t *tenants) createOne(ctx context.Context, i int) error {
	s, name := t.at(i)
	js := s.set(name, 1, succeeding)
	js.Labels = map[string]string{tenantKey: tenantOf(i % len(t.namespaces))}
	js.Spec.Suspend = ptr.To(true)
	t.deliveries.send(name)
	return s.createSet(ctx, js)
}

// rest measures sets that do nothing.
func (t *tenants) rest(ctx context.Context, name string) error {
	before := t.sets.seenUpdates()
	phase, err := t.measure(ctx, name, func(ctx context.Context) error {
		return cluster.Pause(ctx, time.Duration(t.Sizes.RestSeconds)*time.Second)
	})
	if err != nil {
		return err
	}
	addControllerWrites(phase)
	phase.Add("changes of sets", report.UnitCount, float64(t.sets.seenUpdates()-before))
	return nil
}

// addControllerWrites adds how often the controller wrote something, its lease aside, in a phase that is measured once. Reviews store nothing:
// the controller sends them when this program reads its metrics.
func addControllerWrites(phase *report.Phase) {
	if phase.Figure("wall") == nil {
		return // it was left out
	}
	writes := 0.0
	for _, f := range phase.Figures {
		call, counted := strings.CutPrefix(f.Name, "client/jobset-controller/")
		verb, resource, _ := strings.Cut(call, " ")
		if counted && !strings.HasSuffix(resource, "reviews") && slices.Contains([]string{"create", "update", "patch", "delete", "deletecollection"}, verb) {
			writes += phase.Last(f.Name)
		}
	}
	phase.Add(report.ControllerWrites, report.UnitCount, writes)
}

// listAll reads the sets of all tenants, and those of others that are in the cluster.
func (t *tenants) listAll(ctx context.Context) error {
	_, n := t.sets.count(anything[*jobsetv1alpha2.JobSet])
	return t.readLists(ctx, "list", n)
}

// complete is done when all sets have run to completion.
func (t *tenants) complete(ctx context.Context, before map[string]int64) error {
	n := t.count()
	phase, err := t.measure(ctx, "until completed", func(ctx context.Context) error {
		if err := all(ctx, n, writers, func(i int) error {
			s, name := t.at(i)
			return s.patchSet(ctx, name, `{"spec":{"suspend":false}}`)
		}); err != nil {
			return err
		}
		return t.sets.untilSome(ctx, "all sets are completed", n, func(js *jobsetv1alpha2.JobSet) bool {
			return isTenants(js) && has(jobsetv1alpha2.JobSetCompleted)(js)
		})
	})
	if err != nil {
		return err
	}
	addEach(phase, "set", n)
	return t.addMemory(ctx, before, phase, "completed set", n)
}
