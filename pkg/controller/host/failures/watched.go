// Copyright The jobset-apiserver Authors.
// SPDX-License-Identifier: Apache-2.0

package failures

import "slices"

// Watched returns the pod itself, so that objects of a cache which embed a Pod can be used without knowing their type.
func (p *Pod) Watched() *Pod { return p }

// watched returns the pod that an object of a cache embeds; nil for another object.
func watched(obj any) *Pod {
	if w, ok := obj.(interface{ Watched() *Pod }); ok {
		return w.Watched()
	}
	return nil
}

// AnyPod returns whether one of the objects of a cache is a pod that matches.
func AnyPod(objs []any, match func(*Pod) bool) bool {
	return slices.ContainsFunc(objs, func(obj any) bool {
		pod := watched(obj)
		return pod != nil && match(pod)
	})
}

// FirstUnschedulable returns the number of pods among the objects of an index of unschedulable pods, and the reason of the
// scheduler for the first one in alphabetical order.
func FirstUnschedulable(objs []any) (pods int, reason string) {
	var first *Pod
	for _, obj := range objs {
		if pod := watched(obj); pod != nil && (first == nil || pod.Name < first.Name) {
			first = pod
		}
	}
	if first == nil {
		return 0, ""
	}
	return len(objs), first.Reason()
}
