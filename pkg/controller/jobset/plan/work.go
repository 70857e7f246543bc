// Copyright The jobset-apiserver Authors.
// SPDX-License-Identifier: Apache-2.0

package plan

import hostplan "github.com/jobset-apiserver/jobset-apiserver/pkg/controller/host/plan"

// work is what a step looks at that writes children.
type work struct {
	state
	// waits are the Jobs that may be neither created nor resumed.
	waits waits
	// toResume is how many Jobs are to be resumed.
	toResume int
}

// childStep returns what one subject wants of the children, and of the status that tells about them.
type childStep func(work) changes

// of returns a step that does not depend on which Jobs wait.
func of(take step) childStep {
	return func(w work) changes { return take(w.state) }
}

// newWork decides which Jobs wait.
func newWork(s state) work {
	var all []wait
	for _, await := range awaits() {
		one := await(s)
		s, all = fold(s, one.changes), append(all, one)
	}
	w := work{state: s, waits: union(s.Observed, all...)}
	for _, job := range s.owned.active {
		if w.waits.resumes(&s.Observed, job) {
			w.toResume++
		}
	}
	return w
}

// lookAgain has the set looked at when answers may change, or nodes that pods keep off are forgotten.
func lookAgain(s state) changes {
	return changes{plan: Plan{RequeueAfter: hostplan.Sooner(s.Moving.Value().After, s.Located.Value().After, timeToForget(s))}}
}
