// Copyright The jobset-apiserver Authors.
// SPDX-License-Identifier: Apache-2.0

package loop

import (
	"context"

	corev1 "k8s.io/api/core/v1"
	"k8s.io/apimachinery/pkg/runtime"
	"k8s.io/klog/v2"

	"github.com/jobset-apiserver/jobset-apiserver/pkg/controller/host/children"
	"github.com/jobset-apiserver/jobset-apiserver/pkg/controller/host/plan"
)

// Report is an event, and what it regards.
type Report struct {
	plan.Event
	// Version means that the event regards one version of the object, so that each such event stands for itself. Those
	// that regard no version belong to one series while they are repeated, also before and after a status write.
	Version bool
	// Related is another object that the event is about; nil for none.
	Related *corev1.ObjectReference
}

// Transitions returns reports of changes of an object: each stands for itself.
func Transitions(list []plan.Event) []Report {
	return reports(list, func(plan.Event) bool { return true })
}

// Series returns reports that may be repeated.
func Series(list []plan.Event) []Report {
	return reports(list, func(plan.Event) bool { return false })
}

// Steps returns reports of writes of children. What was done stands for itself, so that each step of an update has its
// own event; warnings may be repeated.
func Steps(list []plan.Event) []Report {
	return reports(list, func(e plan.Event) bool { return e.Type == corev1.EventTypeNormal })
}

func reports(list []plan.Event, version func(plan.Event) bool) []Report {
	out := make([]Report, 0, len(list))
	for _, event := range list {
		out = append(out, Report{Event: event, Version: version(event)})
	}
	return out
}

// Relate adds the objects to which reports refer by name.
func Relate(list []Report, related func(name string) *corev1.ObjectReference) []Report {
	for i := range list {
		if name := list[i].Event.Related; name != "" {
			list[i].Related = related(name)
		}
	}
	return list
}

// Report sends events about an object.
func (l *Loop[O, S, P, R]) Report(ctx context.Context, owner O, list ...Report) {
	for _, report := range list {
		regarding := &corev1.ObjectReference{
			APIVersion: l.GVK.GroupVersion().String(), Kind: l.GVK.Kind, Namespace: owner.GetNamespace(), Name: owner.GetName(),
			UID: owner.GetUID(),
		}
		if report.Version {
			regarding.ResourceVersion = owner.GetResourceVersion()
		}
		var related runtime.Object
		if report.Related != nil {
			related = report.Related
		}
		children.SendEvent(l.Recorder, regarding, related, report.Event)
		klog.FromContext(ctx).V(4).Info("Reported an event", "reason", report.Reason) // notes may hold output of containers
	}
}
