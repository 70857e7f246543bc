// Copyright The jobset-apiserver Authors.
// SPDX-License-Identifier: Apache-2.0

// Package routing ends watches of groups that kube-apiserver does not forward to this server any more. A watch that was
// forwarded before goes on otherwise, and shows no change of the objects that another server has from then on: a garbage
// collector or a queue would miss them until the watch ends by itself, after up to ten minutes. The same goes for a server that has lost
// its store, while other servers have it.
package routing

import (
	"context"
	"net/http"
	"sync"
	"time"

	"k8s.io/apimachinery/pkg/runtime/schema"
	"k8s.io/apimachinery/pkg/util/sets"
	"k8s.io/apimachinery/pkg/util/wait"
	"k8s.io/apiserver/pkg/endpoints/request"
	"k8s.io/klog/v2"
)

const (
	// interval is how often the server looks for groups that have left.
	interval = 5 * time.Second
	// rounds is how many times the watches of a group are ended: another kube-apiserver may have forwarded some after the first.
	rounds = 3
)

// Watches knows the watches that are open.
type Watches struct {
	routed func(context.Context, schema.GroupVersion) (bool, error)
	lost   func() bool

	mu   sync.Mutex
	open map[schema.GroupVersion]sets.Set[*context.CancelFunc]
	// left is how many times the watches of a version are ended once it is not forwarded any more. A version that was
	// never forwarded is not in it: its clients call this server itself.
	left map[schema.GroupVersion]int
}

// New returns what ends watches. routed returns whether kube-apiserver forwards a version to this server or to another one; while it
// returns an error, all watches stay. lost, unless it is nil, returns whether the store is lost; all watches end then.
func New(routed func(context.Context, schema.GroupVersion) (bool, error), lost func() bool) *Watches {
	return &Watches{
		routed: routed, lost: lost, open: map[schema.GroupVersion]sets.Set[*context.CancelFunc]{}, left: map[schema.GroupVersion]int{},
	}
}

// Filter lets the watches that next serves be ended.
func (w *Watches) Filter(next http.Handler) http.Handler {
	return http.HandlerFunc(func(out http.ResponseWriter, req *http.Request) {
		info, ok := request.RequestInfoFrom(req.Context())
		if !ok || info.Verb != "watch" || info.APIGroup == "" {
			next.ServeHTTP(out, req)
			return
		}
		ctx, cancel := context.WithCancel(req.Context())
		defer cancel()
		defer w.add(schema.GroupVersion{Group: info.APIGroup, Version: info.APIVersion}, &cancel)()
		next.ServeHTTP(out, req.WithContext(ctx))
	})
}

func (w *Watches) add(version schema.GroupVersion, cancel *context.CancelFunc) (remove func()) {
	w.mu.Lock()
	defer w.mu.Unlock()
	if w.open[version] == nil {
		w.open[version] = sets.New[*context.CancelFunc]()
	}
	w.open[version].Insert(cancel)
	return func() {
		w.mu.Lock()
		defer w.mu.Unlock()
		if w.open[version].Delete(cancel); w.open[version].Len() == 0 {
			delete(w.open, version)
		}
	}
}

// Run ends watches until the context ends.
func (w *Watches) Run(ctx context.Context) {
	wait.UntilWithContext(ctx, w.look, interval)
}

// look ends the watches of the versions that have left, or all.
func (w *Watches) look(ctx context.Context) {
	if w.lost != nil && w.lost() {
		if ended := w.endAll(); ended > 0 {
			klog.FromContext(ctx).Info("Ended all watches, because the store does not answer", "watches", ended)
		}
		return
	}
	for _, version := range w.watched() {
		routed, err := w.routed(ctx, version)
		if err != nil {
			klog.FromContext(ctx).V(4).Info("Not known whether a group is forwarded to this server", "version", version, "err", err)
			continue
		}
		if ended := w.note(version, routed); ended > 0 {
			klog.FromContext(ctx).Info("Ended watches of a group that is not forwarded any more", "version", version, "watches", ended)
		}
	}
}

func (w *Watches) watched() []schema.GroupVersion {
	w.mu.Lock()
	defer w.mu.Unlock()
	return sets.KeySet(w.open).UnsortedList()
}

func (w *Watches) endAll() (ended int) {
	w.mu.Lock()
	defer w.mu.Unlock()
	for _, watches := range w.open {
		for cancel := range watches {
			(*cancel)()
		}
		ended += watches.Len()
	}
	return ended
}

// note returns how many watches were ended.
func (w *Watches) note(version schema.GroupVersion, routed bool) (ended int) {
	w.mu.Lock()
	defer w.mu.Unlock()
	if routed {
		w.left[version] = rounds
		return 0
	}
	if w.left[version] == 0 {
		return 0
	}
	w.left[version]--
	for cancel := range w.open[version] {
		(*cancel)()
	}
	return w.open[version].Len()
}
