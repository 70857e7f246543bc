// Copyright The jobset-apiserver Authors.
// SPDX-License-Identifier: Apache-2.0

package members

import (
	"errors"
	"testing"
	"time"
)

// TestAllMembersAreLost lets all members fail, for a shorter and for a longer time.
func TestAllMembersAreLost(t *testing.T) {
	m, members := newMembers(t, 3)
	now := time.Now()
	m.now = func() time.Time { return now }
	all := func(err error) {
		for _, s := range members {
			s.err = err
		}
		m.lookAt(t.Context(), 1, members...)
	}
	all(errors.New("no leader"))
	now = now.Add(2 * lostAfter)
	if m.Lost() {
		t.Error("the members are lost, must not be before one has answered")
	}
	all(nil)
	all(errors.New("no leader"))
	now = now.Add(lostAfter - 1)
	if m.Lost() {
		t.Error("the members are lost too early")
	}
	now = now.Add(1)
	if !m.Lost() {
		t.Error("the members are not lost, must be")
	}
	members[1].err = nil
	m.lookAt(t.Context(), 1, members...)
	if m.Lost() {
		t.Error("the members are lost, must not be while one answers")
	}
	now = now.Add(2 * lostAfter)
	if m.Lost() {
		t.Error("the members are lost, must not be before a read has failed")
	}
}
