// Copyright The jobset-apiserver Authors.
// SPDX-License-Identifier: Apache-2.0

package jobset

import (
	"fmt"
	"testing"

	"k8s.io/client-go/tools/cache"
	"k8s.io/utils/ptr"

	jobsetv1alpha2 "github.com/jobset-apiserver/jobset-apiserver/pkg/apis/jobset/v1alpha2"
	"github.com/jobset-apiserver/jobset-apiserver/pkg/controller/jobset/plan"
)

func setWithJobs(jobs int32) *jobsetv1alpha2.JobSet {
	return &jobsetv1alpha2.JobSet{Spec: jobsetv1alpha2.JobSetSpec{ReplicatedJobs: []jobsetv1alpha2.ReplicatedJob{{Replicas: ptr.To(jobs)}}}}
}

// TestBacklogsOfAllSetsAreBounded lets 80 large sets wait for the Job controller at the same time.
func TestBacklogsOfAllSetsAreBounded(t *testing.T) {
	b := newBacklogs()
	key := func(i int) cache.ObjectName { return cache.NewObjectName("ns", fmt.Sprint(i)) }
	want := func(i int, jobs int32, limit int) {
		t.Helper()
		if got := b.reserve(key(i), setWithJobs(jobs)); got != limit {
			t.Errorf("%d Jobs of set %d may wait, want %d", got, i, limit)
		}
	}
	want(0, 1000, plan.MaxBacklog)
	want(1, 1000, plan.MaxBacklog)
	for i := 2; i < 80; i++ {
		want(i, 1000, minBacklog)
	}
	want(80, 4, minBacklog) // a small set does not wait for the large ones
	want(0, 1000, minBacklog)

	b.note(key(1), 0)
	want(0, 1000, maxBacklogs-78*minBacklog-4) // what the reservations of the others leave
	for i := 2; i <= 80; i++ {
		b.note(key(i), 2)
	}
	want(0, 1000, plan.MaxBacklog)
	want(1, 1000, maxBacklogs-plan.MaxBacklog-79*2)
	for i := range 81 {
		b.note(key(i), 0)
	}
	if b.total != 0 || len(b.sets) != 0 {
		t.Errorf("%d Jobs of %d sets count as waiting although all have been taken care of", b.total, len(b.sets))
	}
}

// TestBacklogOfSmallSetReservesItsJobsOnly lets sets that are decided about at the same time take no more than they can use.
func TestBacklogOfSmallSetReservesItsJobsOnly(t *testing.T) {
	b := newBacklogs()
	for i := range 100 {
		b.reserve(cache.NewObjectName("small", fmt.Sprint(i)), setWithJobs(4))
	}
	if got := b.reserve(cache.NewObjectName("ns", "large"), setWithJobs(1000)); got != plan.MaxBacklog {
		t.Errorf("%d Jobs may wait, want %d", got, plan.MaxBacklog)
	}
}
