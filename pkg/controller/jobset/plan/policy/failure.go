// Copyright The jobset-apiserver Authors.
// SPDX-License-Identifier: Apache-2.0

// Package policy has the rules of the failure policy and the success policy of a JobSet: what the Jobs that have ended mean for
// the set. It reads the set and its Jobs, and changes nothing.
package policy

import (
	"fmt"
	"math"
	"regexp"
	"slices"
	"time"

	batchv1 "k8s.io/api/batch/v1"
	"k8s.io/apimachinery/pkg/util/sets"
	"k8s.io/utils/ptr"

	"github.com/jobset-apiserver/jobset-apiserver/pkg/apis/jobset/gates"
	jobsetv1alpha2 "github.com/jobset-apiserver/jobset-apiserver/pkg/apis/jobset/v1alpha2"
	"github.com/jobset-apiserver/jobset-apiserver/pkg/apis/jobset/v1alpha2/helper"
)

// Reasons and messages of conditions (docs/reference/jobset.md#conditions).
const (
	reasonFailedJobs      = "FailedJobs"
	reasonFailJobSet      = "FailJobSetFailurePolicyAction"
	reasonRulePrefix      = "FailurePolicy_"
	reasonDefaultPolicy   = "DefaultFailurePolicy"
	messageReachedMaximum = "jobset failed due to reaching max number of restarts"
)

// Verdict is what a policy means for the set.
type Verdict struct {
	// Completes means that the set has succeeded. Nothing else is set then.
	Completes bool
	// Action is FailJobSet, or one of the restarts.
	Action jobsetv1alpha2.FailurePolicyAction
	// Reason and Message are the reason and the message of the condition.
	Reason, Message string
	// Job is the failed Job that decided; nil if none did.
	Job *batchv1.Job
	// Restarted are the Jobs that are restarted, if it is not the whole set; the one that failed first is the first one.
	Restarted []*batchv1.Job
	// Rule is the name of the rule that matched the Job; empty if none did.
	Rule string
	// InPlace means that pods which restart where they are decided.
	InPlace bool
}

// TooManyRestarts ends a set whose pods have restarted too often where they are.
func TooManyRestarts() *Verdict {
	return &Verdict{Action: jobsetv1alpha2.FailJobSet, Reason: helper.ReasonReachedMaxRestarts, Message: messageReachedMaximum, InPlace: true}
}

// OnFailure returns what the failures of the current attempt lead to; nil if there are none
// (docs/reference/jobset.md#failure-policy).
//
// With the feature, Jobs that are bound to fail count too, for a restart only: that they would fail is as good as known,
// and their pods are about to be deleted anyway, so the restart need not wait for the slowest of them to end. A set fails
// for good only on account of a Job that has ended: what ends with the set, like the quota of a queueing system, must
// not be given back while pods still run.
//
// The failed Jobs have ended, and the targets are bound to fail.
func OnFailure(js *jobsetv1alpha2.JobSet, g gates.Gates, failed, targets []*batchv1.Job) *Verdict {
	if g.RestartOnFailureTarget && len(targets) > 0 && !ptr.Deref(js.Spec.Suspend, false) {
		if v := on(js, g, slices.Concat(failed, targets)); v.Action != jobsetv1alpha2.FailJobSet {
			return &v
		}
	}
	if len(failed) == 0 {
		return nil
	}
	v := on(js, g, failed)
	return &v
}

func on(js *jobsetv1alpha2.JobSet, g gates.Gates, jobs []*batchv1.Job) Verdict {
	policy := js.Spec.FailurePolicy
	if policy == nil {
		return failed(reasonFailedJobs, "jobset failed due to one or more job failures", FirstFailed(jobs))
	}
	v := Verdict{Action: jobsetv1alpha2.RestartJobSet, Reason: reasonDefaultPolicy, Job: FirstFailed(jobs)}
	rule, matching := matchingRule(js, g, jobs)
	if rule != nil {
		v = Verdict{Action: rule.Action, Reason: reasonRulePrefix + rule.Name, Job: FirstFailed(matching), Rule: rule.Name}
	}
	left := helper.RestartLimit(js) - helper.CountedRestarts(&js.Status)
	switch {
	case v.Action == jobsetv1alpha2.FailJobSet:
		return failed(reasonFailJobSet, "applying FailJobSet failure policy action", v.Job)
	case !Counted(v.Action):
		left = math.MaxInt64
	case left <= 0:
		return failed(helper.ReasonReachedMaxRestarts, messageReachedMaximum, v.Job)
	}
	message := fmt.Sprintf("applying %s failure policy action", v.Action)
	if restartsSingleJob(v.Action) {
		v.Restarted = restartedJobs(matching, left)
		if n := len(v.Restarted); n > 1 {
			message += fmt.Sprintf(" to %d jobs", n)
		}
	}
	v.Message = helper.WithFirstFailedJob(message, v.Job.Name)
	return v
}

// restartedJobs returns those of the failed Jobs that may be restarted, in the order in which they failed. Upstream restarts
// one Job with each write of the status, in this order; the result is the same, also where the maximum is in the middle: the
// next Job then ends the set.
func restartedJobs(matching []*batchv1.Job, left int64) []*batchv1.Job {
	inOrder := slices.SortedStableFunc(slices.Values(matching), func(a, b *batchv1.Job) int { return failureTime(a).Compare(failureTime(b)) })
	return inOrder[:min(int64(len(inOrder)), left)]
}

func failed(reason, message string, job *batchv1.Job) Verdict {
	return Verdict{Action: jobsetv1alpha2.FailJobSet, Reason: reason, Message: helper.WithFirstFailedJob(message, job.Name), Job: job}
}

// matchingRule returns the first rule that matches a failed Job, and the Jobs that it matches.
func matchingRule(js *jobsetv1alpha2.JobSet, g gates.Gates, jobs []*batchv1.Job) (*jobsetv1alpha2.FailurePolicyRule, []*batchv1.Job) {
	rules := js.Spec.FailurePolicy.Rules
	for i := range rules {
		rule := &rules[i]
		// A set can be stored while the feature is on and be run after it was turned off. Its rule then counts as absent.
		if restartsSingleJob(rule.Action) && !g.RestartJob {
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
		failure := FailureOf(job)
		if (len(targets) == 0 || targets.Has(job.Labels[jobsetv1alpha2.ReplicatedJobNameKey])) &&
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

// FirstFailed returns the Job that failed earliest, the one first by name among several; nil if there is none.
func FirstFailed(jobs []*batchv1.Job) *batchv1.Job {
	var first *batchv1.Job
	for _, job := range jobs {
		if first == nil || failureTime(job).Before(failureTime(first)) {
			first = job
		}
	}
	return first
}

func failureTime(job *batchv1.Job) time.Time {
	return FailureOf(job).LastTransitionTime.Time
}

// FailureOf returns the condition of a Job that has failed, or is bound to. The Job controller gives both conditions the
// same reason and message.
func FailureOf(job *batchv1.Job) *batchv1.JobCondition {
	if c := helper.TrueJobCondition(job, batchv1.JobFailed); c != nil {
		return c
	}
	return helper.TrueJobCondition(job, batchv1.JobFailureTarget)
}

func restartsSingleJob(action jobsetv1alpha2.FailurePolicyAction) bool {
	return action == jobsetv1alpha2.RestartJob || action == jobsetv1alpha2.RestartJobAndIgnoreMaxRestarts
}

// Counted reports whether a restart by the action counts towards maxRestarts.
func Counted(action jobsetv1alpha2.FailurePolicyAction) bool {
	return action == jobsetv1alpha2.RestartJobSet || action == jobsetv1alpha2.RestartJob
}
