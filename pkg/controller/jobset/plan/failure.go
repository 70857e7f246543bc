// Copyright The jobset-apiserver Authors.
// SPDX-License-Identifier: Apache-2.0

package plan

import (
	"fmt"
	"math"
	"regexp"
	"slices"
	"time"

	batchv1 "k8s.io/api/batch/v1"
	"k8s.io/apimachinery/pkg/util/sets"

	jobsetv1alpha2 "github.com/jobset-apiserver/jobset-apiserver/pkg/apis/jobset/v1alpha2"
	"github.com/jobset-apiserver/jobset-apiserver/pkg/apis/jobset/v1alpha2/helper"
)

// verdict is what a failure means for the set.
type verdict struct {
	// action is FailJobSet, or one of the restarts.
	action jobsetv1alpha2.FailurePolicyAction
	// reason and message are the reason and the message of the condition.
	reason, message string
	// job is the failed Job that decided; nil if none did.
	job *batchv1.Job
	// restarted are the Jobs that are restarted, if it is not the whole set; the one that failed first is the first one.
	restarted []*batchv1.Job
	// rule is the name of the rule that matched it; empty if none did.
	rule string
	// inPlace means that pods which restart where they are decided.
	inPlace bool
}

// failureVerdict returns what the failures of the current attempt lead to; nil if there are none
// (docs/reference/jobset.md#failure-policy).
//
// With the feature, Jobs that are bound to fail count too, for a restart only: that they would fail is as good as known,
// and their pods are about to be deleted anyway, so the restart need not wait for the slowest of them to end. A set fails
// for good only on account of a Job that has ended: what ends with the set, like the quota of a queueing system, must
// not be given back while pods still run.
func failureVerdict(o Observed, owned children) *verdict {
	if o.Gates.RestartOnFailureTarget && len(owned.failureTarget) > 0 && !suspended(o.JobSet) {
		if v := verdictOn(o, slices.Concat(owned.failed, owned.failureTarget)); v.action != jobsetv1alpha2.FailJobSet {
			return &v
		}
	}
	if len(owned.failed) == 0 {
		return nil
	}
	v := verdictOn(o, owned.failed)
	return &v
}

const messageReachedMaxRestarts = "jobset failed due to reaching max number of restarts"

func verdictOn(o Observed, jobs []*batchv1.Job) verdict {
	policy := o.JobSet.Spec.FailurePolicy
	if policy == nil {
		return failed(reasonFailedJobs, "jobset failed due to one or more job failures", firstFailed(jobs))
	}
	v := verdict{action: jobsetv1alpha2.RestartJobSet, reason: reasonDefaultFailurePolicy, job: firstFailed(jobs)}
	rule, matching := matchingRule(o, jobs)
	if rule != nil {
		v = verdict{action: rule.Action, reason: reasonFailurePolicyPrefix + rule.Name, job: firstFailed(matching), rule: rule.Name}
	}
	left := helper.RestartLimit(o.JobSet) - helper.CountedRestarts(&o.JobSet.Status)
	switch {
	case v.action == jobsetv1alpha2.FailJobSet:
		return failed(reasonFailJobSetAction, "applying FailJobSet failure policy action", v.job)
	case !counted(v.action):
		left = math.MaxInt64
	case left <= 0:
		return failed(reasonReachedMaxRestarts, messageReachedMaxRestarts, v.job)
	}
	message := fmt.Sprintf("applying %s failure policy action", v.action)
	if restartsSingleJob(v.action) {
		v.restarted = restartedJobs(matching, left)
		if n := len(v.restarted); n > 1 {
			message += fmt.Sprintf(" to %d jobs", n)
		}
	}
	v.message = helper.WithFirstFailedJob(message, v.job.Name)
	return v
}

// restartedJobs returns those of the failed Jobs that may be restarted, in the order in which they failed. Upstream restarts
// one Job with each write of the status, in this order; the result is the same, also where the maximum is in the middle: the
// next Job then ends the set.
func restartedJobs(matching []*batchv1.Job, left int64) []*batchv1.Job {
	inOrder := slices.SortedStableFunc(slices.Values(matching), func(a, b *batchv1.Job) int { return failureTime(a).Compare(failureTime(b)) })
	return inOrder[:min(int64(len(inOrder)), left)]
}

func failed(reason, message string, job *batchv1.Job) verdict {
	return verdict{action: jobsetv1alpha2.FailJobSet, reason: reason, message: helper.WithFirstFailedJob(message, job.Name), job: job}
}

// matchingRule returns the first rule that matches a failed Job, and the Jobs that it matches.
func matchingRule(o Observed, jobs []*batchv1.Job) (*jobsetv1alpha2.FailurePolicyRule, []*batchv1.Job) {
	rules := o.JobSet.Spec.FailurePolicy.Rules
	for i := range rules {
		rule := &rules[i]
		// A set can be stored while the feature is on and be run after it was turned off. Its rule then counts as absent.
		if restartsSingleJob(rule.Action) && !o.Gates.RestartJob {
			continue
		}
		if matching := matchingJobs(rule, jobs); len(matching) > 0 {
			return rule, matching
		}
	}
	return nil, nil
}

func matchingJobs(rule *jobsetv1alpha2.FailurePolicyRule, jobs []*batchv1.Job) []*batchv1.Job {
	patterns := compilePatterns(rule.OnJobFailureMessagePatterns)
	targets, reasons := sets.New(rule.TargetReplicatedJobs...), sets.New(rule.OnJobFailureReasons...)
	var matching []*batchv1.Job
	for _, job := range jobs {
		failure := failureOf(job)
		if (len(targets) == 0 || targets.Has(replicatedJobOf(job))) &&
			(len(reasons) == 0 || reasons.Has(failure.Reason)) &&
			(len(rule.OnJobFailureMessagePatterns) == 0 || slices.ContainsFunc(patterns, func(p *regexp.Regexp) bool {
				return p.MatchString(failure.Message)
			})) {
			matching = append(matching, job)
		}
	}
	return matching
}

// compilePatterns leaves out what does not compile. Our API refuses such patterns; a set stored by other means keeps
// the meaning it has upstream.
func compilePatterns(patterns []string) []*regexp.Regexp {
	var compiled []*regexp.Regexp
	for _, pattern := range patterns {
		if re, err := regexp.Compile(pattern); err == nil {
			compiled = append(compiled, re)
		}
	}
	return compiled
}

// firstFailed returns the Job that failed earliest, the one first by name among several; nil if there is none.
func firstFailed(jobs []*batchv1.Job) *batchv1.Job {
	var first *batchv1.Job
	for _, job := range jobs {
		if first == nil || failureTime(job).Before(failureTime(first)) {
			first = job
		}
	}
	return first
}

func failureTime(job *batchv1.Job) time.Time {
	return failureOf(job).LastTransitionTime.Time
}

// failureOf returns the condition of a Job that has failed, or is bound to. The Job controller gives both conditions the
// same reason and message.
func failureOf(job *batchv1.Job) *batchv1.JobCondition {
	if c := helper.TrueJobCondition(job, batchv1.JobFailed); c != nil {
		return c
	}
	return helper.TrueJobCondition(job, batchv1.JobFailureTarget)
}

func restartsSingleJob(action jobsetv1alpha2.FailurePolicyAction) bool {
	return action == jobsetv1alpha2.RestartJob || action == jobsetv1alpha2.RestartJobAndIgnoreMaxRestarts
}

// counted reports whether a restart by the action counts towards maxRestarts.
func counted(action jobsetv1alpha2.FailurePolicyAction) bool {
	return action == jobsetv1alpha2.RestartJobSet || action == jobsetv1alpha2.RestartJob
}
