// Copyright The jobset-apiserver Authors.
// SPDX-License-Identifier: Apache-2.0

// Package gang follows the objects by which schedulers know groups of pods, and writes them, without the code of these schedulers: by
// discovery and a dynamic client.
//
// A Watch asks nothing and watches nothing before a caller asks it for objects, and again once no caller needs them. Of
// several versions of the API it uses the first one that the cluster serves, and stays with it for as long as that is
// so.
package gang

import (
	"context"
	"fmt"
	"slices"
	"strings"
	"sync"
	"sync/atomic"
	"time"

	apierrors "k8s.io/apimachinery/pkg/api/errors"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"
	"k8s.io/apimachinery/pkg/runtime/schema"
	"k8s.io/apimachinery/pkg/types"
	"k8s.io/client-go/dynamic"
	"k8s.io/client-go/kubernetes"
	"k8s.io/client-go/tools/cache"
	"k8s.io/klog/v2"

	"github.com/jobset-apiserver/jobset-apiserver/pkg/controller/host/informers"
)

const (
	// absentPoll and servedPoll are how often discovery is asked for the API while it is absent, and while it is served.
	absentPoll, servedPoll = 10 * time.Second, time.Minute
	// outdatedAfter is for how long objects that cannot be read any more are taken to be as they were.
	outdatedAfter = time.Minute
	// askTimeout is the time for the answer.
	askTimeout = 5 * time.Second
	// absences is how many times in a row discovery must say that an API which was served is not.
	absences = 2
)

// Config is what a Watch needs.
type Config struct {
	// Kube is a client for discovery, and Dynamic one for the objects.
	Kube    kubernetes.Interface
	Dynamic dynamic.Interface
	// Versions are the versions that can be used, the preferred one first.
	Versions []schema.GroupVersion
	// Kinds are the kinds that a version must have.
	Kinds []Kind
	// Label is the label of the objects to watch.
	Label string
	// Needed returns whether anything still needs the objects.
	Needed func() bool
	// Changed is called with an object that changed, appeared, or went, and Turned when other objects or another reason
	// can be had. They return soon.
	Changed func(object metav1.Object)
	Turned  func()
}

// State is how much is known of the objects.
type State struct {
	// Version is the version of the API, once the objects are known; empty before.
	Version schema.GroupVersion
	// Absent means that the cluster serves none of the versions.
	Absent bool
	// Problem is why the objects cannot be read, if that is known.
	Problem string
}

// Watch follows the objects of an API.
type Watch struct {
	Config
	objects *informers.OnDemand[view]
	wanted  chan struct{}
	// found is the version that is served; nil before it is known, and if there is none.
	found  atomic.Pointer[schema.GroupVersion]
	absent atomic.Bool
	// undiscovered is why it is not known what is served; nil if it is. outdated means that the objects are not followed any more.
	undiscovered atomic.Pointer[error]
	outdated     atomic.Bool
	// declared is the version that was watched last.
	declared atomic.Pointer[schema.GroupVersion]
	// missed is how many times in a row discovery has not had the version that was found. Only Run uses it.
	missed int
}

// view are the objects of one version.
type view struct {
	version   schema.GroupVersion
	informers []*informers.Informer
}

// NewWatch returns a watch that does not run yet.
func NewWatch(config Config) *Watch {
	w := &Watch{Config: config, wanted: make(chan struct{}, 1)}
	w.objects = (&informers.OnDemand[view]{
		Name: config.Versions[0].Group, Kube: config.Kube, Declare: w.declare, Filled: config.Turned,
		Needed:  func() bool { v := w.declared.Load(); return w.Needed() && v != nil && w.serves(*v) },
		Outdone: func() bool { v := w.declared.Load(); return v != nil && !w.serves(*v) },
	}).Prepare()
	return w
}

// Ask returns how much is known of the objects. Asking is what begins the watch.
func (w *Watch) Ask() State {
	select {
	case w.wanted <- struct{}{}:
	default:
	}
	if w.found.Load() == nil {
		if err := w.undiscovered.Load(); err != nil && !w.absent.Load() {
			return State{Problem: fmt.Sprintf("discovery (%v)", *err)}
		}
		return State{Absent: w.absent.Load()}
	}
	if v := w.objects.View(); v != nil {
		if why := w.objects.Outdated(0); len(why) > 0 && w.outdated.Load() {
			return State{Problem: strings.Join(why, ", ")}
		}
		return State{Version: v.version}
	}
	return State{Problem: strings.Join(w.objects.Unfilled(), ", ")}
}

// Of returns the objects that an owner controls, shared and read-only, as far as they are known. It begins no watch.
func (w *Watch) Of(owner types.UID) (found []*unstructured.Unstructured) {
	v := w.objects.Current()
	if v == nil {
		return nil
	}
	for _, informer := range v.informers {
		objects, err := informer.ByIndex(indexController, string(owner))
		if err != nil {
			continue // the index exists
		}
		for _, obj := range objects {
			if object, ok := obj.(*unstructured.Unstructured); ok {
				found = append(found, object)
			}
		}
	}
	return found
}

// Run follows the API until the context ends.
func (w *Watch) Run(ctx context.Context) {
	var watching sync.WaitGroup
	defer watching.Wait()
	watching.Go(func() { w.objects.Run(ctx) })
	for {
		select {
		case <-ctx.Done():
			return
		case <-w.wanted:
		}
		w.ask(ctx)
		pause := absentPoll
		if w.found.Load() != nil && w.missed == 0 {
			pause = servedPoll
		}
		if w.found.Load() != nil {
			w.objects.View()
		}
		w.look()
		select {
		case <-ctx.Done():
			return
		case <-time.After(pause):
		}
		if w.Needed() {
			select {
			case w.wanted <- struct{}{}:
			default:
			}
			continue
		}
		// By the time a caller needs the answer, another one may be right.
		w.found.Store(nil)
		w.absent.Store(false)
		w.missed = 0
	}
}

// ask asks discovery for the API. The version that is in use comes first, and stays until it has been missed several
// times in a row. An answer that says neither changes nothing.
func (w *Watch) ask(ctx context.Context) {
	versions, used := w.Versions, w.found.Load()
	if used != nil {
		versions = append([]schema.GroupVersion{*used}, slices.DeleteFunc(slices.Clone(versions),
			func(v schema.GroupVersion) bool { return v == *used })...)
	}
	for _, version := range versions {
		served, err := w.served(ctx, version)
		if err != nil {
			klog.FromContext(ctx).V(4).Info("Could not ask for an API of groups of pods", "version", version, "reason", err)
			w.undiscovered.Store(&err)
			return
		}
		w.undiscovered.Store(nil)
		if served {
			w.missed = 0
			w.become(ctx, &version)
			return
		}
		if used != nil && version == *used {
			if w.missed++; w.missed < absences {
				return
			}
		}
	}
	w.missed = 0
	w.become(ctx, nil)
}

// look finds out whether the objects are followed.
func (w *Watch) look() {
	outdated := w.objects.Current() != nil && len(w.objects.Outdated(outdatedAfter)) > 0
	if w.outdated.Swap(outdated) != outdated {
		w.Turned()
	}
}

// served returns whether the cluster serves a version with all kinds.
func (w *Watch) served(ctx context.Context, version schema.GroupVersion) (bool, error) {
	ctx, cancel := context.WithTimeout(ctx, askTimeout)
	defer cancel()
	resources := make([]string, len(w.Kinds))
	for i := range w.Kinds {
		resources[i] = w.Kinds[i].Resource
	}
	err := informers.NewFactory(w.Kube).Served(ctx, version, resources...)
	if apierrors.IsNotFound(err) {
		return false, nil
	}
	return err == nil, err
}

// become notes the version that is served; nil for none.
func (w *Watch) become(ctx context.Context, version *schema.GroupVersion) {
	if version != nil && w.serves(*version) {
		return
	}
	turned := version != nil || !w.absent.Load()
	w.found.Store(version)
	w.absent.Store(version == nil)
	if !turned {
		return
	}
	if version == nil {
		klog.FromContext(ctx).Info("An API of groups of pods is absent, and JobSets that ask for groups wait", "group", w.Versions[0].Group)
	} else {
		klog.FromContext(ctx).Info("Groups of pods are made", "version", version.String())
	}
	w.Turned()
}

func (w *Watch) serves(version schema.GroupVersion) bool {
	found := w.found.Load()
	return found != nil && *found == version
}

// declare returns the informers of the version that is served now.
func (w *Watch) declare(kind *informers.Kind) *view {
	v := &view{version: w.Versions[0]}
	if found := w.found.Load(); found != nil {
		v.version = *found
	}
	w.declared.Store(&v.version)
	for _, k := range w.Kinds {
		need := Need(kind.Main(), w.Dynamic, v.version, k, w.Label)
		need.Transform, need.Indexers = trim, cache.Indexers{indexController: controllerOf}
		informer := kind.Informer(need)
		informer.AddEventHandler(cache.ResourceEventHandlerFuncs{
			AddFunc: w.changed, UpdateFunc: w.updated, DeleteFunc: w.changed,
		})
		v.informers = append(v.informers, informer)
	}
	return v
}
