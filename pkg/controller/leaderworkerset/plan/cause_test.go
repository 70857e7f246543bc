// Copyright The jobset-apiserver Authors.
// SPDX-License-Identifier: Apache-2.0

package plan

import (
	"testing"

	"github.com/google/go-cmp/cmp"
	"k8s.io/apimachinery/pkg/types"

	jobsetv1alpha2 "github.com/jobset-apiserver/jobset-apiserver/pkg/apis/jobset/v1alpha2"
	leaderworkersetv1 "github.com/jobset-apiserver/jobset-apiserver/pkg/apis/leaderworkerset/v1"
	hostplan "github.com/jobset-apiserver/jobset-apiserver/pkg/controller/host/plan"
)

func TestMissingCauses(t *testing.T) {
	f := newFixture(t, 4, 3)
	f.stabilize()
	if got := Decide(f.Observed).Asks.Causes; len(got) > 0 {
		t.Fatalf("causes of %+v are missing although nothing has failed", got)
	}
	restarted(f.leader(0))
	restarted(f.worker(0, 2))
	f.workers(1).Lost = 1
	restarted(f.worker(2, 1))
	f.Causes = causes(map[types.UID]*jobsetv1alpha2.FailureCause{"s-2/1": nil})
	want := []MissingCause{
		{Leader: "s-0/1", Name: "s-0", Workers: "sts/s-0/1"},
		{Leader: "s-1/1", Name: "s-1", Workers: "sts/s-1/1"},
	}
	if diff := cmp.Diff(want, Decide(f.Observed).Asks.Causes); diff != "" {
		t.Error("missing causes (-want +got):\n" + diff)
	}
	f.pass()
	if got := Decide(f.Observed).Asks.Causes; len(got) > 0 {
		t.Errorf("causes of %+v are missing although their restarts are stored", got)
	}

	g := newFixture(t, 2, 3)
	g.Set.Spec.LeaderWorkerTemplate.RestartPolicy = leaderworkersetv1.RestartPolicyNone
	restarted(g.leader(0))
	if got := Decide(g.Observed).Asks.Causes; len(got) > 0 {
		t.Errorf("causes of %+v are missing although the policy is None", got)
	}
}

func TestMissingCausesAreBounded(t *testing.T) {
	f := newFixture(t, 250, 2)
	f.stabilize()
	for i := range f.Leaders {
		restarted(&f.Leaders[i])
	}
	if got := Decide(f.Observed).Asks.Causes; len(got) != maxGroupWrites {
		t.Errorf("%d causes are missing, want %d at a time", len(got), maxGroupWrites)
	}
}

// TestAsksHoldNothingElse decides about a set that has more to do than to record a cause, and that runs despite its queue.
func TestAsksHoldNothingElse(t *testing.T) {
	f := newFixture(t, 2, 3)
	f.stabilize()
	f.Set.Labels = map[string]string{jobsetv1alpha2.QueueNameKey: "team"}
	restarted(f.worker(1, 2))
	f.Services = nil // something else to do
	missing := []MissingCause{{Leader: "s-1/1", Name: "s-1", Workers: "sts/s-1/1"}}
	if diff := cmp.Diff(Plan{Asks: Asks{Causes: missing}}, Decide(f.Observed)); diff != "" {
		t.Error("the cause is not known (-want +got):\n" + diff)
	}
	f.Causes = causes(map[types.UID]*jobsetv1alpha2.FailureCause{"s-1/1": nil})
	p := Decide(f.Observed)
	if questions := p.Questions(); len(questions) > 0 || p.Status == nil || len(p.CreateServices) != 1 || !p.DespiteQueue {
		t.Errorf("questions %q and plan %+v although all is answered", questions, p)
	}
	if out := Finish(f.Observed, p, Results{}); len(out.Others) > 0 {
		t.Errorf("events %+v although Kueue may be there", out.Others)
	}
}

// causes are first causes that were asked for; nil for one that could not be obtained.
func causes(of map[types.UID]*jobsetv1alpha2.FailureCause) map[types.UID]hostplan.Known[*jobsetv1alpha2.FailureCause] {
	known := map[types.UID]hostplan.Known[*jobsetv1alpha2.FailureCause]{}
	for leader, cause := range of {
		known[leader] = hostplan.Obtained(cause, cause != nil)
	}
	return known
}
