// Copyright The jobset-apiserver Authors.
// SPDX-License-Identifier: Apache-2.0

package validation

import (
	"fmt"
	"math"
	"regexp"
	"regexp/syntax"
	"slices"
	"strings"

	batchv1 "k8s.io/api/batch/v1"
	"k8s.io/apimachinery/pkg/util/validation/field"
	"k8s.io/utils/ptr"

	generic "github.com/jobset-apiserver/jobset-apiserver/pkg/apis/generic/validation"
	"github.com/jobset-apiserver/jobset-apiserver/pkg/apis/jobset"
	"github.com/jobset-apiserver/jobset-apiserver/pkg/apis/jobset/gates"
)

const maxRuleNameLength = 128

var (
	ruleName = regexp.MustCompile(`^[A-Za-z]([A-Za-z0-9_,:]*[A-Za-z0-9_])?$`)
	// The values of gates come last.
	restartStrategies = []jobset.JobSetRestartStrategy{
		jobset.RestartStrategyRecreate, jobset.RestartStrategyBlockingRecreate, jobset.RestartStrategyInPlaceRestart,
	}
	actions = []jobset.FailurePolicyAction{
		jobset.FailJobSet, jobset.RestartJobSet, jobset.RestartJobSetAndIgnoreMaxRestarts,
		jobset.RestartJob, jobset.RestartJobAndIgnoreMaxRestarts,
	}
	failureReasons = []string{
		batchv1.JobReasonBackoffLimitExceeded, batchv1.JobReasonDeadlineExceeded, batchv1.JobReasonFailedIndexes,
		batchv1.JobReasonMaxFailedIndexesExceeded, batchv1.JobReasonPodFailurePolicy,
	}
)

// UsesRestartJob reports whether the spec needs the feature gate RestartJob.
func UsesRestartJob(spec *jobset.JobSetSpec) bool {
	if spec.FailurePolicy == nil {
		return false
	}
	for i := range spec.FailurePolicy.Rules {
		if restartsSingleJobs(spec.FailurePolicy.Rules[i].Action) {
			return true
		}
	}
	return false
}

func restartsSingleJobs(action jobset.FailurePolicyAction) bool {
	return action == jobset.RestartJob || action == jobset.RestartJobAndIgnoreMaxRestarts
}

func validateFailurePolicy(spec *jobset.JobSetSpec, opts gates.Gates, specPath *field.Path) field.ErrorList {
	policy := spec.FailurePolicy
	if policy == nil {
		return nil
	}
	path := specPath.Child("failurePolicy")
	errs := enum(path.Child("restartStrategy"), policy.RestartStrategy, strategiesOf(policy.RestartStrategy, opts))
	if policy.RestartStrategy == jobset.RestartStrategyInPlaceRestart && !opts.InPlaceRestart {
		errs = append(errs, field.Forbidden(path.Child("restartStrategy"),
			"must not be InPlaceRestart while the feature gate InPlaceRestart of the API server is off: use Recreate or BlockingRecreate"))
	}
	if gated := validateGatedActions(policy, opts, path.Child("rules")); len(gated) > 0 {
		return append(errs, gated...)
	}
	if UsesRestartJob(spec) {
		errs = append(errs, validateCountedJobs(spec, specPath.Child("replicatedJobs"))...)
	}
	byName, room := jobNames(spec), int64(MaxPatternStates)
	for i := range policy.Rules {
		errs = append(errs, validateRule(byName, &policy.Rules[i], opts, &room, path.Child("rules").Index(i))...)
	}
	return append(errs, validateRuleNames(policy.Rules, path.Child("rules"))...)
}

func validateGatedActions(policy *jobset.FailurePolicy, opts gates.Gates, path *field.Path) field.ErrorList {
	if opts.RestartJob {
		return nil
	}
	var errs field.ErrorList
	for i := range policy.Rules {
		if action := policy.Rules[i].Action; restartsSingleJobs(action) {
			errs = append(errs, field.Forbidden(path.Index(i).Child("action"), fmt.Sprintf(
				"must not be %s while the feature gate RestartJob of the API server is off: use RestartJobSet", action)))
		}
	}
	return errs
}

// strategiesOf returns the restart strategies that are allowed, and the one of a gate that is off where it is chosen: that has
// an error of its own.
func strategiesOf(chosen jobset.JobSetRestartStrategy, opts gates.Gates) []jobset.JobSetRestartStrategy {
	if opts.InPlaceRestart || chosen == jobset.RestartStrategyInPlaceRestart {
		return restartStrategies
	}
	return restartStrategies[:2]
}

// actionsOf returns the actions that are allowed.
func actionsOf(opts gates.Gates) []jobset.FailurePolicyAction {
	if opts.RestartJob {
		return actions
	}
	return actions[:3]
}

// validateCountedJobs reports the first replicatedJob with more Jobs than the status can count single restarts for.
func validateCountedJobs(spec *jobset.JobSetSpec, path *field.Path) field.ErrorList {
	for i := range spec.ReplicatedJobs {
		if count := replicas(&spec.ReplicatedJobs[i]); count > jobset.MaxCountedJobs {
			return field.ErrorList{field.Invalid(path.Index(i).Child("replicas"), count, fmt.Sprintf(
				"must be at most %d if a rule of the failure policy restarts single Jobs", jobset.MaxCountedJobs))}
		}
	}
	return nil
}

// validateRule checks a rule on its own. The room is what earlier patterns of the policy left of the states.
func validateRule(byName map[string]*jobset.ReplicatedJob, rule *jobset.FailurePolicyRule, opts gates.Gates, room *int64,
	path *field.Path) field.ErrorList {
	errs := enum(path.Child("action"), rule.Action, actionsOf(opts))
	errs = append(errs, validateRuleName(rule.Name, path.Child("name"))...)
	errs = append(errs, validateTargets(byName, rule.TargetReplicatedJobs, path.Child("targetReplicatedJobs"))...)
	for i, reason := range rule.OnJobFailureReasons {
		if !slices.Contains(failureReasons, reason) {
			errs = append(errs, field.NotSupported(path.Child("onJobFailureReasons").Index(i), reason, failureReasons))
		}
	}
	for i, pattern := range rule.OnJobFailureMessagePatterns {
		if err := validatePattern(pattern, room, path.Child("onJobFailureMessagePatterns").Index(i)); err != nil {
			errs = append(errs, err)
		}
	}
	return errs
}

func validateRuleName(name string, path *field.Path) field.ErrorList {
	switch {
	case name == "":
		return field.ErrorList{field.Required(path, "must be set: it identifies the rule in conditions")}
	case len(name) > maxRuleNameLength:
		return field.ErrorList{field.TooLong(path, "", maxRuleNameLength)}
	case !ruleName.MatchString(name):
		return field.ErrorList{field.Invalid(path, name,
			"must start with a letter, contain only letters, digits, '_', ',' and ':', and not end with ',' or ':'")}
	}
	return nil
}

// validateRuleNames reports every name that several rules have, once, at the second of them.
func validateRuleNames(rules []jobset.FailurePolicyRule, path *field.Path) field.ErrorList {
	indices := map[string][]int{}
	for i := range rules {
		indices[rules[i].Name] = append(indices[rules[i].Name], i)
	}
	var errs field.ErrorList
	for i := range rules {
		name := rules[i].Name
		if same := indices[name]; name != "" && len(same) > 1 && same[1] == i {
			err := field.Duplicate(path.Index(i).Child("name"), name)
			err.Detail = fmt.Sprintf("must be unique in the policy, but rules %v have it", same)
			errs = append(errs, err)
		}
	}
	return errs
}

var operators = []jobset.Operator{jobset.OperatorAll, jobset.OperatorAny}

func validateSuccessPolicy(spec *jobset.JobSetSpec, path *field.Path) field.ErrorList {
	policy := spec.SuccessPolicy
	if policy == nil {
		return nil
	}
	errs := enum(path.Child("operator"), policy.Operator, operators)
	return append(errs, validateTargets(jobNames(spec), policy.TargetReplicatedJobs, path.Child("targetReplicatedJobs"))...)
}

const (
	// MaxPatternLength is in bytes.
	MaxPatternLength = 1024
	// MaxPatternStates bounds what the patterns of a policy cost together: the time to compile them, and their memory.
	MaxPatternStates = 20_000
)

// validatePattern checks a pattern without compiling it: a few characters can stand for millions of states. An expression
// that parses also compiles. The states are taken from the room.
func validatePattern(pattern string, room *int64, path *field.Path) *field.Error {
	if len(pattern) > MaxPatternLength {
		return field.TooLong(path, "", MaxPatternLength)
	}
	re, err := syntax.Parse(pattern, syntax.Perl)
	if err != nil {
		return field.Invalid(path, pattern, "must be an RE2 regular expression: "+strings.TrimPrefix(err.Error(), "error parsing regexp: "))
	}
	n := states(re)
	if n > *room {
		return field.Invalid(path, pattern, fmt.Sprintf(
			"must be simpler: all patterns of a policy together may have %d states, of which %d are left, and this one has about %d; repeat "+
				"fewer or shorter parts", MaxPatternStates, *room, n))
	}
	*room -= n
	return nil
}

// states estimates the number of instructions that an expression compiles to. Repetitions are written out.
func states(re *syntax.Regexp) int64 {
	var n int64
	for _, sub := range re.Sub {
		n += states(sub)
	}
	switch re.Op {
	case syntax.OpLiteral:
		n += int64(len(re.Rune))
	case syntax.OpRepeat:
		n *= int64(max(re.Min, re.Max, 1))
	}
	return n + 1
}

// UsesInPlaceRestart reports whether the spec needs the feature gate InPlaceRestart.
func UsesInPlaceRestart(spec *jobset.JobSetSpec) bool {
	return spec.FailurePolicy != nil && spec.FailurePolicy.RestartStrategy == jobset.RestartStrategyInPlaceRestart
}

// validateInPlaceRestart checks what restarting containers in their pods needs of the Jobs: that the Job controller
// neither gives up on failed pods nor replaces them early, and that every pod runs at the same time.
func validateInPlaceRestart(spec *jobset.JobSetSpec, opts gates.Gates, path *field.Path) field.ErrorList {
	if !opts.InPlaceRestart || !UsesInPlaceRestart(spec) {
		return nil
	}
	var errs field.ErrorList
	for i := range spec.ReplicatedJobs {
		job, p := &spec.ReplicatedJobs[i].Template.Spec, path.Child("replicatedJobs").Index(i).Child("template", "spec")
		if ptr.Deref(job.BackoffLimit, 0) != math.MaxInt32 {
			errs = append(errs, field.Invalid(p.Child("backoffLimit"), generic.ValueOf(job.BackoffLimit),
				fmt.Sprintf("must be %d with the restart strategy InPlaceRestart", math.MaxInt32)))
		}
		if ptr.Deref(job.PodReplacementPolicy, "") != batchv1.Failed {
			errs = append(errs, field.Invalid(p.Child("podReplacementPolicy"), generic.ValueOf(job.PodReplacementPolicy),
				"must be Failed with the restart strategy InPlaceRestart"))
		}
		if job.Completions == nil || job.Parallelism == nil || *job.Completions != *job.Parallelism {
			errs = append(errs, field.Invalid(p.Child("completions"), generic.ValueOf(job.Completions),
				"must be set and equal to parallelism with the restart strategy InPlaceRestart"))
		}
	}
	return errs
}
