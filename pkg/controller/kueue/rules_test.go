// Copyright The jobset-apiserver Authors.
// SPDX-License-Identifier: Apache-2.0

package kueue_test

import (
	"fmt"
	"net/http"
	"slices"
	"strings"
	"time"

	"k8s.io/client-go/tools/cache"

	"github.com/jobset-apiserver/jobset-apiserver/pkg/controller/kueue"
	"github.com/jobset-apiserver/jobset-apiserver/pkg/controller/kueue/plan"
)

// Rules.
const (
	ruleUnasked  = "nothing is asked before somebody wants to know"
	ruleKnown    = "what is not known is never given out as no"
	ruleAbsent   = "an API is absent only after discovery has said so, and twice in a row if it was served"
	ruleFresh    = "what is given out was so at most 4 minutes ago"
	ruleReason   = "what cannot be read has a reason within a minute"
	ruleRight    = "90 seconds after the trouble the watch knows what is so"
	ruleTold     = "whoever looks when told sees what is so"
	ruleOldest   = "the Workload of an owner is its oldest one that stays"
	ruleRequests = "discovery is asked at most 120 times a minute in trouble, and 7 times at rest"
	ruleQuiet    = "at rest nothing is listed, and nothing is written"
	ruleEnd      = "nothing is left after the end"
)

const (
	// maxLag is how long watches lag at most.
	maxLag = 20 * time.Second
	// maxAge is the age of what may be given out: requests that hang for a minute before and in the outage of a minute
	// that is overlooked, and the lag.
	maxAge = 4 * time.Minute
	// recovery is the time after the end of all trouble: that of a request that hangs, and some for polls and pauses.
	recovery = 90 * time.Second
	// reasonAfter is the time within which there is a reason, and that of a request that hangs.
	reasonAfter                        = 2*time.Minute + 10*time.Second
	mostQuestions, mostQuestionsAtRest = 120, 7
	servedAgain                        = 2
	minute                             = time.Minute
)

// says returns what the watch says of the availability.
func (e *env) says() (kueue.Availability, string) {
	a, why := e.process.Availability()
	if e.availability != nil {
		return e.availability(e, a, why)
	}
	return a, why
}

// view returns what the watch says of a sequence.
func (e *env) view(sequence string) (string, bool) {
	key := cache.NewObjectName(namespace, sequence)
	found, known := e.process.Holding(key)
	if e.holding != nil {
		found, known = e.holding(e, key, found, known)
	}
	var names []string
	for _, w := range found {
		names = append(names, w.Name+"@"+w.ResourceVersion)
	}
	slices.Sort(names)
	return strings.Join(names, " "), known
}

// check checks what the watch says, and what it has asked.
func (e *env) check() {
	e.checkRequests()
	if !e.process.wanted {
		return
	}
	e.listen()
	a, why := e.says()
	e.Seen[fmt.Sprintf("availability %d", a)]++
	switch a {
	case kueue.Absent:
		e.checkAbsent()
	case kueue.Unknown:
		e.checkReason(why)
	}
	states := e.truth.within(maxAge)
	for _, sequence := range sequences {
		view, known := e.view(sequence)
		switch {
		case known && a != kueue.Served:
			e.Fail(ruleKnown, "the Workloads of %s are said to be %q", sequence, view)
		case known && !e.hasRead():
			e.Fail(ruleKnown, "no Workload has been read, but those of %s are said to be %q", sequence, view)
		case known && !slices.ContainsFunc(states, func(s state) bool { return s.views[sequence] == view }):
			e.Fail(ruleFresh, "the Workloads of %s are said to be %q; they are %q", sequence, view, states[len(states)-1].views[sequence])
		case known:
			e.Seen["views that are known"]++
		}
	}
	e.checkOldest()
}

// listen looks at what the watch has reported.
func (e *env) listen() {
	p := e.process
	p.mu.Lock()
	defer p.mu.Unlock()
	for _, sequence := range sequences {
		if p.dirty[sequence] || p.dirty[everything] {
			p.said[sequence] = e.heard(sequence)
		}
	}
	clear(p.dirty)
}

func (e *env) heard(sequence string) string {
	view, known := e.view(sequence)
	return fmt.Sprintf("%q, known: %t", view, known)
}

// hasRead returns whether the process has read all Workloads once.
func (e *env) hasRead() bool {
	return slices.ContainsFunc(e.sent(), func(r memoryRequest) bool {
		return r.Code == http.StatusOK && (r.Verb == "list" || r.Verb == "watch" && r.Initial)
	})
}

// checkAbsent checks that the last answer of discovery says so, and one of those before it. In between, a reflector may have asked too.
func (e *env) checkAbsent() {
	wanted := 1
	var answers []int
	for _, r := range e.sent() {
		if r.Verb == "discovery" && (r.Code == http.StatusOK || r.Code == http.StatusNotFound) {
			answers = append(answers, r.Code)
			if r.Code == http.StatusOK {
				wanted = servedAgain
			}
		}
	}
	last := answers[max(0, len(answers)-5):]
	absences := 0
	for _, code := range last {
		if code == http.StatusNotFound {
			absences++
		}
	}
	if absences < wanted || last[len(last)-1] != http.StatusNotFound {
		e.Fail(ruleAbsent, "the last answers were %v", last)
	}
}

// checkReason checks that there is one if nothing can be read.
func (e *env) checkReason(why string) {
	unreadable := e.weather.Fails("discovery")
	if e.served {
		unreadable = max(unreadable, min(e.weather.Fails("list"), e.weather.Fails("watch")))
	}
	if since := time.Since(e.process.began); min(unreadable, since, time.Since(e.turned)) > reasonAfter && !strings.Contains(why, "(") {
		e.Fail(ruleReason, "the reason is %q after %s", why, unreadable)
	}
}

// checkOldest checks which Workload of an owner counts.
func (e *env) checkOldest() {
	for _, sequence := range sequences {
		for incarnation := 1; incarnation <= 2; incarnation++ {
			uid := uidOf(sequence, incarnation)
			of, _ := e.process.Of(uid)
			if e.of != nil {
				of = e.of(e, of)
			}
			found, _ := e.process.Holding(cache.NewObjectName(namespace, sequence))
			for _, w := range found {
				if w.OwnerUID() == uid && (of == nil || better(w, of)) {
					e.Fail(ruleOldest, "of %s it is %v, not %s", uid, of, w.Name)
				}
			}
		}
	}
}

func better(w, than *plan.Workload) bool {
	if stays := w.DeletionTimestamp == nil; stays != (than.DeletionTimestamp == nil) {
		return stays
	}
	return w.CreationTimestamp.Before(&than.CreationTimestamp)
}

// checkRequests checks what was asked of the server.
func (e *env) checkRequests() {
	sent := e.sent()
	if !e.process.wanted && len(sent) > 0 {
		e.Fail(ruleUnasked, "%d requests were sent, such as %s", len(sent), sent[0].Verb)
	}
	if n := within(sent, minute, "discovery"); n > mostQuestions {
		e.Fail(ruleRequests, "%d questions in a minute", n)
	}
	if n := within(sent, minute, "create", "patch", "apply", "delete"); n > 0 {
		e.Fail(ruleQuiet, "%d writes", n)
	}
}

func within(sent []memoryRequest, d time.Duration, verbs ...string) (n int) {
	for _, r := range sent {
		if time.Since(r.At) < d && slices.Contains(verbs, r.Verb) {
			n++
		}
	}
	return n
}

// stabilize ends all trouble, and checks that the watch comes to what is so.
func (e *env) stabilize() {
	e.Note("all trouble ends")
	e.weather.Clear()
	e.server.SetLag(0)
	e.want()
	e.pass(recovery)
	e.check()
	e.checkRight()
	before := len(e.sent())
	e.pass(5 * minute)
	e.check()
	e.checkRight()
	rest := e.sent()[before:]
	if n := within(rest, minute, "discovery"); n > mostQuestionsAtRest {
		e.Fail(ruleRequests, "%d questions in a minute at rest", n)
	}
	if n := within(rest, 5*minute, "list") + initial(rest); n > 0 {
		e.Fail(ruleQuiet, "%d lists at rest", n)
	}
	e.stop()
}

func (e *env) checkRight() {
	a, why := e.says()
	want := kueue.Absent
	if e.served {
		want = kueue.Served
	}
	e.Seen[fmt.Sprintf("at rest: %d", want)]++
	if a != want {
		e.Fail(ruleRight, "the availability is %d (%s), not %d", a, why, want)
	}
	now := e.truth.states[len(e.truth.states)-1]
	for _, sequence := range sequences {
		view, known := e.view(sequence)
		if known != e.served || known && view != now.views[sequence] {
			e.Fail(ruleRight, "the Workloads of %s are said to be %q (known: %t), not %q", sequence, view, known, now.views[sequence])
		}
		if said, told := e.process.said[sequence], e.heard(sequence); said != told {
			e.Fail(ruleTold, "of %s they have seen %s, but it is %s", sequence, said, told)
		}
	}
}

// initial returns the number of lists that were streamed.
func initial(sent []memoryRequest) (n int) {
	for _, r := range sent {
		if r.Initial {
			n++
		}
	}
	return n
}
