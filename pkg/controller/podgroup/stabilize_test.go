// Copyright The jobset-apiserver Authors.
// SPDX-License-Identifier: Apache-2.0

package podgroup_test

import (
	"strings"
	"time"

	"k8s.io/apimachinery/pkg/api/meta"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"

	batchv1alpha1 "github.com/jobset-apiserver/jobset-apiserver/pkg/apis/batch/v1alpha1"
	"github.com/jobset-apiserver/jobset-apiserver/pkg/controller/podgroup/plan"
	"github.com/jobset-apiserver/jobset-apiserver/test/simulation"
)

const (
	ruleRest   = "every history comes to rest"
	ruleWrites = "at rest nothing is written"
	ruleIs     = "at rest the pods of a ready group have the label, and the status says what holds"
)

const (
	// maxRounds is how often everybody may get a turn until all is at rest, and quietRounds how many without any change
	// are rest: while an owner wants more pods, the controller reads it every 12 seconds.
	maxRounds, quietRounds = 400, 8
	// refusedFor is how long a server refuses a request before the end of some histories.
	refusedFor = 12 * time.Minute
)

// calm makes everybody but the controller do nothing any more.
func (e *env) calm() {
	e.Note("from here on nothing fails")
	e.EndTrouble()
	e.faults = faults{}
	for _, request := range refusable {
		e.allow(request)
	}
}

// round gives everybody a turn. It returns whether anything has changed.
func (e *env) round() bool {
	before := e.versions()
	for e.DeliverLate() {
	}
	e.ShowAll(e.process.caches())
	e.sync()
	for _, pod := range e.pods.Objects {
		e.live(pod, false)
	}
	e.CollectGarbage()
	e.past.look()
	return e.versions() != before || len(e.process.worker.Ready()) > 0
}

// endure lets a server refuse a request for a while. What is refused must be visible.
func (e *env) endure() {
	e.refuse(simulation.OneOf(e.Dice, patchPod, patchPod, getJob, updateGroup, getGroup))
	if e.Dice.Percent(50) {
		e.removeSomeLabel() // so that something is refused
	}
	begin := e.Now()
	for rounds := 0; e.Since(begin) < refusedFor; rounds++ {
		if rounds > maxRounds {
			e.Fail(ruleRest, "%d rounds in %s", rounds, e.Since(begin))
		}
		e.Pass(10 * time.Millisecond)
		busy := e.round()
		e.process.checkVisible()
		if busy {
			continue
		}
		next := e.process.worker.Due()
		if next.IsZero() {
			break
		}
		e.Pass(max(0, next.Sub(e.Now())))
	}
	e.process.checkMessage()
	e.process.checkReports(begin)
	e.Seen["refusals for long"]++
}

// checkReports checks that what is refused for long is reported once. What was refused before for another reason may be reported again.
func (p *process) checkReports(since time.Time) {
	reports := map[string]int{}
	for _, event := range p.events {
		if event.at.After(since) && strings.Contains(event.note, denied) {
			reports[event.reason]++
		}
	}
	for reason, n := range reports {
		if n > 2*len(prefixes) {
			p.Fail(ruleReported, "%d events %s", n, reason)
		}
	}
}

// stabilize lets all come to rest.
func (e *env) stabilize() {
	// A Job that is scaled creates or deletes pods, which makes the controller look: nothing watches the Job itself.
	e.Pass(11 * time.Second)
	if !e.resigned {
		e.process.worker.Add(name)
	}
	quiet := 0
	rests := e.Stabilize(maxRounds, func() bool {
		busy := e.round()
		if quiet++; busy || e.process.lastErr != nil && !e.resigned {
			quiet = 0
		}
		return busy
	}, func() time.Time {
		if quiet > quietRounds {
			return time.Time{}
		}
		return e.process.worker.Due()
	})
	if !rests {
		e.Fail(ruleRest, "%d rounds were not enough", maxRounds)
	}
}

// checkRest checks what is at rest.
func (e *env) checkRest() {
	before := e.versions()
	if !e.resigned {
		e.process.worker.Add(name)
		e.sync()
	}
	if e.versions() != before {
		e.Fail(ruleWrites, "a sync writes something")
	}
	for prefix := range prefixes {
		f := count(prefix, e.pods.Objects, e.group(), e.jobs.Objects)
		if f.enough() && len(f.runs) > 0 && !f.unclear {
			e.Fail(ruleIs, "the group of prefix %d is ready, and pods lack the label: %+v", prefix, f)
		}
	}
	group := e.group()
	if group == nil {
		e.Seen["at rest: no PodReadinessGroup"]++
		return
	}
	f := count(shown(e), e.pods.Objects, group, e.jobs.Objects)
	s := &group.Status
	e.Seen["at rest: "+string(s.Phase)]++
	ready := meta.FindStatusCondition(s.Conditions, batchv1alpha1.ConditionReady)
	status, reason := metav1.ConditionFalse, plan.ReasonPodsNotRunning
	if f.enough() {
		status, reason = metav1.ConditionTrue, plan.ReasonPodsRunning
	}
	switch {
	case int(s.Pods) != f.pods || int(s.Running) != f.running || int(s.Ready) != f.labeled || s.ObservedGeneration != group.Generation:
		e.Fail(ruleIs, "%+v, but the status is %+v of generation %d", f, s, group.Generation)
	case ready == nil || strings.Contains(ready.Message, denied):
		e.Fail(ruleIs, "the condition is %+v", ready)
	case !f.unclear && (ready.Status != status || ready.Reason != reason):
		e.Fail(ruleIs, "%+v, but the condition is %+v", f, ready)
	}
}
