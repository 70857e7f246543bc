// Copyright The jobset-apiserver Authors.
// SPDX-License-Identifier: Apache-2.0

package disaggregatedset

import (
	"testing"

	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/runtime"
	clientgotesting "k8s.io/client-go/testing"
	"k8s.io/utils/ptr"

	disaggregatedsetv1 "github.com/jobset-apiserver/jobset-apiserver/pkg/apis/disaggregatedset/v1"
	"github.com/jobset-apiserver/jobset-apiserver/pkg/controller/host/children"
)

// TestSetChangesWhileChildrenAreCreated lets a set of 20 slices change in the cache once its third LeaderWorkerSet is created.
func TestSetChangesWhileChildrenAreCreated(t *testing.T) {
	for name, tc := range map[string]struct {
		change func(*disaggregatedsetv1.DisaggregatedSet)
		// most is how many are created at most.
		most int
	}{
		"it is deleted":            {func(ds *disaggregatedsetv1.DisaggregatedSet) { ds.DeletionTimestamp = new(metav1.Now()) }, 3},
		"another set has the name": {func(ds *disaggregatedsetv1.DisaggregatedSet) { ds.UID = "another" }, 3},
		"its spec changes":         {func(ds *disaggregatedsetv1.DisaggregatedSet) { ds.Generation++ }, 3},
		"its counts change":        {func(ds *disaggregatedsetv1.DisaggregatedSet) { ds.Status.ObservedGeneration++ }, 40},
	} {
		t.Run(name, func(t *testing.T) {
			ds := newSet("prefill=1", "decode=1")
			ds.Spec.Slices = ptr.To[int32](20)
			r := newRig(t, ds)
			r.deps.Runner = children.NewSlowStart(1) // for an order that does not change
			stored, created := r.set(t), 0
			r.client.PrependReactor("create", "leaderworkersets", func(clientgotesting.Action) (bool, runtime.Object, error) {
				if created++; created != 3 {
					return false, nil, nil
				}
				next := stored.DeepCopy()
				next.ResourceVersion = "999"
				tc.change(next)
				return false, nil, r.caches.sets.GetIndexer().Update(next)
			})
			_, _ = r.pass(t) // the set has changed, so that its status may not be stored
			if created != tc.most {
				t.Errorf("%d LeaderWorkerSets were created, want %d", created, tc.most)
			}
		})
	}
}
