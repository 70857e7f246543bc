// Copyright The jobset-apiserver Authors.
// SPDX-License-Identifier: Apache-2.0

package simulation

import (
	"fmt"
	"slices"
	"strings"
	"time"

	corev1 "k8s.io/api/core/v1"

	jobsetv1alpha2 "github.com/jobset-apiserver/jobset-apiserver/pkg/apis/jobset/v1alpha2"
	"github.com/jobset-apiserver/jobset-apiserver/pkg/controller/jobset/plan"
)

const (
	// restRounds is how often everybody gets a turn until a suspended set must have stopped.
	restRounds = 60
	// finishRounds is how often everybody may get a turn until all sets have finished. Jobs move up to an hour after each other, and are
	// looked at once a minute.
	finishRounds = 4_000
)

// stabilize lets all sets finish: nothing fails any more, all nodes are there, and no user suspends a set.
func (w *world) stabilize() {
	w.Note("from here on nothing fails")
	w.EndTrouble()
	w.faults = worldFaults{}
	w.removeOthers(100)
	for _, node := range w.gone {
		back := node.DeepCopy()
		back.CreationTimestamp = w.Stored()
		if _, taken := w.nodes.Get(back.Name); !taken {
			w.nodes.Put(back)
		}
	}
	for _, node := range slices.Clone(w.nodes.Objects) {
		if !nodeReady(node) || node.Spec.Unschedulable {
			w.changeNode(node, func(n *corev1.Node) { n.Spec.Unschedulable = false })
			node, _ = w.nodes.Get(node.Name)
			w.setReady(node, corev1.ConditionTrue)
		}
	}
	w.rounds(restRounds, 0, func() bool { return false })
	w.rules.atRest()
	for _, js := range slices.Clone(w.sets.Objects) {
		if isSuspended(js) {
			w.suspend(js, false)
		}
	}
	switch {
	case w.rounds(finishRounds, 70, w.allFinished), w.finishInTurn():
	case w.rules.late && w.rules.givenTwice() || w.rules.runsUnplaced():
		// A request was carried out when nothing waited for it any more: a placement, after the domains were given away, or a Job of a set that
		// had been suspended. Pods repel each other, but Jobs that have run do not leave.
		w.Seen["sets that hold domains of others"]++
	case w.rules.sharedByScheduler():
		// The scheduler chose the domain of a Job while another one was placed there, and no node is added. Pods repel each other.
		w.Seen["sets whose Jobs hold one domain"]++
	case w.rules.isTooSmall():
		// A set was placed while nodes were missing or avoided. Jobs that have run do not leave the domains in which others would fit.
		w.Seen["sets whose Jobs hold domains that are too small"]++
	default:
		w.Fail(everySetFinishes, "%s", w.unfinished())
	}
}

func (w *world) allFinished() bool {
	return !slices.ContainsFunc(w.sets.Objects, func(js *jobsetv1alpha2.JobSet) bool { return !finished(&js.Status) })
}

func (w *world) unfinished() string {
	var out []string
	for _, js := range w.sets.Objects {
		if !finished(&js.Status) {
			out = append(out, describeWorld(plan.Observed{JobSet: js, Jobs: w.ownJobs(js)}))
		}
	}
	return strings.Join(out, "\n")
}

// rounds gives everybody so many turns, unless all is done before. It reports whether that is so.
func (w *world) rounds(most, ending int, done func() bool) bool {
	for range most {
		w.Pass(time.Second)
		busy := w.round(ending)
		if done() {
			return true
		}
		if busy {
			continue
		}
		next := w.process.nextDue()
		if waits := w.nodeDue(); !waits.IsZero() && (next.IsZero() || waits.Before(next)) {
			next = waits
		}
		if next.IsZero() {
			return done()
		}
		w.Pass(max(0, next.Sub(w.Now())))
	}
	return false
}

// round gives everybody a turn. It reports whether anything changed.
func (w *world) round(ending int) bool {
	busy := false
	for w.DeliverLate() {
		busy = true
	}
	if w.process.sender.Dead {
		w.startProcess()
	}
	p := w.process
	busy = w.ShowAll(p.caches()) || busy
	p.fire()
	for _, name := range p.worker.Ready() {
		p.worker.SyncObject(name, p.syncSet)
		busy = true
	}
	for _, job := range slices.Clone(w.jobs.Objects) {
		busy = w.liveJob(job) || busy
	}
	for _, pod := range slices.Clone(w.pods.Objects) {
		busy = w.livePod(pod) || busy
	}
	busy = w.liveAgents() || busy
	busy = w.schedule() || busy
	busy = w.autoscale() || busy
	return w.succeedSome(ending) || busy
}

// nodeDue returns when the autoscaler may have a node to add; zero for never.
func (w *world) nodeDue() (next time.Time) {
	for _, pod := range w.pods.Objects {
		c := scheduled(pod)
		if c == nil || !w.elastic() {
			continue
		}
		if at := c.LastTransitionTime.Add(bootTime); at.After(w.Now()) && (next.IsZero() || at.Before(next)) {
			next = at
		}
	}
	return next
}

// describeWorld returns a snapshot in one line.
func describeWorld(o plan.Observed) string {
	out := describe(o) + describePlacement(&o.JobSet.Status)
	if placed, known := o.Placed.Get(); known {
		out += fmt.Sprintf(" placed %q %q", placed.Reason, placed.Message)
	}
	if o.Unschedulable.Pods > 0 {
		out += fmt.Sprintf(" %d pods wait", o.Unschedulable.Pods)
	}
	return out
}

func describePlacement(status *jobsetv1alpha2.JobSetStatus) string {
	if status == nil {
		return ""
	}
	out := " {none}"
	if status.Placement != nil {
		out = fmt.Sprintf(" {%d:", status.Placement.Restarts)
		for _, rj := range status.Placement.ReplicatedJobs {
			for i, job := range rj.Jobs {
				out += fmt.Sprintf(" %s-%d=%q", rj.Name, i, job.Domain)
				if job.Ready {
					out += "!"
				}
				if job.Moves != nil {
					out += fmt.Sprintf(" left %v", job.Moves.Left)
				}
			}
		}
		out += "}"
	}
	if n := len(status.Attempts); n > 0 && len(status.Attempts[n-1].AvoidedNodes) > 0 {
		out += fmt.Sprintf(" avoids %d, forgotten %v", len(status.Attempts[n-1].AvoidedNodes), status.Attempts[n-1].ForgetTime)
	}
	return out
}
