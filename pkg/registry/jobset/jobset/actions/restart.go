// Copyright The jobset-apiserver Authors.
// SPDX-License-Identifier: Apache-2.0

package actions

import (
	"fmt"
	"slices"
	"strings"

	apierrors "k8s.io/apimachinery/pkg/api/errors"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/util/validation/field"
	"k8s.io/utils/ptr"

	"github.com/jobset-apiserver/jobset-apiserver/pkg/apis/batch"
	"github.com/jobset-apiserver/jobset-apiserver/pkg/apis/jobset"
	jobsetv1alpha2 "github.com/jobset-apiserver/jobset-apiserver/pkg/apis/jobset/v1alpha2"
	"github.com/jobset-apiserver/jobset-apiserver/pkg/apis/jobset/v1alpha2/helper"
)

// Restart moves a set, or a part of it, to its next attempt. The controller then replaces the Jobs as after a failure.
func Restart(js *jobset.JobSet, spec *batch.JobSetRestartSpec, call Call) (*batch.JobSetActionStatus, error) {
	if err := checkMeant(js, spec.Preconditions, "restart"); err != nil {
		return nil, err
	}
	jobs, errs := targets(js, spec)
	if len(errs) > 0 {
		return nil, apierrors.NewInvalid(batch.Kind("JobSetRestart"), js.Name, errs)
	}
	same := func(a *jobset.Attempt) bool { return restartedAs(a, spec) }
	if entry, err := begunBefore(js, spec.Preconditions, call, "restarted", same); err != nil {
		return nil, err
	} else if entry != nil {
		return restarted(js, entry), nil
	}
	if err := checkRestartable(js, spec.Preconditions); err != nil {
		return nil, err
	}
	if current := Current(&js.Status); !spec.Force && awaited(current) && same(current) {
		return joined(js, current, call), nil
	}
	if err := checkBudget(js, spec, int64(max(len(jobs), 1))); err != nil {
		return nil, err
	}
	first := js.Status.Restarts + 2 // the one that ran, unrecorded, was restarts+1
	if spec.Scope == batch.RestartScopeJobSet || spec.Scope == "" {
		restartAll(js, spec, call)
	} else {
		countJobs(js, spec, jobs)
	}
	end(&js.Status, jobset.OutcomeRestarted, call.user(), spec.Reason, call.Now)
	entry := begin(&js.Status, jobset.Attempt{
		Number: first, Trigger: jobset.TriggerRequested, Scope: scopeOf(spec), ReplicatedJob: spec.ReplicatedJob,
		JobIndex: copyOf(spec.JobIndex), User: call.user(), Reason: spec.Reason,
	}, call.Now)
	return restarted(js, entry), nil
}

// WarningsOfRestart tells who restarts a set in a queue that Kueue has given the quota of its succeeded Jobs to others:
// Kueue cannot reserve it again for the next attempt, unless it admits the whole set again
// (docs/kueue.md#restarts-after-a-job-has-succeeded).
func WarningsOfRestart(js *jobset.JobSet, spec *batch.JobSetRestartSpec) []string {
	queue, queued := js.Labels[jobsetv1alpha2.QueueNameKey]
	if !queued || !slices.ContainsFunc(js.Status.ReplicatedJobsStatus, func(s jobset.ReplicatedJobStatus) bool {
		return s.Succeeded > 0 && (scopeOf(spec) == jobset.ScopeJobSet || s.Name == spec.ReplicatedJob)
	}) {
		return nil
	}
	return []string{fmt.Sprintf("Kueue took back the quota of the Jobs that had succeeded and cannot reserve it again in queue %q; kubectl "+
		"jobset why %s shows what to do", queue, js.Name)}
}

// checkRestartable refuses restarts of another attempt than the current one, and of sets that do not run.
func checkRestartable(js *jobset.JobSet, p *batch.ActionPreconditions) error {
	if err := checkAttempt(js, p); err != nil {
		return err
	}
	if err := checkUnfinished(js, "restart"); err != nil {
		return err
	}
	if held(js) {
		return conflict(js, "the JobSet is held, because the store was restored from a backup; resume it instead")
	}
	if suspended(js) {
		return conflict(js, "the JobSet is suspended; %s", wayOutOfSuspension(js))
	}
	return nil
}

func scopeOf(spec *batch.JobSetRestartSpec) jobset.AttemptScope {
	if spec.Scope == "" {
		return jobset.ScopeJobSet
	}
	return jobset.AttemptScope(spec.Scope)
}

// restartedAs reports whether a request like this one began the attempt.
func restartedAs(entry *jobset.Attempt, spec *batch.JobSetRestartSpec) bool {
	return entry.Trigger == jobset.TriggerRequested && entry.Scope == scopeOf(spec) &&
		entry.ReplicatedJob == spec.ReplicatedJob && ptr.Equal(entry.JobIndex, spec.JobIndex)
}

func restarted(js *jobset.JobSet, entry *jobset.Attempt) *batch.JobSetActionStatus {
	what := "the JobSet"
	switch entry.Scope {
	case jobset.ScopeReplicatedJob:
		what = "replicatedJob " + entry.ReplicatedJob
	case jobset.ScopeJob:
		what = fmt.Sprintf("job %d of replicatedJob %s", ptr.Deref(entry.JobIndex, 0), entry.ReplicatedJob)
	}
	return began(js, entry, "%s was restarted as attempt %d", what, entry.Number)
}

// targets returns the indices of the Jobs to restart, none for the whole set, and what is wrong with the target.
func targets(js *jobset.JobSet, spec *batch.JobSetRestartSpec) ([]int32, field.ErrorList) {
	if scopeOf(spec) == jobset.ScopeJobSet {
		return nil, nil
	}
	path := field.NewPath("spec")
	var names []string
	for i := range js.Spec.ReplicatedJobs {
		rj := &js.Spec.ReplicatedJobs[i]
		names = append(names, rj.Name)
		if rj.Name == spec.ReplicatedJob {
			return targetsIn(rj, spec, path)
		}
	}
	return nil, field.ErrorList{field.Invalid(path.Child("replicatedJob"), spec.ReplicatedJob,
		"must be the name of a replicatedJob of the JobSet: "+strings.Join(names, ", "))}
}

func targetsIn(rj *jobset.ReplicatedJob, spec *batch.JobSetRestartSpec, path *field.Path) ([]int32, field.ErrorList) {
	replicas := ptr.Deref(rj.Replicas, 1)
	switch index := spec.JobIndex; {
	case replicas < 1:
		return nil, field.ErrorList{field.Invalid(path.Child("replicatedJob"), rj.Name, "must have at least 1 Job, but its replicas are 0")}
	case replicas > jobset.MaxCountedJobs:
		return nil, field.ErrorList{field.Invalid(path.Child("replicatedJob"), rj.Name, fmt.Sprintf(
			"must have at most %d Jobs to be restarted separately, but has %d; restart the whole JobSet", jobset.MaxCountedJobs, replicas))}
	case index != nil && (*index < 0 || *index >= replicas):
		return nil, field.ErrorList{field.Invalid(path.Child("jobIndex"), *index, fmt.Sprintf(
			"must be the index of a Job of replicatedJob %s, from 0 to %d", rj.Name, replicas-1))}
	case index != nil:
		return []int32{*index}, nil
	}
	all := make([]int32, replicas)
	for i := range all {
		all[i] = int32(i)
	}
	return all, nil
}

// checkBudget refuses restarts that are to count when fewer than n are left.
func checkBudget(js *jobset.JobSet, spec *batch.JobSetRestartSpec, n int64) error {
	if !spec.CountTowardsMaxRestarts {
		return nil
	}
	policy := js.Spec.FailurePolicy
	if policy == nil {
		return conflict(js, "the JobSet has no failure policy, so restarts cannot count towards maxRestarts; leave countTowardsMaxRestarts out")
	}
	versioned := Versioned(js)
	used, limit := helper.CountedRestarts(&versioned.Status), helper.RestartLimit(versioned)
	if used+n > limit {
		return conflict(js, "the restart would use %d of the restarts that the failure policy allows, but %d of %d are already used; leave "+
			"countTowardsMaxRestarts out",
			n, used, limit)
	}
	return nil
}

func restartAll(js *jobset.JobSet, spec *batch.JobSetRestartSpec, call Call) {
	call.restartExecution(js)
	if spec.CountTowardsMaxRestarts {
		js.Status.RestartsCountTowardsMax++
	}
	setCondition(js, metav1.NewTime(call.Now.Truncate(seconds)), jobset.ConditionRestarting, metav1.ConditionTrue,
		ReasonRestartRequested, call.signed("restart requested", spec.Reason))
}

// countJobs moves single Jobs to their next attempt. The counters have one item per Job of the replicatedJob.
func countJobs(js *jobset.JobSet, spec *batch.JobSetRestartSpec, jobs []int32) {
	counts := &js.Status.ReplicatedJobsStatus
	at := slices.IndexFunc(*counts, func(c jobset.ReplicatedJobStatus) bool { return c.Name == spec.ReplicatedJob })
	if at < 0 {
		// The controller has not counted yet. Its order is by descending name.
		at = slices.IndexFunc(*counts, func(c jobset.ReplicatedJobStatus) bool { return c.Name < spec.ReplicatedJob })
		if at < 0 {
			at = len(*counts)
		}
		*counts = slices.Insert(*counts, at, jobset.ReplicatedJobStatus{Name: spec.ReplicatedJob})
	}
	length := int32(1)
	for i := range js.Spec.ReplicatedJobs {
		if rj := &js.Spec.ReplicatedJobs[i]; rj.Name == spec.ReplicatedJob {
			length = ptr.Deref(rj.Replicas, 1)
		}
	}
	count := &(*counts)[at]
	count.JobRestarts = incremented(count.JobRestarts, length, jobs)
	if spec.CountTowardsMaxRestarts {
		count.JobRestartsCountTowardsMax = incremented(count.JobRestartsCountTowardsMax, length, jobs)
	}
}

// incremented returns counters of the length, with some of them moved on.
func incremented(counters []int32, length int32, indices []int32) []int32 {
	next := make([]int32, length)
	copy(next, counters)
	for _, i := range indices {
		next[i]++
	}
	return next
}

func copyOf(p *int32) *int32 {
	if p == nil {
		return nil
	}
	return ptr.To(*p)
}
