// Copyright The jobset-apiserver Authors.
// SPDX-License-Identifier: Apache-2.0

package placer

import (
	"time"

	appsv1 "k8s.io/api/apps/v1"
	"k8s.io/client-go/tools/cache"

	"github.com/jobset-apiserver/jobset-apiserver/pkg/controller/host/informers"
)

// Freed is called when a set may hold fewer domains than before.
func (p *Placer) Freed() { p.changed() }

// Withdraw forgets a set that waits for no domain: its status holds what it was given, or it does not ask. Where one of its Jobs goes is
// remembered, until Move is called again.
func (p *Placer) Withdraw(key cache.ObjectName) {
	p.mu.Lock()
	defer p.mu.Unlock()
	_, gave := p.given[key]
	delete(p.waiting, key)
	delete(p.given, key)
	if gave {
		p.change() // if no status holds that, because the set was suspended or deleted before, nothing else shows that it is free
	}
}

// changed has the sets that wait looked at again, a little later.
func (p *Placer) changed() {
	p.mu.Lock()
	defer p.mu.Unlock()
	p.change()
}

// known has the sets looked at that have waited until nodes and pods are known, at once: no burst of changes is to be gathered.
func (p *Placer) known() {
	p.mu.Lock()
	defer p.mu.Unlock()
	p.changeAfter(0)
}

// change does the same as changed while the lock is held.
func (p *Placer) change() { p.changeAfter(gather) }

func (p *Placer) changeAfter(after time.Duration) {
	p.current = false
	p.changes++
	if len(p.waiting) > 0 {
		p.wakeAfter(after)
	}
}

// wakeAfter has the sets that wait looked at again after a time, unless that is due earlier.
func (p *Placer) wakeAfter(after time.Duration) {
	due := p.Clock.Now().Add(after)
	if p.timer != nil && !due.Before(p.due) {
		return
	}
	if p.timer != nil {
		p.timer.Stop()
	}
	p.due, p.timer = due, p.Clock.AfterFunc(after, p.wake)
}

// wakeFew is how many sets are woken to find out what becomes of all. One would do if it was sure to ask.
const wakeFew = 4

// wake wakes sets that wait. While nodes and pods are known, the first set that asks triggers the decision for all of
// them, which wakes each set with a new result. A set may have stopped asking, so further sets are woken until one has
// asked. While nodes and pods are not known, all sets are woken, because each has to report that.
func (p *Placer) wake() {
	p.mu.Lock()
	defer p.mu.Unlock()
	p.timer = nil
	if p.watch.Current() == nil {
		for key := range p.waiting {
			p.Wake(key)
		}
		return
	}
	if p.current || len(p.waiting) == 0 {
		return
	}
	p.turn++
	for range wakeFew {
		if key, found := p.longestAsleep(); found {
			p.waiting[key].woken = p.turn
			p.Wake(key)
		}
	}
	p.wakeAfter(gather)
}

// longestAsleep returns the set that was not woken for longest, and has not been in this turn; of several, that whose name comes first.
func (p *Placer) longestAsleep() (longest cache.ObjectName, found bool) {
	for key, w := range p.waiting {
		if w.woken == p.turn {
			continue
		}
		other := p.waiting[longest]
		if !found || w.woken < other.woken || w.woken == other.woken && key.String() < longest.String() {
			longest, found = key, true
		}
	}
	return longest, found
}

// follow reports changes that may make room. A pod that gets a node does not.
func (p *Placer) follow(informer *informers.Informer) { informer.AddEventHandler(p.handler()) }

func (p *Placer) handler() cache.ResourceEventHandler {
	return cache.ResourceEventHandlerDetailedFuncs{
		AddFunc: func(obj any, initial bool) {
			if _, pod := obj.(*watchedPod); !pod && !initial {
				p.changed()
			}
		},
		UpdateFunc: func(before, after any) {
			p.noteNode(before, after)
			if makesRoom(before, after) {
				p.changed()
			}
		},
		DeleteFunc: func(gone any) {
			p.noteNode(gone, nil)
			if tookRoom(gone) {
				p.changed()
			}
		},
	}
}

// makesRoom reports whether the change of an object may make room.
func makesRoom(before, after any) bool {
	switch is := after.(type) {
	case *watchedPod:
		was, ok := before.(*watchedPod)
		return !ok || was.takesRoom && (!is.takesRoom || was.Pod != is.Pod)
	case *watchedNode:
		was, ok := before.(*watchedNode)
		return !ok || !sameNode(was, is)
	case *appsv1.DaemonSet:
		was, ok := before.(*appsv1.DaemonSet)
		return !ok || was.UID != is.UID || was.Generation != is.Generation // its status counts pods
	}
	return true
}

// tookRoom reports whether the end of an object may make room. A pod that had ended before, or never had a node, took none.
func tookRoom(gone any) bool {
	pod, ok := gone.(*watchedPod)
	return !ok || pod.takesRoom
}
