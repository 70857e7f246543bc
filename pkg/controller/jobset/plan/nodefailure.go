// Copyright The jobset-apiserver Authors.
// SPDX-License-Identifier: Apache-2.0

package plan

import (
	"fmt"
	"slices"
	"strings"

	corev1 "k8s.io/api/core/v1"

	jobsetv1alpha2 "github.com/jobset-apiserver/jobset-apiserver/pkg/apis/jobset/v1alpha2"
	"github.com/jobset-apiserver/jobset-apiserver/pkg/apis/jobset/v1alpha2/helper"
)

// deviceErrors are what drivers and libraries write, in lower case, when a device fails.
var deviceErrors = []string{
	"nvrm: xid", "xid error", "fallen off the bus", "uncorrectable ecc", "ecc uncorrectable", "ecc_uncorrectable", "double bit ecc",
	"nvlink error", "uncorrectable nvlink", "nvswitch fatal", "no cuda-capable device is detected", "cuda_error_no_device", "gpu is lost",
	"hardware error", "machine check", "ras uncorrectable", "hbm error", "local catastrophic error", "input/output error",
}

// nodeFailure returns in a few words how a failure is one of the node that it happened on; empty if it is none.
func nodeFailure(cause *jobsetv1alpha2.FailureCause) string {
	if cause == nil || cause.Node == "" || cause.Reason == helper.ReasonDeadlineExceeded {
		return ""
	}
	switch helper.InterruptionOf(cause.Reason) {
	case helper.Preempted: // for the sake of another pod: the node is as good as any
		return ""
	case helper.Evicted, helper.LostNode:
		return helper.AvoidedReason(cause.Reason)
	}
	if cause.Reason == helper.ReasonUnassigned {
		return helper.AvoidedReason(cause.Reason)
	}
	if found := deviceError(cause.Message); found != "" {
		return helper.AvoidedReason("device error: " + found)
	}
	if cause.Signal == nil || *cause.Signal <= 0 {
		return ""
	}
	reason := fmt.Sprintf("container %s was ended by signal %d", cause.Container, *cause.Signal)
	if cause.Reason != "" && cause.Reason != helper.ReasonError {
		reason += " (" + cause.Reason + ")"
	}
	return helper.AvoidedReason(reason)
}

// deviceError returns the line of a message that reports an error of a device; empty if none does.
func deviceError(message string) string {
	lower := strings.ToLower(message)
	if !slices.ContainsFunc(deviceErrors, func(known string) bool { return strings.Contains(lower, known) }) {
		return ""
	}
	for line := range strings.Lines(message) {
		lower := strings.ToLower(line)
		if slices.ContainsFunc(deviceErrors, func(known string) bool { return strings.Contains(lower, known) }) {
			return strings.TrimSpace(line)
		}
	}
	return strings.TrimSpace(message)
}

// KeptOff returns an affinity that excludes nodes beside what it did before. It shares no memory with the one given, which may be nil.
func KeptOff(affinity *corev1.Affinity, nodes []string) *corev1.Affinity {
	out := affinity.DeepCopy()
	if out == nil {
		out = &corev1.Affinity{}
	}
	if out.NodeAffinity == nil {
		out.NodeAffinity = &corev1.NodeAffinity{}
	}
	required := out.NodeAffinity.RequiredDuringSchedulingIgnoredDuringExecution
	if required == nil {
		required = &corev1.NodeSelector{}
		out.NodeAffinity.RequiredDuringSchedulingIgnoredDuringExecution = required
	}
	off := corev1.NodeSelectorRequirement{Key: corev1.LabelHostname, Operator: corev1.NodeSelectorOpNotIn, Values: nodes}
	if len(required.NodeSelectorTerms) == 0 {
		required.NodeSelectorTerms = []corev1.NodeSelectorTerm{{MatchExpressions: []corev1.NodeSelectorRequirement{off}}}
		return out
	}
	for i := range required.NodeSelectorTerms { // a node needs to match one of them
		term := &required.NodeSelectorTerms[i]
		if len(term.MatchExpressions)+len(term.MatchFields) == 0 {
			continue // matches no node
		}
		term.MatchExpressions = append(term.MatchExpressions, off)
	}
	return out
}
