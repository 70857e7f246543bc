// Copyright The jobset-apiserver Authors.
// SPDX-License-Identifier: Apache-2.0

package gang_test

import (
	"fmt"
	"net/http"
	"slices"
	"strings"
	"time"

	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"
	"k8s.io/apimachinery/pkg/runtime/schema"
	"k8s.io/apimachinery/pkg/types"

	"github.com/jobset-apiserver/jobset-apiserver/pkg/controller/gang"
	"github.com/jobset-apiserver/jobset-apiserver/test/simulation/memory"
)

// Rules.
const (
	ruleUnneeded = "nothing is asked, and nothing is watched, while nobody needs the objects"
	ruleKnown    = "what is not known is never given out as no"
	ruleAbsent   = "an API is absent only after discovery has said so of every version, and twice of one that was served"
	ruleStays    = "the version in use stays until discovery has said twice that it is not served"
	ruleFresh    = "what is given out was so at most 5 minutes ago"
	ruleReason   = "what cannot be read has a reason within a minute"
	ruleRight    = "5 minutes after the trouble the watch knows what is so"
	ruleTold     = "whoever looks when told sees what is so"
	ruleRequests = "discovery is asked at most 120 times a minute in trouble, and 14 times at rest"
	ruleQuiet    = "at rest nothing is listed, and nothing is written"
	ruleEnd      = "nothing is left after the end"
)

const (
	// maxLag is how long watches lag at most.
	maxLag = 20 * time.Second
	// maxAge is the age of what may be given out, and recovery the time after the end of all trouble: a version is asked
	// for once a minute, and must be missed twice; its watch ends within another minute; a request hangs for a minute.
	maxAge, recovery = 5 * time.Minute, 5 * time.Minute
	// reasonAfter is the time within which there is a reason: a minute after the answer to a request that hangs, which is
	// sent within a minute.
	reasonAfter = 3*time.Minute + 10*time.Second
	// endsWithin is how long a watch may go on that no caller needs.
	endsWithin = 3 * time.Minute
	// outlasts is how long a version may still be in use after another one was found: a minute for its watch, and 5 seconds for discovery.
	outlasts                           = time.Minute + 5*time.Second
	minute                             = time.Minute
	mostQuestions, mostQuestionsAtRest = 120, 14
	servedAgain                        = 2
)

// says returns what the watch says of the API.
func (e *env) says() gang.State {
	s := e.process.Ask()
	if e.ask != nil {
		return e.ask(e, s)
	}
	return s
}

// view returns what the watch says of the objects of an owner.
func (e *env) view(v view) string {
	found := e.process.Of(v.owner)
	if e.of != nil {
		found = e.of(e, found)
	}
	return describe(slices.DeleteFunc(slices.Clone(found), func(object *unstructured.Unstructured) bool {
		return object.GetKind() != all[v.resource.Resource]
	}))
}

// check checks what the watch says, and what it has asked.
func (e *env) check() {
	e.checkRequests()
	if !e.process.needed.Load() {
		return
	}
	s := e.says()
	e.listen(s)
	switch {
	case s.Absent:
		e.Seen["absent"]++
		e.checkAbsent()
	case s.Version.Empty():
		e.Seen["unknown"]++
		e.checkReason(s.Problem)
	default:
		e.Seen["known"]++
		e.checkKnown(s)
	}
	if !s.Version.Empty() {
		e.process.used, e.process.seen = s.Version, time.Now()
	}
}

func (e *env) checkKnown(s gang.State) {
	// Since the version was seen, discovery may have found another one, missed that one too, and found this one again.
	stays := e.process.seen.Add(-outlasts)
	if used := e.process.used; used != s.Version && !used.Empty() && !e.forgotten() && e.givenUp(used).Before(stays) {
		e.Fail(ruleStays, "%s is used instead of %s, of which discovery has said %v", s.Version, used, e.said(used))
	}
	for _, resource := range resources {
		if !e.hasRead(s.Version.WithResource(resource.Resource)) {
			e.Fail(ruleKnown, "%s of %s have not been read", resource.Resource, s.Version)
		}
	}
	for _, v := range views {
		said := e.view(v)
		if !slices.ContainsFunc(e.within(maxAge), func(s state) bool { return s.views[v] == said }) {
			e.Fail(ruleFresh, "%v are said to be %q; they are %q", v, said, e.truth[len(e.truth)-1].views[v])
		}
	}
}

// within returns the states that were so at any time since then.
func (e *env) within(d time.Duration) []state {
	for i := len(e.truth) - 1; i > 0; i-- {
		if time.Since(e.truth[i].at) >= d {
			return e.truth[i:]
		}
	}
	return e.truth
}

// listen looks at what the watch has reported.
func (e *env) listen(s gang.State) {
	p := e.process
	p.mu.Lock()
	defer p.mu.Unlock()
	for _, owner := range owners {
		if p.dirty[owner] || p.dirty[everything] {
			p.said[owner] = e.heard(s, owner)
		}
	}
	clear(p.dirty)
}

func (e *env) heard(s gang.State, owner types.UID) string {
	if s.Version.Empty() {
		return fmt.Sprintf("absent: %t", s.Absent)
	}
	return fmt.Sprintf("%s: %s and %s", s.Version, e.view(view{owner, podGroups}), e.view(view{owner, workloads}))
}

// hasRead returns whether the process has read all objects of a kind once.
func (e *env) hasRead(resource schema.GroupVersionResource) bool {
	return slices.ContainsFunc(e.sent(), func(r memory.Request) bool {
		return r.Code == http.StatusOK && r.Resource == resource && (r.Verb == "list" || r.Verb == "watch" && r.Initial)
	})
}

// said returns what discovery has said of a version.
func (e *env) said(version schema.GroupVersion) (served []bool) {
	e.mu.Lock()
	defer e.mu.Unlock()
	for _, a := range e.answers[version][max(0, len(e.answers[version])-5):] {
		served = append(served, a.served)
	}
	return served
}

// forgotten returns whether the version in use may be that of an earlier need, whose watch goes on for a while. With that need the version was
// forgotten, and another one may have been found.
func (e *env) forgotten() bool {
	return e.process.renewed && e.process.seen.Sub(e.process.asked) <= outlasts
}

// givenUp returns when discovery has last said so many times in a row that a version in use is not served; zero if it has not.
func (e *env) givenUp(version schema.GroupVersion) (at time.Time) {
	e.mu.Lock()
	defer e.mu.Unlock()
	misses := 0
	for _, a := range e.answers[version] {
		if misses++; a.served {
			misses = 0
		}
		if misses >= servedAgain {
			at = a.at
		}
	}
	return at
}

// missed returns whether discovery has said so many times in a row that a version is not served.
func (e *env) missed(version schema.GroupVersion, times int) bool {
	said := e.said(version)
	return len(said) >= times && !slices.Contains(said[len(said)-times:], true)
}

// checkAbsent checks that discovery has said so of all versions.
func (e *env) checkAbsent() {
	for _, version := range versions {
		times := 1
		if version == e.process.used && !e.forgotten() {
			times = servedAgain
		}
		if !e.missed(version, times) {
			e.Fail(ruleAbsent, "of %s discovery has said %v", version, e.said(version))
		}
	}
}

// checkReason checks that there is one if nothing can be read.
func (e *env) checkReason(why string) {
	unreadable := e.weather.Fails("discovery")
	if e.serves(newest) || e.serves(oldest) {
		unreadable = max(unreadable, min(e.weather.Fails("list"), e.weather.Fails("watch")))
	}
	// A version that was given up may be found again, and is then watched again.
	found := min(time.Since(e.givenUp(newest)), time.Since(e.givenUp(oldest)))
	if min(unreadable, time.Since(e.process.asked), time.Since(e.turned), found) > reasonAfter && !strings.Contains(why, "(") {
		e.Fail(ruleReason, "the reason is %q after %s", why, unreadable)
	}
}

// checkRequests checks what was asked of the server.
func (e *env) checkRequests() {
	sent, p := e.sent(), e.process
	if !p.needed.Load() && time.Since(p.unneeded) > endsWithin+minute || p.asked.IsZero() {
		if n, watches := within(sent, minute), e.watches(); n > 0 || watches > 0 {
			e.Fail(ruleUnneeded, "%d requests in the last minute, %d watches", n, watches)
		}
	}
	if n := within(sent, minute, "discovery", "version"); n > mostQuestions {
		e.Fail(ruleRequests, "%d questions in a minute", n)
	}
	if n := within(sent, minute, "create", "patch", "apply", "delete"); n > 0 {
		e.Fail(ruleQuiet, "%d writes", n)
	}
}

// within returns how many requests were sent in the last time, of the verbs or of all.
func within(sent []memory.Request, d time.Duration, verbs ...string) (n int) {
	for _, r := range sent {
		if time.Since(r.At) < d && (len(verbs) == 0 || slices.Contains(verbs, r.Verb)) {
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
	e.need()
	e.says()
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
	for _, r := range rest {
		if r.Verb == "list" || r.Initial {
			e.Fail(ruleQuiet, "%s of %s", r.Verb, r.Resource)
		}
	}
	e.stop()
}

func (e *env) checkRight() {
	s := e.says()
	served := e.serves(newest) || e.serves(oldest)
	if s.Absent == served || served && !e.serves(s.Version) {
		e.Fail(ruleRight, "the state is %+v, while %s is served: %t, and %s: %t", s, newest, e.serves(newest), oldest, e.serves(oldest))
	}
	e.Seen[fmt.Sprintf("at rest: %q", s.Version.Version)]++
	for _, v := range views {
		if want := e.truth[len(e.truth)-1].views[v]; served && e.view(v) != want {
			e.Fail(ruleRight, "%v are said to be %q, not %q", v, e.view(v), want)
		}
	}
	for _, owner := range owners {
		if said, told := e.process.said[owner], e.heard(s, owner); said != told {
			e.Fail(ruleTold, "of %s they have seen %q, but it is %q", owner, said, told)
		}
	}
}
