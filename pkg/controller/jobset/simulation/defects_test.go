// Copyright The jobset-apiserver Authors.
// SPDX-License-Identifier: Apache-2.0

package simulation

import (
	"slices"
	"strings"
	"testing"
	"time"

	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"

	jobsetv1alpha2 "github.com/jobset-apiserver/jobset-apiserver/pkg/apis/jobset/v1alpha2"
	"github.com/jobset-apiserver/jobset-apiserver/pkg/controller/jobset/plan"
	"github.com/jobset-apiserver/jobset-apiserver/test/simulation"
)

// enough is the number of histories in which a defect must show. Most show in the first few.
const enough = 40_000

const history = "one attempt runs while the set does, and those that have ended stay as they are"

// TestHistoriesShowDefects makes sure that histories can fail, and by which rule.
func TestHistoriesShowDefects(t *testing.T) {
	histories.ShowDefects(t, enough, map[string]simulation.Defect[mutant]{
		"a controller that does not wait for its caches":     {Mutant: mutant{decide: plan.Decide, forgetful: true}, Rules: []string{"a snapshot is never older than the writes of the process"}},
		"a status that overwrites what changed meanwhile":    {Mutant: mutant{decide: plan.Decide, overwriting: true}, Rules: []string{"restarts never fall, and come one by one"}},
		"a deletion that takes any Job of the name":          {Mutant: mutant{decide: plan.Decide, indifferent: true}, Rules: []string{"no Job of the present attempt is deleted"}, First: 2_711},
		"failed requests that are not tried again":           {Mutant: mutant{decide: plan.Decide, careless: true}, Rules: []string{"nobody has to wake a set that is not at rest"}},
		"denied Jobs that are asked for too early":           {Mutant: mutant{decide: plan.Decide, hurried: true}, Rules: []string{simulation.RuleDeniedChild, simulation.RuleDeniedObject}},
		"a denied Job that keeps others waiting":             {Mutant: mutant{decide: plan.Decide, finish: sameOrder, timid: true}, Rules: []string{"one denied child delays no other"}},
		"a Job that lost its label and does not get it back": {Mutant: mutant{decide: plan.Decide, unkind: true}, Rules: []string{"every history comes to rest"}, First: 102},
		"a taken name that nobody looks at again":            {Mutant: mutant{decide: plan.Decide, finish: silent}, Rules: []string{"nobody has to wake a set that is not at rest"}},
		"refused Jobs that no condition names":               {Mutant: mutant{decide: plan.Decide, finish: hushed}, Rules: []string{refusalsTold}},
		"a restart that counts twice":                        {Mutant: deciding(nil, countTwice), Rules: []string{"failures and successes lead to what the policies say"}},
		"one restart for several Jobs that failed":           {Mutant: deciding(nil, restartFirst), Rules: []string{"failures and successes lead to what the policies say"}, First: 101},
		"the other restart strategy":                         {Mutant: deciding(recreate, nil), Rules: []string{"Jobs are created once, under free names, for the current attempt, in order"}},
		"no order of the start":                              {Mutant: deciding(anyOrder, nil), Rules: []string{"Jobs are created once, under free names, for the current attempt, in order"}},
		"suspension that is ignored":                         {Mutant: deciding(neverSuspended, nil), Rules: []string{"a suspended set starts nothing"}},
		"conditions that are forgotten":                      {Mutant: deciding(noConditions, nil), Rules: []string{"conditions are of one kind each, none is added as False, and times move with the status only"}},
		"a feature gate that is ignored":                     {Mutant: deciding(withoutRestartJob, nil), Rules: []string{"Jobs are created once, under free names, for the current attempt, in order"}},
		"a clock that is late":                               {Mutant: deciding(yesterday, nil), Rules: []string{"conditions are of one kind each, none is added as False, and times move with the status only"}},
		"Jobs of earlier attempts that stay":                 {Mutant: deciding(nil, noDeletions), Rules: []string{"a set at rest is as its spec says"}},
		"a Job that runs against the will of others":         {Mutant: deciding(nil, overbearing), Rules: []string{"only active Jobs are changed, in the version that was seen"}},
		"executions that are not counted":                    {Mutant: deciding(withoutExecutions, nil), Rules: []string{"executions are counted, and their clock runs, while the set is not suspended"}},
		"a deadline that is ignored":                         {Mutant: deciding(withoutDeadline, nil), Rules: []string{"a set at rest is as its spec says"}},
		"a restart that waits for the last pod":              {Mutant: deciding(withoutEarlyRestart, nil), Rules: []string{"failures and successes lead to what the policies say"}},
		"a restart that waits for the slowest Job":           {Mutant: deciding(waitForSlowest, nil), Rules: []string{slowAlone}},
		"Jobs that are not resumed":                          {Mutant: deciding(nil, noPatches), Rules: []string{"a set at rest is as its spec says"}},
		"an end of life that nobody waits for":               {Mutant: deciding(nil, noTimer), Rules: []string{"a set at rest is as its spec says"}},
		"a set that is deleted as soon as it ends":           {Mutant: deciding(nil, earlyEnd), Rules: []string{"a set is deleted after its time to live only"}},
		"a cancelled set that is deleted at once":            {Mutant: deciding(forgetCancellation, nil), Rules: []string{"a set is deleted after its time to live only"}},
		"counts that a queue waits for in vain":              {Mutant: mutant{decide: plan.Decide, finish: likeAnyOther}, Rules: []string{queuesWait}},
		"a set suspended before its Jobs are":                {Mutant: deciding(nil, hasty), Rules: []string{suspendedFirst}},
		"a suspension that nobody records":                   {Mutant: deciding(withoutMarks, nil), Rules: []string{recordedFirst}, First: 231},
		"a set that is never left alone":                     {Mutant: deciding(nil, restless), Rules: []string{simulation.RulePasses}},
		"a decision that changes the set":                    {Mutant: deciding(nil, scribble), Rules: []string{"a decision does not change what it was made on"}},
		"a decision that depends on the order":               {Mutant: deciding(nil, firstCome), Rules: []string{"equal snapshots lead to equal plans"}},
		"children written at a commit point":                 {Mutant: deciding(nil, eager), Rules: []string{"a decision that moves a commit point only writes the status"}},
		"counters that are stale":                            {Mutant: deciding(nil, staleCounters), Rules: []string{"counters are those of the Jobs, and within their bounds"}},
		"an event without a change":                          {Mutant: deciding(nil, noise), Rules: []string{"events come with a change of the status, one for each condition"}},
		"a set of another controller that is taken":          {Mutant: deciding(takenOver, nil), Rules: []string{"a set that is terminating or somebody else's is left alone"}},
		"an attempt that does not end":                       {Mutant: deciding(nil, endless), Rules: []string{history}},
		"an attempt that changes after its end":              {Mutant: deciding(nil, rewrite), Rules: []string{history}},
		"a history that is forgotten":                        {Mutant: deciding(forgetHistory, nil), Rules: []string{history}},
		"a ready set that nobody takes note of":              {Mutant: deciding(nil, neverReady), Rules: []string{"a status that is stored is right"}},
		"Jobs restarted on request, not tracked":             {Mutant: deciding(withoutTracking, nil), Rules: []string{"failures and successes lead to what the policies say"}},
		"granted restarts that are not granted":              {Mutant: deciding(withoutGrants, keepGrants), Rules: []string{"failures and successes lead to what the policies say"}, First: 4_250},
	})
}

// deciding is a controller that is given something else than what is, or does something else than what is decided.
func deciding(misread func(*plan.Observed), does func(plan.Observed, *plan.Plan)) mutant {
	return mutant{decide: simulation.Deciding(plan.Decide, copied, misread, does)}
}

// copied returns a snapshot with a copy of its set.
func copied(o plan.Observed) *plan.Observed {
	o.JobSet = o.JobSet.DeepCopy()
	return &o
}

func recreate(o *plan.Observed) {
	if policy := o.JobSet.Spec.FailurePolicy; policy != nil {
		policy.RestartStrategy = jobsetv1alpha2.RestartStrategyRecreate
	}
}

func anyOrder(o *plan.Observed) {
	o.JobSet.Spec.StartupPolicy.StartupPolicyOrder = jobsetv1alpha2.AnyOrder
}

func neverSuspended(o *plan.Observed) { o.JobSet.Spec.Suspend = nil }

func noConditions(o *plan.Observed) { o.JobSet.Status.Conditions = nil }

func withoutRestartJob(o *plan.Observed) { o.Gates.RestartJob = false }

func withoutExecutions(o *plan.Observed) { o.Gates.ExecutionAttemptsTracking = false }

func withoutDeadline(o *plan.Observed) { o.Gates.JobSetActiveDeadlineSeconds = false }

func withoutEarlyRestart(o *plan.Observed) { o.Gates.RestartOnFailureTarget = false }

func yesterday(o *plan.Observed) { o.Now = metav1.NewTime(o.Now.Add(-24 * time.Hour)) }

func takenOver(o *plan.Observed) { o.JobSet.Spec.ManagedBy = nil }

func countTwice(o plan.Observed, p *plan.Plan) {
	if p.Status != nil && p.Status.Restarts > o.JobSet.Status.Restarts {
		p.Status.Restarts++
	}
}

// restartFirst restarts only one of several Jobs.
func restartFirst(o plan.Observed, p *plan.Plan) {
	if p.Status == nil || jobRestartsOf(p.Status)-jobRestartsOf(&o.JobSet.Status) < 2 {
		return
	}
	for _, counters := range p.Status.ReplicatedJobsStatus {
		for i := range counters.JobRestarts {
			if was := jobRestartsAt(&o.JobSet.Status, counters.Name, i); counters.JobRestarts[i] > was {
				counters.JobRestarts[i] = was
				return
			}
		}
	}
}

func noDeletions(_ plan.Observed, p *plan.Plan) { p.DeleteJobs = nil }

func noPatches(_ plan.Observed, p *plan.Plan) { p.PatchJobs = nil }

func overbearing(o plan.Observed, p *plan.Plan) {
	for _, job := range having(o, active) {
		if jobIsSuspended(job) && !isSuspended(o.JobSet) && len(p.PatchJobs) == 0 && p.Status == nil {
			p.PatchJobs = []plan.JobPatch{{
				JobRef: plan.JobRef{Name: job.Name, UID: job.UID}, ResourceVersion: job.ResourceVersion, Suspend: new(bool),
			}}
		}
	}
}

func noTimer(_ plan.Observed, p *plan.Plan) { p.RequeueAfter, p.ActsAfter = 0, 0 }

func earlyEnd(o plan.Observed, p *plan.Plan) { p.DeleteJobSet = finished(&o.JobSet.Status) }

func forgetCancellation(o *plan.Observed) {
	if c := setCondition(&o.JobSet.Status, jobsetv1alpha2.JobSetFailed); c != nil {
		c.Reason = "FailedJobs"
	}
}

func hasty(o plan.Observed, p *plan.Plan) {
	if !isSuspended(o.JobSet) || len(p.PatchJobs) == 0 || setCondition(&o.JobSet.Status, jobsetv1alpha2.JobSetSuspended) != nil {
		return
	}
	if p.Status == nil {
		p.Status = o.JobSet.Status.DeepCopy()
	}
	if setCondition(p.Status, jobsetv1alpha2.JobSetSuspended) == nil {
		p.Status.Conditions = append(p.Status.Conditions, metav1.Condition{
			Type: jobsetv1alpha2.JobSetSuspended, Status: metav1.ConditionTrue, Reason: "SuspendedJobs", LastTransitionTime: o.Now,
		})
		p.Events = append(p.Events, plan.Event{Reason: "SuspendedJobs"})
	}
}

func withoutMarks(o *plan.Observed) {
	o.Jobs = slices.Clone(o.Jobs)
	for i, job := range o.Jobs {
		if strings.HasPrefix(job.Annotations[jobsetv1alpha2.ReleasedKey], "suspended") {
			o.Jobs[i] = job.DeepCopy()
			o.Jobs[i].Annotations[jobsetv1alpha2.ReleasedKey] = ""
		}
	}
}

func restless(_ plan.Observed, p *plan.Plan) {
	if p.RequeueAfter == 0 {
		p.RequeueAfter = time.Second
	}
}

func scribble(o plan.Observed, _ *plan.Plan) {
	if len(o.Jobs) > 0 {
		o.Jobs[0].Labels["scribble"] = "x"
	}
}

func firstCome(o plan.Observed, p *plan.Plan) {
	if len(o.Jobs) > 0 {
		p.Problems = append(p.Problems, o.Jobs[0].Name)
	}
}

func eager(o plan.Observed, p *plan.Plan) {
	if p.Status != nil && p.Status.Restarts > o.JobSet.Status.Restarts {
		p.DeleteJobs = []plan.JobRef{{Name: o.Jobs[0].Name, UID: o.Jobs[0].UID}}
	}
}

func staleCounters(o plan.Observed, p *plan.Plan) {
	if p.Status != nil && len(o.JobSet.Status.ReplicatedJobsStatus) > 0 {
		p.Status.ReplicatedJobsStatus = slices.Clone(o.JobSet.Status.ReplicatedJobsStatus)
	}
}

func noise(_ plan.Observed, p *plan.Plan) {
	if p.Status == nil {
		p.Events = append(p.Events, plan.Event{Reason: "Noise"})
	}
}

func endless(o plan.Observed, p *plan.Plan) {
	if p.Status == nil {
		return
	}
	for i := range p.Status.Attempts {
		if a := &p.Status.Attempts[i]; i < len(o.JobSet.Status.Attempts) && o.JobSet.Status.Attempts[i].EndTime == nil {
			a.EndTime, a.Outcome = nil, ""
		}
	}
}

func rewrite(o plan.Observed, p *plan.Plan) {
	if p.Status != nil && len(p.Status.Attempts) > 1 {
		p.Status.Attempts[0].EndReason += "!"
	}
}

func forgetHistory(o *plan.Observed) { o.JobSet.Status.Attempts = nil }

func neverReady(_ plan.Observed, p *plan.Plan) {
	if p.Status != nil && inAttempt(p.Status) != nil {
		inAttempt(p.Status).ReadyTime = nil
	}
}

func withoutTracking(o *plan.Observed) {
	for i := range o.JobSet.Status.ReplicatedJobsStatus {
		o.JobSet.Status.ReplicatedJobsStatus[i].JobRestarts = nil
	}
}

func withoutGrants(o *plan.Observed) { o.JobSet.Status.AddedRestarts = 0 }

func keepGrants(o plan.Observed, p *plan.Plan) {
	if p.Status != nil {
		p.Status.AddedRestarts = o.JobSet.Status.AddedRestarts
	}
}
