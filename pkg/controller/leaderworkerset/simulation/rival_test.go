// Copyright The jobset-apiserver Authors.
// SPDX-License-Identifier: Apache-2.0

package simulation

import (
	"slices"
	"time"

	corev1 "k8s.io/api/core/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"

	leaderworkersetv1 "github.com/jobset-apiserver/jobset-apiserver/pkg/apis/leaderworkerset/v1"
)

// maxLag is how long the caches of a second controller lag at most.
const maxLag = 20 * time.Second

// rivalActs lets a second controller act, which has not noticed that it does not lead any more.
func (e *env) rivalActs() {
	switch {
	case e.rival == nil && !e.outage:
		e.rival = e.newProcess(true)
		e.Note("a second controller starts")
		e.Seen["second controllers"]++
	case e.rival == nil:
	case e.rival.sender.Dead || e.Dice.Percent(10):
		e.Note("the second controller ends")
		e.rival = nil
	case e.Dice.Percent(50):
		e.ShowSome(e.rival.caches())
	default:
		e.Note("the second controller acts")
		e.rival.catchUp()
		e.rival.worker.Add(name)
		e.rival.act()
	}
}

// catchUp shows the caches of a second controller everything unless they were filled, or caught up, so long ago that caches may lag.
func (p *process) catchUp() {
	if p.Since(p.shownAt) <= maxLag {
		return
	}
	for _, c := range p.caches() {
		for c.Behind() > 0 {
			c.Advance()
		}
	}
	p.shownAt = p.Now()
}

// replaceAlone deletes a leader pod without its children, so that they stay under its name when the next one comes.
func (e *env) replaceAlone() {
	pod := e.somePod()
	if pod == nil || pod.Labels[leaderworkersetv1.WorkerIndexLabelKey] != "0" || len(pod.Finalizers) > 0 || metav1.GetControllerOfNoCopy(pod) == nil {
		return
	}
	e.Note("somebody deletes pod %s (%s) without its children", pod.Name, pod.UID)
	e.Seen["leaders deleted without their children"]++
	e.Seen["children that lost their owner"]++
	e.rules.strike(pod)
	e.disown(pod.UID)
	e.removePod(pod)
}

// deleteUnstarted deletes workers that wait for their start.
func (e *env) deleteUnstarted() {
	for _, pod := range slices.Clone(e.pods.Objects) {
		if pod.Labels[leaderworkersetv1.WorkerIndexLabelKey] != "0" && pod.Status.Phase == corev1.PodPending && pod.DeletionTimestamp == nil {
			e.Note("somebody deletes pod %s (%s), which waits for its start", pod.Name, pod.UID)
			e.deletePod(pod, false)
		}
	}
}
