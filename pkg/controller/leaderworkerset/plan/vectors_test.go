// Copyright The jobset-apiserver Authors.
// SPDX-License-Identifier: Apache-2.0

package plan

import "testing"

// The vectors of upstream's integration tests: groups change only as the steps say.
func TestRollingUpdateVectors(t *testing.T) {
	begin := func(t *testing.T, replicas, unavailable, surge, partition int32) *world {
		t.Helper()
		w := atRest(t, replicas, unavailable, surge, partition)
		w.frozen = true
		return w
	}
	type step struct {
		do   func(*world)
		want string
	}
	change := func(w *world) { w.change(w.image("2")) }
	become := func(indexes ...int32) func(*world) { return func(w *world) { w.become(indexes...) } }
	all := func(w *world) {
		for range 3 {
			for i := range *w.leader.Spec.Replicas {
				if p := w.pods[i]; p == nil || p.key != revisionOf(w.observe()).key || !p.ready {
					w.pods[i] = &worldPod{uid: w.uid(), key: revisionOf(w.observe()).key, ready: true}
				}
			}
			w.stabilize()
		}
	}
	const updating, availableNow = "Progressing UpdateInProgress", "Available"
	for name, c := range map[string]struct {
		set   [4]int32
		steps []step
	}{
		"R4": {[4]int32{4, 1, 0, 0}, []step{
			{change, "(3,4,4/0) " + updating}, {become(3), "(2,4,4/1) " + updating}, {become(1), "(2,4,4/2) " + updating},
			{func(w *world) { w.pods[2].ready = false; w.stabilize() }, "(2,4,3/2) " + updating}, {all, "(0,4,4/4) " + availableNow},
		}},
		"R4 U2":  {[4]int32{4, 2, 0, 0}, []step{{change, "(2,4,4/0) " + updating}, {become(3), "(1,4,4/1) " + updating}, {become(2), "(0,4,4/2) " + updating}, {all, "(0,4,4/4) " + availableNow}}},
		"R4 U10": {[4]int32{4, 10, 0, 0}, []step{{change, "(0,4,4/0) " + updating}, {all, "(0,4,4/4) " + availableNow}}},
		"R4 to 6 with the change": {[4]int32{4, 1, 0, 0}, []step{
			{func(w *world) { w.change(w.image("2"), w.replicas(6)) }, "(4,6,4/0) " + updating}, {all, "(0,6,6/6) " + availableNow},
		}},
		"R4 to 6 after it": {[4]int32{4, 1, 0, 0}, []step{
			{change, "(3,4,4/0) " + updating}, {become(3), "(2,4,4/1) " + updating},
			{func(w *world) { w.change(w.replicas(6)); w.become(4, 5) }, "(2,6,6/3) " + updating}, {all, "(0,6,6/6) " + availableNow},
		}},
		"R6 to 3": {[4]int32{6, 1, 0, 0}, []step{
			{change, "(5,6,6/0) " + updating}, {func(w *world) { w.change(w.replicas(3)) }, "(2,3,3/0) " + updating}, {all, "(0,3,3/3) " + availableNow},
		}},
		"R4 U0 S1": {[4]int32{4, 0, 1, 0}, []step{
			{change, "(4,5,4/0) " + updating}, {become(4), "(3,5,5/1) " + updating}, {become(3), "(2,5,5/2) " + updating}, {become(2), "(1,5,5/3) " + updating},
			{become(1), "(0,5,5/4) " + updating}, {become(0), "(0,4,4/4) " + availableNow},
		}},
		"R4 U1 S1": {[4]int32{4, 1, 1, 0}, []step{
			{change, "(3,5,4/0) " + updating}, {become(4), "(2,5,5/1) " + updating}, {become(3), "(1,5,5/2) " + updating}, {become(2), "(0,5,5/3) " + updating},
			{become(1), "(0,4,4/3) " + updating}, {become(0), "(0,4,4/4) " + availableNow},
		}},
		"R4 U2 S2": {[4]int32{4, 2, 2, 0}, []step{{change, "(2,6,4/0) " + updating}, {become(2, 3), "(0,4,4/2) " + updating}, {all, "(0,4,4/4) " + availableNow}}},
		"R2 to 4 with S2": {[4]int32{2, 1, 2, 0}, []step{
			{func(w *world) { w.change(w.image("2"), w.replicas(4)) }, "(2,6,2/0) " + updating}, {all, "(0,4,4/4) " + availableNow},
		}},
		"R6 to 3 with S2": {[4]int32{6, 1, 2, 0}, []step{
			{func(w *world) { w.change(w.image("2"), w.replicas(3)) }, "(2,5,5/0) " + updating}, {all, "(0,3,3/3) " + availableNow},
		}},
		"R2 S4": {[4]int32{2, 1, 4, 0}, []step{{change, "(1,3,2/0) " + updating}, {all, "(0,2,2/2) " + availableNow}}},
		"R4 S2 to 6 to 2": {[4]int32{4, 1, 2, 0}, []step{
			{change, "(3,6,4/0) " + updating}, {func(w *world) { w.change(w.replicas(6)); w.become(6, 7) }, "(3,8,6/2) " + updating},
			{func(w *world) {
				w.pods[2] = &worldPod{uid: w.uid(), key: w.current, ready: true}
				w.change(w.replicas(2))
			}, "(1,3,3/0) " + updating},
			{become(2), "(0,3,3/1) " + updating}, {become(1), "(0,2,2/1) " + updating}, {become(0), "(0,2,2/2) " + availableNow},
		}},
		"R4 U2 with a group that is not ready": {[4]int32{4, 2, 0, 0}, []step{
			{func(w *world) { w.pods[1].ready = false; w.stabilize() }, "(0,4,3/4) Progressing"}, {change, "(3,4,3/0) " + updating}, {all, "(0,4,4/4) " + availableNow},
		}},
		"R2 without ready groups": {[4]int32{2, 1, 0, 0}, []step{
			{func(w *world) { w.pods[0].ready, w.pods[1].ready = false, false; w.change(w.image("2")) }, "(1,2,0/0) " + updating},
			{become(1), "(0,2,1/1) " + updating}, {become(0), "(0,2,2/2) " + availableNow},
		}},
		"R6 P4": {[4]int32{6, 1, 0, 4}, []step{
			{func(*world) {}, "(4,6,6/6) " + availableNow}, {change, "(5,6,6/0) " + updating}, {become(5), "(4,6,6/1) " + updating}, {become(4), "(4,6,6/2) " + availableNow},
			{func(w *world) { w.change(w.partition(2)) }, "(3,6,6/2) " + updating}, {become(3), "(2,6,6/3) " + updating}, {become(2), "(2,6,6/4) " + availableNow},
		}},
		"R3 S1 P2": {[4]int32{3, 1, 1, 2}, []step{
			{func(*world) {}, "(2,3,3/3) " + availableNow}, {change, "(2,4,3/0) " + updating}, {become(2, 3), "(2,4,4/2) " + availableNow},
			{func(w *world) { w.change(w.partition(0)) }, "(0,4,4/2) " + updating}, {become(0, 1), "(0,3,3/3) " + availableNow},
		}},
	} {
		t.Run(name, func(t *testing.T) {
			w := begin(t, c.set[0], c.set[1], c.set[2], c.set[3])
			for i, s := range c.steps {
				s.do(w)
				if got := w.String() + " " + w.conditions(); got != s.want {
					t.Errorf("step %d: %s, want %s", i, got, s.want)
				}
			}
		})
	}
}
