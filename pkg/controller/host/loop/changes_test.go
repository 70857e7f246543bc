// Copyright The jobset-apiserver Authors.
// SPDX-License-Identifier: Apache-2.0

package loop_test

import (
	"testing"

	"github.com/google/go-cmp/cmp"

	"github.com/jobset-apiserver/jobset-apiserver/pkg/controller/host/loop"
)

func TestChanges(t *testing.T) {
	var steps []string
	note := func(step string) func(jobSet) {
		return func(js jobSet) { steps = append(steps, step+" "+js.ResourceVersion) }
	}
	handlers := loop.Changes[jobSet]{
		Shown: note("shown"), Gone: note("gone"), Changed: func(_, is jobSet) { note("changed")(is) },
	}.Handlers()
	first, second, other := newSet(), newSet(), newSet()
	second.ResourceVersion, other.ResourceVersion, other.UID = "6", "7", "another"
	handlers.OnAdd(first, false)
	handlers.OnUpdate(first, first.DeepCopy())
	handlers.OnUpdate(first, second)
	handlers.OnUpdate(second, other)
	handlers.OnDelete(other)
	handlers.OnDelete("of another type")
	if d := cmp.Diff([]string{"shown 5", "shown 5", "shown 6", "changed 6", "shown 7", "gone 7"}, steps); d != "" {
		t.Errorf("steps (-want +got):\n%s", d)
	}
}
