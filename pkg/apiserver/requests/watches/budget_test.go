// Copyright The jobset-apiserver Authors.
// SPDX-License-Identifier: Apache-2.0

package watches

import (
	"testing"
	"time"

	"github.com/google/go-cmp/cmp"
	testclock "k8s.io/utils/clock/testing"

	"github.com/jobset-apiserver/jobset-apiserver/pkg/apiserver/store/space"
)

func TestBudget(t *testing.T) {
	type step struct {
		user  string
		bytes int
	}
	for name, tc := range map[string]struct {
		steps []step
		// ended are the steps whose watches end.
		ended []int
		// atOnce means that there is no time between the steps.
		atOnce bool
	}{
		"there is room":                         {[]step{{"a", 50}, {"a", 50}, {"b", 100}}, nil, false},
		"all take what is sent to them at once": {[]step{{"a", 60}, {"a", 60}, {"a", 60}, {"a", 60}, {"b", 200}}, nil, true},
		"a user has too much":                   {[]step{{"a", 60}, {"b", 60}, {"a", 60}, {"a", 60}}, []int{0, 2}, false},
		"one event is larger than the share":    {[]step{{"a", 150}}, nil, false},
		"one event is larger than the budget":   {[]step{{"a", 500}}, nil, false},
		"it is ended when another one follows":  {[]step{{"a", 150}, {"a", 10}}, []int{0}, false},
		"all users have too much": {
			[]step{{"a", 90}, {"b", 80}, {"c", 60}, {"d", 60}, {"e", 60}}, []int{0}, false,
		},
		"a large event takes the place of others": {[]step{{"a", 100}, {"b", 100}, {"c", 250}}, []int{0, 1}, false},
	} {
		t.Run(name, func(t *testing.T) {
			clock := testclock.NewFakePassiveClock(time.Now())
			b := newBudget(clock, writeGrace, space.DefaultMemory)
			b.perUser, b.total = 100, 300
			var ended []int
			var writes []*write
			for i, s := range tc.steps {
				if !tc.atOnce {
					clock.SetTime(clock.Now().Add(writeGrace))
				}
				writes = append(writes, b.begin(s.user, make([]byte, s.bytes), func() { ended = append(ended, i) }))
			}
			if diff := cmp.Diff(tc.ended, ended); diff != "" {
				t.Errorf("watches that end (-want +got):\n%s", diff)
			}
			for _, w := range writes {
				b.finish(w)
			}
			if b.all.bytes != 0 || len(b.users) != 0 {
				t.Errorf("%d bytes of %d users are left", b.all.bytes, len(b.users))
			}
		})
	}
}

func TestWritesThatWaitTooLong(t *testing.T) {
	clock := testclock.NewFakePassiveClock(time.Now())
	b, ended := newBudget(clock, writeGrace, space.DefaultMemory), 0
	end := func() { ended++ }
	b.begin("a", make([]byte, 1), end)
	clock.SetTime(clock.Now().Add(maxWait / 2))
	b.begin("a", make([]byte, 1), end)
	b.begin("b", make([]byte, 1), end)
	clock.SetTime(clock.Now().Add(maxWait / 2))
	if b.endOld(); ended != 1 {
		t.Errorf("%d watches are ended after %s, want 1", ended, maxWait)
	}
	clock.SetTime(clock.Now().Add(maxWait / 2))
	if b.endOld(); ended != 3 || b.all.bytes != 0 {
		t.Errorf("%d watches are ended later, want 3; %d bytes are left", ended, b.all.bytes)
	}
}

// TestWatchesOfOneObject has many watches that send the same bytes, which are there once.
func TestWatchesOfOneObject(t *testing.T) {
	clock := testclock.NewFakePassiveClock(time.Now())
	b := newBudget(clock, writeGrace, space.DefaultMemory)
	b.perUser, b.total = 100, 300
	ended := map[string]int{}
	begin := func(user string, data []byte) *write {
		clock.SetTime(clock.Now().Add(writeGrace))
		return b.begin(user, data, func() { ended[user]++ })
	}
	event := make([]byte, 60)
	var writes []*write
	for range 1000 {
		writes = append(writes, begin("a", event), begin("b", event))
	}
	if len(ended) > 0 || b.all.bytes != len(event) {
		t.Errorf("%v watches are ended, %d bytes wait; want none and %d", ended, b.all.bytes, len(event))
	}
	// Another event of 60 bytes has room only when all that wait with the first one are ended.
	writes = append(writes, begin("a", make([]byte, 60)))
	if diff := cmp.Diff(map[string]int{"a": 1000}, ended); diff != "" {
		t.Errorf("watches that end (-want +got):\n%s", diff)
	}
	for _, w := range writes {
		b.finish(w)
	}
	if b.all.bytes != 0 || len(b.all.counts) != 0 || len(b.users) != 0 {
		t.Errorf("%d bytes in %d buffers of %d users are left", b.all.bytes, len(b.all.counts), len(b.users))
	}
}
