// Copyright The jobset-apiserver Authors.
// SPDX-License-Identifier: Apache-2.0

package leaderworkerset

import "testing"

func TestLosses(t *testing.T) {
	for name, test := range map[string]struct {
		do       func(l *Losses)
		want     int
		wantKept bool
	}{
		"a pod of a complete group is replaced": {func(l *Losses) {
			l.Added("s", 2)
			l.Added("s", 2)
			l.Gone("s", true, true)
			l.Added("s", 2)
		}, 1, true},
		"a pod is gone before all were there": {func(l *Losses) {
			l.Added("s", 2)
			l.Gone("s", true, true)
			l.Added("s", 2)
			l.Added("s", 2)
		}, 0, true},
		"the only pod is gone before the statefulset is shown": {func(l *Losses) {
			l.Added("s", 1)
			l.Gone("s", false, true)
		}, 1, true},
		"the group is being deleted": {func(l *Losses) {
			l.Added("s", 1)
			l.Gone("s", true, false)
			l.Forget("s")
		}, 0, false},
		"the statefulset is gone before its pods": {func(l *Losses) {
			l.Added("s", 2)
			l.Added("s", 2)
			l.Forget("s")
			l.Gone("s", false, true)
			l.Gone("s", false, true)
		}, 0, false},
		"the group is gone, and its statefulset was never shown": {func(l *Losses) {
			l.Added("s", 1)
			l.Gone("s", false, false)
		}, 0, false},
		"a pod that nobody has counted is gone": {func(l *Losses) { l.Gone("s", true, true) }, 0, false},
	} {
		t.Run(name, func(t *testing.T) {
			l := NewLosses()
			test.do(l)
			if got := l.Of("s"); got != test.want {
				t.Errorf("%d pods are lost, not %d", got, test.want)
			}
			if kept := l.sets["s"] != nil; kept != test.wantKept {
				t.Errorf("kept: %t", kept)
			}
		})
	}
}
