// Copyright The jobset-apiserver Authors.
// SPDX-License-Identifier: Apache-2.0

package plan

import (
	"testing"

	"github.com/google/go-cmp/cmp"
	"k8s.io/apimachinery/pkg/types"

	jobsetv1alpha2 "github.com/jobset-apiserver/jobset-apiserver/pkg/apis/jobset/v1alpha2"
	leaderworkersetv1 "github.com/jobset-apiserver/jobset-apiserver/pkg/apis/leaderworkerset/v1"
)

func TestMissingCauses(t *testing.T) {
	f := newFixture(t, 4, 3)
	f.stabilize()
	if got := MissingCauses(f.Observed); len(got) > 0 {
		t.Fatalf("causes of %+v are missing although nothing has failed", got)
	}
	restarted(f.leader(0))
	restarted(f.worker(0, 2))
	f.workers(1).Lost = 1
	restarted(f.worker(2, 1))
	f.Causes = map[types.UID]*jobsetv1alpha2.FailureCause{"s-2/1": nil}
	want := []MissingCause{
		{Leader: "s-0/1", Name: "s-0", Workers: "sts/s-0/1"},
		{Leader: "s-1/1", Name: "s-1", Workers: "sts/s-1/1"},
	}
	if diff := cmp.Diff(want, MissingCauses(f.Observed)); diff != "" {
		t.Error("missing causes (-want +got):\n" + diff)
	}
	f.pass()
	if got := MissingCauses(f.Observed); len(got) > 0 {
		t.Errorf("causes of %+v are missing although their restarts are stored", got)
	}

	g := newFixture(t, 2, 3)
	g.Set.Spec.LeaderWorkerTemplate.RestartPolicy = leaderworkersetv1.RestartPolicyNone
	restarted(g.leader(0))
	if got := MissingCauses(g.Observed); len(got) > 0 {
		t.Errorf("causes of %+v are missing although the policy is None", got)
	}
}

func TestMissingCausesAreBounded(t *testing.T) {
	f := newFixture(t, 250, 2)
	f.stabilize()
	for i := range f.Leaders {
		restarted(&f.Leaders[i])
	}
	if got := MissingCauses(f.Observed); len(got) != maxGroupWrites {
		t.Errorf("%d causes are missing, want %d at a time", len(got), maxGroupWrites)
	}
}
