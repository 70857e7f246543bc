// Copyright The jobset-apiserver Authors.
// SPDX-License-Identifier: Apache-2.0

package simulation

import (
	"slices"
	"strconv"
	"strings"
	"testing"
	"time"

	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/util/sets"

	jobsetv1alpha2 "github.com/jobset-apiserver/jobset-apiserver/pkg/apis/jobset/v1alpha2"
	"github.com/jobset-apiserver/jobset-apiserver/pkg/controller/jobset/plan"
)

// enough is the number of histories in which a defect must show. Most show in the first few.
const enough = 40_000

const history = "one attempt runs while the set does, and those that have ended stay as they are"

// TestHistoriesShowDefects makes sure that histories can fail, and by which rule.
func TestHistoriesShowDefects(t *testing.T) {
	for name, test := range map[string]struct {
		mutant
		wantRule string
	}{
		"a controller that does not wait for its caches": {
			mutant{decide: plan.Decide, forgetful: true}, "a snapshot is never older than the writes of the process",
		},
		"a status that overwrites what changed meanwhile": {
			mutant{decide: plan.Decide, overwriting: true}, "restarts never fall, and come one by one",
		},
		"a deletion that takes any Job of the name": {
			mutant{decide: plan.Decide, indifferent: true}, "no Job of the present attempt is deleted",
		},
		"failed requests that are not tried again": {
			mutant{decide: plan.Decide, careless: true}, "nobody has to wake a set that is not at rest",
		},
		"a denied Job that keeps others waiting": {
			mutant{decide: plan.Decide, finish: sameOrder, timid: true}, "one denied child delays no other",
		},
		"a Job that lost its label and does not get it back": {
			mutant{decide: plan.Decide, unkind: true}, "every history comes to rest",
		},
		"a taken name that nobody looks at again":    {mutant{decide: plan.Decide, finish: silent}, "nobody has to wake a set that is not at rest"},
		"refused Jobs that no condition names":       {mutant{decide: plan.Decide, finish: hushed}, refusalsTold},
		"a restart that counts twice":                {deciding(nil, countTwice), "failures and successes lead to what the policies say"},
		"one restart for several Jobs that failed":   {deciding(nil, restartFirst), "failures and successes lead to what the policies say"},
		"the other restart strategy":                 {deciding(recreate, nil), "Jobs are created once, under free names, for the current attempt, in order"},
		"no order of the start":                      {deciding(anyOrder, nil), "Jobs are created once, under free names, for the current attempt, in order"},
		"suspension that is ignored":                 {deciding(neverSuspended, nil), "a suspended set starts nothing"},
		"conditions that are forgotten":              {deciding(noConditions, nil), "conditions are of one kind each, none is added as False, and times move with the status only"},
		"a feature gate that is ignored":             {deciding(withoutRestartJob, nil), "Jobs are created once, under free names, for the current attempt, in order"},
		"a clock that is late":                       {deciding(yesterday, nil), "conditions are of one kind each, none is added as False, and times move with the status only"},
		"Jobs of earlier attempts that stay":         {deciding(nil, noDeletions), "a set at rest is as its spec says"},
		"a Job that runs against the will of others": {deciding(nil, overbearing), "only active Jobs are changed, in the version that was seen"},
		"executions that are not counted":            {deciding(withoutExecutions, nil), "executions are counted, and their clock runs, while the set is not suspended"},
		"a deadline that is ignored":                 {deciding(withoutDeadline, nil), "a set at rest is as its spec says"},
		"a restart that waits for the last pod":      {deciding(withoutEarlyRestart, nil), "failures and successes lead to what the policies say"},
		"a restart that waits for the slowest Job":   {deciding(waitForSlowest, nil), slowAlone},
		"Jobs that are not resumed":                  {deciding(nil, noPatches), "a set at rest is as its spec says"},
		"an end of life that nobody waits for":       {deciding(nil, noTimer), "a set at rest is as its spec says"},
		"a set that is deleted as soon as it ends":   {deciding(nil, earlyEnd), "a set is deleted after its time to live only"},
		"a cancelled set that is deleted at once":    {deciding(forgetCancellation, nil), "a set is deleted after its time to live only"},
		"counts that a queue waits for in vain":      {mutant{decide: plan.Decide, finish: likeAnyOther}, queuesWait},
		"a set suspended before its Jobs are":        {deciding(nil, hasty), suspendedFirst},
		"a suspension that nobody records":           {deciding(withoutMarks, nil), recordedFirst},
		"a set that is never left alone":             {deciding(nil, restless), "every history comes to rest"},
		"a decision that changes the set":            {deciding(nil, scribble), "a decision does not change what it was made on"},
		"a decision that depends on the order":       {deciding(nil, firstCome), "equal snapshots lead to equal plans"},
		"children written at a commit point":         {deciding(nil, eager), "a decision that moves a commit point only writes the status"},
		"counters that are stale":                    {deciding(nil, staleCounters), "counters are those of the Jobs, and within their bounds"},
		"an event without a change":                  {deciding(nil, noise), "events come with a change of the status, one for each condition"},
		"a set of another controller that is taken":  {deciding(takenOver, nil), "a set that is terminating or somebody else's is left alone"},
		"an attempt that does not end":               {deciding(nil, endless), history},
		"an attempt that changes after its end":      {deciding(nil, rewrite), history},
		"a history that is forgotten":                {deciding(forgetHistory, nil), history},
		"a ready set that nobody takes note of":      {deciding(nil, neverReady), "a status that is stored is right"},
		"Jobs restarted on request, not tracked":     {deciding(withoutTracking, nil), "failures and successes lead to what the policies say"},
		"granted restarts that are not granted":      {deciding(withoutGrants, keepGrants), "failures and successes lead to what the policies say"},
	} {
		t.Run(name, func(t *testing.T) {
			others := sets.New[string]()
			for seed := range uint64(enough) {
				_, broken := run(seed, test.mutant, nil)
				if strings.Contains(broken, strconv.Quote(test.wantRule)) {
					return
				}
				others.Insert(broken)
			}
			t.Errorf("the rule %q was not broken; other results: %q", test.wantRule, others.UnsortedList()[:min(len(others), 5)])
		})
	}
}

// deciding is a controller that is given something else than what is, or does something else than what is
// decided. What it is given is a copy.
func deciding(told func(*plan.Observed), does func(plan.Observed, *plan.Plan)) mutant {
	return mutant{decide: func(o plan.Observed) plan.Plan {
		wrong := o
		if told != nil {
			wrong.JobSet = o.JobSet.DeepCopy()
			told(&wrong)
		}
		p := plan.Decide(wrong)
		if does != nil {
			does(o, &p)
		}
		return p
	}}
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

func noTimer(_ plan.Observed, p *plan.Plan) { p.RequeueAfter = 0 }

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
