// Copyright The jobset-apiserver Authors.
// SPDX-License-Identifier: Apache-2.0

package plan

import (
	"testing"
	"time"

	"github.com/google/go-cmp/cmp"
	appsv1 "k8s.io/api/apps/v1"
	corev1 "k8s.io/api/core/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
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
		"not applied":                       {apply, Results{RevisionError: "creating controllerrevision"}, nil},
		"not applied, and nobody says why":  {apply, Results{}, nil},
		"nothing to apply":                  {func(*Plan) {}, Results{}, []string{note}},
		"nothing to apply, and not created": {func(*Plan) {}, Results{RevisionError: "creating controllerrevision"}, nil},
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

// TestTakenNamesAreReported has names that other objects have: at once they may be those of a set or leader pod before,
// which is about to go.
func TestTakenNamesAreReported(t *testing.T) {
	const service = "Failed to create headless service s: a Service with this name exists and does not belong to the LeaderWorkerSet"
	const workers = "Failed to create worker statefulset for leader pod s-0: a StatefulSet with this name exists and does not belong to the pod"
	for name, c := range map[string]struct {
		// These are the ages of the set and of the leader pod, and for how long the names have been seen taken.
		set, leader, seen time.Duration
		want              []string
	}{
		"all is new":                             {5 * time.Second, 2 * time.Second, 0, nil},
		"the leader is new":                      {time.Hour, 2 * time.Second, 0, []string{service}},
		"the leader may be new":                  {time.Hour, clockSkew, 0, []string{service}},
		"neither is new":                         {time.Hour, time.Hour, 0, []string{service, workers}},
		"as long as they need":                   {takenAfter, takenAfter + clockSkew, 0, []string{service, workers}},
		"seen for as long":                       {5 * time.Second, 2 * time.Second, takenAfter, []string{service, workers}},
		"the clock of the other server is ahead": {time.Hour, -clockSkew, takenAfter, []string{service, workers}},
	} {
		t.Run(name, func(t *testing.T) {
			o := newFixture(t, 1, 2).Observed
			o.Set.CreationTimestamp, o.Leaders[0].Created = metav1.NewTime(o.Now.Add(-c.set)), metav1.NewTime(o.Now.Add(-c.leader))
			taken := Results{TakenServices: []string{o.Set.Name}, TakenWorkers: []string{o.Leaders[0].Name}}
			o.TakenSince = Finish(o, Plan{}, taken).TakenSince
			o.Now = metav1.NewTime(o.Now.Add(c.seen))
			var got []string
			for _, e := range Finish(o, Plan{}, taken).Others {
				if e.Type != corev1.EventTypeWarning || e.Reason != reasonFailedCreate {
					t.Errorf("event %+v", e)
				}
				got = append(got, e.Note)
			}
			if diff := cmp.Diff(c.want, got); diff != "" {
				t.Error("events (-want +got):\n" + diff)
			}
		})
	}
}
