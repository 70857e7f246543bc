// Copyright The jobset-apiserver Authors.
// SPDX-License-Identifier: Apache-2.0

package kueue_test

import (
	"slices"
	"strings"
	"time"

	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
)

// truth is what was so, and when.
type truth struct{ states []state }

// state is what the server holds from a time on.
type state struct {
	at     time.Time
	views  map[string]string
	served bool
}

// note notes the present state.
func (t *truth) note(e *env) {
	s := state{at: time.Now(), views: map[string]string{}, served: e.served}
	all := e.server.List(workloads.GroupResource())
	for _, sequence := range sequences {
		var names []string
		for _, w := range all {
			if owner := metav1.GetControllerOf(w); owner.Kind == "SequentialJob" && owner.Name == sequence {
				names = append(names, w.GetName()+"@"+w.GetResourceVersion())
			}
		}
		slices.Sort(names)
		s.views[sequence] = strings.Join(names, " ")
	}
	t.states = append(t.states, s)
}

// within returns the states that were so at any time since then.
func (t *truth) within(d time.Duration) []state {
	for i := len(t.states) - 1; i > 0; i-- {
		if time.Since(t.states[i].at) >= d {
			return t.states[i:]
		}
	}
	return t.states
}
