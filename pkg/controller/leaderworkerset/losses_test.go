// Copyright The jobset-apiserver Authors.
// SPDX-License-Identifier: Apache-2.0

package leaderworkerset

import (
	"testing"

	"github.com/jobset-apiserver/jobset-apiserver/pkg/controller/leaderworkerset/plan"
)

func TestLosses(t *testing.T) {
	first, second := plan.LostPod{Name: "s-1", Node: "a"}, plan.LostPod{Name: "s-2", Node: "b"}
	for name, test := range map[string]struct {
		do       func(l *Losses)
		want     int
		wantKept bool
	}{
		"a pod of a complete group is replaced": {func(l *Losses) {
			l.Added("s", 2)
			l.Added("s", 2)
			l.Gone("s", first, true, true)
			l.Added("s", 2)
		}, 1, true},
		"two pods of a complete group are replaced": {func(l *Losses) {
			l.Added("s", 2)
			l.Added("s", 2)
			l.Gone("s", first, true, true)
			l.Gone("s", second, true, true)
		}, 2, true},
		"a pod is gone before all were there": {func(l *Losses) {
			l.Added("s", 2)
			l.Gone("s", first, true, true)
			l.Added("s", 2)
			l.Added("s", 2)
		}, 0, true},
		"the only pod is gone before the statefulset is shown": {func(l *Losses) {
			l.Added("s", 1)
			l.Gone("s", first, false, true)
		}, 1, true},
		"the group is being deleted": {func(l *Losses) {
			l.Added("s", 1)
			l.Gone("s", first, true, false)
			l.Forget("s")
		}, 0, false},
		"the statefulset is gone before its pods": {func(l *Losses) {
			l.Added("s", 2)
			l.Added("s", 2)
			l.Forget("s")
			l.Gone("s", first, false, true)
			l.Gone("s", first, false, true)
		}, 0, false},
		"the group is gone, and its statefulset was never shown": {func(l *Losses) {
			l.Added("s", 1)
			l.Gone("s", first, false, false)
		}, 0, false},
		"a pod that nobody has counted is gone": {func(l *Losses) { l.Gone("s", first, true, true) }, 0, false},
	} {
		t.Run(name, func(t *testing.T) {
			l := NewLosses()
			test.do(l)
			got, pod := l.Of("s")
			if got != test.want {
				t.Errorf("%d pods are lost, not %d", got, test.want)
			}
			if want := (got > 0); (pod == first) != want || (pod == plan.LostPod{}) == want {
				t.Errorf("the first pod that was lost is %+v", pod)
			}
			if kept := l.sets["s"] != nil; kept != test.wantKept {
				t.Errorf("kept: %t", kept)
			}
		})
	}
}
