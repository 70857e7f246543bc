// Copyright The jobset-apiserver Authors.
// SPDX-License-Identifier: Apache-2.0

package leaderworkerset

import (
	"testing"

	"github.com/jobset-apiserver/jobset-apiserver/pkg/controller/leaderworkerset/plan"
)

func TestLosses(t *testing.T) {
	pod := plan.LostPod{Name: "s-1", Node: "a"}
	first, second := GonePod{LostPod: pod, Started: true}, GonePod{LostPod: plan.LostPod{Name: "s-2", Node: "b"}, Started: true}
	going, waiting := GonePod{LostPod: pod, Started: true, Deleting: true}, GonePod{LostPod: pod, Deleting: true}
	for name, test := range map[string]struct {
		do       func(l *Losses)
		want     int
		wantKept bool
	}{
		"a pod of a complete group is replaced": {func(l *Losses) {
			l.Added("s", 2, true, false)
			l.Added("s", 2, true, false)
			l.Gone("s", first, true, true)
			l.Added("s", 2, true, false)
		}, 1, true},
		"two pods of a complete group are replaced": {func(l *Losses) {
			l.Added("s", 2, true, false)
			l.Added("s", 2, true, false)
			l.Gone("s", first, true, true)
			l.Gone("s", second, true, true)
		}, 2, true},
		"a pod is gone before all were there": {func(l *Losses) {
			l.Added("s", 2, true, false)
			l.Gone("s", first, true, true)
			l.Added("s", 2, true, false)
			l.Added("s", 2, true, false)
		}, 0, true},
		"a pod is being deleted before all were there, and another one comes": {func(l *Losses) {
			l.Added("s", 2, true, false)
			l.Deleting("s")
			l.Added("s", 2, true, false)
			l.Gone("s", going, true, true)
			l.Added("s", 2, true, false)
		}, 0, true},
		"the only pod is gone before it has started": {func(l *Losses) {
			l.Added("s", 1, true, false)
			l.Deleting("s")
			l.Gone("s", waiting, true, true)
			l.Added("s", 1, true, false)
		}, 0, true},
		"the only pod is gone before the statefulset is shown": {func(l *Losses) {
			l.Added("s", 1, true, false)
			l.Gone("s", first, false, true)
		}, 1, true},
		"the group is being deleted": {func(l *Losses) {
			l.Added("s", 1, true, false)
			l.Gone("s", first, true, false)
			l.Forget("s")
		}, 0, false},
		"the statefulset is gone before its pods": {func(l *Losses) {
			l.Added("s", 2, true, false)
			l.Added("s", 2, true, false)
			l.Forget("s")
			l.Gone("s", first, false, true)
			l.Gone("s", first, false, true)
		}, 0, false},
		"the group is gone, and its statefulset was never shown": {func(l *Losses) {
			l.Added("s", 1, true, false)
			l.Gone("s", first, false, false)
		}, 0, false},
		"a pod that nobody has counted is gone": {func(l *Losses) { l.Gone("s", first, true, true) }, 0, false},
	} {
		t.Run(name, func(t *testing.T) {
			l := NewLosses()
			test.do(l)
			w := plan.Workers{Ref: plan.Ref{UID: "s"}}
			l.Fill(&w)
			got, lost := w.Lost, w.FirstLost
			if got != test.want {
				t.Errorf("%d pods are lost, not %d", got, test.want)
			}
			if want := (got > 0); (lost == pod) != want || (lost == plan.LostPod{}) == want {
				t.Errorf("the first pod that was lost is %+v", lost)
			}
			if kept := l.sets["s"] != nil; kept != test.wantKept {
				t.Errorf("kept: %t", kept)
			}
		})
	}
}

func TestNeverComplete(t *testing.T) {
	for name, test := range map[string]struct {
		do           func(l *Losses)
		want         bool
		wantComplete bool
	}{
		"nothing is counted": {func(*Losses) {}, false, false},
		"a pod is there":     {func(l *Losses) { l.Added("s", 2, true, false) }, true, false},
		"all are there": {func(l *Losses) {
			l.Added("s", 2, true, false)
			l.Added("s", 2, true, false)
		}, false, true},
		"all were there before": {func(l *Losses) {
			l.Added("s", 2, true, true)
			l.Added("s", 2, true, true)
		}, false, true},
		"one of all is being deleted": {func(l *Losses) {
			l.Added("s", 2, false, false)
			l.Added("s", 2, true, false)
		}, true, false},
		"there were pods before": {func(l *Losses) {
			l.Added("s", 2, false, true)
			l.Added("s", 2, true, false)
		}, false, false},
		"it is not known how many there are to be": {func(l *Losses) { l.Added("s", -1, true, false) }, false, false},
		"it was complete, and a pod is being deleted": {func(l *Losses) {
			l.Added("s", 1, true, false)
			l.Deleting("s")
		}, false, true},
	} {
		t.Run(name, func(t *testing.T) {
			l := NewLosses()
			test.do(l)
			w := plan.Workers{Ref: plan.Ref{UID: "s"}}
			if l.Fill(&w); w.NeverComplete != test.want || w.Complete != test.wantComplete {
				t.Errorf("complete: %t, never complete: %t", w.Complete, w.NeverComplete)
			}
		})
	}
}
