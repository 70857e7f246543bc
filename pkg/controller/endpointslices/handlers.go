// Copyright The jobset-apiserver Authors.
// SPDX-License-Identifier: Apache-2.0

package endpoints

import (
	"cmp"
	"slices"
	"time"

	discoveryv1 "k8s.io/api/discovery/v1"
	"k8s.io/client-go/tools/cache"
)

// handleEvents makes changes of sets, of our slices and of taken Services a reason to look at a set.
func (c *Syncer) handleEvents() {
	c.sets.AddEventHandler(cache.ResourceEventHandlerFuncs{
		AddFunc: func(obj any) { c.onSet(nil, obj.(*set)) },
		UpdateFunc: func(before, after any) {
			if was, is := before.(*set), after.(*set); !was.sameAs(is) {
				c.onSet(was, is)
			}
		},
		DeleteFunc: func(obj any) {
			if s, ok := obj.(*set); ok {
				c.onSet(s, nil)
			}
		},
	})
	c.slices.AddEventHandler(cache.ResourceEventHandlerFuncs{
		AddFunc:    func(obj any) { c.onSlice(obj, false) },
		UpdateFunc: func(_, is any) { c.onSlice(is, false) },
		DeleteFunc: func(obj any) { c.onSlice(obj, true) },
	})
	c.switched.AddEventHandler(cache.ResourceEventHandlerFuncs{
		AddFunc:    c.onSwitched,
		DeleteFunc: c.onSwitched,
	})
}

// onSwitched looks at the set of a Service that is taken or given back.
func (c *Syncer) onSwitched(obj any) {
	if s, ok := obj.(*service); ok {
		if key, ok := setOfService(s); ok {
			c.queue.Add(key)
		}
	}
}

// onSlice looks at the set of a slice that another client has changed. Own changes are a reason to look whether
// something waits for the cache.
func (c *Syncer) onSlice(obj any, gone bool) {
	key, ok := ownerOfSlice(obj)
	switch {
	case !ok:
	case c.memory.foreign(key, obj.(*discoveryv1.EndpointSlice), gone):
		if gone {
			c.lost.Note(key, true)
		} else {
			c.memory.wasChanged(key, obj.(*discoveryv1.EndpointSlice).Name)
		}
		c.lookAt(key)
	default:
		c.queue.AddSoon(key)
	}
}

// onSet looks at a set that asks for our slices, or did, and at other sets with its Service. was is nil for a new set,
// and is for a set that is gone. A set that is gone is no reason to write what waits.
func (c *Syncer) onSet(was, is *set) {
	moved := was == nil || is == nil || was.service != is.service
	if is.mayAsk() {
		c.expect()
	}
	for _, s := range []*set{was, is} {
		if s == nil {
			continue
		}
		switch {
		case c.concerns(s.key()) || c.asks(s):
			c.lookAtChanged(s, is)
		case was.mayAsk() && !is.mayAsk():
			c.queue.Add(s.key()) // what is known of it is forgotten
		}
		if moved && s.service != "" {
			c.lookAtUsers(s)
		}
	}
}

// lookAtChanged looks at a set that has changed to what it is; nil if it is gone.
func (c *Syncer) lookAtChanged(s, is *set) {
	if is.ends() {
		c.queue.Add(s.key())
	} else {
		c.lookAt(s.key())
	}
}

// lookAtUsers looks at the sets that use the Service of another one and ask for our slices.
func (c *Syncer) lookAtUsers(s *set) {
	users, _ := c.sets.ByIndex(indexService, cache.NewObjectName(s.namespace, s.service).String()) // the index exists
	for _, obj := range users {
		if user, ok := obj.(*set); ok && user.name != s.name && c.asks(user) {
			c.lookAt(user.key())
		}
	}
}

// onServices looks at the set of a Service.
func (c *Syncer) onServices(v *view) cache.ResourceEventHandler {
	changed := func(obj any, gone bool) {
		if s, ok := obj.(*service); ok {
			// The Service may be the last of what belonged to a set, which is forgotten then.
			if key, ok := setOfService(s); ok && (gone || c.concerns(key)) {
				v.paces.again(key)
				c.queue.Add(key)
			}
		}
	}
	return cache.ResourceEventHandlerFuncs{
		AddFunc:    func(obj any) { changed(obj, false) },
		UpdateFunc: func(_, is any) { changed(is, false) },
		DeleteFunc: func(obj any) { changed(obj, true) },
	}
}

// concerns returns whether we have, or are to have, to do with a set.
func (c *Syncer) concerns(key cache.ObjectName) bool {
	if s := c.set(key); s != nil && c.asks(s) {
		return true
	}
	return len(c.taken(key)) > 0 || len(c.managed(key)) > 0
}

// onPods counts pods, and looks at the set of a pod when its address comes, goes or changes.
func (c *Syncer) onPods(v *view) cache.ResourceEventHandler {
	return cache.ResourceEventHandlerFuncs{
		AddFunc: func(obj any) { c.onPod(v, nil, obj.(*pod)) },
		UpdateFunc: func(before, after any) {
			was, is := before.(*pod), after.(*pod)
			if was.key() == is.key() && was.uid == is.uid {
				c.onPod(v, was, is)
				return
			}
			c.onPod(v, was, nil)
			c.onPod(v, nil, is)
		},
		DeleteFunc: func(obj any) {
			if p, ok := obj.(*pod); ok {
				c.onPod(v, p, nil)
			}
		},
	}
}

// onPod is about one pod. One of the two is nil for a pod that comes or goes.
func (c *Syncer) onPod(v *view, was, is *pod) {
	of := cmp.Or(is, was)
	key := of.key()
	s := c.set(key)
	now := c.Clock.Now()
	before, after, waits := was.listed(), is.listed(), false
	differs := c.differ(v, s, was, is)
	v.paces.change(key, func(p *pace) {
		p.count(was, -1)
		p.count(is, 1)
		if before && !after || differs {
			note(&p.outdated, now)
		}
		if after && !before || differs && is.isNews(was) {
			p.noteAddress(is.isFirst(s), now)
		}
		waits = !p.added.IsZero() || !p.outdated.IsZero()
	})
	switch {
	case !waits:
	case c.concerns(key):
		c.queue.AddSoon(key)
	default:
		v.paces.change(key, (*pace).drop) // it does not wait for us
	}
}

// differ returns whether slices say something else about a pod that they list than before. Readiness counts only if the Service shows it.
func (c *Syncer) differ(v *view, s *set, was, is *pod) bool {
	if !was.listed() || !is.listed() {
		return false
	}
	a, b := was.facts, is.facts
	if s != nil {
		if svc := v.service(s.namespace, s.service); svc == nil || svc.Spec.PublishNotReadyAddresses {
			a.ready, a.deleted, b.ready, b.deleted = false, false, false, false
		}
	}
	return a != b || !slices.Equal(was.more, is.more)
}

// noteAddress notes that an address is to be written, which may be that of the first pod.
func (p *pace) noteAddress(first bool, now time.Time) {
	note(&p.added, now)
	if first {
		note(&p.firstAt, now)
	}
}

// note notes since when something waits, unless it has waited before.
func note(since *time.Time, now time.Time) {
	if since.IsZero() {
		*since = now
	}
}
