// Copyright The jobset-apiserver Authors.
// SPDX-License-Identifier: Apache-2.0

package apigroups

import (
	"slices"
	"testing"
	"time"

	"github.com/google/go-cmp/cmp"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
)

func TestRecorded(t *testing.T) {
	var got []string
	for resource, describe := range All().Recorded() {
		got = append(got, resource.String())
		if run := describe(&metav1.Status{}, time.Unix(0, 0)); run != nil {
			t.Errorf("%s describes an object of another kind as %v", resource, run)
		}
	}
	slices.Sort(got)
	want := []string{"jobsets.jobset.x-k8s.io", "leaderworkersets.leaderworkerset.x-k8s.io", "sequentialjobs.batch.jobset-apiserver.io"}
	if diff := cmp.Diff(want, got); diff != "" {
		t.Errorf("recorded resources (-want +got):\n%s", diff)
	}
}
