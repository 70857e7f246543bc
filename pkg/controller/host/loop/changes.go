// Copyright The jobset-apiserver Authors.
// SPDX-License-Identifier: Apache-2.0

package loop

import "k8s.io/client-go/tools/cache"

// Changes are what is done when the watch of the objects themselves shows something.
type Changes[O Object] struct {
	// Shown is called with an object that is new or has changed, and Gone with one that is gone.
	Shown, Gone func(O)
	// Changed is called with one and the same object before and after a change. One that the watch shows again, because a
	// server was restarted, has not changed.
	Changed func(was, is O)
}

// Handlers returns the handlers of events that call the functions.
func (c Changes[O]) Handlers() cache.ResourceEventHandlerFuncs {
	each := func(do func(O)) func(any) {
		return func(obj any) {
			if object, ok := obj.(O); ok {
				do(object)
			}
		}
	}
	return cache.ResourceEventHandlerFuncs{
		AddFunc: each(c.Shown),
		UpdateFunc: func(before, after any) {
			was, is := before.(O), after.(O)
			c.Shown(is)
			if was.GetUID() == is.GetUID() && was.GetResourceVersion() != is.GetResourceVersion() {
				c.Changed(was, is)
			}
		},
		DeleteFunc: each(c.Gone),
	}
}
