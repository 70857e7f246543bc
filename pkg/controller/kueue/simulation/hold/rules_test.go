// Copyright The jobset-apiserver Authors.
// SPDX-License-Identifier: Apache-2.0

package hold

import (
	"encoding/json"
	"fmt"
	"slices"
	"time"

	batchv1 "k8s.io/api/batch/v1"
	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"
	"k8s.io/apimachinery/pkg/types"
	"k8s.io/apimachinery/pkg/util/sets"
	"k8s.io/utils/ptr"

	batchv1alpha1 "github.com/jobset-apiserver/jobset-apiserver/pkg/apis/batch/v1alpha1"
	"github.com/jobset-apiserver/jobset-apiserver/pkg/apis/batch/v1alpha1/helper"
	"github.com/jobset-apiserver/jobset-apiserver/pkg/controller/kueue/plan"
	"github.com/jobset-apiserver/jobset-apiserver/test/simulation"
	"github.com/jobset-apiserver/jobset-apiserver/test/simulation/memory"
)

// Rules.
const (
	ruleKept     = "a step that runs is not stopped unless the user or Kueue asked"
	ruleInUse    = "quota is not given back while pods run"
	ruleQuota    = "no step begins without quota"
	ruleVersion  = "each change of a Workload names the version that it is about"
	ruleOnce     = "a sequence has one Workload"
	ruleReleased = "quota that nobody needs is given back"
	ruleRuns     = "a sequence that has quota ends"
	ruleFollows  = "the Workload of a suspended sequence is not active, and that of others is"
	ruleRefused  = "once backed off, at most 2 changes of Workloads a minute are refused"
	ruleQuiet    = "at rest nothing is written"
)

const (
	maxLag = 20 * time.Second
	// grace is how long what Kueue or a user asked for may be acted on, although they have taken it back: caches lag, and
	// requests arrive late.
	grace, minute = 3 * time.Minute, time.Minute
)

// facts are what rules use of the present state.
type facts struct {
	// running are the sequences of which pods run. One that is created again under the name has pods of its own.
	running sets.Set[types.UID]
	// mayStop is when there was a reason to stop the step, and mayBegin when there was quota.
	mayStop, mayBegin time.Time
	// begun is when a Job was last let run, and by which controller.
	begun   time.Time
	begunBy string
}

// observe notes the present state.
func (e *env) observe() {
	now := facts{running: sets.New[types.UID]()}
	sj := seen[batchv1alpha1.SequentialJob](e, e.server.Get(sequences, namespace, name))
	for _, object := range e.server.List(jobs) {
		job := seen[batchv1.Job](e, object)
		if job.Status.Active+ptr.Deref(job.Status.Terminating, 0) > 0 {
			now.running.Insert(ownerOf(job))
		}
	}
	holds := false
	for _, object := range e.server.List(workloads) {
		w := seen[plan.Workload](e, object)
		holds = holds || sj != nil && w.OwnerUID() == sj.UID && plan.Holds(w)
	}
	e.mu.Lock()
	defer e.mu.Unlock()
	now.mayStop, now.mayBegin, now.begun, now.begunBy = e.facts.mayStop, e.facts.mayBegin, e.facts.begun, e.facts.begunBy
	if !holds || sj == nil || sj.DeletionTimestamp != nil || ptr.Deref(sj.Spec.Suspend, false) || helper.Finished(sj) != nil {
		now.mayStop = time.Now()
	}
	if holds {
		now.mayBegin = time.Now()
	}
	e.facts = now
}

// expect notes what is about to be so, since the controller may act on it at once.
func (e *env) expect(change func(*facts)) {
	e.mu.Lock()
	defer e.mu.Unlock()
	change(&e.facts)
}

func mayStop(f *facts)  { f.mayStop = time.Now() }
func mayBegin(f *facts) { f.mayBegin = time.Now() }
func stops(f *facts)    { f.running = nil }

// ownerOf returns the UID of the sequence of a Job.
func ownerOf(job *batchv1.Job) types.UID { return job.OwnerReferences[0].UID }

// breaks notes that a rule is broken. The lock is held.
func (e *env) breaks(rule, format string, args ...any) {
	e.broken = append(e.broken, fmt.Sprintf("rule %q: %s", rule, fmt.Sprintf(format, args...)))
}

// written is told of each change that the controller makes.
func (e *env) written(r *memory.Request, before, after *unstructured.Unstructured) {
	e.mu.Lock()
	defer e.mu.Unlock()
	switch r.Resource.GroupResource() {
	case jobs:
		e.wroteJob(r, before, after)
	case workloads:
		e.wroteWorkload(r, before, after)
	}
}

func (e *env) wroteJob(r *memory.Request, before, after *unstructured.Unstructured) {
	was, is := into[batchv1.Job](before), into[batchv1.Job](after)
	if is == nil {
		e.facts.running.Delete(ownerOf(was))
	}
	runs := func(job *batchv1.Job) bool { return job != nil && !ptr.Deref(job.Spec.Suspend, false) }
	if !runs(was) && runs(is) {
		e.facts.begun, e.facts.begunBy = time.Now(), r.Client
	}
	switch {
	case was != nil && was.Status.Active > 0 && !runs(is) && time.Since(e.facts.mayStop) > grace:
		e.breaks(ruleKept, "Job %s is stopped", was.Name)
	case is != nil && !runs(was) && runs(is) && time.Since(e.facts.mayBegin) > grace:
		e.breaks(ruleQuota, "Job %s begins", is.Name)
	}
}

func (e *env) wroteWorkload(r *memory.Request, before, after *unstructured.Unstructured) {
	was, is := into[plan.Workload](before), into[plan.Workload](after)
	e.changes++
	if is != nil && plan.Holds(is) {
		e.facts.mayBegin = time.Now() // a Workload that is made active again before Kueue has evicted it has its quota at once
	}
	if was == nil {
		return
	}
	var sent struct {
		Metadata      struct{ UID, ResourceVersion string }
		Preconditions *struct{ UID, ResourceVersion string }
	}
	must(json.Unmarshal(r.Body, &sent))
	if sent.Preconditions != nil {
		sent.Metadata = *sent.Preconditions
	}
	if sent.Metadata.UID == "" || sent.Metadata.ResourceVersion == "" {
		e.breaks(ruleVersion, "%s of Workload %s with %s", r.Verb, was.Name, r.Body)
	}
	// The cache of one controller may lack what another one that does not lead any more has begun. A late request is from before a Job was let
	// run if the request that has let it run was late, too.
	known := (r.Client == e.facts.begunBy || time.Since(e.facts.begun) > maxLag) && !e.facts.begun.After(r.At)
	running := known && e.facts.running.Has(was.OwnerUID())
	had := was.Is(plan.ConditionQuotaReserved) && !was.Is(plan.ConditionFinished)
	if has := is != nil && is.Is(plan.ConditionQuotaReserved) && !is.Is(plan.ConditionFinished); had && !has && running {
		e.breaks(ruleInUse, "Workload %s gives its quota back", was.Name)
	}
	if is == nil && running {
		e.breaks(ruleInUse, "Workload %s is let go", was.Name)
	}
}

// check checks what has been written.
func (e *env) check() {
	e.mu.Lock()
	broken := slices.Clone(e.broken)
	e.mu.Unlock()
	if len(broken) > 0 {
		panic(simulation.Violation(broken[0]))
	}
	owners := map[string]string{}
	for _, object := range e.server.List(workloads) {
		w := into[plan.Workload](object)
		if other := owners[string(w.OwnerUID())]; other != "" {
			e.Fail(ruleOnce, "%s and %s", other, w.Name)
		}
		owners[string(w.OwnerUID())] = w.Name
	}
}

func isWrite(verb string) bool {
	return slices.Contains([]string{"create", "update", "patch", "apply", "delete"}, verb)
}

// stabilize ends all trouble, and checks that the sequence and its quota come to rest.
func (e *env) stabilize() {
	if e.Dice.Percent(30) {
		e.checkPace()
	}
	e.Note("all trouble ends")
	e.weather.Clear()
	if e.apart != (apart{}) {
		e.turnApart()
	}
	e.server.SetLag(0)
	if !e.served() {
		e.turnAPI()
	}
	for range 40 {
		e.controlJobs()
		e.kueueActs()
		for _, object := range e.server.List(jobs) {
			if job := into[batchv1.Job](object); job.Status.Active > 0 && !ptr.Deref(job.Spec.Suspend, false) && e.Dice.Percent(30) {
				e.expect(stops)
				change(e, jobs, object, complete)
			}
		}
		e.observe()
		e.pass(15 * time.Second)
		e.check()
	}
	before := e.writes()
	e.pass(5 * minute)
	e.check()
	if after := e.writes(); len(after) > len(before) {
		e.Fail(ruleQuiet, "%s %s", after[len(after)-1].Verb, after[len(after)-1].Resource)
	}
	e.checkRest()
}

// checkPace lets time pass in which nothing happens but requests that are refused, and counts those of the last minutes. If discovery shows
// an API at some times only, it is removed and installed again for the controller. Then what was refused is tried again at once, as it is
// when a second controller writes the status of the sequence.
func (e *env) checkPace() {
	const over, most = 4 * minute, 8
	e.weather.Clear("discovery")
	e.stopRival()
	for range 15 {
		e.pass(minute)
		e.observe() // quota that is there all the time is not quota of long ago
	}
	refused := 0
	for _, r := range e.writes() {
		if time.Since(r.At) < over && r.Resource.GroupResource() == workloads && r.Code >= 400 {
			refused++
		}
	}
	if refused > most {
		e.Fail(ruleRefused, "%d in %s", refused, over)
	}
}

func (e *env) writes() (all []memory.Request) {
	e.mu.Lock()
	defer e.mu.Unlock()
	for _, r := range e.requests {
		if isWrite(r.Verb) {
			all = append(all, r)
		}
	}
	return all
}

func (e *env) checkRest() {
	sj := into[batchv1alpha1.SequentialJob](e.server.Get(sequences, namespace, name))
	e.Seen["at rest: "+stateOf(sj)]++
	if stateOf(sj) == "runs" {
		e.Fail(ruleRuns, "%+v", sj.Status)
	}
	for _, object := range e.server.List(workloads) {
		w := into[plan.Workload](object)
		own := sj != nil && w.OwnerUID() == sj.UID
		if (!own || stateOf(sj) == "ended") && (!w.Is(plan.ConditionFinished) || inUse(w)) {
			e.Fail(ruleReleased, "Workload %s has the finalizers %v and %+v", w.Name, w.Finalizers, w.Status.Conditions)
		}
		if own && stateOf(sj) == "suspended" && (w.Active() || w.Is(plan.ConditionQuotaReserved)) {
			e.Fail(ruleFollows, "Workload %s of a suspended sequence is active: %t", w.Name, w.Active())
		}
	}
}

func stateOf(sj *batchv1alpha1.SequentialJob) string {
	switch {
	case sj == nil:
		return "gone"
	case helper.Finished(sj) != nil:
		return "ended"
	case helper.Suspended(sj):
		return "suspended"
	}
	return "runs"
}
