// Copyright The jobset-apiserver Authors.
// SPDX-License-Identifier: Apache-2.0

package jobset

import (
	"strings"
	"testing"

	"github.com/jobset-apiserver/jobset-apiserver/pkg/controller/host/children"
	"github.com/jobset-apiserver/jobset-apiserver/pkg/controller/host/loop"
	"github.com/jobset-apiserver/jobset-apiserver/pkg/controller/jobset/plan"
)

func TestNotesFitIntoEvents(t *testing.T) {
	r := newRig(t, newSet())
	r.Report(t.Context(), newSet(), loop.Report{Event: plan.Event{Type: "Normal", Reason: "Long", Note: strings.Repeat("x", children.MaxNote+1)}})
	diff(t, "events", []string{"Normal Long Reconciling: " + strings.Repeat("x", children.MaxNote-3) + "..."}, r.events.all())
}
