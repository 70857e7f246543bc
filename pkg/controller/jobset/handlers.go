// Copyright The jobset-apiserver Authors.
// SPDX-License-Identifier: Apache-2.0

package jobset

import (
	"slices"

	batchv1 "k8s.io/api/batch/v1"
	corev1 "k8s.io/api/core/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/client-go/tools/cache"

	jobsetv1alpha2 "github.com/jobset-apiserver/jobset-apiserver/pkg/apis/jobset/v1alpha2"
	"github.com/jobset-apiserver/jobset-apiserver/pkg/controller/jobset/plan"
	planinplace "github.com/jobset-apiserver/jobset-apiserver/pkg/controller/jobset/plan/inplace"
)

// handleEvents makes changes of a set and of its children a reason to look at the set.
func (c *Controller) handleEvents() {
	c.caches.jobSets.AddEventHandler(onAny(c.enqueue, nil))
	c.caches.jobSets.AddEventHandler(c.measure())
	c.caches.services.AddEventHandler(onAny(c.enqueueOwner, c.enqueueUsers))
	c.caches.claims.AddEventHandler(onAny(c.enqueueOwner, c.enqueueNamed))
	c.caches.jobs.AddEventHandler(c.onJobs())
	c.caches.pods.AddEventHandler(c.onPods())
	c.caches.OnRefusal(c.caches.jobs, onObject(c.enqueueOwnerSoon))
}

func (c *Controller) enqueue(obj metav1.Object) { c.queue.Add(cache.MetaObjectToName(obj)) }

func (c *Controller) enqueueOwner(obj metav1.Object) {
	if key, ok := c.resolveOwner(obj); ok {
		c.queue.Add(key)
	}
}

// enqueueOwnerSoon is for Jobs, of which many change at about the same time.
func (c *Controller) enqueueOwnerSoon(job metav1.Object) {
	if key, ok := c.resolveOwner(job); ok {
		c.queue.AddSoon(key)
	}
}

// onJobs looks at the set of a Job soon, and at once if the Job is the first to fail: a failure of its pods that the watch
// has not shown is read from them, and the Job controller is about to delete them.
func (c *Controller) onJobs() cache.ResourceEventHandlerFuncs {
	handlers := onAny(c.enqueueOwnerSoon, func(job metav1.Object) {
		c.jobs.NameFreed(cache.MetaObjectToName(job))
		c.failures.Forget(job.GetUID())
		c.enqueueNamed(job)
	})
	handlers.UpdateFunc = func(before, after any) {
		was, is := before.(*batchv1.Job), after.(*batchv1.Job)
		if changesOwner(was, is) {
			c.enqueueOwnerSoon(was)
		}
		if key, ok := c.resolveOwner(is); ok && fails(is) && !fails(was) && c.causeWanted(key, is) {
			c.queue.Add(key)
			return
		}
		c.enqueueOwnerSoon(is)
	}
	return handlers
}

func (c *Controller) causeWanted(key cache.ObjectName, job *batchv1.Job) bool {
	js, err := c.caches.JobSet(key)
	return err == nil && js != nil && plan.CauseWanted(js, job)
}

func fails(job *batchv1.Job) bool {
	return slices.ContainsFunc(job.Status.Conditions, func(c batchv1.JobCondition) bool {
		return (c.Type == batchv1.JobFailureTarget || c.Type == batchv1.JobFailed) && c.Status == corev1.ConditionTrue
	})
}

// enqueueNamed enqueues the set whose name is on a child that is gone: its name is free. A set that was deleted and recreated waits for
// the Jobs of its predecessor to free their names, and a claim that is kept has no owner. The Jobs of a large set, which end one after the
// other, are gathered.
func (c *Controller) enqueueNamed(child metav1.Object) {
	if name := child.GetLabels()[jobsetv1alpha2.JobSetNameKey]; name != "" {
		c.queue.AddWithin(cache.NewObjectName(child.GetNamespace(), name), 0)
	}
}

// enqueueUsers enqueues the sets that used a Service which is gone, whatever its owner.
func (c *Controller) enqueueUsers(service metav1.Object) {
	users, err := c.caches.jobSets.ByIndex(indexService, cache.MetaObjectToName(service).String())
	if err != nil {
		return // the index exists
	}
	for _, user := range users {
		onObject(c.enqueue)(user)
	}
}

// changesOwner returns whether a child gets another owner, or loses its owner. The former set cannot be found by the child
// any more.
func changesOwner(was, is metav1.Object) bool {
	owner, next := jobSetOwner(was), jobSetOwner(is)
	return owner != nil && (next == nil || next.UID != owner.UID)
}

// onAny calls handle for every change, and gone, if there is one, for the end of an object.
func onAny(handle, gone func(metav1.Object)) cache.ResourceEventHandlerFuncs {
	return cache.ResourceEventHandlerFuncs{
		AddFunc: onObject(handle),
		UpdateFunc: func(before, after any) {
			was, is := before.(metav1.Object), after.(metav1.Object)
			if changesOwner(was, is) {
				handle(was)
			}
			handle(is)
		},
		DeleteFunc: onObject(func(obj metav1.Object) {
			handle(obj)
			if gone != nil {
				gone(obj)
			}
		}),
	}
}

// onPods remembers failures, and looks at a set that restarts in place when a pod changes what decisions about that depend on. Pods
// change all the time, so that all other changes must cost nothing.
func (c *Controller) onPods() cache.ResourceEventHandlerFuncs {
	return cache.ResourceEventHandlerFuncs{
		AddFunc: onPod(func(pod *watchedPod) {
			c.failures.Note(&pod.Pod)
			c.countInPlace(nil, pod)
			c.enqueueScheduled(nil, pod)
		}),
		UpdateFunc: func(before, after any) {
			was, is := before.(*watchedPod), after.(*watchedPod)
			c.failures.Note(&is.Pod)
			c.enqueueScheduled(was, is)
			c.countInPlace(was, is)
		},
		DeleteFunc: onPod(func(pod *watchedPod) {
			c.failures.Note(&pod.Pod)
			c.countInPlace(pod, nil)
			c.enqueueScheduled(pod, nil)
		}),
	}
}

// enqueueScheduled looks at the set of a pod for which the scheduler finds no node, or found none before, when
// preemption begins or ceases to make room for it, and when it gets a node in a domain that the scheduler has chosen.
func (c *Controller) enqueueScheduled(was, is *watchedPod) {
	before, after := was != nil && was.Unschedulable(), is != nil && is.Unschedulable()
	switch {
	case lands(was, is):
		c.queue.AddSoon(is.setName())
	case before && after && was.Nominated() != is.Nominated():
		c.queue.AddSoon(is.setName())
	case before && !after:
		c.queue.AddSoon(was.setName())
	case after && !before:
		c.queue.AddSoon(is.setName())
	}
}

// lands reports whether a pod gets a node in a domain that the scheduler has chosen.
func lands(was, is *watchedPod) bool {
	return is != nil && is.landed() && (was == nil || !was.landed())
}

// countInPlace counts a pod for restarts in place, and looks at the set whose name is on it if decisions about the set
// may depend on what has changed. One of the two is nil for a pod that comes or goes.
func (c *Controller) countInPlace(was, is *watchedPod) {
	switch {
	case c.caches.inPlace == nil:
	case is == nil:
		if c.caches.inPlace.Remove(was.Namespace, was.Name) {
			c.enqueueInPlace(was)
		}
	case c.caches.inPlace.Show(is.counts()):
		c.enqueueInPlace(is)
		if was != nil && was.set != is.set {
			c.enqueueInPlace(was)
		}
	}
}

// enqueueInPlace looks at the set whose name is on a pod if it restarts in place.
func (c *Controller) enqueueInPlace(pod *watchedPod) {
	key := pod.setName()
	if js, err := c.caches.JobSet(key); err == nil && js != nil && planinplace.Restarts(js, c.Gates) {
		c.queue.AddSoon(key)
	}
}

// onPod returns a handler that calls handle with each pod.
func onPod(handle func(*watchedPod)) func(any) {
	return func(obj any) {
		if pod, ok := obj.(*watchedPod); ok {
			handle(pod)
		}
	}
}

// onObject returns a handler that calls handle with each object.
func onObject(handle func(metav1.Object)) func(any) {
	return func(obj any) {
		if object, ok := obj.(metav1.Object); ok {
			handle(object)
		}
	}
}
