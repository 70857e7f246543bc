// Copyright The jobset-apiserver Authors.
// SPDX-License-Identifier: Apache-2.0

package plan

import (
	"testing"
	"time"

	"github.com/google/go-cmp/cmp"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/utils/ptr"

	leaderworkersetv1 "github.com/jobset-apiserver/jobset-apiserver/pkg/apis/leaderworkerset/v1"
)

func TestDelays(t *testing.T) {
	b := backoff{set: true, base: 10 * time.Second, longest: 300 * time.Second}
	var got []int
	for i := int32(0); i < 9; i++ {
		got = append(got, int(b.delay(i).Seconds()))
	}
	if diff := cmp.Diff([]int{0, 0, 10, 20, 40, 80, 160, 300, 300}, got); diff != "" {
		t.Error("delays in seconds by failures in a row (-want +got):\n" + diff)
	}
	if got := b.delay(1<<31 - 1); got != 300*time.Second {
		t.Errorf("delay = %v after very many failures, want 300s", got)
	}
	if got := (backoff{}).delay(9); got != 0 {
		t.Errorf("delay = %v without a backoff, want 0", got)
	}
}

func TestBackoff(t *testing.T) {
	f := newFixture(t, 1, 2)
	f.Set.Spec.GroupRestartBackoff = &leaderworkersetv1.GroupRestartBackoff{BaseSeconds: ptr.To[int32](10), MaxSeconds: ptr.To[int32](60)}
	f.stabilize()
	var waited []int
	for range 6 {
		waited = append(waited, int(failAgain(f, 0).Seconds()))
		f.later(5 * time.Second)
		f.stabilize()
	}
	// Ready for almost long enough, and then for long enough.
	f.later(54 * time.Second)
	waited = append(waited, int(failAgain(f, 0).Seconds()))
	f.later(60 * time.Second)
	f.leader(0).Ready = false // before the container is seen to restart
	f.stabilize()
	waited = append(waited, int(failAgain(f, 0).Seconds()), int(failAgain(f, 0).Seconds()))
	if diff := cmp.Diff([]int{0, 10, 20, 40, 60, 60, 60, 0, 10}, waited); diff != "" {
		t.Error("seconds that the group waited (-want +got):\n" + diff)
	}
	if got := f.status(0); got.Restarts != 9 || got.RestartsInRow != 2 || got.RestartAt != nil || !got.LastRestartTime.Equal(&f.Now) {
		t.Errorf("entry %+v, want 9 restarts, 2 in a row, none ahead, the last one now", got)
	}
}

// TestBackoffOfGroupThatStaysReady restarts a group at once that has been ready for long enough, and whose container
// restarted so fast that its pod was never seen as not ready.
func TestBackoffOfGroupThatStaysReady(t *testing.T) {
	f := newFixture(t, 1, 2)
	f.Set.Spec.GroupRestartBackoff = &leaderworkersetv1.GroupRestartBackoff{BaseSeconds: ptr.To[int32](10), MaxSeconds: ptr.To[int32](60)}
	f.stabilize()
	failAgain(f, 0)
	f.later(60 * time.Second)
	restarted(f.leader(0))
	if diff := cmp.Diff([]string{"s-0"}, deleted(f.stabilize())); diff != "" {
		t.Error("leaders to delete (-want +got):\n" + diff)
	}
	if got := f.status(0); got.RestartsInRow != 1 || got.RestartAt != nil {
		t.Errorf("entry %+v, want the first restart of a row, at once", got)
	}
}

// TestBackoffIsStored keeps a group waiting although the sign of its failure is gone, and the controller was replaced.
func TestBackoffIsStored(t *testing.T) {
	f := newFixture(t, 1, 2)
	f.Set.Spec.GroupRestartBackoff = &leaderworkersetv1.GroupRestartBackoff{BaseSeconds: ptr.To[int32](10)}
	f.stabilize()
	failAgain(f, 0)
	f.worker(0, 1).Deleting = true
	f.stabilize()
	f.worker(0, 1).Deleting = false
	want := metav1.NewTime(f.Now.Add(10 * time.Second))
	if got := f.status(0); !got.RestartAt.Equal(&want) || got.Restarts != 2 {
		t.Fatalf("entry %+v, want 2 restarts, the last one at %v", got, want)
	}
	f.later(4 * time.Second)
	if p := f.stabilize(); len(p.DeleteLeaders) > 0 || p.RequeueAfter != 6*time.Second {
		t.Fatalf("deleted %v, next decision after %v; want nothing, 6s", deleted(p), p.RequeueAfter)
	}

	for name, c := range map[string]struct {
		change func(f *fixture)
		want   []string
	}{
		"its time has come": {func(f *fixture) { f.later(6 * time.Second) }, []string{"s-0"}},
		"no backoff":        {func(f *fixture) { f.Set.Spec.GroupRestartBackoff = nil }, []string{"s-0"}},
		"request": {func(f *fixture) {
			f.Set.Status.Restart = &leaderworkersetv1.RequestedRestart{RequestTime: metav1.NewMicroTime(f.Now.Time), All: true}
		}, []string{"s-0"}},
		"policy None": {func(f *fixture) {
			f.Set.Spec.LeaderWorkerTemplate.RestartPolicy = leaderworkersetv1.RestartPolicyNone
			f.later(6 * time.Second)
		}, []string{"s-0"}},
		"policy None before": {func(f *fixture) {
			f.Set.Spec.LeaderWorkerTemplate.RestartPolicy = leaderworkersetv1.RestartPolicyNone
			f.stabilize()
			f.later(6 * time.Second)
		}, nil},
		"leader replaced": {func(f *fixture) { f.replace(0); f.later(6 * time.Second) }, nil},
	} {
		t.Run(name, func(t *testing.T) {
			g := &fixture{t: t, Observed: f.Observed}
			g.Set, g.Leaders, g.Observed.Workers = f.Set.DeepCopy(), append([]Pod(nil), f.Leaders...), append([]Workers(nil), f.Observed.Workers...)
			c.change(g)
			if diff := cmp.Diff(c.want, deleted(g.stabilize())); diff != "" {
				t.Error("leaders to delete (-want +got):\n" + diff)
			}
			if got := g.status(0); got.RestartAt != nil || got.Restarts != 2 {
				t.Errorf("entry %+v, want 2 restarts and none ahead", got)
			}
		})
	}
}

// TestWithoutBackoff restarts a group at once, however often it fails, and keeps nothing of a backoff.
func TestWithoutBackoff(t *testing.T) {
	f := newFixture(t, 1, 2)
	f.stabilize()
	for range 20 {
		if waited := failAgain(f, 0); waited != 0 {
			t.Fatalf("the group waited for %v", waited)
		}
	}
	got := f.status(0)
	if got.Restarts != 20 || got.RestartsInRow != 0 || got.ReadySince != nil || got.Failed {
		t.Errorf("entry %+v, want 20 restarts and nothing else", got)
	}
}

// TestBackoffThatIsRemoved keeps nothing of it, neither of a group that runs nor of one that waits.
func TestBackoffThatIsRemoved(t *testing.T) {
	f := newFixture(t, 2, 2)
	f.Set.Spec.GroupRestartBackoff = &leaderworkersetv1.GroupRestartBackoff{BaseSeconds: ptr.To[int32](10)}
	f.stabilize()
	for range 2 {
		failAgain(f, 0)
	}
	f.Set.Spec.GroupRestartBackoff = nil
	f.stabilize()
	if got := f.status(0); got.Restarts != 2 || got.RestartsInRow != 0 || got.ReadySince != nil || got.RestartAt != nil {
		t.Errorf("entry %+v, want 2 restarts and nothing of the backoff", got)
	}
}

// TestFirstFailureOfARow restarts a group in the pass that follows, and stores when.
func TestFirstFailureOfARow(t *testing.T) {
	f := newFixture(t, 1, 2)
	f.Set.Spec.GroupRestartBackoff = &leaderworkersetv1.GroupRestartBackoff{BaseSeconds: ptr.To[int32](10)}
	f.stabilize()
	restarted(f.leader(0))
	f.pass()
	if got := f.status(0); got.RestartAt != nil || !got.LastRestartTime.Equal(&f.Now) {
		t.Errorf("entry %+v, want a restart at once", got)
	}
}

// TestRestartIsDueOnceItsTimeIsStored has a failed group whose restart is due after its backoff. Until a status has that time, each
// decision computes a new one, which would take the place of the pause after a status that is refused.
func TestRestartIsDueOnceItsTimeIsStored(t *testing.T) {
	f := newFixture(t, 1, 2)
	f.Set.Spec.GroupRestartBackoff = &leaderworkersetv1.GroupRestartBackoff{BaseSeconds: ptr.To[int32](10)}
	f.stabilize()
	failAgain(f, 0)
	restarted(f.leader(0))
	if p := decide(t, f.Observed); p.RequeueAfter != 0 || p.ActsAfter != 0 {
		t.Errorf("the next decision is due after %s, and acts after %s; want none before the status is stored", p.RequeueAfter, p.ActsAfter)
	}
	f.pass()
	if p := decide(t, f.Observed); p.RequeueAfter != 10*time.Second || p.ActsAfter != 10*time.Second {
		t.Errorf("once stored, the next decision is due after %s, and acts after %s; want 10s both", p.RequeueAfter, p.ActsAfter)
	}
}
