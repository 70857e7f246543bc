// Copyright The jobset-apiserver Authors.
// SPDX-License-Identifier: Apache-2.0

package simulation

import (
	"regexp"
	"slices"
	"time"

	batchv1 "k8s.io/api/batch/v1"

	jobsetv1alpha2 "github.com/jobset-apiserver/jobset-apiserver/pkg/apis/jobset/v1alpha2"
	"github.com/jobset-apiserver/jobset-apiserver/pkg/controller/jobset/plan"
)

// This file is the part of the model that applies the policies of a set.

// hasSucceeded reports whether the success policy is met (docs/reference/jobset.md#success-policy).
func hasSucceeded(o plan.Observed) bool {
	policy := o.JobSet.Spec.SuccessPolicy
	var have, all int32
	for i := range o.JobSet.Spec.ReplicatedJobs {
		rj := &o.JobSet.Spec.ReplicatedJobs[i]
		if len(policy.TargetReplicatedJobs) == 0 || slices.Contains(policy.TargetReplicatedJobs, rj.Name) {
			have += count(o, rj.Name).Succeeded
			all += *rj.Replicas
		}
	}
	if policy.Operator == jobsetv1alpha2.OperatorAny {
		return have > 0
	}
	return len(having(o, succeeded)) > 0 && have == all
}

// ruling is what a success, a failure or a deadline leads to.
type ruling struct {
	// reason is the reason of the condition that ends the set, if it succeeds or fails, or that of the restart of the set.
	succeeds, fails bool
	reason          string
	action          jobsetv1alpha2.FailurePolicyAction
	job             *batchv1.Job
	// restarted are the Jobs that are restarted one by one, in this order.
	restarted []*batchv1.Job
}

func (r ruling) counts() bool {
	return r.action == jobsetv1alpha2.RestartJobSet || r.action == jobsetv1alpha2.RestartJob
}

func (r ruling) restartsJobs() bool {
	return r.action == jobsetv1alpha2.RestartJob || r.action == jobsetv1alpha2.RestartJobAndIgnoreMaxRestarts
}

// rulingOn returns what ends the present attempt of a set that is not finished; nil if nothing does.
func rulingOn(o plan.Observed) *ruling {
	failures := having(o, failed)
	if len(failures) == 0 && hasSucceeded(o) {
		return &ruling{succeeds: true, reason: "AllJobsCompleted"}
	}
	if deadlineIsOver(o) {
		return &ruling{fails: true, reason: "DeadlineExceeded"}
	}
	if failureTarget := slices.DeleteFunc(having(o, active), func(job *batchv1.Job) bool { return failureOf(job) == nil }); len(failureTarget) > 0 &&
		o.Gates.RestartOnFailureTarget && !isSuspended(o.JobSet) {
		if r := rule(o, slices.Concat(failures, failureTarget)); !r.fails {
			return &r
		}
	}
	if len(failures) == 0 {
		return nil
	}
	r := rule(o, failures)
	return &r
}

// deadlineIsOver reports whether the set has run for too long (docs/reference/jobset.md#fields-of-the-coming-release).
func deadlineIsOver(o plan.Observed) bool {
	limit, start := o.JobSet.Spec.ActiveDeadlineSeconds, o.JobSet.Status.StartTime
	return o.Gates.JobSetActiveDeadlineSeconds && limit != nil && start != nil && !isSuspended(o.JobSet) &&
		o.Now.Sub(start.Time) >= time.Duration(*limit)*time.Second
}

// failureOf returns the condition of a Job that has failed or is about to; nil of others.
func failureOf(job *batchv1.Job) *batchv1.JobCondition {
	if c := conditionOf(job, batchv1.JobFailed); c != nil {
		return c
	}
	return conditionOf(job, batchv1.JobFailureTarget)
}

// rule applies the failure policy (docs/reference/jobset.md#failure-policy).
func rule(o plan.Observed, failures []*batchv1.Job) ruling {
	policy := o.JobSet.Spec.FailurePolicy
	if policy == nil {
		return ruling{fails: true, reason: "FailedJobs", job: earliest(failures)}
	}
	r := ruling{action: jobsetv1alpha2.RestartJobSet, reason: "DefaultFailurePolicy", job: earliest(failures)}
	var matching []*batchv1.Job
	for i := range policy.Rules {
		candidate := ruling{action: policy.Rules[i].Action, reason: "FailurePolicy_" + policy.Rules[i].Name}
		if candidate.restartsJobs() && !o.Gates.RestartJob {
			continue
		}
		matching = slices.DeleteFunc(slices.Clone(failures), func(job *batchv1.Job) bool { return !matches(&policy.Rules[i], job) })
		if len(matching) > 0 {
			candidate.job = earliest(matching)
			r = candidate
			break
		}
	}
	left := policy.MaxRestarts + o.JobSet.Status.AddedRestarts - restartsThatCount(&o.JobSet.Status)
	switch {
	case r.action == jobsetv1alpha2.FailJobSet:
		r.fails, r.reason = true, "FailJobSetFailurePolicyAction"
	case r.counts() && left <= 0:
		r.fails, r.reason = true, "ReachedMaxRestarts"
	case r.restartsJobs():
		for ; len(matching) > 0 && (left > 0 || !r.counts()); left-- {
			next := earliest(matching)
			r.restarted = append(r.restarted, next)
			matching = slices.DeleteFunc(matching, func(job *batchv1.Job) bool { return job == next })
		}
	}
	return r
}

func matches(rule *jobsetv1alpha2.FailurePolicyRule, job *batchv1.Job) bool {
	failure := failureOf(job)
	matched := len(rule.OnJobFailureMessagePatterns) == 0
	for _, pattern := range rule.OnJobFailureMessagePatterns {
		found, err := regexp.MatchString(pattern, failure.Message)
		matched = matched || err == nil && found
	}
	return matched &&
		(len(rule.OnJobFailureReasons) == 0 || slices.Contains(rule.OnJobFailureReasons, failure.Reason)) &&
		(len(rule.TargetReplicatedJobs) == 0 || slices.Contains(rule.TargetReplicatedJobs, job.Labels[jobsetv1alpha2.ReplicatedJobNameKey]))
}

// earliest returns the Job that failed first. The Jobs are sorted by name, which decides between equals.
func earliest(jobs []*batchv1.Job) *batchv1.Job {
	first := jobs[0]
	for _, job := range jobs {
		if failureOf(job).LastTransitionTime.Time.Before(failureOf(first).LastTransitionTime.Time) {
			first = job
		}
	}
	return first
}

func restartsThatCount(status *jobsetv1alpha2.JobSetStatus) int32 {
	n := status.RestartsCountTowardsMax
	for _, counters := range status.ReplicatedJobsStatus {
		for _, restarts := range counters.JobRestartsCountTowardsMax {
			n += restarts
		}
	}
	return n
}
