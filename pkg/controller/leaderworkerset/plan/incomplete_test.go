// Copyright The jobset-apiserver Authors.
// SPDX-License-Identifier: Apache-2.0

package plan

import (
	"testing"
	"time"

	"github.com/google/go-cmp/cmp"
	corev1 "k8s.io/api/core/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/utils/ptr"

	leaderworkersetv1 "github.com/jobset-apiserver/jobset-apiserver/pkg/apis/leaderworkerset/v1"
)

// rebuild has group 1 recreated after the deletion of a worker, by a process that has just started. The next group has a worker less than it
// needs.
func (f *fixture) rebuild() {
	f.t.Helper()
	f.evict(f.worker(1, 2))
	f.pass()
	if got := deleted(f.pass()); !cmp.Equal(got, []string{"s-1"}) {
		f.t.Fatalf("deleted %q", got)
	}
	f.later(time.Minute)
	f.replace(1)
	f.leader(1).Created = f.Now
	f.workers(1).Pods = f.workers(1).Pods[:1]
	f.pass()
}

// evict begins to delete a pod.
func (f *fixture) evict(pod *Pod) { pod.Deleting, pod.DeletingSince = true, f.Now }

// TestStartDuringRebuild has a controller start while a group is built that was recreated, when a worker of it is evicted.
func TestStartDuringRebuild(t *testing.T) {
	second := func(f *fixture) {
		f.later(time.Second)
		more := *f.worker(1, 1)
		more.Name, more.UID, more.Index, more.Created, more.Deleting, more.DeletingSince = "s-1-2", "another", 2, f.Now, false, metav1.Time{}
		f.workers(1).Pods = append(f.workers(1).Pods, more)
	}
	evict := func(f *fixture) { f.later(time.Second); f.evict(f.worker(1, 1)) }
	for name, c := range map[string]struct {
		happens func(f *fixture)
		want    int32
	}{
		"before all workers exist":                 {func(f *fixture) { evict(f) }, 1},
		"and the last worker follows":              {func(f *fixture) { evict(f); second(f) }, 1},
		"and the last worker follows at once":      {func(f *fixture) { evict(f); second(f); f.worker(1, 2).Created = f.worker(1, 1).DeletingSince }, 1},
		"and it is not known since when":           {func(f *fixture) { second(f); f.worker(1, 1).Deleting = true }, 1},
		"after all workers existed":                {func(f *fixture) { second(f); evict(f) }, 2},
		"after all workers existed, as was stored": {func(f *fixture) { second(f); f.pass(); evict(f); f.workers(1).Pods = f.workers(1).Pods[:1] }, 2},
		"after all workers existed, as was seen":   {func(f *fixture) { evict(f); f.workers(1).Complete = true }, 2},
		"before all workers exist, as was seen":    {func(f *fixture) { evict(f); f.workers(1).NeverComplete = true }, 1},
		"and it had restarted":                     {func(f *fixture) { evict(f); restarted(f.worker(1, 1)) }, 2},
		"and the leader too":                       {func(f *fixture) { evict(f); f.leader(1).Deleting = true }, 2},
		"in a group that never was recreated":      {func(f *fixture) { f.Set.Status.Groups = nil; evict(f) }, 1},
		"after the policy was None for a while": {func(f *fixture) {
			policy := &f.Set.Spec.LeaderWorkerTemplate.RestartPolicy
			*policy = leaderworkersetv1.RestartPolicyNone
			second(f)
			f.pass()
			*policy = leaderworkersetv1.RestartPolicyRecreateGroupOnPodRestart
			evict(f)
		}, 2},
	} {
		t.Run(name, func(t *testing.T) {
			f := newFixture(t, 2, 3)
			f.Set.Status.ObservedGeneration, f.Now = 1, began
			f.rebuild()
			if e := f.status(1); !e.Incomplete || e.Restarts != 1 {
				t.Fatalf("entry %+v", e)
			}
			c.happens(f)
			f.pass()
			if e := f.status(1); e.Restarts != c.want {
				t.Errorf("%d restarts, want %d", e.Restarts, c.want)
			}
		})
	}
}

// TestIncomplete has entries of groups say that the groups are being built.
func TestIncomplete(t *testing.T) {
	incomplete := func(f *fixture) (groups []int32) {
		for _, e := range f.Set.Status.Groups {
			if e.Incomplete {
				groups = append(groups, e.Index)
			}
		}
		return groups
	}
	const none = leaderworkersetv1.RestartPolicyNone
	for name, c := range map[string]struct {
		size    int32
		happens func(f *fixture)
		want    []int32
	}{
		"a failure":                         {3, func(f *fixture) { restarted(f.worker(1, 1)) }, []int32{1}},
		"two failures":                      {3, func(f *fixture) { restarted(f.worker(1, 1)); restarted(f.leader(0)) }, []int32{0, 1}},
		"a failure in a group of one pod":   {1, func(f *fixture) { restarted(f.leader(1)) }, nil},
		"a deleted leader":                  {3, func(f *fixture) { f.evict(f.leader(1)) }, []int32{1}},
		"a deleted leader, and policy None": {3, func(f *fixture) { f.evict(f.leader(1)); f.Set.Spec.LeaderWorkerTemplate.RestartPolicy = none }, nil},
		"a deleted leader of one pod":       {1, func(f *fixture) { f.evict(f.leader(1)) }, nil},
		"a leader of another size":          {1, func(f *fixture) { f.evict(f.leader(1)); f.leader(1).Size = 2 }, []int32{1}},
		"a failure beyond maxGroupRestarts": {3, func(f *fixture) {
			restarted(f.worker(1, 1))
			f.Set.Spec.LeaderWorkerTemplate.MaxGroupRestarts = ptr.To[int32](0)
		}, nil},
		"a failure whose recreation waits": {3, func(f *fixture) {
			restarted(f.worker(1, 1))
			f.Set.Spec.GroupRestartBackoff = &leaderworkersetv1.GroupRestartBackoff{}
		}, []int32{1}},
		"a request whose leader is not gone": {3, func(f *fixture) { request(f, 1) }, []int32{1}},
	} {
		t.Run(name, func(t *testing.T) {
			f := newFixture(t, 2, c.size)
			f.stabilize()
			c.happens(f)
			f.pass()
			f.pass()
			if diff := cmp.Diff(c.want, incomplete(f)); diff != "" {
				t.Error("groups that are being built (-want +got):\n" + diff)
			}
			if p := f.pass(); p.Status != nil {
				t.Errorf("the status changes again: %+v", p.Status.Groups)
			}
		})
	}
}

// TestRebuiltGroupsAreStoredOnce has each group whose workers are there end its note with one write of the status, and then none.
func TestRebuiltGroupsAreStoredOnce(t *testing.T) {
	for name, seen := range map[string]bool{"a process that has seen the workers": true, "a process that has just started": false} {
		t.Run(name, func(t *testing.T) {
			f := newFixture(t, 2, 3)
			f.stabilize()
			f.rebuild()
			f.forgetWorkers(1)
			f.addWorkers(1, 3, f.leader(1).Revision)
			f.workers(1).Complete = seen
			f.workers(1).Ready, f.leader(1).Phase = false, corev1.PodPending
			if p := f.pass(); p.Status == nil || f.status(1).Incomplete {
				t.Fatalf("entry %+v", f.status(1))
			}
			if p := f.pass(); p.Status != nil {
				t.Error("the status changes again")
			}
		})
	}
}

// TestIncompleteEntriesStay keeps entries of groups that are being built if there are more entries than may be stored.
func TestIncompleteEntriesStay(t *testing.T) {
	const groups = leaderworkersetv1.MaxGroupStatuses + 2
	f := newFixture(t, groups, 2)
	for i := range int32(groups) {
		e := leaderworkersetv1.GroupStatus{Index: i, Restarts: 2, LastRestartTime: &began}
		if i == groups-1 {
			e.Restarts, e.Incomplete = 1, true
			f.workers(i).Pods = nil
		}
		f.Set.Status.Groups = append(f.Set.Status.Groups, e)
	}
	f.pass()
	if e := f.status(groups - 1); !e.Incomplete || len(f.Set.Status.Groups) != leaderworkersetv1.MaxGroupStatuses {
		t.Errorf("entry %+v of %d", e, len(f.Set.Status.Groups))
	}
}

// TestDeletingSince subtracts the grace period from the time at which the API lets a pod be gone.
func TestDeletingSince(t *testing.T) {
	end := metav1.NewTime(began.Add(30 * time.Second))
	for name, c := range map[string]struct {
		meta metav1.ObjectMeta
		want metav1.Time
	}{
		"a pod that stays":                          {},
		"a pod that is deleted in 30 s":             {metav1.ObjectMeta{DeletionTimestamp: &end, DeletionGracePeriodSeconds: ptr.To[int64](30)}, began},
		"a pod that is deleted without grace":       {metav1.ObjectMeta{DeletionTimestamp: &end, DeletionGracePeriodSeconds: ptr.To[int64](0)}, end},
		"a pod of which no grace period is written": {metav1.ObjectMeta{DeletionTimestamp: &end}, end},
	} {
		t.Run(name, func(t *testing.T) {
			if got := PodOf(&corev1.Pod{ObjectMeta: c.meta}).DeletingSince; !got.Equal(&c.want) {
				t.Errorf("got %v, want %v", got, c.want)
			}
		})
	}
}

// TestFirstBuildIsNotedOnceAWorkerGoes has a group that is built for the first time, of which a worker is evicted.
func TestFirstBuildIsNotedOnceAWorkerGoes(t *testing.T) {
	evict := func(f *fixture) { f.evict(f.worker(1, 1)) }
	for name, c := range map[string]struct {
		happens  func(f *fixture)
		noted    bool
		restarts int32
	}{
		"no worker goes":               {func(*fixture) {}, false, 0},
		"a worker that has started":    {evict, true, 0},
		"a worker that has not":        {func(f *fixture) { evict(f); f.worker(1, 1).Phase = corev1.PodPending }, false, 0},
		"the leader":                   {func(f *fixture) { f.evict(f.leader(1)) }, true, 1},
		"a process that started later": {func(f *fixture) { evict(f); f.workers(1).NeverComplete = false }, true, 1},
		"groups that are never recreated": {func(f *fixture) {
			evict(f)
			f.Set.Spec.LeaderWorkerTemplate.RestartPolicy = leaderworkersetv1.RestartPolicyNone
		}, false, 0},
	} {
		t.Run(name, func(t *testing.T) {
			f := newFixture(t, 2, 3)
			f.Set.Status.ObservedGeneration, f.Now = 1, began
			f.workers(1).Pods, f.workers(1).NeverComplete, f.workers(1).Ready = f.workers(1).Pods[:1], true, false
			f.stabilize()
			c.happens(f)
			f.pass()
			if e := f.status(1); e.Incomplete != c.noted || e.Restarts != c.restarts {
				t.Fatalf("entry %+v", e)
			}
			if p := f.pass(); p.Status != nil {
				t.Errorf("the status changes again: %+v", p.Status.Groups)
			}
			if c.restarts > 0 || !c.noted {
				if entries := len(f.Set.Status.Groups); entries != int(c.restarts) {
					t.Errorf("%d entries", entries)
				}
				return
			}
			f.workers(1).NeverComplete = false // the next process
			if p := f.pass(); p.Status != nil || len(deleted(p)) > 0 {
				t.Errorf("the next process deletes %q, and stores %+v", deleted(p), p.Status)
			}
			f.forgetWorkers(1)
			f.addWorkers(1, 3, f.leader(1).Revision)
			f.pass()
			if len(f.Set.Status.Groups) > 0 {
				t.Errorf("entries of a complete group that was never recreated: %+v", f.Set.Status.Groups)
			}
		})
	}
}
