// Copyright The jobset-apiserver Authors.
// SPDX-License-Identifier: Apache-2.0

package children

import (
	"fmt"
	"testing"
	"testing/synctest"
	"time"

	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
)

// TestGuardOfDeletions has a child that should not exist, and that is created again after each deletion.
func TestGuardOfDeletions(t *testing.T) {
	for name, tc := range map[string]struct {
		// after is what happens after each deletion.
		after func(g guarded)
		want  string
	}{
		"created by another party":               {func(g guarded) { g.job.UID += "x" }, "[0 1 2 3 63 183]"},
		"created by the controller itself":       {func(g guarded) { g.job.UID += "x"; g.Created(g.owner, g.job) }, fmt.Sprint(seconds(300))},
		"the same incarnation, which ends later": {func(guarded) {}, fmt.Sprint(seconds(300))},
		"created for the next generation":        {func(g guarded) { g.job.UID += "x"; g.owner.Generation++ }, fmt.Sprint(seconds(300))},
	} {
		t.Run(name, func(t *testing.T) {
			g := newGuarded()
			g.job.UID = "uid"
			got := g.during(5*time.Minute, func() error { return g.Removing(g.owner, g.job) }, func() { g.Removed(g.owner, g.job); tc.after(g) })
			if fmt.Sprint(got) != tc.want {
				t.Errorf("deleted at %v, want %s", got, tc.want)
			}
		})
	}
}

// TestChildrenCreatedByOthers creates a child again whenever a Writer has deleted it.
func TestChildrenCreatedByOthers(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		ref, last := Ref{Name: "train-0", UID: "uid"}, error(nil)
		client := &deleter{answer: func(int, string) error { ref.UID += "x"; return nil }}
		w, owner := writerOf(client), &metav1.ObjectMeta{Namespace: "ns", Name: "owner", UID: "uid-owner"}
		for range 300 {
			_, last = w.Delete(t.Context(), owner, []Ref{ref})
			time.Sleep(time.Second)
		}
		if client.calls != 6 {
			t.Errorf("deleted %d times in five minutes, want 6", client.calls)
		}
		const want = "deleting job ns/train-0: job train-0 was created again 3 times within a minute, each time after the controller had deleted it; " +
			"the API does not say who creates it, the audit log does; the controller deletes it again at 2000-01-01T00:07:03Z"
		if last == nil || last.Error() != want || !IsUndone(last) {
			t.Errorf("got %v", last)
		}
	})
}
