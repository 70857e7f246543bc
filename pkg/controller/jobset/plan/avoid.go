// Copyright The jobset-apiserver Authors.
// SPDX-License-Identifier: Apache-2.0

package plan

import (
	"cmp"
	"fmt"
	"slices"
	"strings"
	"time"

	batchv1 "k8s.io/api/batch/v1"
	corev1 "k8s.io/api/core/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/util/sets"
	"k8s.io/apimachinery/pkg/util/validation"

	jobsetv1alpha2 "github.com/jobset-apiserver/jobset-apiserver/pkg/apis/jobset/v1alpha2"
	"github.com/jobset-apiserver/jobset-apiserver/pkg/apis/jobset/v1alpha2/helper"
	hostplan "github.com/jobset-apiserver/jobset-apiserver/pkg/controller/host/plan"
	"github.com/jobset-apiserver/jobset-apiserver/pkg/controller/jobset/plan/domains"
)

// Pods keep off nodes on which an earlier attempt failed, if the set asks for it. Which nodes these are is decided once
// for an attempt, and stored with it before its first Job is created. Each attempt lists all of them, so that none is
// lost when old attempts are dropped.

const (
	// forgetAfter is how long pods may wait for a node before the nodes that they keep off are forgotten: longer than it takes to add a node.
	forgetAfter = 5 * time.Minute
	// shareOfNodes is the share of the nodes of the cluster that pods may keep off: one of so many.
	shareOfNodes = 10
	// avoidedUncounted is how many nodes pods may keep off while the number of nodes is not known.
	avoidedUncounted = 1
	// namedNodes is the number of nodes that an event names.
	namedNodes = 3

	reasonNodesAvoided   = "NodesAvoided"
	reasonNodesForgotten = "AvoidedNodesForgotten"
)

// avoidance returns the nodes that the pods of the attempt that runs are to keep off from now on, and whether that depends
// on the number of nodes, which was not asked for. It is late for that once the Jobs of the attempt exist.
func avoidance(o Observed, status *jobsetv1alpha2.JobSetStatus) (failed []jobsetv1alpha2.AvoidedNode, open bool) {
	a := helper.RunningAttempt(status)
	if !o.KeepAttempts || a == nil || a.CreateTime != nil || len(a.AvoidedNodes) > 0 || deferredOf(o, a).CreateTime != nil {
		return nil, false
	}
	failed = avoidable(o, status.Attempts[:len(status.Attempts)-1])
	if len(failed) == 0 || o.Nodes.Open() {
		return nil, len(failed) > 0
	}
	return failed[:min(len(failed), maxAvoided(o.Nodes))], false
}

// avoidNodes notes which nodes the pods of the attempt that runs keep off.
func avoidNodes(s state) changes {
	failed, open := avoidance(s.Observed, s.next)
	if len(failed) == 0 {
		return changes{plan: Plan{Asks: Asks{Nodes: open}}}
	}
	note := noteAvoided(helper.RunningAttempt(s.next).Number, failed)
	return changes{
		plan:   Plan{Asks: Asks{Nodes: open}},
		edits:  []edit{ofRunning(func(a *jobsetv1alpha2.Attempt) { a.AvoidedNodes = failed })},
		events: []Event{{Type: corev1.EventTypeNormal, Reason: reasonNodesAvoided, Note: note}},
	}
}

// storeAvoided has the nodes that pods keep off stored before any pod does.
func storeAvoided(s state) changes {
	stored, next := helper.RunningAttempt(&s.JobSet.Status), helper.RunningAttempt(s.next)
	known := stored != nil && next != nil && stored.Number == next.Number && len(stored.AvoidedNodes) > 0
	return changes{commits: next != nil && len(next.AvoidedNodes) > 0 && !known}
}

// maxAvoided returns how many nodes pods may keep off.
func maxAvoided(known hostplan.Known[int]) int {
	nodes, counted := known.Get()
	if !counted {
		return avoidedUncounted
	}
	return min(nodes/shareOfNodes, jobsetv1alpha2.MaxAvoidedNodes)
}

// avoidable returns the nodes on which attempts failed and whose time is not over, those that failed last first.
func avoidable(o Observed, ended []jobsetv1alpha2.Attempt) (out []jobsetv1alpha2.AvoidedNode) {
	d := helper.AvoidTime(o.JobSet, o.AvoidFailedNodes)
	if d <= 0 {
		return nil
	}
	seen := sets.New[string]()
	add := func(node jobsetv1alpha2.AvoidedNode) {
		// The label of a node can have no other name. The Job API would refuse it.
		usable := node.Name != "" && len(validation.IsValidLabelValue(node.Name)) == 0
		if usable && node.Until.After(o.Now.Time) && !seen.Has(node.Name) {
			seen.Insert(node.Name)
			out = append(out, node)
		}
	}
	for i := len(ended) - 1; i >= 0; i-- {
		a := &ended[i]
		if reason := nodeFailure(a.FirstCause); reason != "" {
			add(jobsetv1alpha2.AvoidedNode{Name: a.FirstCause.Node, Attempt: a.Number, Reason: reason,
				Until: metav1.NewTime(failedAt(a, o.Now.Time).Add(d).Truncate(time.Second))})
		}
		if a.ForgetTime != nil {
			break // what was known before is forgotten
		}
		for _, node := range a.AvoidedNodes {
			add(node)
		}
	}
	slices.SortStableFunc(out, func(x, y jobsetv1alpha2.AvoidedNode) int { return cmp.Compare(y.Attempt, x.Attempt) })
	return out
}

// failedAt returns when an attempt failed on a node. The clock of the node may be wrong.
func failedAt(a *jobsetv1alpha2.Attempt, now time.Time) time.Time {
	at := now
	if a.EndTime != nil && a.EndTime.Time.Before(at) {
		at = a.EndTime.Time
	}
	if t := a.FirstCause.Time; t != nil && t.Time.Before(at) {
		at = t.Time
	}
	return at
}

// stillAvoided returns the nodes of the last one of the attempts whose time is not over, for the pods that stay.
func stillAvoided(attempts []jobsetv1alpha2.Attempt, now time.Time) (out []jobsetv1alpha2.AvoidedNode) {
	if len(attempts) == 0 || attempts[len(attempts)-1].ForgetTime != nil {
		return nil
	}
	for _, node := range attempts[len(attempts)-1].AvoidedNodes {
		if node.Until.After(now) {
			out = append(out, node)
		}
	}
	return out
}

// shutsOut reports whether Jobs may find no room because of the nodes that pods of the attempt keep off. Once all Jobs
// were ready, nothing is stopped any more for the sake of a pod that waits.
func shutsOut(a *jobsetv1alpha2.Attempt) bool {
	return a != nil && len(a.AvoidedNodes) > 0 && a.ReadyTime == nil
}

// askShutOut asks which Jobs find no room, if some may not.
func askShutOut(o Observed) Asks {
	a := helper.RunningAttempt(&o.JobSet.Status)
	may := shutsOut(a) || keepsOffNone(a) && slices.ContainsFunc(o.Jobs, func(job *batchv1.Job) bool {
		return job.Annotations[jobsetv1alpha2.AvoidedNodesKey] != ""
	})
	return Asks{ShutOut: o.ShutOut.Open() && o.Unschedulable.Pods > 0 && may}
}

// keepsOffNone reports whether an attempt whose Jobs were not all ready keeps off no node. A Job of it may do so: one that stayed while a
// single Job restarted, which begins an attempt.
func keepsOffNone(a *jobsetv1alpha2.Attempt) bool {
	return a != nil && len(a.AvoidedNodes) == 0 && a.ReadyTime == nil
}

// shutOut returns the Jobs that are created once more because they find no room without nodes that are forgotten.
func shutOut(o Observed, active []child) []*batchv1.Job {
	a := helper.RunningAttempt(&o.JobSet.Status)
	if shutsOut(a) && a.ForgetTime != nil || keepsOffNone(a) && leftToForget(o, a) <= 0 {
		return withoutRoom(o, active)
	}
	return nil
}

func withoutRoom(o Observed, active []child) (out []*batchv1.Job) {
	for _, job := range active {
		if o.ShutOut.Value().Has(job.UID) && job.Annotations[jobsetv1alpha2.AvoidedNodesKey] != "" && job.DeletionTimestamp == nil {
			out = append(out, job.Job)
		}
	}
	return out
}

// forgetNodes has pods run on the nodes that they keep off, if they have found no room elsewhere for some time.
func forgetNodes(s state) changes {
	if !waitsForRoom(s) || leftToForget(s.Observed, helper.RunningAttempt(s.next)) > 0 {
		return changes{}
	}
	at, a := helper.NotBeforeAttempts(s.next, s.Now.Time), helper.RunningAttempt(s.next)
	return changes{
		commits: true,
		edits:   []edit{ofRunning(func(a *jobsetv1alpha2.Attempt) { a.ForgetTime = at })},
		events: []Event{{Type: corev1.EventTypeWarning, Reason: reasonNodesForgotten, Note: fmt.Sprintf(
			"pods of attempt %d found no room without %s for some minutes; their jobs are created again, and no restart is counted", a.Number,
			nameNodes(a.AvoidedNodes))}},
	}
}

// timeToForget returns when that is due, or Jobs that keep off forgotten nodes are created once more; 0 if neither is.
func timeToForget(s state) time.Duration {
	a := helper.RunningAttempt(s.next)
	if !waitsForRoom(s) && !(keepsOffNone(a) && len(withoutRoom(s.Observed, s.owned.active)) > 0) {
		return 0
	}
	return max(leftToForget(s.Observed, a), time.Second)
}

func waitsForRoom(s state) bool {
	a := helper.RunningAttempt(s.next)
	return s.Unschedulable.Pods > 0 && shutsOut(a) && a.ForgetTime == nil && !suspended(s.JobSet) &&
		len(withoutRoom(s.Observed, s.owned.active)) > 0
}

func leftToForget(o Observed, a *jobsetv1alpha2.Attempt) time.Duration {
	since := o.Unschedulable.Since
	if a.RequestTime != nil && a.RequestTime.After(since) {
		since = a.RequestTime.Time
	}
	timeout := forgetAfter
	if o.Gates.ExclusivePlacement && domains.AskedFor(o.JobSet) {
		timeout += o.MoveAfter // the Job may find room in another domain
	}
	return timeout - o.Now.Sub(since)
}

func noteAvoided(attempt int32, nodes []jobsetv1alpha2.AvoidedNode) string {
	last := &nodes[0]
	return fmt.Sprintf("pods of attempt %d keep off %s; on node %s attempt %d failed: %s", attempt, nameNodes(nodes), last.Name, last.Attempt,
		last.Reason)
}

// nameNodes names a few of the nodes.
func nameNodes(nodes []jobsetv1alpha2.AvoidedNode) string {
	names := make([]string, 0, namedNodes)
	for i := range nodes[:min(len(nodes), namedNodes)] {
		names = append(names, nodes[i].Name)
	}
	out := strings.Join(names, ", ")
	if more := len(nodes) - len(names); more > 0 {
		out += fmt.Sprintf(" and %d more", more)
	}
	if len(nodes) == 1 {
		return "node " + out
	}
	return "nodes " + out
}

// AvoidedNodes returns the names of the nodes that pods of Jobs which are created now keep off, in order.
func AvoidedNodes(js *jobsetv1alpha2.JobSet, now time.Time) (names []string) {
	a := helper.RunningAttempt(&js.Status)
	if a == nil || a.ForgetTime != nil {
		return nil
	}
	for i := range a.AvoidedNodes {
		if node := &a.AvoidedNodes[i]; node.Until.After(now) {
			names = append(names, node.Name)
		}
	}
	slices.Sort(names)
	return names
}

// avoidedKey is the value of the annotation of a Job whose pods keep off nodes.
func avoidedKey(names []string) string { return strings.Join(names, ",") }

// avoidsOtherNodes reports whether the pods of a Job keep off other nodes than they would if it were created now.
func avoidsOtherNodes(o *Observed, job *batchv1.Job) bool {
	return job.Annotations[jobsetv1alpha2.AvoidedNodesKey] != avoidedKey(AvoidedNodes(o.JobSet, o.Now.Time))
}
