// Copyright The jobset-apiserver Authors.
// SPDX-License-Identifier: Apache-2.0

package plan

import (
	"testing"

	"github.com/google/go-cmp/cmp"
	appsv1 "k8s.io/api/apps/v1"
)

// TestRevisionIsReported reports a revision once it is there, which the leader StatefulSet shows if it had to be applied after it.
func TestRevisionIsReported(t *testing.T) {
	const note = "Creating revision"
	apply := func(p *Plan) { p.ApplyLeader = &appsv1.StatefulSet{} }
	for name, c := range map[string]struct {
		change func(p *Plan)
		result Results
		want   []string
	}{
		"applied":                           {apply, Results{LeaderApplied: true}, []string{note}},
		"refused after it":                  {apply, Results{LeaderError: "forbidden"}, []string{note, "Failed to update leader statefulset s: forbidden"}},
		"not applied":                       {apply, Results{Error: "creating controllerrevision"}, nil},
		"not applied, and nobody says why":  {apply, Results{}, nil},
		"nothing to apply":                  {func(*Plan) {}, Results{}, []string{note}},
		"nothing to apply, and not created": {func(*Plan) {}, Results{Error: "creating controllerrevision"}, nil},
		"nothing to apply, and no time":     {func(*Plan) {}, Results{Interrupted: true}, nil},
		"no revision":                       {func(p *Plan) { p.CreateRevision = nil }, Results{}, nil},
	} {
		t.Run(name, func(t *testing.T) {
			p := Plan{CreateRevision: &appsv1.ControllerRevision{}, RevisionEvent: Event{Note: note}}
			c.change(&p)
			var got []string
			for _, e := range Finish(newFixture(t, 1, 1).Observed, p, c.result).Others {
				got = append(got, e.Note)
			}
			if diff := cmp.Diff(c.want, got); diff != "" {
				t.Error("events (-want +got):\n" + diff)
			}
		})
	}
}
