// Copyright The jobset-apiserver Authors.
// SPDX-License-Identifier: Apache-2.0

package simulation

import (
	"fmt"
	"time"

	corev1 "k8s.io/api/core/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/runtime"

	batchv1alpha1 "github.com/jobset-apiserver/jobset-apiserver/pkg/apis/batch/v1alpha1"
	"github.com/jobset-apiserver/jobset-apiserver/pkg/apis/batch/v1alpha1/helper"
	"github.com/jobset-apiserver/jobset-apiserver/test/simulation"
)

const ruleVisible = "every refusal is visible within a minute"

// Once backed off, this much is allowed in a minute in which nothing happens but that requests are refused.
const (
	refusalsPerMinute = 2
	passesPerMinute   = 6
)

// trouble is what is known of requests that the API refuses.
type trouble struct {
	// last is when a request was refused last, by verb and kind, and warned when a warning was sent last.
	last    map[string]time.Time
	warned  time.Time
	refused int
}

// refused notes that the API refuses a request, and returns its answer.
func (p *process) refused(what string) error {
	if p.trouble.last == nil {
		p.trouble.last = map[string]time.Time{}
	}
	p.Note("  the API refuses to %s", what)
	p.trouble.last[what] = p.Now()
	p.trouble.refused++
	return p.refusals[what]
}

// refusedChild is refused for a request about a child.
func (p *process) refusedChild(verb string, child metav1.Object) error {
	err := p.refused(verb + " child")
	p.sender.Denied(simulation.Request(verb, "child", child), err)
	return err
}

// refusedSelf is refused for a request about the sequence itself, or its Workload.
func (p *process) refusedSelf(what string) error {
	err := p.refused(what)
	p.sender.Denied(what, err)
	return err
}

// Eventf makes a process a recorder, which notes warnings.
func (p *process) Eventf(_, _ runtime.Object, eventType, reason, _, note string, args ...any) {
	p.Note("  event %s: %s", reason, fmt.Sprintf(note, args...))
	if eventType == corev1.EventTypeWarning {
		p.trouble.warned = p.Now()
	}
}

// reasonsOfRefusals are the reasons of the conditions that show them.
var reasonsOfRefusals = []string{
	batchv1alpha1.ReasonReconciliationError, batchv1alpha1.ReasonJobCreationFailed, batchv1alpha1.ReasonQuotaExceeded, batchv1alpha1.ReasonClusterOverloaded,
}

// endured is how long requests are refused.
const endured = 6 * time.Minute

// endure lets the API refuse one kind of requests for some minutes in which nothing else happens, and then checks that
// whoever looks at the sequence sees it.
func (e *env) endure() {
	e.Note("from here on only one kind of requests fails")
	e.faults, e.unreadable, e.rival = faults{}, nil, nil
	e.EndTrouble()
	clear(e.refusals)
	verb := simulation.OneOf(e.Dice, append([]string{"create child"}, verbs...)...)
	if e.denial = nil; verb == "create child" {
		e.denial = simulation.OneOf(e.Dice, denials...)
	} else {
		e.refusals[verb] = simulation.OneOf(e.Dice, answers...)
	}
	e.ask(verb)
	e.trouble = trouble{}
	begin := e.Now()
	refused, passes, backedOff := 0, 0, time.Time{}
	for rounds := 0; e.Now().Sub(begin) < endured && rounds < maxRounds; rounds++ {
		e.Pass(10 * time.Millisecond)
		if backedOff.IsZero() && e.Now().Sub(begin) > 2*time.Minute {
			backedOff, refused, passes = e.Now(), e.trouble.refused, e.Seen["syncs"]
		}
		if e.round("") {
			continue
		}
		due := e.process.worker.Due()
		if due.IsZero() {
			return
		}
		e.Pass(max(0, due.Sub(e.Now())))
	}
	last, found := e.trouble.last[verb]
	if !found || last.Sub(begin) < time.Minute {
		return
	}
	if minutes := int(e.Now().Sub(backedOff)/time.Minute) + 1; !backedOff.IsZero() {
		switch n, m := e.trouble.refused-refused, e.Seen["syncs"]-passes; {
		case n > refusalsPerMinute*minutes:
			e.Fail(simulation.RuleRefusals, "%s: %d requests in %d minutes", verb, n, minutes)
		case m > passesPerMinute*minutes:
			e.Fail(simulation.RulePasses, "%s: %d passes in %d minutes", verb, m, minutes)
		}
	}
	e.Seen["refusals that last: "+verb]++
	sj := e.sequence()
	if sj == nil || !e.trouble.warned.IsZero() {
		return
	}
	for _, c := range sj.Status.Conditions {
		if contains(reasonsOfRefusals, c.Reason) {
			return
		}
	}
	e.Fail(ruleVisible, "%s is refused since %s: %s", verb, e.Now().Sub(begin), describeStatus(&sj.Status))
}

// ask lets a user ask for what needs such a request.
func (e *env) ask(verb string) {
	sj := e.sequence()
	switch {
	case sj == nil:
		e.createSequence()
	case sj.DeletionTimestamp != nil:
	case verb == "create child":
		e.act(simulation.OneOf(e.Dice, "retry", "resume", "restart"))
	case verb == "delete child" && e.Dice.Percent(40), verb == "patch sequence" && e.Dice.Percent(60):
		e.Note("user deletes the sequence")
		e.deleteSequence("")
	case verb == "delete child":
		e.act(simulation.OneOf(e.Dice, "cancel", "restart"))
	case helper.Suspended(sj):
		e.act("resume")
	default:
		e.act("suspend")
	}
}

// rivalActs lets a second controller act, which has not noticed that it does not lead any more.
func (e *env) rivalActs() {
	first := e.process
	defer func() { e.process = first }()
	switch {
	case e.rival == nil:
		e.startProcess()
		e.rival = e.process
		e.rival.rivals = true
		e.Seen["second controllers"]++
	case e.rival.sender.Dead || e.Dice.Percent(10):
		e.Note("the second controller ends")
		e.rival = nil
	case e.Dice.Percent(50):
		e.process = e.rival
		e.ShowSome(e.process.caches())
	default:
		e.Note("the second controller acts")
		e.process = e.rival
		e.process.worker.Add(name)
		e.sync()
	}
}
