// Copyright The jobset-apiserver Authors.
// SPDX-License-Identifier: Apache-2.0

package kueue

import (
	"testing"
	"testing/synctest"
	"time"

	"k8s.io/client-go/tools/cache"
)

// TestWorkloadsHaveAnOrder makes sure that errors about several Workloads do not change from pass to pass: conditions hold them.
func TestWorkloadsHaveAnOrder(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		ofSequence := func(object map[string]any) {
			object["metadata"].(map[string]any)["ownerReferences"] = []any{map[string]any{
				"apiVersion": "batch.jobset-apiserver.io/v1alpha1", "kind": "SequentialJob", "name": "etl", "uid": "etl-1", "controller": true,
			}}
		}
		f := newFixture(workload("c", "etl-1", ofSequence), workload("a", "etl-1", ofSequence), workload("b", "etl-1", ofSequence))
		inBubble(t, f, func(t *testing.T) {
			f.Want()
			f.run(time.Second)
			for range 20 {
				found, _ := f.Holding(cache.NewObjectName("default", "etl"))
				var names []string
				for _, w := range found {
					names = append(names, w.Name)
				}
				diff(t, "Workloads", []string{"a", "b", "c"}, names)
			}
		})
	})
}
