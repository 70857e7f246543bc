// Copyright The jobset-apiserver Authors.
// SPDX-License-Identifier: Apache-2.0

package plan

import (
	"testing"
	"time"
)

func TestCountsWait(t *testing.T) {
	for name, c := range map[string]struct {
		groups int32
		change func(f *fixture)
		want   time.Duration
	}{
		"nothing changes": {100, func(*fixture) {}, 0},
		"another group becomes ready": {100, func(f *fixture) {
			f.workers(1).Ready, f.workers(2).Ready = false, false
			f.stabilize()
			f.workers(1).Ready = true
		}, 2 * time.Second},
		"a large set": {1000, func(f *fixture) {
			f.workers(1).Ready, f.workers(2).Ready = false, false
			f.stabilize()
			f.workers(1).Ready = true
		}, 5 * time.Second},
		"a small set": {3, func(f *fixture) {
			f.workers(1).Ready, f.workers(2).Ready = false, false
			f.stabilize()
			f.workers(1).Ready = true
		}, 60 * time.Millisecond},
		"for a while already": {100, func(f *fixture) {
			f.workers(1).Ready, f.workers(2).Ready = false, false
			f.stabilize()
			f.workers(1).Ready, f.CountsWaited = true, 1900*time.Millisecond
		}, 100 * time.Millisecond},
		"for long enough": {100, func(f *fixture) {
			f.workers(1).Ready, f.workers(2).Ready = false, false
			f.stabilize()
			f.workers(1).Ready, f.CountsWaited = true, time.Minute
		}, 0},
		"the last group becomes ready": {100, func(f *fixture) { f.workers(1).Ready = false; f.stabilize(); f.workers(1).Ready = true }, 0},
		"the first group is not ready": {100, func(f *fixture) { f.workers(1).Ready = false }, 0},
		"a group fails":                {100, func(f *fixture) { f.worker(1, 1).Restarted = true }, 0},
		"another generation": {100, func(f *fixture) {
			f.workers(1).Ready = false
			f.stabilize()
			f.Set.Generation++
			f.workers(2).Ready = false
		}, 0},
		"a group less, and all is done": {100, func(f *fixture) { f.Set.Status.Replicas++ }, 0},
	} {
		t.Run(name, func(t *testing.T) {
			f := newFixture(t, c.groups, 2)
			f.stabilize()
			c.change(f)
			p := Decide(f.Observed)
			out := Finish(f.Observed, p, Results{})
			switch {
			case c.want > 0 && (out.Status != nil || !out.CountsWait || out.RequeueAfter != c.want):
				t.Errorf("the status %+v is stored, or waits (%v) for %v; want %v", out.Status, out.CountsWait, out.RequeueAfter, c.want)
			case c.want == 0 && (out.Status != p.Status || out.CountsWait || out.RequeueAfter != p.RequeueAfter):
				t.Errorf("the status waits (%v) for %v; want none", out.CountsWait, out.RequeueAfter)
			}
		})
	}
}
