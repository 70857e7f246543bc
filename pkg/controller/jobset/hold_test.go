// Copyright The jobset-apiserver Authors.
// SPDX-License-Identifier: Apache-2.0

package jobset

import (
	"testing"
	"time"

	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/client-go/tools/cache"
	testingclock "k8s.io/utils/clock/testing"

	jobsetv1alpha2 "github.com/jobset-apiserver/jobset-apiserver/pkg/apis/jobset/v1alpha2"
	"github.com/jobset-apiserver/jobset-apiserver/pkg/controller/jobset/plan"
)

// statusWrites counts the writes of the status of the set.
func (r *rig) statusWrites() (n int) {
	for _, action := range r.jobSets.Actions() {
		if action.Matches("update", "jobsets") && action.GetSubresource() == "status" {
			n++
		}
	}
	return n
}

func TestCountsAreWrittenNowAndThen(t *testing.T) {
	clock := testingclock.NewFakePassiveClock(time.Unix(1000, 0))
	set := newSet()
	r := newRig(t, set)
	r.Clock = clock
	r.held = newHeld(clock)
	key := cache.MetaObjectToName(set)
	apply := func(status jobsetv1alpha2.JobSetStatus) time.Duration {
		t.Helper()
		after, err := r.Controller.apply(t.Context(), key, &plan.Observed{JobSet: set, Noted: r.held.noted(key)}, plan.Plan{Status: &status})
		if err != nil {
			t.Fatal(err)
		}
		return after
	}
	count := func(ready int32) jobsetv1alpha2.JobSetStatus {
		at := metav1.NewMicroTime(clock.Now())
		return jobsetv1alpha2.JobSetStatus{
			ReplicatedJobsStatus: []jobsetv1alpha2.ReplicatedJobStatus{{Name: "w", Active: ready}},
			Attempts:             []jobsetv1alpha2.Attempt{{Number: 1, CreateTime: &at}},
		}
	}
	set.Status = count(0)
	set.Status.Attempts[0].CreateTime = nil

	diff(t, "again after the first count", time.Duration(0), apply(count(1)))
	diff(t, "writes: a count that nobody has written before is written", 1, r.statusWrites())
	clock.SetTime(clock.Now().Add(2 * time.Second))
	created := clock.Now()
	diff(t, "again after a count soon after", 3*time.Second, apply(count(2)))
	diff(t, "writes: it is held back", 1, r.statusWrites())
	diff(t, "time that is noted", created, r.held.noted(key).CreateTime.Time)
	clock.SetTime(clock.Now().Add(3 * time.Second))
	diff(t, "again after a count later", time.Duration(0), apply(count(2)))
	diff(t, "writes: it is written", 2, r.statusWrites())
	diff(t, "nothing is noted any more", plan.Noted{}, r.held.noted(key))
	finished := count(2)
	finished.TerminalState = jobsetv1alpha2.TerminalStateCompleted
	diff(t, "again after the end", time.Duration(0), apply(finished))
	diff(t, "writes: what is more than a count is written at once", 3, r.statusWrites())
}
