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
func (c *Controller) onPods(prefix int) cache.ResourceEventHandler {
	return cache.ResourceEventHandlerDetailedFuncs{
		AddFunc: func(obj any, initial bool) {
			if pod, ok := obj.(*members.Pod); ok {
				c.added(prefix, pod, initial)
			}
		},
		UpdateFunc: func(before, after any) {
			was, is := before.(*members.Pod), after.(*members.Pod)
			switch {
			case was.Group != is.Group || was.UID != is.UID:
				c.changed(was)
				c.added(prefix, is, false)
			case was.Pod != is.Pod:
				c.changed(is)
			}
		},
		DeleteFunc: func(obj any) {
			if pod, ok := obj.(*members.Pod); ok {
				c.changed(pod)
			}
		},
	}
}

func (c *Controller) added(prefix int, pod *members.Pod, initial bool) {
	if pod.Group == "" {
		return
	}
	if !initial && c.leads.Load() {
		c.syncer.Added(nameOf(pod), prefix)
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
		if group, ok := obj.(metav1.Object); ok {
			c.queue.Add(cache.MetaObjectToName(group))
		}
	}
	return cache.ResourceEventHandlerFuncs{AddFunc: enqueue, UpdateFunc: func(_, is any) { enqueue(is) }, DeleteFunc: enqueue}
}

// memory is what the controller knows of groups that exist, beside what caches show. All of it may be lost: a group whose size nothing
// states then waits for the stabilization window once more.
type memory struct {
	mu     sync.Mutex
	groups map[cache.ObjectName]*known
}

// known is what is known of one group.
type known struct {
	// lastNew is when a pod was last added, and refused the pods that could not be labeled, by prefix.
	lastNew []time.Time
	refused []refusals
	// unread is why owners of pods cannot be read, by prefix.
	unread []failure
	// problems are the last ones that were reported.
	problems map[problemKey]string
	// written is when the status was last written.
	written time.Time
}

// problemKey is what a problem is about: events of that reason about pods of a prefix.
type problemKey struct {
	prefix int
	reason string
}

func newMemory() *memory { return &memory{groups: map[cache.ObjectName]*known{}} }

func (m *memory) of(key cache.ObjectName) *known {
	k := m.groups[key]
	if k == nil {
		k = &known{
			lastNew: make([]time.Time, len(plan.Prefixes)), refused: make([]refusals, len(plan.Prefixes)),
			unread: make([]failure, len(plan.Prefixes)), problems: map[problemKey]string{},
		}
		m.groups[key] = k
	}
	return k
}

func (m *memory) added(key cache.ObjectName, prefix int, now time.Time) {
	m.mu.Lock()
	defer m.mu.Unlock()
	m.of(key).lastNew[prefix] = now
}

// times returns when a pod was last added to a group, which is now if nothing is known, and when its status was last written.
func (m *memory) times(key cache.ObjectName, prefix int, now time.Time) (lastNew, written time.Time) {
	m.mu.Lock()
	defer m.mu.Unlock()
	k := m.of(key)
	if k.lastNew[prefix].IsZero() {
		k.lastNew[prefix] = now
	}
	return k.lastNew[prefix], k.written
}

func (m *memory) wrote(key cache.ObjectName, now time.Time) {
	m.mu.Lock()
	defer m.mu.Unlock()
	m.of(key).written = now
}

// refuse notes which pods of a prefix cannot be labeled, and refusals returns them.
func (m *memory) refuse(key cache.ObjectName, prefix int, pods refusals) {
	m.mu.Lock()
	defer m.mu.Unlock()
	m.of(key).refused[prefix] = pods
}

func (m *memory) refusals(key cache.ObjectName, prefix int) refusals {
	m.mu.Lock()
	defer m.mu.Unlock()
	return m.of(key).refused[prefix]
}

// owners notes whether the owners of pods of a prefix were read, and returns what to say if not.
func (m *memory) owners(key cache.ObjectName, prefix int, err error) string {
	m.mu.Lock()
	defer m.mu.Unlock()
	k := m.of(key)
	k.unread[prefix] = failureOf(err, k.unread[prefix])
	return k.unread[prefix].text
}

// newProblem returns whether a problem is to be reported in events of that reason.
func (m *memory) newProblem(key cache.ObjectName, prefix int, reason, problem string) bool {
	m.mu.Lock()
	defer m.mu.Unlock()
	problems, of := m.of(key).problems, problemKey{prefix, reason}
	was := problems[of]
	problems[of] = problem
	return problem != "" && problem != was
}

func (m *memory) forget(key cache.ObjectName) {
	m.mu.Lock()
	defer m.mu.Unlock()
	delete(m.groups, key)
}
