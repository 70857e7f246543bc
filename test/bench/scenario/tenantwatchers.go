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

	jobsetv1alpha2 "github.com/jobset-apiserver/jobset-apiserver/pkg/apis/jobset/v1alpha2"
	"github.com/jobset-apiserver/jobset-apiserver/pkg/generated/clientset/versioned"
	"github.com/jobset-apiserver/jobset-apiserver/test/bench/cluster"
	"github.com/jobset-apiserver/jobset-apiserver/test/bench/report"
)

const (
	// watchersOfAll is of how many watchers one is of all sets in the cluster, as that of a queue or of a dashboard.
	watchersOfAll = 10
	// betweenWatches is how long a client waits before it begins a watch that has ended again.
	betweenWatches = time.Second
)

// watchedBy returns what a watcher watches: one of ten all sets; of the others, those in turn one namespace, and the sets of one tenant in all namespaces.
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
		t.deliveries.receive(events, true)
		for ctx.Err() == nil {
			if events, err := t.watchAs(ctx, client, i); err == nil {
				t.deliveries.receive(events, false)
			}
			_ = cluster.Pause(ctx, betweenWatches) // the loop ends with the context
		}
	})
	return nil
}

func (t *tenants) watchAs(ctx context.Context, client versioned.Interface, i int) (watch.Interface, error) {
	namespace, options := watchedBy(i, t.namespaces)
	return client.JobsetV1alpha2().JobSets(namespace).Watch(ctx, options)
}

// deliveries are the events that watchers have received.
type deliveries struct {
	mu sync.Mutex
	// sent is when the creation of a set was sent, by its name.
	sent map[string]time.Time
	// delays are how long after that watchers saw the set, in milliseconds.
	delays []float64
	// events is how many they have received, and again how often a watch was begun again.
	events, again int
}

func (d *deliveries) send(set string) {
	d.mu.Lock()
	defer d.mu.Unlock()
	if d.sent == nil {
		d.sent = map[string]time.Time{}
	}
	d.sent[set] = time.Now()
}

// receive takes the events of a watch until it ends. The first watch of a client shows sets when they are created; a later one shows all that exist.
func (d *deliveries) receive(events watch.Interface, first bool) {
	defer events.Stop()
	if !first {
		d.mu.Lock()
		d.again++
		d.mu.Unlock()
	}
	for event := range events.ResultChan() {
		d.note(event, first)
	}
}

func (d *deliveries) note(event watch.Event, first bool) {
	now := time.Now()
	d.mu.Lock()
	defer d.mu.Unlock()
	d.events++
	js, ok := event.Object.(*jobsetv1alpha2.JobSet)
	if !ok || !first || event.Type != watch.Added {
		return
	}
	if sent, known := d.sent[js.Name]; known {
		d.delays = append(d.delays, millis(now.Sub(sent)))
	}
}

// addTo adds what was delivered so far.
func (d *deliveries) addTo(phase *report.Phase) {
	d.mu.Lock()
	defer d.mu.Unlock()
	addPercentiles(phase, "delivery of a new set from its request", d.delays)
	phase.Add("events delivered", report.UnitCount, float64(d.events))
	phase.Add("watches begun again", report.UnitCount, float64(d.again))
}
