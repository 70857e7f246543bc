// Copyright The jobset-apiserver Authors.
// SPDX-License-Identifier: Apache-2.0

// Package kueue follows the Workloads of Kueue, and changes them, without its code: by discovery, a dynamic client, and the subset of
// its types in package plan.
//
// Nothing is asked and nothing is watched before a caller wants to know a Workload. From then on discovery is asked
// every ten seconds whether the API is served, with Workloads. While it is, one watch keeps a small part of each. A
// Kueue that is removed ends the watch, and one that comes back begins another. Workloads that cannot be read are
// unknown; after a minute, Workloads that were read before are, too.
package kueue

import (
	"context"
	"fmt"
	"strings"
	"sync"
	"time"

	apierrors "k8s.io/apimachinery/pkg/api/errors"
	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"
	"k8s.io/apimachinery/pkg/runtime/schema"
	"k8s.io/client-go/dynamic"
	"k8s.io/client-go/kubernetes"
	"k8s.io/client-go/tools/cache"
	"k8s.io/klog/v2"

	"github.com/jobset-apiserver/jobset-apiserver/pkg/controller/host/children"
	"github.com/jobset-apiserver/jobset-apiserver/pkg/controller/host/informers"
	"github.com/jobset-apiserver/jobset-apiserver/pkg/controller/kueue/plan"
)

const (
	// groupPoll is how often discovery is asked for the API, and groupTimeout is the time for the answer.
	groupPoll, groupTimeout = 10 * time.Second, 5 * time.Second
	// cachePoll is how often a cache that is being filled is looked at.
	cachePoll = 100 * time.Millisecond
	// outdatedAfter is for how long Workloads that cannot be read any more are taken to be as they were.
	outdatedAfter = time.Minute
	// catchUp is for how long the watch must follow them again until they are known: it delivers the changes of that time one by one.
	catchUp = 5 * time.Second
	// absences is how many times in a row discovery must say that an API which was served is not.
	absences = 2
)

const (
	// indexOwner is the index of Workloads by the UID of their owner.
	indexOwner = "owner"
	// indexSequence is the index of Workloads that hold quota for whole sequences, by the name of the sequence.
	indexSequence = "sequence"
)

var (
	// GroupVersion is the version of the API that is used.
	GroupVersion = schema.GroupVersion{Group: plan.Group, Version: plan.Version}
	workloads    = GroupVersion.WithResource("workloads")
)

// Availability is what is known about the API of Kueue.
type Availability int

// Availabilities.
const (
	// Unknown means that no caller has asked yet, that the Workloads are being read, or that they cannot be read.
	Unknown Availability = iota
	// Absent means that the cluster does not serve the API.
	Absent
	// Served means that the Workloads are known.
	Served
)

// Config is what a Watch needs.
type Config struct {
	// Kube is a client for discovery, and Dynamic one for the objects of Kueue.
	Kube    kubernetes.Interface
	Dynamic dynamic.Interface
	// Changed is called with a Workload that changed, appeared, or went, and AvailabilityChanged after the availability changed. They
	// return soon.
	Changed             func(w *plan.Workload)
	AvailabilityChanged func()
	// Clock is the time by which a Workload that another party deletes each time is created less often.
	Clock children.Clock
}

// Watch follows Workloads while their API is served.
type Watch struct {
	Config
	wanted chan struct{}
	want   sync.Once
	guard  *children.Guard

	mu           sync.Mutex
	availability Availability
	// kind and informer belong to the current watch, and stop ends it; nil without one.
	kind     *informers.Kind
	informer *informers.Informer
	stop     context.CancelFunc
	// outdated means that the cache is not followed any more, or not for long enough, and returned that it was followed again when it was
	// last looked at. undiscovered is why it is not known whether the API is served.
	outdated, returned bool
	undiscovered       error
	// missed is how many times in a row discovery has said that the API is not served.
	missed int
}

// NewWatch returns a watch that does not run yet.
func NewWatch(config Config) *Watch {
	return &Watch{Config: config, wanted: make(chan struct{}), guard: children.NewGuard("Workload", config.Clock)}
}

// Want begins to ask for the API. Availability and Of do so too.
func (w *Watch) Want() { w.want.Do(func() { close(w.wanted) }) }

// Availability returns what is known about the API, and why the Workloads cannot be read if that is known.
func (w *Watch) Availability() (Availability, string) {
	w.Want()
	w.mu.Lock()
	defer w.mu.Unlock()
	switch why := w.unfollowed(); {
	case len(why) > 0:
		return Unknown, strings.Join(why, ", ")
	case w.availability == Unknown && w.kind != nil:
		return Unknown, strings.Join(w.kind.Unfilled(), ", ")
	case w.availability == Unknown && w.undiscovered != nil:
		return Unknown, fmt.Sprintf("discovery (%v)", w.undiscovered)
	}
	return w.availability, ""
}

// Run follows Workloads until the context ends.
func (w *Watch) Run(ctx context.Context) {
	defer w.end()
	for {
		select {
		case <-ctx.Done():
			return
		case <-w.wanted:
		}
		w.ask(ctx)
		for w.look() && pause(ctx, catchUp) {
		}
		pause(ctx, groupPoll)
	}
}

// pause waits, and returns false if the context has ended.
func pause(ctx context.Context, d time.Duration) bool {
	select {
	case <-ctx.Done():
		return false
	case <-time.After(d):
		return true
	}
}

// ask asks discovery for the API, and begins or ends the watch. An answer that says neither changes nothing.
func (w *Watch) ask(ctx context.Context) {
	asking, cancel := context.WithTimeout(ctx, groupTimeout)
	defer cancel()
	logger := klog.FromContext(ctx)
	err := informers.NewFactory(w.Kube).Served(asking, GroupVersion, workloads.Resource)
	w.mu.Lock()
	w.undiscovered = err
	w.mu.Unlock()
	switch {
	case err == nil:
		w.missed = 0
		if w.stop == nil {
			logger.Info("Kueue is served, its Workloads are watched", "api", GroupVersion)
			w.begin(ctx)
		}
	case apierrors.IsNotFound(err):
		if w.missed++; w.stop != nil && w.missed < absences {
			return
		}
		if w.stop != nil {
			logger.Info("Kueue is no longer served", "api", GroupVersion)
		}
		w.end()
		w.become(Absent, nil)
	default:
		logger.V(4).Info("Could not ask whether Kueue is served", "reason", err)
	}
}

// begin begins the watch. The API is served once the cache is filled.
func (w *Watch) begin(ctx context.Context) {
	// A factory of its own, since one that is stopped is not started again.
	kind := informers.NewFactory(w.Kube).For("kueue")
	example := &unstructured.Unstructured{}
	example.SetGroupVersionKind(GroupVersion.WithKind("Workload"))
	informer := kind.Informer(informers.Need{
		Resource:  informers.NewResource(kind.Aggregated(GroupVersion), workloads, example, w.Dynamic, w.Dynamic.Resource(workloads)),
		Transform: transform,
		Indexers:  cache.Indexers{indexOwner: ownerOf, indexSequence: sequenceOf},
	})
	informer.AddEventHandler(w.handler())
	watches, err := kind.Build(kind)
	if err != nil {
		klog.FromContext(ctx).Error(err, "Could not watch Workloads")
		return
	}
	ctx, w.stop = context.WithCancel(ctx)
	w.become(Unknown, kind)
	watches.Start(ctx)
	go func() {
		for !informer.HasSynced() {
			select {
			case <-ctx.Done():
				return
			case <-time.After(cachePoll):
			}
		}
		w.fill(kind, informer)
	}()
}

// fill notes that the cache of a watch is filled, unless the watch has ended.
func (w *Watch) fill(kind *informers.Kind, informer *informers.Informer) {
	w.mu.Lock()
	current := w.kind == kind
	if current {
		w.availability, w.informer = Served, informer
	}
	w.mu.Unlock()
	if current {
		w.AvailabilityChanged()
	}
}

// look finds out whether the cache is followed. It returns true if it is again, and is to be looked at once more after catchUp.
func (w *Watch) look() (again bool) {
	w.mu.Lock()
	was := w.outdated
	follows := w.availability == Served && len(w.kind.Outdated(0)) == 0
	switch {
	case w.availability == Served && len(w.kind.Outdated(outdatedAfter)) > 0:
		w.outdated = true
	case w.returned && follows:
		w.outdated = false
	}
	w.returned = w.outdated && follows
	again, changed := w.returned, was != w.outdated
	w.mu.Unlock()
	if changed {
		w.AvailabilityChanged()
	}
	return again
}

// unfollowed returns why the cache is not followed any more; nothing if it is, or has been until a moment ago. The lock is held.
func (w *Watch) unfollowed() []string {
	if !w.outdated {
		return nil
	}
	if why := w.kind.Outdated(0); len(why) > 0 {
		return why
	}
	return []string{workloads.Resource}
}

// end ends the watch, if there is one.
func (w *Watch) end() {
	if w.stop != nil {
		w.stop()
		w.stop = nil
	}
}

// become notes another availability.
func (w *Watch) become(availability Availability, kind *informers.Kind) {
	w.mu.Lock()
	changed := w.availability != availability
	w.availability, w.kind, w.informer, w.outdated = availability, kind, nil, false
	w.mu.Unlock()
	if changed {
		w.AvailabilityChanged()
	}
}

func (w *Watch) handler() cache.ResourceEventHandlerFuncs {
	return cache.ResourceEventHandlerFuncs{
		AddFunc: w.changed,
		UpdateFunc: func(before, after any) {
			// Another one of the same name, if the watch was interrupted.
			if was, is := before.(*plan.Workload), after.(*plan.Workload); was.OwnerUID() != is.OwnerUID() {
				w.changed(was)
			}
			w.changed(after)
		},
		DeleteFunc: w.changed,
	}
}

func (w *Watch) changed(obj any) {
	if workload, ok := obj.(*plan.Workload); ok {
		w.Changed(workload)
	}
}
