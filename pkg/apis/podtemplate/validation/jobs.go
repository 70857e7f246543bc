// Copyright The jobset-apiserver Authors.
// SPDX-License-Identifier: Apache-2.0

package validation

import (
	"fmt"
	"math"
	"slices"

	batchv1 "k8s.io/api/batch/v1"
	corev1 "k8s.io/api/core/v1"
	"k8s.io/apimachinery/pkg/util/validation/field"
	"k8s.io/utils/ptr"
)

const (
	maxPodFailureRules = 20
	maxExitCodes       = 255
)

// ValidateJob reports what no Job can have, whatever is added to it: values out of their range, and values that contradict
// each other. The API server of the main cluster refuses Jobs with them. What is only missing is left to Missing, because
// admission webhooks may add it to the Jobs.
func ValidateJob(template *batchv1.JobTemplateSpec, path *field.Path) field.ErrorList {
	c := &checker{}
	spec, p := &template.Spec, path.Child("spec")
	c.labels(template.Labels, path.Child("metadata", "labels"))
	c.annotations(template.Annotations, path.Child("metadata", "annotations"))
	notNegative(c, p.Child("parallelism"), spec.Parallelism)
	notNegative(c, p.Child("completions"), spec.Completions)
	notNegative(c, p.Child("backoffLimit"), spec.BackoffLimit)
	notNegative(c, p.Child("backoffLimitPerIndex"), spec.BackoffLimitPerIndex)
	notNegative(c, p.Child("maxFailedIndexes"), spec.MaxFailedIndexes)
	notNegative(c, p.Child("activeDeadlineSeconds"), spec.ActiveDeadlineSeconds)
	notNegative(c, p.Child("ttlSecondsAfterFinished"), spec.TTLSecondsAfterFinished)
	c.completionMode(spec, p)
	c.jobRestartPolicy(spec, p)
	c.podFailureRules(spec, p.Child("podFailurePolicy"))
	c.pod(&spec.Template, p.Child("template"))
	return c.errs
}

// ValidatePods reports what no pod of a StatefulSet can have, as ValidateJob does for Jobs.
func ValidatePods(template *corev1.PodTemplateSpec, path *field.Path) field.ErrorList {
	c := &checker{}
	if policy := template.Spec.RestartPolicy; policy != "" && policy != corev1.RestartPolicyAlways {
		c.errs = append(c.errs, field.NotSupported(path.Child("spec", "restartPolicy"), policy,
			[]corev1.RestartPolicy{corev1.RestartPolicyAlways}))
	}
	c.pod(template, path)
	return c.errs
}

func (c *checker) refuse(path *field.Path, value any, format string, args ...any) {
	c.errs = append(c.errs, field.Invalid(path, value, fmt.Sprintf(format, args...)))
}

func notNegative[T int32 | int64](c *checker, path *field.Path, value *T) {
	if value != nil && *value < 0 {
		c.refuse(path, *value, "must be 0 or more")
	}
}

// completionMode checks what only Jobs with indexes can have.
func (c *checker) completionMode(spec *batchv1.JobSpec, path *field.Path) {
	mode := ptr.Deref(spec.CompletionMode, "")
	if mode != "" && mode != batchv1.IndexedCompletion && mode != batchv1.NonIndexedCompletion {
		c.errs = append(c.errs, field.NotSupported(path.Child("completionMode"), mode, []batchv1.CompletionMode{batchv1.IndexedCompletion,
			batchv1.NonIndexedCompletion}))
		return
	}
	if spec.MaxFailedIndexes != nil && spec.BackoffLimitPerIndex == nil {
		c.refuse(path.Child("maxFailedIndexes"), *spec.MaxFailedIndexes, "can be set only together with backoffLimitPerIndex")
	}
	if mode == batchv1.IndexedCompletion {
		return
	}
	if spec.BackoffLimitPerIndex != nil {
		c.refuse(path.Child("backoffLimitPerIndex"), *spec.BackoffLimitPerIndex, "can be set only with completionMode Indexed")
	}
	if spec.SuccessPolicy != nil {
		c.refuse(path.Child("successPolicy"), field.OmitValueType{}, "can be set only with completionMode Indexed")
	}
}

// jobRestartPolicy checks the policy that Jobs need. An absent one is filled in when a set is created.
func (c *checker) jobRestartPolicy(spec *batchv1.JobSpec, path *field.Path) {
	policy, p := spec.Template.Spec.RestartPolicy, path.Child("template", "spec", "restartPolicy")
	switch {
	case policy == "" || policy == corev1.RestartPolicyNever:
	case policy != corev1.RestartPolicyOnFailure:
		c.errs = append(c.errs, field.NotSupported(p, policy, []corev1.RestartPolicy{corev1.RestartPolicyOnFailure, corev1.RestartPolicyNever}))
	case spec.PodFailurePolicy != nil:
		c.refuse(p, policy, "must be Never if podFailurePolicy is set; the default is OnFailure")
	}
	if spec.PodFailurePolicy != nil && ptr.Deref(spec.PodReplacementPolicy, batchv1.Failed) != batchv1.Failed {
		c.refuse(path.Child("podReplacementPolicy"), *spec.PodReplacementPolicy, "must be Failed if podFailurePolicy is set")
	}
}

func (c *checker) podFailureRules(spec *batchv1.JobSpec, path *field.Path) {
	policy := spec.PodFailurePolicy
	if policy == nil {
		return
	}
	if n := len(policy.Rules); n > maxPodFailureRules {
		c.errs = append(c.errs, field.TooMany(path.Child("rules"), n, maxPodFailureRules))
		return
	}
	for i := range policy.Rules {
		rule, p := &policy.Rules[i], path.Child("rules").Index(i)
		if rule.Action == batchv1.PodFailurePolicyActionFailIndex && spec.BackoffLimitPerIndex == nil {
			c.refuse(p.Child("action"), rule.Action, "can be FailIndex only if backoffLimitPerIndex is set")
		}
		switch {
		case rule.OnExitCodes == nil && len(rule.OnPodConditions) == 0:
			c.refuse(p, field.OmitValueType{}, "must have onExitCodes or onPodConditions")
		case rule.OnExitCodes != nil && len(rule.OnPodConditions) > 0:
			c.refuse(p, field.OmitValueType{}, "must have either onExitCodes or onPodConditions, not both")
		}
		if rule.OnExitCodes != nil {
			c.exitCodes(rule.OnExitCodes, p.Child("onExitCodes", "values"))
		}
	}
}

func (c *checker) exitCodes(codes *batchv1.PodFailurePolicyOnExitCodesRequirement, path *field.Path) {
	switch n := len(codes.Values); {
	case n > maxExitCodes:
		c.errs = append(c.errs, field.TooMany(path, n, maxExitCodes))
		return
	case n == 0 && codes.Values != nil:
		c.refuse(path, field.OmitValueType{}, "must have 1 or more exit codes")
	}
	if codes.Operator == batchv1.PodFailurePolicyOnExitCodesOpIn && slices.Contains(codes.Values, 0) {
		c.refuse(path, field.OmitValueType{}, "must not have 0 with the operator In, because a container that exits with 0 has not failed")
	}
	for i := 1; i < len(codes.Values); i++ {
		if codes.Values[i] <= codes.Values[i-1] {
			c.refuse(path.Index(i), codes.Values[i], "must be greater than the value before it: sort the exit codes, and remove duplicates")
			return
		}
	}
}

func (c *checker) pod(template *corev1.PodTemplateSpec, path *field.Path) {
	c.labels(template.Labels, path.Child("metadata", "labels"))
	c.annotations(template.Annotations, path.Child("metadata", "annotations"))
	spec, p := &template.Spec, path.Child("spec")
	if s := spec.ActiveDeadlineSeconds; s != nil && (*s < 1 || *s > math.MaxInt32) {
		c.refuse(p.Child("activeDeadlineSeconds"), *s, "must be from 1 to %d", math.MaxInt32)
	}
	c.labels(spec.NodeSelector, p.Child("nodeSelector"))
	for i, toleration := range spec.Tolerations {
		if toleration.Operator == corev1.TolerationOpExists && toleration.Value != "" {
			c.refuse(p.Child("tolerations").Index(i).Child("value"), toleration.Value, "must be left out with the operator Exists")
		}
	}
	for i := range spec.Volumes {
		c.volumeOfPod(&spec.Volumes[i], p.Child("volumes").Index(i))
	}
	names := map[string]struct{}{}
	for i := range spec.Containers {
		names[spec.Containers[i].Name] = struct{}{}
		c.containerOfPod(&spec.Containers[i], p.Child("containers").Index(i))
	}
	for i := range spec.InitContainers {
		container, p := &spec.InitContainers[i], p.Child("initContainers").Index(i)
		if _, taken := names[container.Name]; taken && container.Name != "" {
			err := field.Duplicate(p.Child("name"), container.Name)
			err.Detail = "must not be the name of a container of the pod: rename one of the two"
			c.errs = append(c.errs, err)
		}
		c.containerOfPod(container, p)
	}
}
