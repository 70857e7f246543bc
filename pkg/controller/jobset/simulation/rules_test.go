// Copyright The jobset-apiserver Authors.
// SPDX-License-Identifier: Apache-2.0

package simulation

import (
	"fmt"
	"slices"
	"strings"

	batchv1 "k8s.io/api/batch/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/util/sets"
	"k8s.io/utils/ptr"

	jobsetv1alpha2 "github.com/jobset-apiserver/jobset-apiserver/pkg/apis/jobset/v1alpha2"
	"github.com/jobset-apiserver/jobset-apiserver/pkg/controller/jobset/plan"
)

// decision is one plan with what it was made on.
type decision struct {
	plan.Observed
	plan plan.Plan
	// before and after are the status as stored and as it will be.
	before, after *jobsetv1alpha2.JobSetStatus
	// ruling is what the policies say about the set; nil if it continues to run.
	ruling *ruling
}

// rules hold for every decision. A rule returns what is wrong, "" if nothing is.
var rules = []struct {
	name  string
	check func(decision) string
}{
	{"a set that is terminating or somebody else's is left alone", leftAlone},
	{"a decision that moves a commit point only writes the status", commitsAlone},
	{"failures and successes lead to what the policies say", appliesPolicies},
	{"a finished set stays as it finished, and starts nothing", staysFinished},
	{"counters are those of the Jobs, and within their bounds", countedRight},
	{"conditions are of one kind each, none is added as False, and times move with the status only", conditionsSound},
	{"a suspended set starts nothing", suspendedStartsNothing},
	{suspendedFirst, suspendedRight},
	{"Jobs are created once, under free names, for the current attempt, in order", createdRight},
	{"only Jobs of earlier attempts are deleted, or such as still run in a finished set", deletedRight},
	{"only active Jobs are changed, in the version that was seen", patchedRight},
	{"executions are counted, and their clock runs, while the set is not suspended", executionsCounted},
	{"one attempt runs while the set does, and those that have ended stay as they are", historySound},
	{"events come with a change of the status, one for each condition", eventsSound},
	{"a set is deleted after its time to live only", timeToLive},
	{gangFirst, startsAfterGang},
}

func (d decision) moved() bool {
	return d.after.Restarts != d.before.Restarts || jobRestartsOf(d.after) > jobRestartsOf(d.before) ||
		finished(d.after) != finished(d.before) || d.interrupts() || !ptr.Equal(d.after.ExecutionAttempts, d.before.ExecutionAttempts)
}

// jobRestartsOf is the number of restarts of single Jobs.
func jobRestartsOf(status *jobsetv1alpha2.JobSetStatus) (n int32) {
	for _, counters := range status.ReplicatedJobsStatus {
		for _, restarts := range counters.JobRestarts {
			n += restarts
		}
	}
	return n
}

func (d decision) writesChildren() bool {
	p := d.plan
	return len(p.DeleteJobs)+len(p.PatchJobs)+len(p.CreateJobs)+len(p.CreateClaims) > 0 || p.CreateService != nil
}

func (d decision) job(name string) *batchv1.Job {
	for _, job := range d.Jobs {
		if job.Name == name {
			return job
		}
	}
	return nil
}

func leftAlone(d decision) string {
	if (d.JobSet.DeletionTimestamp != nil || d.JobSet.Spec.ManagedBy != nil) &&
		(d.writesChildren() || d.plan.Status != nil || d.plan.DeleteJobSet || d.plan.RequeueAfter != 0) {
		return "something is done"
	}
	return ""
}

func commitsAlone(d decision) string {
	if d.moved() && (d.writesChildren() || d.plan.DeleteJobSet) {
		return "children are written in the same plan"
	}
	return ""
}

func appliesPolicies(d decision) string {
	managed := d.JobSet.DeletionTimestamp == nil && d.JobSet.Spec.ManagedBy == nil
	want := verdictOf(d.before)
	if managed && !finished(d.before) && d.ruling != nil {
		want = want.after(*d.ruling)
	}
	if got := verdictOf(d.after); got != want {
		return fmt.Sprintf("want %+v, got %+v", want, got)
	}
	return ""
}

// verdicts is what the policies change.
type verdicts struct {
	completed, failed      bool
	reason, job            string
	restarts, counted      int32
	jobRestarts, jobCounts string
}

func verdictOf(status *jobsetv1alpha2.JobSetStatus) verdicts {
	v := verdicts{restarts: status.Restarts, counted: status.RestartsCountTowardsMax}
	for _, conditionType := range []string{jobsetv1alpha2.JobSetCompleted, jobsetv1alpha2.JobSetFailed} {
		if c := setCondition(status, conditionType); c != nil && c.Status == metav1.ConditionTrue {
			_, v.job, _ = strings.Cut(c.Message, "first failed job: ")
			v.reason = c.Reason
		}
	}
	v.job = strings.TrimSuffix(v.job, ")")
	v.completed, v.failed = conditionIs(status, jobsetv1alpha2.JobSetCompleted), conditionIs(status, jobsetv1alpha2.JobSetFailed)
	for _, counters := range status.ReplicatedJobsStatus {
		for i, n := range counters.JobRestarts {
			v.jobRestarts += strings.Repeat(fmt.Sprintf(" %s-%d", counters.Name, i), int(n))
		}
		for i, n := range counters.JobRestartsCountTowardsMax {
			v.jobCounts += strings.Repeat(fmt.Sprintf(" %s-%d", counters.Name, i), int(n))
		}
	}
	v.jobRestarts, v.jobCounts = sortedWords(v.jobRestarts), sortedWords(v.jobCounts)
	return v
}

// after returns the verdicts with one more ruling.
func (v verdicts) after(r ruling) verdicts {
	var words string
	for _, job := range r.restarted {
		at, _ := placeOf(job)
		words += fmt.Sprintf(" %s-%d", at.replicatedJob, at.index)
	}
	switch {
	case r.succeeds || r.fails:
		v.completed, v.failed, v.reason = r.succeeds, r.fails, r.reason
		if r.job != nil {
			v.job = r.job.Name
		}
	case r.restartsJobs():
		v.jobRestarts = sortedWords(v.jobRestarts + words)
		if r.counts() {
			v.jobCounts = sortedWords(v.jobCounts + words)
		}
	default:
		v.restarts++
		v.counted += one(r.counts())
	}
	return v
}

func staysFinished(d decision) string {
	if !finished(d.before) {
		return ""
	}
	p := d.plan
	if len(p.CreateJobs)+len(p.PatchJobs)+len(p.CreateClaims) > 0 || p.CreateService != nil {
		return "something is started"
	}
	if d.after.TerminalState != d.before.TerminalState || d.after.Restarts != d.before.Restarts || jobRestartsOf(d.after) != jobRestartsOf(d.before) {
		return "the result changes"
	}
	if !sameConditions(d.before.Conditions, d.after.Conditions) {
		return "the conditions change"
	}
	return ""
}

func countedRight(d decision) string {
	if d.plan.Status == nil {
		return ""
	}
	if len(d.after.ReplicatedJobsStatus) != len(d.JobSet.Spec.ReplicatedJobs) {
		return "there is not one entry for each replicatedJob"
	}
	for i := range d.JobSet.Spec.ReplicatedJobs {
		rj := &d.JobSet.Spec.ReplicatedJobs[i]
		got, want := countersOf(d.after, rj.Name), withEnded(d.before, rj, count(d.Observed, rj.Name))
		for _, pair := range [][2]int32{
			{got.Ready, want.Ready}, {got.Active, want.Active}, {got.Suspended, want.Suspended},
			{got.Succeeded, want.Succeeded}, {got.Failed, want.Failed},
		} {
			if pair[0] != pair[1] || pair[0] < 0 || pair[0] > *rj.Replicas {
				return fmt.Sprintf("want %+v of %d, got %+v", want, *rj.Replicas, got)
			}
		}
		if n := got.Succeeded + got.Failed + max(got.Ready, got.Active, got.Suspended); n > *rj.Replicas {
			return fmt.Sprintf("%+v are more than %d", got, *rj.Replicas)
		}
	}
	return ""
}

func conditionsSound(d decision) string {
	seen := sets.New[string]()
	for i := range d.after.Conditions {
		c := &d.after.Conditions[i]
		old := setCondition(d.before, c.Type)
		switch {
		case seen.Has(c.Type):
			return c.Type + " is there twice"
		case old == nil && c.Status != metav1.ConditionTrue:
			return c.Type + " is added as " + string(c.Status)
		case old != nil && old.Status == c.Status && !old.LastTransitionTime.Equal(&c.LastTransitionTime):
			return c.Type + " has another time with the same status"
		case (old == nil || old.Status != c.Status) && !c.LastTransitionTime.Equal(&d.Now):
			return c.Type + " has not the time of its transition"
		}
		seen.Insert(c.Type)
	}
	for _, c := range d.before.Conditions {
		if !seen.Has(c.Type) && !(c.Type == jobsetv1alpha2.JobSetFailed && d.before.TerminalState != "" && d.after.TerminalState == "") {
			return c.Type + " is lost"
		}
	}
	completed, failed := conditionIs(d.after, jobsetv1alpha2.JobSetCompleted), conditionIs(d.after, jobsetv1alpha2.JobSetFailed)
	switch want := map[bool]string{completed: "Completed", failed: "Failed"}[true]; {
	case completed && failed:
		return "the set is both Completed and Failed"
	case d.after.TerminalState != want:
		return fmt.Sprintf("the terminal state is %q and not %q", d.after.TerminalState, want)
	case conditionIs(d.after, jobsetv1alpha2.JobSetStartupPolicyInProgress) && conditionIs(d.after, jobsetv1alpha2.JobSetStartupPolicyCompleted):
		return "the ordered start is both in progress and completed"
	case conditionIs(d.after, jobsetv1alpha2.JobSetRestarting) && finished(d.after):
		return "a finished set is restarting"
	}
	return ""
}

func eventsSound(d decision) string {
	if len(d.plan.Events) > 0 && d.plan.Status == nil {
		return "there are events without a change"
	}
	reasons := sets.New[string]()
	for _, event := range d.plan.Events {
		reasons.Insert(event.Reason)
	}
	for i := range d.after.Conditions {
		c := &d.after.Conditions[i]
		old := setCondition(d.before, c.Type)
		// The refusal of children has events of its own, with each try.
		refused := c.Type == jobsetv1alpha2.JobCreationFailure && c.Status == metav1.ConditionTrue
		if changed := old == nil || old.Status != c.Status; changed && !refused && !reasons.Has(c.Reason) {
			return "there is no event of reason " + c.Reason
		}
	}
	if d.after.Restarts > d.before.Restarts || jobRestartsOf(d.after) > jobRestartsOf(d.before) {
		if !slices.ContainsFunc(d.plan.Events, func(e plan.Event) bool { return strings.HasSuffix(e.Reason, "FailurePolicyAction") }) {
			return "there is no event about the restart"
		}
	}
	return ""
}

func executionsCounted(d decision) string {
	want, begins := d.before.ExecutionAttempts, d.after.Restarts > d.before.Restarts
	managed := d.JobSet.DeletionTimestamp == nil && d.JobSet.Spec.ManagedBy == nil && !finished(d.before)
	switch {
	case !managed || !d.Gates.ExecutionAttemptsTracking:
	case begins:
		want = ptr.To(ptr.Deref(want, d.before.Restarts) + 1)
	case d.ruling != nil || isSuspended(d.JobSet) || d.interrupts():
	case want == nil:
		want = ptr.To(d.before.Restarts)
	case conditionIs(d.before, jobsetv1alpha2.JobSetSuspended):
		want = ptr.To(*want + 1)
	}
	if !ptr.Equal(want, d.after.ExecutionAttempts) {
		return fmt.Sprintf("want %d, got %d", ptr.Deref(want, -1), ptr.Deref(d.after.ExecutionAttempts, -1))
	}
	runs := d.Gates.JobSetActiveDeadlineSeconds && !isSuspended(d.JobSet) && !(d.interrupts() && !mayStartPods(d.Observed))
	switch start := d.after.StartTime; {
	case begins && runs && !start.Equal(&d.Now):
		return "the clock does not start anew with the attempt"
	case start.Equal(d.before.StartTime):
		return ""
	case start == nil && (runs || !managed):
		return "the clock stops although the set runs"
	case start != nil && (!runs || !managed || !start.Equal(&d.Now) || d.before.StartTime != nil && !begins):
		return "the clock starts at " + start.String()
	}
	return ""
}
