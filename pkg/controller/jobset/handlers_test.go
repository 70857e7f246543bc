// Copyright The jobset-apiserver Authors.
// SPDX-License-Identifier: Apache-2.0

package jobset

import (
	"testing"

	batchv1 "k8s.io/api/batch/v1"
	corev1 "k8s.io/api/core/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/client-go/tools/cache"

	jobsetv1alpha2 "github.com/jobset-apiserver/jobset-apiserver/pkg/apis/jobset/v1alpha2"
)

// TestDeletedChildEnqueuesItsSet takes the owner of a child away.
func TestDeletedChildEnqueuesItsSet(t *testing.T) {
	set := newSet()
	owners := newJob("x", set).OwnerReferences
	other := newJob("x", set).OwnerReferences
	other[0].UID = "uid-other"
	meta := func(owners []metav1.OwnerReference) metav1.ObjectMeta {
		return metav1.ObjectMeta{Name: "js-w-0", Namespace: "ns", Labels: map[string]string{jobsetv1alpha2.JobSetNameKey: "js"}, OwnerReferences: owners}
	}
	for name, tc := range map[string]struct {
		handler       func(*rig) cache.ResourceEventHandlerFuncs
		before, after any
		want          int
	}{
		"a Job without an owner":  {(*rig).jobHandler, &batchv1.Job{ObjectMeta: meta(owners)}, &batchv1.Job{ObjectMeta: meta(nil)}, 1},
		"a Job of somebody else":  {(*rig).jobHandler, &batchv1.Job{ObjectMeta: meta(owners)}, &batchv1.Job{ObjectMeta: meta(other)}, 1},
		"a Job that it never had": {(*rig).jobHandler, &batchv1.Job{ObjectMeta: meta(other)}, &batchv1.Job{ObjectMeta: meta(nil)}, 0},
		"a Service":               {(*rig).serviceHandler, &corev1.Service{ObjectMeta: meta(owners)}, &corev1.Service{ObjectMeta: meta(nil)}, 1},
	} {
		t.Run(name, func(t *testing.T) {
			r := newRig(t, set)
			if err := r.caches.jobSets.GetIndexer().Add(set); err != nil {
				t.Fatal(err)
			}
			tc.handler(r).OnUpdate(tc.before, tc.after)
			diff(t, "sets to look at", tc.want, r.queue.Len())
		})
	}
}

func (r *rig) jobHandler() cache.ResourceEventHandlerFuncs     { return r.onJobs() }
func (r *rig) serviceHandler() cache.ResourceEventHandlerFuncs { return onAny(r.enqueueOwner, nil) }
