// Copyright The jobset-apiserver Authors.
// SPDX-License-Identifier: Apache-2.0

package children

import (
	"testing"
	"time"

	"k8s.io/apimachinery/pkg/types"

	"github.com/jobset-apiserver/jobset-apiserver/pkg/controller/host/consistency"
)

// TestRoomIsUsedAtOnce restarts an owner under a quota into which its children just fit. The children take seconds to be gone, and the quota
// counts each of them for half a second more. A pass comes whenever something changes, and when a denied request is due.
func TestRoomIsUsedAtOnce(t *testing.T) {
	for name, tc := range map[string]struct {
		// gone are the times in milliseconds after which the children are gone, and last the time at which all exist again at the latest.
		gone []int
		last int
	}{
		"one child":                         {[]int{2000}, 3500},
		"children that are gone one by one": {[]int{500, 1000, 2000, 3000}, 4500},
		"children that are gone together":   {[]int{1000, 1000, 1000, 1000}, 2500},
	} {
		t.Run(name, func(t *testing.T) {
			r, begin := newDenialRig(), time.Time{}
			names := []string{"a", "b", "c", "d"}[:len(tc.gone)]
			begin = r.now.Now()
			since := func() int { return int(r.now.Now().Sub(begin).Milliseconds()) }
			exists, denied := map[string]bool{}, map[string]int{}
			r.answer = func(string) error { return nil }
			_ = r.ask(verbDelete, names...) // the UID of each is of-NAME
			r.answer = func(name string) error {
				used := len(exists)
				for _, gone := range tc.gone {
					if since() < gone+500 {
						used++
					}
				}
				if used >= len(names) {
					denied[name]++
					return deniedByQuota(name)
				}
				exists[name] = true
				return nil
			}
			for ; len(exists) < len(names) && since() < 60_000; r.pass(100 * time.Millisecond) {
				var present []consistency.Child
				for i, name := range names {
					if since() < tc.gone[i] {
						present = append(present, consistency.Child{UID: types.UID("of-" + name), Deleting: true})
					}
				}
				r.Shown(r.owner, present)
				for i, name := range names { // the name is free
					if since() >= tc.gone[i] && !exists[name] {
						_ = r.ask(verbCreate, name)
					}
				}
			}
			if since() > tc.last {
				t.Errorf("all children exist after %d ms, want %d", since(), tc.last)
			}
			for name, n := range denied {
				if n > 2 {
					t.Errorf("%s is denied %d times", name, n)
				}
			}
		})
	}
}

// TestRoomIsAskedForOncePerReason has a quota without room, and an owner that deletes a child each second.
func TestRoomIsAskedForOncePerReason(t *testing.T) {
	r, asked := newDenialRig(), 0
	names := []string{"a", "b", "c"}
	for second := range 300 {
		r.answer = func(string) error { return nil }
		_ = r.ask(verbDelete, "x")
		r.Shown(r.owner, nil)
		r.answer = deniedByQuota
		before := asked
		for range 10 {
			_ = r.ask(verbCreate, names...)
			asked += len(r.asked)
		}
		if asked > before+1 {
			t.Fatalf("asked %d times in second %d", asked-before, second)
		}
		if second == 59 && asked > 2*len(names) {
			t.Errorf("asked %d times in the first minute, want %d at most", asked, 2*len(names))
		}
		r.pass(time.Second)
	}
	if asked > 5*maxAgain {
		t.Errorf("asked %d times in five minutes, want %d at most", asked, 5*maxAgain)
	}
}
