// Copyright The jobset-apiserver Authors.
// SPDX-License-Identifier: Apache-2.0

package why

import (
	"regexp"
	"slices"
	"strconv"
	"strings"

	corev1 "k8s.io/api/core/v1"
)

// How the scheduler says why no node takes a pod.

// schedulerReason is why so many nodes do not take a pod.
type schedulerReason struct {
	nodes int
	text  string
	cause Cause
	// stage orders the checks of the scheduler: a node that fails a later one has passed those before.
	stage int
}

var noNodes = regexp.MustCompile(`^\d+/\d+ nodes are available: (.*)$`)

// schedulerReasons takes the message of the scheduler apart, like "0/20 nodes are available: 1 node(s) had untolerated
// taint(s), 19 Insufficient cpu. preemption: ...".
func schedulerReasons(message string) []schedulerReason {
	m := noNodes.FindStringSubmatch(oneLine(message))
	if m == nil {
		return nil
	}
	list, _, _ := strings.Cut(m[1], ". ")
	var out []schedulerReason
	for part := range strings.SplitSeq(strings.TrimSuffix(list, "."), ", ") {
		number, text, _ := strings.Cut(part, " ")
		nodes, err := strconv.Atoi(number)
		if err != nil {
			if len(out) > 0 {
				out[len(out)-1].text += ", " + part // a comma within a reason
			}
			continue
		}
		r := schedulerReason{nodes: nodes, text: text}
		r.cause, r.stage = schedulerCause(text)
		out = append(out, r)
	}
	return out
}

func schedulerCause(text string) (Cause, int) {
	has := func(words ...string) bool {
		return slices.ContainsFunc(words, func(w string) bool { return strings.Contains(text, w) })
	}
	switch {
	case has("taint", "were unschedulable"):
		return UnschedulableTaint, 1
	case has("affinity/selector", "node affinity", "node selector", "didn't match the requested node name"):
		return UnschedulableAffinity, 2
	case has("required features"):
		return RestartRulesMissing, 3
	case has("Insufficient", "Too many pods", "free ports", "cannot allocate"):
		return UnschedulableResources, 4
	case has("volume", "persistent"):
		return UnboundClaim, 5
	case has("affinity", "topology spread"):
		return UnschedulableAffinity, 6
	}
	return Unschedulable, 0
}

// unschedulable chooses the reason that decides. Nodes that the pod does not ask for do not count; of the others, those
// that pass most of the checks are the ones to look at.
func (d *diagnosis) unschedulable(pod *corev1.Pod, message string) Cause {
	if strings.Contains(message, "PersistentVolumeClaim") || strings.Contains(message, "persistentvolumeclaim") {
		return UnboundClaim
	}
	best := schedulerReason{cause: Unschedulable}
	for _, r := range schedulerReasons(message) {
		if r.stage == 2 {
			if d.CandidatesRead && len(d.Candidates) > 0 {
				continue
			}
			// None of the nodes that are left is one that the pod asks for.
			if d.CandidatesRead && asksForNodes(pod) {
				return UnschedulableAffinity
			}
		}
		if r.stage > best.stage {
			best = r
		}
	}
	if best.cause == RestartRulesMissing && !restartsAllContainers(&pod.Spec) {
		return Unschedulable // kubelets declare other features too
	}
	return best.cause
}
