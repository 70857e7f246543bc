// Copyright The jobset-apiserver Authors.
// SPDX-License-Identifier: Apache-2.0

package jobset

import (
	"testing"
	"time"

	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/client-go/tools/cache"

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

func TestCountsAreWrittenTogether(t *testing.T) {
	set := newSet()
	r := newRig(t, set)
	key, now := cache.MetaObjectToName(set), time.Unix(1000, 0)
	apply := func(status *jobsetv1alpha2.JobSetStatus) time.Duration {
		t.Helper()
		obs := &plan.Observed{JobSet: set, Deferred: r.deferred.Noted(key), Now: metav1.NewTime(now)}
		out, err := r.carryOut(t.Context(), obs, plan.Plan{Status: status})
		if err != nil {
			t.Fatal(err)
		}
		return out.RequeueAfter
	}
	count := func(active int32) *jobsetv1alpha2.JobSetStatus {
		return &jobsetv1alpha2.JobSetStatus{ReplicatedJobsStatus: []jobsetv1alpha2.ReplicatedJobStatus{{Name: "w", Active: active}}}
	}
	set.Status = *count(0)

	diff(t, "again after the first count", 5*time.Second, apply(count(1)))
	diff(t, "what is noted", plan.Deferred{UID: set.UID, Counts: now, Times: now}, r.deferred.Noted(key))
	now = now.Add(2 * time.Second)
	diff(t, "again after another one", 3*time.Second, apply(count(2)))
	diff(t, "writes so far", 0, r.statusWrites())
	now = now.Add(3 * time.Second)
	diff(t, "again after another one later", time.Duration(0), apply(count(3)))
	diff(t, "writes: it is written", 1, r.statusWrites())
	diff(t, "what is noted after the write", plan.Deferred{}, r.deferred.Noted(key))

	apply(count(1))
	diff(t, "again without a change", time.Duration(0), apply(nil))
	diff(t, "what is noted when the status is as it should be again", plan.Deferred{}, r.deferred.Noted(key))
	finished := count(2)
	finished.TerminalState = jobsetv1alpha2.TerminalStateCompleted
	diff(t, "again after the end", time.Duration(0), apply(finished))
	diff(t, "writes: what is more than a count is written at once", 2, r.statusWrites())
}
