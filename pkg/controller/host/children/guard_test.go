// Copyright The jobset-apiserver Authors.
// SPDX-License-Identifier: Apache-2.0

package children

import (
	"fmt"
	"math/rand"
	"testing"
	"time"

	batchv1 "k8s.io/api/batch/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/types"
	clocktesting "k8s.io/utils/clock/testing"
	"k8s.io/utils/ptr"

	"github.com/jobset-apiserver/jobset-apiserver/pkg/apis/generic/reasons"
)

// guarded is a Guard, what it guards, and its clock.
type guarded struct {
	*Guard
	clock      *clocktesting.FakePassiveClock
	owner, job *batchv1.Job
}

func newGuarded() guarded {
	now := clocktesting.NewFakePassiveClock(time.Unix(1_000_000, 0))
	return guarded{
		NewGuard("job", now), now, &batchv1.Job{ObjectMeta: metav1.ObjectMeta{Namespace: "ns", Name: "owner", UID: "uid-owner"}},
		&batchv1.Job{ObjectMeta: metav1.ObjectMeta{Namespace: "ns", Name: "train-0"}},
	}
}

// during asks every second whether a write may be made, makes it then, and returns the seconds at which it was made.
func (g guarded) during(d time.Duration, may func() error, made func()) (seconds []int) {
	begin := g.clock.Now()
	for now := begin; now.Before(begin.Add(d)); now = now.Add(time.Second) {
		g.clock.SetTime(now)
		if may() == nil {
			made()
			seconds = append(seconds, int(now.Sub(begin).Seconds()))
		}
	}
	return seconds
}

func (g guarded) creations(d time.Duration) []int {
	return g.during(d, func() error { return g.Creating(g.owner, g.job) }, func() { g.Created(g.owner, g.job) })
}

func TestGuardOfCreations(t *testing.T) {
	for name, tc := range map[string]struct {
		change func(g guarded)
		want   string
	}{
		"deleted each time": {func(guarded) {}, "[0 1 2 3 63 183]"},

		"for another generation each time":  {func(g guarded) { g.owner.Generation++ }, fmt.Sprint(seconds(300))},
		"with another controller each time": {func(g guarded) { g.job.OwnerReferences[0].UID += "x" }, fmt.Sprint(seconds(300))},
		"by the controller itself":          {func(g guarded) { g.Deleting("ns", "train-0") }, fmt.Sprint(seconds(300))},
	} {
		t.Run(name, func(t *testing.T) {
			g := newGuarded()
			g.job.OwnerReferences = []metav1.OwnerReference{{Kind: "Pod", Name: "leader", UID: "uid-leader", Controller: ptr.To(true)}}
			got := g.during(5*time.Minute, func() error { tc.change(g); return g.Creating(g.owner, g.job) }, func() { g.Created(g.owner, g.job) })
			if fmt.Sprint(got) != tc.want {
				t.Errorf("created at %v, want %s", got, tc.want)
			}
		})
	}
}

func seconds(n int) (all []int) {
	for i := range n {
		all = append(all, i)
	}
	return all
}

// TestGuardAllowsWhatExpires has a Job that finishes at once, and that its time to live has deleted.
func TestGuardAllowsWhatExpires(t *testing.T) {
	g := newGuarded()
	g.job.Spec.TTLSecondsAfterFinished = ptr.To[int32](0)
	if got := g.creations(time.Minute); len(got) != 60 {
		t.Errorf("created %d times, want 60", len(got))
	}
}

// TestGuardAllowsSlowReversals has a child that lives for half a minute.
func TestGuardAllowsSlowReversals(t *testing.T) {
	g := newGuarded()
	for range 20 {
		if err := g.Creating(g.owner, g.job); err != nil {
			t.Fatal(err)
		}
		g.Created(g.owner, g.job)
		g.clock.SetTime(g.clock.Now().Add(31 * time.Second))
	}
}

func TestGuardForgets(t *testing.T) {
	g := newGuarded()
	g.creations(10 * time.Second)
	g.clock.SetTime(g.clock.Now().Add(pace[0] + lasting))
	if got := fmt.Sprint(g.creations(time.Minute)); got != "[0 1 2 3]" {
		t.Errorf("after a calm time, created at %s", got)
	}
	g.creations(10 * time.Second)
	g.clock.SetTime(g.clock.Now().Add(-time.Hour))
	if err := g.Creating(g.owner, g.job); err != nil {
		t.Errorf("after the clock was set back: %v", err)
	}
	for i := range maxGuarded + 1 {
		g.Created(g.owner, &metav1.ObjectMeta{Namespace: "ns", Name: fmt.Sprint("other-", i)})
	}
	if n := len(g.entries.Keys()); n > maxGuarded {
		t.Errorf("remembers %d children", n)
	}
	if err := g.Creating(g.owner, g.job); err != nil {
		t.Errorf("after %d others: %v", maxGuarded, err)
	}
}

func TestGuardOfChanges(t *testing.T) {
	g := newGuarded()
	g.job.UID = "uid-0"
	changes := func(d time.Duration) string {
		return fmt.Sprint(g.during(d, func() error { return g.Changing(g.owner, g.job, "the label x", "metadata", "labels", "x") },
			func() { g.Changed(g.owner, g.job, "the label x") }))
	}
	if got := changes(time.Hour); got != "[0 1 2 62 182 422 902 1502 2102 2702 3302]" { // after 1, 2, 4, 8, and then every 10 minutes
		t.Errorf("changed at %s", got)
	}
	const unknown = "another party removed or changed the label x of job train-0 3 times within a minute, each time after the controller had set it; " +
		"the API does not say who does, the audit log does; the controller sets it again at 1970-01-12T14:51:42Z"
	got := g.Changing(g.owner, g.job, "the label x")
	if got == nil || got.Error() != unknown {
		t.Errorf("got %v", got)
	}
	if next, only := AskAgain(fmt.Errorf("changing: %w", FirstErrors(got))); !only || next.UTC().Format(time.RFC3339) != "1970-01-12T14:51:42Z" {
		t.Errorf("it is due at %s (%t), not at the time of its message", next.UTC(), only)
	}
	g.job.ManagedFields = []metav1.ManagedFieldsEntry{{Manager: "kyverno", FieldsV1: metav1.NewFieldsV1(`{"f:metadata":{"f:labels":{"f:x":{}}}}`)}}
	const known = "kyverno removed or changed the label x of job train-0 3 times within a minute, each time after the controller had set it; the controller sets it again at 1970-01-12T14:51:42Z"
	if got := g.Changing(g.owner, g.job, "the label x", "metadata", "labels", "x"); got == nil || got.Error() != known {
		t.Errorf("got %v", got)
	}
	if err := g.Changing(g.owner, g.job, "the label y"); err != nil {
		t.Errorf("another change: %v", err)
	}
	for name, change := range map[string]func(){
		"another incarnation":                  func() { g.job.UID += "x" },
		"another owner":                        func() { g.owner.UID += "x" },
		"another generation of the owner":      func() { g.owner.Generation++ },
		"what the controller itself took back": func() { g.Reverting(g.job, "the label y") },
	} {
		change()
		for range 3 {
			if err := g.Changing(g.owner, g.job, "the label y"); err != nil {
				t.Errorf("%s: %v", name, err)
			}
			g.Changed(g.owner, g.job, "the label y")
		}
		if err := g.Changing(g.owner, g.job, "the label y"); !IsUndone(err) {
			t.Errorf("%s: a fourth time within a minute: %v", name, err)
		}
	}
}

// TestGuardOfReplacements has children that a webhook changes when they are created, so that the controller deletes them.
func TestGuardOfReplacements(t *testing.T) {
	g := newGuarded()
	replace := func() { g.Replaced(g.owner, g.job); g.job.UID += "x"; g.Deleting("ns", "train-0") }
	got := g.during(20*time.Minute, func() error { return g.Replacing(g.owner, g.job, "the spec") }, replace)
	if fmt.Sprint(got) != "[0 1 2 62 182 422 902]" {
		t.Errorf("replaced at %v", got)
	}
	const want = "another party removed or changed the spec of job train-0 3 times within a minute, each time after the controller had created it; " +
		"the API does not say who does, the audit log does; the controller replaces it at 1970-01-12T14:11:42Z"
	if err := g.Replacing(g.owner, g.job, "the spec"); err == nil || err.Error() != want {
		t.Errorf("got %v", err)
	}
}

func TestGuardNamesTheChild(t *testing.T) {
	g := newGuarded()
	g.creations(10 * time.Second)
	err := g.Creating(g.owner, g.job)
	const want = "job train-0 was deleted 3 times within a minute, each time after the controller had created it; the API does not say who deletes it, " +
		"the audit log does; the controller creates it again at 1970-01-12T13:47:43Z"
	if err == nil || err.Error() != want {
		t.Fatalf("got %v", err)
	}
	wrapped := fmt.Errorf("creating: %w", err)
	if !IsUndone(wrapped) || RefusalOf(wrapped).Reason != reasons.UndoneByOthers || RefusesAll(wrapped) {
		t.Errorf("it is a refusal of all, or of another reason: %+v", RefusalOf(wrapped))
	}
}

// TestGuardUnderRandomHistories compares a Guard with what it promises: never more than four creations in a minute, one
// of which is the first, nor two within a minute once it is contested, and never longer than ten minutes without one
// that is due.
func TestGuardUnderRandomHistories(t *testing.T) {
	for seed := range int64(200) {
		dice, g := rand.New(rand.NewSource(seed)), newGuarded()
		g.owner.UID = types.UID(fmt.Sprint(seed))
		var made []time.Time
		for range 300 {
			g.clock.SetTime(g.clock.Now().Add(time.Duration(dice.Intn(40)*dice.Intn(5)) * time.Second))
			now := g.clock.Now()
			if err := g.Creating(g.owner, g.job); err != nil {
				if last := made[len(made)-1]; now.Sub(last) >= pace[len(pace)-1] {
					t.Fatalf("seed %d: refused %s after the last creation", seed, now.Sub(last))
				}
				continue
			}
			g.Created(g.owner, g.job)
			if made = append(made, now); len(made) > 4 && now.Sub(made[len(made)-5]) < reversalPeriod {
				t.Fatalf("seed %d: 5 creations within %s", seed, now.Sub(made[len(made)-5]))
			}
		}
	}
}
