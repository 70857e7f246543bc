// Copyright The jobset-apiserver Authors.
// SPDX-License-Identifier: Apache-2.0

// Package orphans raises an alarm about children whose owner the API does not know: Jobs and StatefulSets, and all other kinds that our
// controllers create. The garbage collector deletes such children; if there are many of them, or they stay, the store of jobset-apiserver
// has lost their owners, or the main cluster is older than the store.
//
// It looks into caches, except for groups of pods while no set asks for them. A child is suspect if its owner is not in the cache; most of
// these are being deleted with their owner, and are gone at the next look. Of suspects that were there at the last look, too, some owners
// are read from the API before anything is said.
package orphans

import (
	"cmp"
	"context"
	"fmt"
	"slices"
	"time"

	corev1 "k8s.io/api/core/v1"
	apierrors "k8s.io/apimachinery/pkg/api/errors"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/types"
	"k8s.io/client-go/tools/cache"
	"k8s.io/client-go/tools/events"
	"k8s.io/klog/v2"

	"github.com/jobset-apiserver/jobset-apiserver/pkg/controller/host/children"
	"github.com/jobset-apiserver/jobset-apiserver/pkg/controller/host/plan"
	"github.com/jobset-apiserver/jobset-apiserver/pkg/unreadable"
	"github.com/jobset-apiserver/jobset-apiserver/pkg/witness"
)

const (
	// lookEvery is the time between two looks, and lookAgain that after one with suspects.
	lookEvery, lookAgain = 3 * time.Minute, time.Minute
	// maxOwners is the number of suspects that are remembered, and maxReads that of owners that one look reads from the API.
	maxOwners, maxReads = 10_000, 20
	// readTimeout is the time for the answer about one owner.
	readTimeout = 5 * time.Second
)

// ReasonOwnerUnknown is the reason of the event about a child whose owner the API does not know.
const ReasonOwnerUnknown = "OwnerUnknown"

// Owner is the owner of a child, as the child names it.
type Owner struct {
	Namespace, Name string
	UID             types.UID
}

// Child is an object that has an owner and is not being deleted.
type Child struct {
	Name  string
	UID   types.UID
	Owner Owner
}

// Config is what a Watcher needs.
type Config struct {
	// Kind is the kind of the owners.
	Kind string
	// Sources are the kinds of their children, those with pods first.
	Sources []Source
	// Cached returns whether the owner is in the cache.
	Cached func(Owner) bool
	// Read reads the owner of the name from the API.
	Read func(ctx context.Context, namespace, name string) (metav1.Object, error)
	// Recorder sends events.
	Recorder events.EventRecorder
}

// Watcher looks for children whose owner the API does not know.
type Watcher struct {
	Config
	// suspects are the owners of the last look that were not in the cache.
	suspects map[types.UID]bool
	// alarmed is the number of children that the last alarm was about; 0 if it is over.
	alarmed int
}

// suspect is an owner that is not in the cache.
type suspect struct {
	Owner
	// child is the first of its children by source and name, and source is the index of its kind.
	child  Child
	source int
	// children is how many children of each source it has.
	children []int
}

// total returns how many children the owner has.
func (s *suspect) total() (total int) {
	for _, count := range s.children {
		total += count
	}
	return total
}

// CachedIn returns Config.Cached for the owners that get reads from a cache. An owner that the server cannot read any more counts as
// cached: it exists, and the cache may not hold its UID.
func CachedIn[O interface {
	comparable
	metav1.Object
}](get func(cache.ObjectName) (O, error)) func(Owner) bool {
	var none O
	return func(owner Owner) bool {
		cached, err := get(cache.NewObjectName(owner.Namespace, owner.Name))
		return err != nil || cached != none && (cached.GetUID() == owner.UID || unreadable.Is(cached))
	}
}

// NewWatcher returns a Watcher that has seen nothing.
func NewWatcher(config Config) *Watcher {
	registerMetrics()
	return &Watcher{Config: config}
}

// Run looks every few minutes until the context ends. The caches are filled.
func (w *Watcher) Run(ctx context.Context) {
	defer w.forget()
	for {
		w.look(ctx)
		pause := lookEvery
		if len(w.suspects) > 0 {
			pause = lookAgain
		}
		select {
		case <-ctx.Done():
			return
		case <-time.After(pause):
		}
	}
}

// forget takes the metric back.
func (w *Watcher) forget() {
	for _, source := range w.Sources {
		withoutOwner.DeleteLabelValues(w.Kind, source.Kind.Kind)
	}
}

// look compares the suspects with those of the last look, and says what it has found.
func (w *Watcher) look(ctx context.Context) {
	found, err := w.find(ctx)
	if err != nil {
		klog.FromContext(ctx).V(2).Info("Could not look for children without an owner", "kind", w.Kind, "reason", err.Error())
		return // what is not known is not gone
	}
	again := make([]*suspect, 0, len(found))
	next := make(map[types.UID]bool, len(found))
	for uid, s := range found {
		if next[uid] = true; w.suspects[uid] {
			again = append(again, s)
		}
	}
	w.suspects = next
	slices.SortFunc(again, func(a, b *suspect) int {
		return cmp.Or(cmp.Compare(a.Namespace, b.Namespace), cmp.Compare(a.Name, b.Name), cmp.Compare(a.UID, b.UID))
	})
	unknown, err := w.unknown(ctx, again)
	if err != nil {
		klog.FromContext(ctx).V(2).Info("Could not find out whether the owners of children exist", "kind", w.Kind, "reason", err.Error())
		return // a server that does not answer says nothing about owners
	}
	w.say(ctx, unknown)
}

// find returns the owners that children name and that are not in the cache. It remembers no more of them than there is room for.
func (w *Watcher) find(ctx context.Context) (map[types.UID]*suspect, error) {
	found := map[types.UID]*suspect{}
	for i, source := range w.Sources {
		children, err := source.Children(ctx)
		if err != nil {
			return nil, fmt.Errorf("looking for %ss: %w", source.Kind.Kind, err)
		}
		for child := range children {
			s := found[child.Owner.UID]
			if s == nil {
				if len(found) == maxOwners || w.Cached(child.Owner) {
					continue
				}
				s = &suspect{Owner: child.Owner, child: child, source: i, children: make([]int, len(w.Sources))}
				found[child.Owner.UID] = s
			}
			s.children[i]++
			if s.source == i && child.Name < s.child.Name {
				s.child = child
			}
		}
	}
	return found, nil
}

// unknown returns those of the suspects that the API does not know, as far as it was asked. It asks for the first ones; if it knows none
// of these, it is not asked for the others either, which count as unknown too.
func (w *Watcher) unknown(ctx context.Context, suspects []*suspect) ([]*suspect, error) {
	var unknown []*suspect
	for i, s := range suspects {
		if i == maxReads {
			if len(unknown) == i {
				unknown = append(unknown, suspects[i:]...)
			}
			break
		}
		exists, err := w.exists(ctx, s.Owner)
		if err != nil {
			return nil, err
		}
		if !exists {
			unknown = append(unknown, s)
		}
	}
	return unknown, nil
}

func (w *Watcher) exists(ctx context.Context, owner Owner) (bool, error) {
	ctx, cancel := context.WithTimeout(ctx, readTimeout)
	defer cancel()
	live, err := w.Read(ctx, owner.Namespace, owner.Name)
	if apierrors.IsNotFound(err) {
		return false, nil
	}
	if err != nil {
		return false, fmt.Errorf("reading %s %s/%s: %w", w.Kind, owner.Namespace, owner.Name, err)
	}
	return live.GetUID() == owner.UID || unreadable.Is(live), nil // the UID of an owner that cannot be read is not known
}

// say raises the alarm if there are more children than at the last alarm, and ends it if there are none.
func (w *Watcher) say(ctx context.Context, unknown []*suspect) {
	var lost witness.Losses
	count := 0
	for i, source := range w.Sources {
		of := 0
		for _, s := range unknown {
			of += s.children[i]
		}
		withoutOwner.WithLabelValues(w.Kind, source.Kind.Kind).Set(float64(of))
		lost.Add(witness.Loss{Kind: source.Kind.Kind, Count: of})
		count += of
	}
	was := w.alarmed
	w.alarmed = count
	switch {
	case count == 0 && was > 0:
		klog.FromContext(ctx).Info("The owner of every child exists", "kind", w.Kind)
	case count > was:
		w.alarm(ctx, unknown, lost)
	}
}

// advice is what a person has to know about children without an owner.
const advice = "the garbage collector deletes such children; if the store of jobset-apiserver was replaced or has lost data, see " +
	"`jobset-apiserver store status`; `jobset-apiserver store release-orphans` keeps those in the main cluster"

// alarm logs the children, and sends an event about the first.
func (w *Watcher) alarm(ctx context.Context, unknown []*suspect, lost witness.Losses) {
	first := unknown[0]
	kind := w.Sources[first.source].Kind
	klog.FromContext(ctx).Error(nil, "Children have owners that the API does not know; "+advice, "kind", w.Kind, "children", lost.String(),
		"owners", len(unknown), "child", klog.KRef(first.Namespace, first.child.Name), "childKind", kind.Kind, "owner", first.Name,
		"ownerUID", first.UID)
	children.SendEvent(w.Recorder, &corev1.ObjectReference{
		APIVersion: kind.GroupVersion().String(), Kind: kind.Kind, Namespace: first.Namespace, Name: first.child.Name, UID: first.child.UID,
	}, nil, plan.Event{Type: corev1.EventTypeWarning, Reason: ReasonOwnerUnknown, Note: fmt.Sprintf(
		"the API does not know %s %q with the UID %s, which owns this %s and %d others; %s",
		w.Kind, first.Name, first.UID, kind.Kind, first.total()-1, advice)})
}
