// Copyright The jobset-apiserver Authors.
// SPDX-License-Identifier: Apache-2.0

package jobset

import (
	"fmt"

	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/client-go/tools/cache"

	jobsetv1alpha2 "github.com/jobset-apiserver/jobset-apiserver/pkg/apis/jobset/v1alpha2"
)

// handleEvents makes changes of a set and of its children a reason to look at the set.
func (c *Controller) handleEvents() error {
	for informer, handle := range map[cache.SharedIndexInformer]cache.ResourceEventHandlerFuncs{
		c.informers.jobSets:  onAny(c.enqueue),
		c.informers.services: onAny(c.enqueueOwner),
		c.informers.claims:   onAny(c.enqueueOwner),
		c.informers.jobs: {
			AddFunc:    onObject(c.enqueueOwner),
			UpdateFunc: func(_, obj any) { onObject(c.enqueueOwner)(obj) },
			DeleteFunc: onObject(func(obj metav1.Object) {
				c.enqueueOwner(obj)
				c.enqueueWaiting(obj)
			}),
		},
	} {
		if _, err := informer.AddEventHandler(handle); err != nil {
			return fmt.Errorf("setting up event handlers: %w", err)
		}
	}
	return nil
}

func (c *Controller) enqueue(obj metav1.Object) { c.queue.Add(cache.MetaObjectToName(obj)) }

func (c *Controller) enqueueOwner(obj metav1.Object) {
	if key, ok := c.resolveOwner(obj); ok {
		c.queue.Add(key)
	}
}

// enqueueWaiting looks at the set whose name is on a Job that is gone. A set that was deleted and created anew waits for
// the Jobs of its predecessor to free their names.
func (c *Controller) enqueueWaiting(job metav1.Object) {
	if name := job.GetLabels()[jobsetv1alpha2.JobSetNameKey]; name != "" {
		c.queue.Add(cache.NewObjectName(job.GetNamespace(), name))
	}
}

func onAny(handle func(metav1.Object)) cache.ResourceEventHandlerFuncs {
	return cache.ResourceEventHandlerFuncs{
		AddFunc:    onObject(handle),
		UpdateFunc: func(_, obj any) { onObject(handle)(obj) },
		DeleteFunc: onObject(handle),
	}
}

// onObject unwraps what an informer hands over for an object whose deletion it has missed.
func onObject(handle func(metav1.Object)) func(any) {
	return func(obj any) {
		if gone, ok := obj.(cache.DeletedFinalStateUnknown); ok {
			obj = gone.Obj
		}
		if object, ok := obj.(metav1.Object); ok {
			handle(object)
		}
	}
}
