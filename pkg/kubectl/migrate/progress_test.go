// Copyright The jobset-apiserver Authors.
// SPDX-License-Identifier: Apache-2.0

package migrate

import (
	"bytes"
	"testing"
	"time"

	testingclock "k8s.io/utils/clock/testing"
)

// TestProgress counts 1,000 objects, 100 in a second.
func TestProgress(t *testing.T) {
	var out bytes.Buffer
	clock := testingclock.NewFakePassiveClock(time.Unix(0, 0))
	m := &mover{out: &out, clock: clock}
	p := m.progress(subjects[0])
	p.of(1000)
	for second := range 10 {
		clock.SetTime(time.Unix(int64(second+1), 0))
		p.add(100)
	}
	want := "  200 of 1000 jobsets, about 8s left\n  400 of 1000 jobsets, about 6s left\n  600 of 1000 jobsets, about 4s left\n" +
		"  800 of 1000 jobsets, about 2s left\n"
	if out.String() != want {
		t.Errorf("printed\n%s, want\n%s", out.String(), want)
	}
	(*progress)(nil).of(1)
	(*progress)(nil).add(1)
}
