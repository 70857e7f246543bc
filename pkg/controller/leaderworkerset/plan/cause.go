// Copyright The jobset-apiserver Authors.
// SPDX-License-Identifier: Apache-2.0

package plan

import (
	"cmp"
	"slices"

	"k8s.io/apimachinery/pkg/types"

	jobsetv1alpha2 "github.com/jobset-apiserver/jobset-apiserver/pkg/apis/jobset/v1alpha2"
)

// MissingCause is a group that is about to be recreated and the cause of whose failure the snapshot does not have.
type MissingCause struct {
	// Leader is the UID of the leader pod, by which Observed.Causes has the cause.
	Leader types.UID
	// Name is the name of the leader pod, and of the StatefulSet of the workers.
	Name string
	// Workers is the UID of that StatefulSet; empty if there is none.
	Workers types.UID
}

// MissingCauses returns the groups whose causes a decision on the snapshot needs and does not have. A group does not
// wait for its cause: without one, what is known of its pods is recorded.
func MissingCauses(o Observed) (out []MissingCause) {
	if o.Set.DeletionTimestamp != nil || !anyFailed(o) {
		return nil
	}
	var p Plan
	groups := groupsOf(o)
	r := newRestarts(o, groups, newStatus(o), &p)
	r.follow()
	need := func(leader *Pod, workers *Workers, most int) {
		if _, known := o.Causes[leader.UID]; !known && len(out) < most {
			out = append(out, missingCause(leader, workers))
		}
	}
	for _, d := range r.deletedLeaders() {
		if d.verdict == unexpectedDeletion {
			need(d.Pod, r.workersOf(d.UID), maxGroupWrites)
		}
	}
	most := len(out) + maxGroupWrites
	for _, f := range r.failures() {
		if f.holds() {
			need(f.group.leader, f.group.workers, most)
		}
	}
	return out
}

// anyFailed returns whether there is any pod that may be a reason to recreate a group. It keeps sets at rest cheap.
func anyFailed(o Observed) bool {
	if len(o.GoneLeaders) > 0 {
		return true
	}
	for i := range o.Leaders {
		if failed(&o.Leaders[i]) {
			return true
		}
	}
	for i := range o.Workers {
		w := &o.Workers[i]
		if w.Lost > 0 || slices.ContainsFunc(w.Pods, func(p Pod) bool { return failed(&p) }) {
			return true
		}
	}
	return false
}

// missingCause names the pods that may say why a group has failed: the leader, and those of the StatefulSet of its workers.
func missingCause(leader *Pod, workers *Workers) MissingCause {
	m := MissingCause{Leader: leader.UID, Name: leader.Name}
	if workers != nil {
		m.Workers = workers.UID
	}
	return m
}

// statefulSetOf returns the name of the StatefulSet of a pod of a group.
func (r *restarts) statefulSetOf(g *group, pod *Pod) string {
	if pod.UID == g.leader.UID {
		return r.o.Set.Name
	}
	return g.leader.Name
}

// causeOf returns why a group has failed: what its first failed pod said, or else what is known of it.
func (r *restarts) causeOf(f failure) *jobsetv1alpha2.FailureCause {
	if cause := r.o.Causes[f.group.leader.UID]; cause != nil {
		return cause.DeepCopy()
	}
	if len(f.pods) == 0 {
		return f.group.lossOf()
	}
	pod := f.pods[0]
	cause := &jobsetv1alpha2.FailureCause{Job: r.statefulSetOf(f.group, pod), Pod: pod.Name, Node: pod.Node,
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
