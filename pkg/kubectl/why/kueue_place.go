// Copyright The jobset-apiserver Authors.
// SPDX-License-Identifier: Apache-2.0

package why

import (
	"cmp"
	"context"
	"fmt"
	"slices"

	apierrors "k8s.io/apimachinery/pkg/api/errors"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"

	kueueplan "github.com/jobset-apiserver/jobset-apiserver/pkg/controller/kueue/plan"
)

// The place of a Workload in its queue. Kueue considers the Workloads of a queue by priority, and those of one priority by age.

// mostPages bounds the pages of Workloads that are read.
const mostPages = 4

// workloads returns the Workloads of the namespace and the version that the cluster serves; "" if it has no Kueue.
func (l *loader) workloads(ctx context.Context) (version string, all []unstructured.Unstructured) {
	for _, v := range kueueVersions {
		options := metav1.ListOptions{Limit: maxWorkloads}
		for range mostPages {
			list, err := l.Dynamic.Resource(kueue(v, "workloads")).Namespace(l.Namespace).List(ctx, options)
			if apierrors.IsNotFound(err) {
				break
			}
			version, l.e.Kueue.Served = v, true
			if !l.got("workloads."+kueueGroup, err) {
				return version, nil
			}
			all = append(all, list.Items...)
			if options.Continue = list.GetContinue(); options.Continue == "" {
				l.e.Kueue.WorkloadRead = true
				l.e.Kueue.Waiting = all
				return version, all
			}
		}
		if version != "" {
			// What is there is more than is read: a Workload may be among the others, but the place in the queue is not known.
			l.e.Kueue.WorkloadRead = true
			return version, all
		}
	}
	l.e.Kueue.Absent = true
	return "", nil
}

// readWaiting reads the Workloads that wait in the same queue.
func (l *loader) readWaiting(ctx context.Context, version string) {
	if l.e.Kueue.Workload == nil {
		return
	}
	list, err := l.Dynamic.Resource(kueue(version, "workloads")).Namespace(l.Namespace).List(ctx, metav1.ListOptions{Limit: maxWorkloads})
	if !l.got("workloads."+kueueGroup+" of the queue", err) {
		return
	}
	if list.GetContinue() == "" {
		l.e.Kueue.Waiting = list.Items
	}
}

// waitsForQuota returns whether the Workload is one of those that a queue considers.
func waitsForQuota(w *unstructured.Unstructured) bool {
	return !deactivated(w) && !conditionTrue(conditionOf(w, kueueplan.ConditionQuotaReserved)) &&
		!conditionTrue(conditionOf(w, kueueplan.ConditionFinished)) &&
		w.GetDeletionTimestamp() == nil
}

// ahead returns the Workloads of the queue that are considered before the Workload of the object, and how many wait in all. It returns 0 if
// that is not known.
func (k *Kueue) ahead() (before []*unstructured.Unstructured, all int) {
	queue := text(k.Workload, "spec", "queueName")
	var waiting []*unstructured.Unstructured
	for i := range k.Waiting {
		if w := &k.Waiting[i]; queue != "" && text(w, "spec", "queueName") == queue && waitsForQuota(w) {
			waiting = append(waiting, w)
		}
	}
	slices.SortStableFunc(waiting, func(a, b *unstructured.Unstructured) int {
		older := a.GetCreationTimestamp().Compare(b.GetCreationTimestamp().Time)
		return cmp.Or(cmp.Compare(priority(b), priority(a)), older, cmp.Compare(a.GetName(), b.GetName()))
	})
	at := slices.IndexFunc(waiting, func(w *unstructured.Unstructured) bool { return w.GetName() == k.Workload.GetName() })
	if at < 0 {
		return nil, 0
	}
	return waiting[:at], len(waiting)
}

func priority(w *unstructured.Unstructured) int64 {
	n, _, _ := unstructured.NestedInt64(w.Object, "spec", "priority")
	return n
}

// placed adds the place in the queue to a finding about a Workload without quota.
func (d *diagnosis) placed(f *Finding, queue string) {
	before, all := d.Kueue.ahead()
	if all == 0 {
		return
	}
	f.Summary += fmt.Sprintf("; it has place %d of %d in the queue", len(before)+1, all)
	if len(before) == 0 {
		return
	}
	var names []string
	for _, w := range before {
		names = append(names, fmt.Sprintf("%s (priority %d)", w.GetName(), priority(w)))
	}
	f.Evidence = append(f.Evidence, Fact{Object: object("localqueue", queue), Text: fmt.Sprintf("considers %s first, by priority and age: %s",
		count(len(before), "Workload"), some(names, maxFacts))})
}
