// Copyright The jobset-apiserver Authors.
// SPDX-License-Identifier: Apache-2.0

package plan

import (
	"cmp"
	"slices"

	jobsetv1alpha2 "github.com/jobset-apiserver/jobset-apiserver/pkg/apis/jobset/v1alpha2"
)

// statefulSetOf returns the name of the StatefulSet of a pod of a group.
func statefulSetOf(s *snapshot, g *group, pod *Pod) string {
	if pod.UID == g.leader.UID {
		return s.Set.Name
	}
	return g.leader.Name
}

// causeOf returns why a group has failed, and whether its pods have said so. A group does not wait for its cause: if that could not be
// obtained, what is known of its pods is recorded.
func causeOf(s *snapshot, f failure) (cause *jobsetv1alpha2.FailureCause, said bool) {
	if cause, said := s.Causes[f.group.leader.UID].Get(); said {
		return cause.DeepCopy(), true
	}
	return apparentCause(s, f), false
}

// askCause asks for what the pods of a group say about its failure.
func askCause(s *snapshot, g *group) (a Asks) {
	if s.Causes[g.leader.UID].Open() {
		a.Causes = []MissingCause{missingCause(g)}
	}
	return a
}

// apparentCause returns what the pods of a group show of its failure, or what is left of it.
func apparentCause(s *snapshot, f failure) *jobsetv1alpha2.FailureCause {
	if len(f.pods) == 0 {
		return f.group.lossOf()
	}
	pod := f.pods[0]
	cause := &jobsetv1alpha2.FailureCause{Job: statefulSetOf(s, f.group, pod), Pod: pod.Name, Node: pod.Node,
		Message: "a container of the pod restarted"}
	if pod.Deleting {
		cause.Message = "the pod was deleted"
	}
	return cause
}

// lossOf is the cause of a failure of which only is left that workers are gone.
func (g *group) lossOf() *jobsetv1alpha2.FailureCause {
	cause := &jobsetv1alpha2.FailureCause{Job: g.leader.Name, Message: "a worker pod was deleted"}
	if g.workers != nil && g.workers.FirstLost.Name != "" {
		cause.Pod, cause.Node, cause.Message = g.workers.FirstLost.Name, g.workers.FirstLost.Node, "the pod was deleted"
	} else if cause.Pod = g.replacement(); cause.Pod != "" {
		cause.Message = "the pod was deleted and replaced before it was looked at"
	}
	return cause
}

// replacement returns the name of the worker that was created last, which replaces the last lost worker to return. It
// is empty if there is no worker.
func (g *group) replacement() string {
	if g.workers == nil || len(g.workers.Pods) == 0 {
		return ""
	}
	return slices.MaxFunc(g.workers.Pods, func(a, b Pod) int {
		return cmp.Or(a.Created.Compare(b.Created.Time), cmp.Compare(a.Name, b.Name))
	}).Name
}
