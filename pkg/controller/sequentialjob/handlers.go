// Copyright The jobset-apiserver Authors.
// SPDX-License-Identifier: Apache-2.0

package sequentialjob

import (
	"k8s.io/client-go/tools/cache"

	batchv1alpha1 "github.com/jobset-apiserver/jobset-apiserver/pkg/apis/batch/v1alpha1"
	"github.com/jobset-apiserver/jobset-apiserver/pkg/controller/host/loop"
)

// handleEvents makes changes of a sequence and of its children a reason to look at the sequence.
func (c *Controller) handleEvents() {
	c.caches.sequentialJobs.AddEventHandler(c.onSequences())
	c.caches.jobs.AddEventHandler(c.onChildren(c.jobs.NameFreed))
	c.caches.jobSets.AddEventHandler(c.onChildren(c.jobSets.NameFreed))
	c.caches.jobSets.OnUnreadable(c.onUnreadable)
	c.caches.pods.AddEventHandler(c.onPods())
	c.caches.OnRefusal(c.caches.jobs, c.enqueueOwner)
}

// onSequences looks at sequences that change, and keeps the metrics and the log current. Only the controller that leads logs.
func (c *Controller) onSequences() cache.ResourceEventHandlerFuncs {
	return loop.Changes[*batchv1alpha1.SequentialJob]{
		Shown: func(sj *batchv1alpha1.SequentialJob) {
			countPhase(sj)
			c.queue.Add(cache.MetaObjectToName(sj))
		},
		Changed: func(was, is *batchv1alpha1.SequentialJob) {
			if c.leads.Load() {
				logTransitions(c.logger, was, is)
			}
		},
		Gone: func(sj *batchv1alpha1.SequentialJob) {
			phases.Forget(cache.MetaObjectToName(sj))
			c.queue.Add(cache.MetaObjectToName(sj))
		},
	}.Handlers()
}

// onChildren looks at the sequence of a child. What changes in a child and is of no interest is not kept, and costs nothing.
func (c *Controller) onChildren(nameFreed func(cache.ObjectName)) cache.ResourceEventHandlerFuncs {
	return cache.ResourceEventHandlerFuncs{
		AddFunc: func(obj any) { c.enqueueOwner(obj) },
		UpdateFunc: func(before, after any) {
			was, is := before.(*watchedChild), after.(*watchedChild)
			if was.owner != is.owner {
				c.enqueueOwner(was)
			}
			c.enqueueOwner(is)
		},
		DeleteFunc: func(obj any) {
			if child, ok := obj.(*watchedChild); ok {
				nameFreed(child.key())
				c.failures.Forget(child.UID)
			}
			c.enqueueOwner(obj)
		},
	}
}

// enqueueOwner looks at the sequence that controls a child. A sequence of the same name but another UID waits for the name of
// the child, and is looked at too.
func (c *Controller) enqueueOwner(obj any) {
	if child, ok := obj.(*watchedChild); ok && child.owner != "" {
		c.queue.Add(cache.NewObjectName(child.namespace.Value(), child.sequence))
	}
}

func (w *watchedChild) key() cache.ObjectName {
	return cache.NewObjectName(w.namespace.Value(), w.Name)
}
