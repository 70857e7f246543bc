// Copyright The jobset-apiserver Authors.
// SPDX-License-Identifier: Apache-2.0

package podgroup

import (
	"sync"
	"time"

	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/client-go/tools/cache"

	"github.com/jobset-apiserver/jobset-apiserver/pkg/controller/podgroup/members"
	"github.com/jobset-apiserver/jobset-apiserver/pkg/controller/podgroup/plan"
)

// onPods looks soon at the group of a pod that changes in what matters. Pods of a group start at about the same time.
func (c *Controller) onPods(family int) cache.ResourceEventHandler {
	return cache.ResourceEventHandlerDetailedFuncs{
		AddFunc: func(obj any, initial bool) {
			if pod, ok := obj.(*members.Pod); ok {
				c.added(family, pod, initial)
			}
		},
		UpdateFunc: func(before, after any) {
			was, is := before.(*members.Pod), after.(*members.Pod)
			switch {
			case was.Group != is.Group || was.UID != is.UID:
				c.changed(was)
				c.added(family, is, false)
			case was.Pod != is.Pod:
				c.changed(is)
			}
		},
		DeleteFunc: func(obj any) {
			if gone, ok := obj.(cache.DeletedFinalStateUnknown); ok {
				obj = gone.Obj
			}
			if pod, ok := obj.(*members.Pod); ok {
				c.changed(pod)
			}
		},
	}
}

func (c *Controller) added(family int, pod *members.Pod, initial bool) {
	if pod.Group == "" {
		return
	}
	if !initial && c.leads.Load() {
		c.syncer.Added(nameOf(pod), family)
	}
	c.changed(pod)
}

func (c *Controller) changed(pod *members.Pod) {
	if pod.Group != "" {
		c.queue.AddSoon(nameOf(pod))
	}
}

func nameOf(pod *members.Pod) cache.ObjectName {
	return cache.NewObjectName(pod.Namespace(), pod.Group)
}

// onGroups looks at a group whose PodReadinessGroup changes.
func (c *Controller) onGroups() cache.ResourceEventHandler {
	enqueue := func(obj any) {
		if gone, ok := obj.(cache.DeletedFinalStateUnknown); ok {
			obj = gone.Obj
		}
		if group, ok := obj.(metav1.Object); ok {
			c.queue.Add(cache.MetaObjectToName(group))
		}
	}
	return cache.ResourceEventHandlerFuncs{AddFunc: enqueue, UpdateFunc: func(_, is any) { enqueue(is) }, DeleteFunc: enqueue}
}

// memory is what the controller knows of groups that exist, beside what caches show. All of it may be lost: a group whose size nothing
// states then settles once more.
type memory struct {
	mu     sync.Mutex
	groups map[cache.ObjectName]*known
}

// known is what is known of one group.
type known struct {
	// lastNew is when a pod was last added, and problem the last problem that was reported, by family.
	lastNew []time.Time
	problem []string
	// written is when the status was last written.
	written time.Time
}

func newMemory() *memory { return &memory{groups: map[cache.ObjectName]*known{}} }

func (m *memory) of(key cache.ObjectName) *known {
	k := m.groups[key]
	if k == nil {
		k = &known{lastNew: make([]time.Time, len(plan.Families)), problem: make([]string, len(plan.Families))}
		m.groups[key] = k
	}
	return k
}

func (m *memory) added(key cache.ObjectName, family int, now time.Time) {
	m.mu.Lock()
	defer m.mu.Unlock()
	m.of(key).lastNew[family] = now
}

// times returns when a pod was last added to a group, which is now if nothing is known, and when its status was last written.
func (m *memory) times(key cache.ObjectName, family int, now time.Time) (lastNew, written time.Time) {
	m.mu.Lock()
	defer m.mu.Unlock()
	k := m.of(key)
	if k.lastNew[family].IsZero() {
		k.lastNew[family] = now
	}
	return k.lastNew[family], k.written
}

func (m *memory) wrote(key cache.ObjectName, now time.Time) {
	m.mu.Lock()
	defer m.mu.Unlock()
	m.of(key).written = now
}

// newProblem returns whether a problem is to be reported.
func (m *memory) newProblem(key cache.ObjectName, family int, problem string) bool {
	m.mu.Lock()
	defer m.mu.Unlock()
	k := m.of(key)
	was := k.problem[family]
	k.problem[family] = problem
	return problem != "" && problem != was
}

func (m *memory) forget(key cache.ObjectName) {
	m.mu.Lock()
	defer m.mu.Unlock()
	delete(m.groups, key)
}
