// Copyright The jobset-apiserver Authors.
// SPDX-License-Identifier: Apache-2.0

package leaderworkerset

import (
	appsv1 "k8s.io/api/apps/v1"
	corev1 "k8s.io/api/core/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/types"
	"k8s.io/client-go/tools/cache"

	leaderworkersetv1 "github.com/jobset-apiserver/jobset-apiserver/pkg/apis/leaderworkerset/v1"
	"github.com/jobset-apiserver/jobset-apiserver/pkg/controller/host/loop"
	"github.com/jobset-apiserver/jobset-apiserver/pkg/controller/leaderworkerset/plan"
)

// handleEvents makes changes of a set and of its children a reason to look at the set. Children change in bursts, so that their sets are
// looked at soon instead of at once.
func (c *Controller) handleEvents() {
	c.caches.sets.AddEventHandler(c.onSets())
	c.caches.statefulSets.AddEventHandler(c.onChildren(c.statefulSets.NameFreed, c.forgetStatefulSet))
	c.caches.services.AddEventHandler(c.onChildren(c.services.NameFreed, nil))
	c.caches.revisions.AddEventHandler(c.onChildren(c.revisions.NameFreed, nil))
	c.caches.pods.AddEventHandler(c.onPods())
	c.caches.OnRefusal(c.caches.statefulSets, c.enqueueSetOf)
	if c.caches.podGroups != nil {
		c.caches.podGroups.AddEventHandler(c.onChildren(c.podGroups.NameFreed, nil))
	}
	c.caches.nodes.changed = c.enqueueExclusive
	c.Informers.Aggregated(leaderworkersetv1.SchemeGroupVersion).OnReturn(c.enqueueAll)
}

// onSets looks at sets that change, and keeps the metrics and the log current. Only the controller that leads logs.
func (c *Controller) onSets() cache.ResourceEventHandlerFuncs {
	return loop.Changes[*leaderworkersetv1.LeaderWorkerSet]{
		Shown: func(set *leaderworkersetv1.LeaderWorkerSet) {
			countPhase(set)
			c.queue.Add(cache.MetaObjectToName(set))
		},
		Changed: func(was, is *leaderworkersetv1.LeaderWorkerSet) {
			if c.leads.Load() {
				logTransitions(c.logger, was, is)
			}
		},
		Gone: func(set *leaderworkersetv1.LeaderWorkerSet) {
			phases.Forget(cache.MetaObjectToName(set))
			conditions.Set(cache.MetaObjectToName(set), nil)
			c.queue.Add(cache.MetaObjectToName(set))
		},
	}.Handlers()
}

// onChildren looks at the set of a child, by its label and, for the StatefulSet of leaders, by its name.
func (c *Controller) onChildren(nameFreed func(cache.ObjectName), forget func(types.UID)) cache.ResourceEventHandlerFuncs {
	return cache.ResourceEventHandlerFuncs{
		AddFunc: c.enqueueSetOf,
		UpdateFunc: func(before, after any) {
			if was, is := metaOf(before), metaOf(after); was.GetUID() != is.GetUID() {
				nameFreed(cache.MetaObjectToName(was))
				if forget != nil {
					forget(was.GetUID())
				}
			}
			if was, _ := keyOf(before); !isKeyOf(was, after) {
				c.queue.AddSoon(was)
			}
			c.enqueueSetOf(after)
			c.enqueueReady(before, after)
		},
		DeleteFunc: func(obj any) {
			if child := metaOf(obj); child != nil {
				nameFreed(cache.MetaObjectToName(child))
				if forget != nil {
					forget(child.GetUID())
				}
			}
			c.enqueueSetOf(obj)
			// While its leader is shown, that may be because the end of the leader is not shown yet. Workers for it would be deleted again.
			if workers, ok := obj.(*watchedWorkers); ok && workers.controlled && !c.caches.hasLeader(workers) {
				c.enqueueSoon(workers.key(), func(*leaderworkersetv1.LeaderWorkerSet) bool { return true })
			}
		},
	}
}

func isKeyOf(key cache.ObjectName, obj any) bool {
	other, _ := keyOf(obj)
	return key == other
}

func metaOf(obj any) metav1.Object {
	switch o := obj.(type) {
	case metav1.ObjectMetaAccessor:
		return o.GetObjectMeta()
	case metav1.Object:
		return o
	}
	return nil
}

func (c *Controller) enqueueSetOf(obj any) {
	if key, ok := keyOf(obj); ok {
		c.queue.AddSoon(key)
	}
	if leader, ok := obj.(*appsv1.StatefulSet); ok {
		c.queue.AddSoon(cache.MetaObjectToName(leader))
	}
}

func (c *Controller) forgetStatefulSet(uid types.UID) { c.caches.losses.Forget(uid) }

// onPods counts pods that are lost, and looks at the set of a pod that changes in what decisions use.
func (c *Controller) onPods() cache.ResourceEventHandler {
	return cache.ResourceEventHandlerDetailedFuncs{
		AddFunc: func(obj any, initial bool) {
			if pod, ok := obj.(*watchedPod); ok {
				c.podAdded(pod, initial)
			}
		},
		UpdateFunc: func(before, after any) {
			was, is := before.(*watchedPod), after.(*watchedPod)
			switch {
			case was.uid != is.uid || was.set != is.set:
				c.podGone(was)
				c.podAdded(is, false)
			case was.podFacts != is.podFacts:
				c.podChanged(was, is)
			}
		},
		DeleteFunc: func(obj any) {
			if pod, ok := obj.(*watchedPod); ok {
				c.podGone(pod)
			}
		},
	}
}

func (c *Controller) podAdded(pod *watchedPod, initial bool) {
	c.noteFailure(pod)
	if pod.index > 0 {
		c.caches.losses.Added(pod.controllerUID(), int(pod.size)-1, !pod.deleting, initial)
	}
	c.queue.AddSoon(pod.key())
	c.enqueueAwaited(nil, pod)
}

func (c *Controller) podChanged(was, is *watchedPod) {
	c.noteFailure(is)
	if is.index > 0 && is.deleting && !was.deleting {
		c.caches.losses.Deleting(is.controllerUID())
		if _, stays := c.caches.workersOf(is); stays {
			c.enqueueLost(is)
		}
	}
	c.queue.AddSoon(is.key())
	c.enqueueAwaited(was, is)
}

// noteFailure remembers what failed in a pod, because the pod may be gone when the cause is asked for.
func (c *Controller) noteFailure(pod *watchedPod) {
	if pod.failure == nil {
		return
	}
	owner := pod.controllerUID()
	if pod.index == 0 {
		owner = pod.uid
	}
	c.caches.failures.NoteFailure(owner, pod.failure, pod.deleting)
}

func (c *Controller) podGone(pod *watchedPod) {
	c.noteFailure(pod)
	if pod.index > 0 {
		exists, stays := c.caches.workersOf(pod)
		c.caches.losses.Gone(pod.controllerUID(), GonePod{
			LostPod: plan.LostPod{Name: pod.name, Node: pod.node.Value()}, Deleting: pod.deleting, Started: pod.phase != corev1.PodPending,
		}, exists, stays)
		if stays {
			c.enqueueLost(pod)
		}
	}
	if pod.index == 0 && c.leads.Load() {
		c.LeaderGone(pod.key(), pod.plan())
	}
	c.queue.AddSoon(pod.key())
}

// hasLeader returns whether the leader pod of the workers is shown.
func (c caches) hasLeader(workers *watchedWorkers) bool {
	obj, err := c.pods.GetByKey(cache.NewObjectName(workers.key().Namespace, workers.name).String()) // both have one name
	leader, ok := obj.(*watchedPod)
	return err == nil && ok && leader.uid == workers.workers.Leader
}

// workersOf returns whether the StatefulSet of a worker pod exists, and whether it stays: neither it nor its leader is
// being deleted. One that is not shown yet stays with its leader, and one without a controller with the leader that will adopt it.
func (c caches) workersOf(pod *watchedPod) (exists, stays bool) {
	name := cache.NewObjectName(pod.namespace.Value(), pod.leader.Value()).String() // of both
	obj, err := c.pods.GetByKey(name)
	leader, ok := obj.(*watchedPod)
	stays = err == nil && ok && !leader.deleting
	obj, err = c.statefulSets.GetByKey(name)
	workers, ok := obj.(*watchedWorkers)
	if err != nil || !ok || workers.uid != pod.controllerUID() {
		return false, stays
	}
	if stays && workers.orphan != nil {
		view := leader.plan()
		return true, workers.orphan.LedBy(&view)
	}
	return true, stays && leader.uid == workers.workers.Leader && !workers.workers.Deleting
}

func (w *watchedPod) controllerUID() types.UID { return types.UID(w.controller.Value()) }

// enqueueAll looks at all sets.
func (c *Controller) enqueueAll() {
	c.enqueue(func(*leaderworkersetv1.LeaderWorkerSet) bool { return true })
}

// enqueueExclusive looks at the sets with exclusive placement.
func (c *Controller) enqueueExclusive() {
	c.enqueue(func(set *leaderworkersetv1.LeaderWorkerSet) bool { return exclusiveKey(set) != "" })
}

func (c *Controller) enqueue(which func(*leaderworkersetv1.LeaderWorkerSet) bool) {
	for _, obj := range c.caches.sets.List() {
		if set, ok := obj.(*leaderworkersetv1.LeaderWorkerSet); ok && which(set) {
			c.queue.AddSoon(cache.MetaObjectToName(set))
		}
	}
}

func exclusiveKey(set *leaderworkersetv1.LeaderWorkerSet) string {
	return set.Annotations[leaderworkersetv1.ExclusiveKeyAnnotationKey]
}
