// Copyright The jobset-apiserver Authors.
// SPDX-License-Identifier: Apache-2.0

package scenario

import (
	"context"
	"fmt"
	"sync"
	"time"

	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/labels"
	"k8s.io/apimachinery/pkg/watch"
	"k8s.io/client-go/tools/cache"
	watchtools "k8s.io/client-go/tools/watch"

	jobsetv1alpha2 "github.com/jobset-apiserver/jobset-apiserver/pkg/apis/jobset/v1alpha2"
	"github.com/jobset-apiserver/jobset-apiserver/pkg/generated/clientset/versioned"
	"github.com/jobset-apiserver/jobset-apiserver/test/bench/cluster"
	"github.com/jobset-apiserver/jobset-apiserver/test/bench/report"
)

const (
	// watchersOfAll is of how many watchers one is of all sets in the cluster, as that of a queue or of a dashboard.
	watchersOfAll = 10
	// betweenWatches is how long a client waits before it begins a watch again that cannot continue.
	betweenWatches = time.Second
)

// watchedBy returns what a watcher watches: one of ten all sets; of the others, those in turn one namespace, and the
// sets of one tenant in all namespaces.
func watchedBy(i int, namespaces []string) (namespace string, options metav1.ListOptions) {
	switch at := i % len(namespaces); {
	case i%watchersOfAll == 0:
		return metav1.NamespaceAll, metav1.ListOptions{}
	case i%2 == 1:
		return namespaces[at], metav1.ListOptions{}
	default:
		return metav1.NamespaceAll, metav1.ListOptions{LabelSelector: labels.Set{tenantKey: tenantOf(at)}.String()}
	}
}

// startWatchers begins all watches, each with a connection of its own. They end with the context.
func (t *tenants) startWatchers(ctx context.Context, running *sync.WaitGroup) error {
	before, err := t.Cluster.Memory()
	if err != nil {
		return err
	}
	n := t.Sizes.ManyWatchers
	phase, err := t.measure(ctx, "watchers start", func(ctx context.Context) error {
		return all(ctx, n, writers, func(i int) error { return t.startWatcher(ctx, i, running) })
	})
	if err != nil {
		return err
	}
	return t.addServerMemory(before, phase, "watcher", n)
}

func (t *tenants) startWatcher(ctx context.Context, i int, running *sync.WaitGroup) error {
	client, err := t.ownConnection()
	if err != nil {
		return err
	}
	events, err := t.watchAs(ctx, client, i)
	if err != nil {
		return fmt.Errorf("watching JobSets: %w", err)
	}
	running.Go(func() {
		t.deliveries.receive(events)
		for ctx.Err() == nil { // where it was is no longer known to the server
			if events, err := t.watchAs(ctx, client, i); err == nil {
				t.deliveries.receive(events)
			}
			_ = cluster.Pause(ctx, betweenWatches) // the loop ends with the context
		}
	})
	return nil
}

// watchAs returns a watch of what is created from now on. If the server ends it, it continues where it was, as that of an informer does.
func (t *tenants) watchAs(ctx context.Context, client versioned.Interface, i int) (watch.Interface, error) {
	namespace, options := watchedBy(i, t.namespaces)
	sets := client.JobsetV1alpha2().JobSets(namespace)
	list, err := sets.List(ctx, metav1.ListOptions{LabelSelector: options.LabelSelector, Limit: 1})
	if err != nil {
		return nil, err
	}
	return watchtools.NewRetryWatcherWithContext(ctx, list.ResourceVersion, &cache.ListWatch{
		WatchFuncWithContext: func(ctx context.Context, from metav1.ListOptions) (watch.Interface, error) {
			t.deliveries.begin()
			from.LabelSelector = options.LabelSelector
			return sets.Watch(ctx, from)
		},
	})
}

// deliveries are the events that watchers have received.
type deliveries struct {
	mu sync.Mutex
	// sent is when the creation of a set was sent, by its name.
	sent map[string]time.Time
	// delays are how long after that watchers saw the set, in milliseconds.
	delays []float64
	// events is how many they have received, and begun how many watches were begun.
	events, begun int
}

func (d *deliveries) send(set string) {
	d.mu.Lock()
	defer d.mu.Unlock()
	if d.sent == nil {
		d.sent = map[string]time.Time{}
	}
	d.sent[set] = time.Now()
}

func (d *deliveries) begin() {
	d.mu.Lock()
	defer d.mu.Unlock()
	d.begun++
}

// receive takes the events of a watch until it ends.
func (d *deliveries) receive(events watch.Interface) {
	defer events.Stop()
	for event := range events.ResultChan() {
		d.note(event)
	}
}

func (d *deliveries) note(event watch.Event) {
	now := time.Now()
	d.mu.Lock()
	defer d.mu.Unlock()
	d.events++
	js, ok := event.Object.(*jobsetv1alpha2.JobSet)
	if !ok || event.Type != watch.Added {
		return
	}
	if sent, known := d.sent[js.Name]; known {
		d.delays = append(d.delays, millis(now.Sub(sent)))
	}
}

// addTo adds what was delivered so far.
func (d *deliveries) addTo(phase *report.Phase, watchers int) {
	d.mu.Lock()
	defer d.mu.Unlock()
	addPercentiles(phase, "delivery of a new set from its request", d.delays)
	phase.Add("events delivered", report.UnitCount, float64(d.events))
	phase.Add("watches begun again", report.UnitCount, float64(max(0, d.begun-watchers)))
}
