// Copyright The jobset-apiserver Authors.
// SPDX-License-Identifier: Apache-2.0

package plan

import (
	"fmt"
	"math/rand/v2"
	"reflect"
	"testing"

	batchv1 "k8s.io/api/batch/v1"
	"k8s.io/apimachinery/pkg/util/sets"

	jobsetv1alpha2 "github.com/jobset-apiserver/jobset-apiserver/pkg/apis/jobset/v1alpha2"
	"github.com/jobset-apiserver/jobset-apiserver/pkg/apis/jobset/v1alpha2/helper"
)

// TestInvariants lets random sets live in a random world, with a controller that often acts on the past, and checks what
// must hold whatever happens.
func TestInvariants(t *testing.T) {
	ends := map[string]int{}
	for seed := range uint64(200) {
		t.Run(fmt.Sprint("seed ", seed), func(t *testing.T) {
			w := newWorld(rand.New(rand.NewPCG(seed, 1)))
			for range 120 {
				step(t, w)
				if t.Failed() {
					return
				}
			}
			checkRest(t, w)
			ends[w.set.Status.TerminalState]++
		})
	}
	// Without all three outcomes the worlds are too tame to say much.
	for _, state := range []string{"", jobsetv1alpha2.TerminalStateCompleted, jobsetv1alpha2.TerminalStateFailed} {
		if ends[state] == 0 {
			t.Errorf("no set ended as %q: %v", state, ends)
		}
	}
}

func step(t *testing.T, w *world) {
	t.Helper()
	if w.random.IntN(2) == 0 {
		w.happen()
		return
	}
	w.past = append(w.past, w.observe())
	o := w.past[len(w.past)-1]
	if w.random.IntN(3) == 0 {
		o = w.past[max(0, len(w.past)-1-w.random.IntN(5))]
	}
	p := Decide(o)
	checkPlan(t, o, p)
	earlier := w.set.DeepCopy()
	w.apply(o, p)
	checkStatus(t, earlier, w.set)
}

// checkPlan holds for every plan.
func checkPlan(t *testing.T, o Observed, p Plan) {
	t.Helper()
	shuffled := o
	shuffled.JobSet = o.JobSet.DeepCopy()
	shuffled.Jobs = nil
	for _, i := range rand.Perm(len(o.Jobs)) {
		shuffled.Jobs = append(shuffled.Jobs, o.Jobs[i].DeepCopy())
	}
	diff(t, "plan for the same children in another order", p, Decide(shuffled))
	diff(t, "observed set after the decision", shuffled.JobSet, o.JobSet)

	names := sets.New[string]()
	for _, job := range o.Jobs {
		names.Insert(job.Name)
	}
	for _, job := range p.CreateJobs {
		if names.Has(job.Name) {
			t.Errorf("job %s is created although it exists", job.Name)
		}
		names.Insert(job.Name)
	}
	if moved := p.Status != nil && (p.Status.Restarts != o.JobSet.Status.Restarts || p.Status.TerminalState != o.JobSet.Status.TerminalState); moved {
		rest := p
		rest.Status, rest.Events, rest.FailedJob = nil, nil, nil
		diff(t, "child writes beside a commit point", Plan{}, rest)
	}
}

// checkStatus holds for every write of the status.
func checkStatus(t *testing.T, earlier, later *jobsetv1alpha2.JobSet) {
	t.Helper()
	was, is := earlier.Status, later.Status
	if is.Restarts < was.Restarts || is.Restarts > was.Restarts+1 {
		t.Errorf("restarts went from %d to %d", was.Restarts, is.Restarts)
	}
	if is.Restarts != was.Restarts && is.RestartsCountTowardsMax > max(0, later.Spec.FailurePolicy.MaxRestarts) {
		t.Errorf("%d counted restarts are more than %d", is.RestartsCountTowardsMax, later.Spec.FailurePolicy.MaxRestarts)
	}
	if was.TerminalState != "" && (is.TerminalState != was.TerminalState || is.Restarts != was.Restarts) {
		t.Errorf("a finished set went on: from %+v to %+v", was, is)
	}
	checkAttempts(t, earlier, later)
	seen := sets.New[string]()
	for _, c := range is.Conditions {
		if seen.Has(c.Type) {
			t.Errorf("two conditions of type %s", c.Type)
		}
		seen.Insert(c.Type)
	}
	if seen.HasAll(jobsetv1alpha2.JobSetCompleted, jobsetv1alpha2.JobSetFailed) {
		t.Error("the set has both completed and failed")
	}
}

// checkAttempts holds for the history after every write of the status.
func checkAttempts(t *testing.T, earlier, later *jobsetv1alpha2.JobSet) {
	t.Helper()
	was, is := earlier.Status, later.Status
	if len(is.Attempts) > jobsetv1alpha2.MaxAttempts || is.ReadyMilliseconds < was.ReadyMilliseconds {
		t.Errorf("%d attempts, %d ms ready after %d ms", len(is.Attempts), is.ReadyMilliseconds, was.ReadyMilliseconds)
	}
	old := map[int32]jobsetv1alpha2.Attempt{}
	for _, a := range was.Attempts {
		old[a.Number] = a
	}
	for i, a := range is.Attempts {
		if i > 0 && (a.Number != is.Attempts[i-1].Number+1 || is.Attempts[i-1].EndTime == nil || a.RequestTime.Before(is.Attempts[i-1].EndTime)) {
			t.Errorf("attempt %+v follows %+v", a, is.Attempts[i-1])
		}
		if before, found := old[a.Number]; found && before.EndTime != nil {
			diff(t, "attempt that has ended", before, a)
		}
	}
	if written := earlier.ResourceVersion != later.ResourceVersion; written && helper.RunningAttempt(&is) != nil && (suspended(later) && helper.RunningAttempt(&was) == nil || is.TerminalState != "") {
		t.Errorf("attempt %+v runs in a set that does not", is.Attempts[len(is.Attempts)-1])
	}
}

// checkRest holds when nothing happens any more: the controller comes to rest, and the Jobs are those of the attempt.
func checkRest(t *testing.T, w *world) {
	t.Helper()
	const enough = 20
	var p Plan
	for range enough {
		w.settle()
		o := w.observe()
		p = Decide(o)
		if reflect.DeepEqual(p, Plan{}) {
			break
		}
		w.apply(o, p)
	}
	diff(t, "plan at rest", Plan{}, p)
	if runs := !suspended(w.set) && w.set.Status.TerminalState == ""; runs != (helper.RunningAttempt(&w.set.Status) != nil) {
		t.Errorf("the set runs: %t, attempts %+v", runs, w.set.Status.Attempts)
	}
	o := indexed(w.observe())
	kids := classify(o)
	diff(t, "Jobs of an earlier attempt at rest", []*batchv1.Job(nil), kids.previous)
	if w.set.Status.TerminalState != "" {
		diff(t, "active Jobs of a finished set", []*batchv1.Job(nil), kids.active)
	}
	for _, job := range kids.active {
		if suspended(w.set) && !jobSuspended(job) {
			t.Errorf("job %s runs in a suspended set", job.Name)
		}
	}
}
