// Copyright The jobset-apiserver Authors.
// SPDX-License-Identifier: Apache-2.0

package plan

import (
	"testing"
	"time"

	"github.com/google/go-cmp/cmp"
	appsv1 "k8s.io/api/apps/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/util/intstr"
	"k8s.io/utils/ptr"

	leaderworkersetv1 "github.com/jobset-apiserver/jobset-apiserver/pkg/apis/leaderworkerset/v1"
)

// released returns a set of four groups of a former revision, which an update has released, two at a time.
func released(t *testing.T) *fixture {
	t.Helper()
	f := newFixture(t, 4, 1)
	f.Set.Spec.RolloutStrategy.RollingUpdateConfiguration.MaxUnavailable = ptr.To(intstr.FromInt32(2))
	f.Leader.Spec.UpdateStrategy.RollingUpdate = &appsv1.RollingUpdateStatefulSetStrategy{Partition: ptr.To[int32](0), MaxUnavailable: ptr.To(intstr.FromInt32(2))}
	for i := range f.Leaders {
		f.Leaders[i].Revision = "former"
	}
	return f
}

func (f *fixture) down(index int32, since time.Duration) {
	f.leader(index).Ready, f.leader(index).NotReadySince = false, metav1.NewTime(f.Now.Add(-since))
}

// TestLeadersThatHoldUpAnUpdate replaces leaders that the StatefulSet controller cannot replace.
func TestLeadersThatHoldUpAnUpdate(t *testing.T) {
	const long = brokenAfter
	for name, c := range map[string]struct {
		change func(f *fixture)
		want   []string
	}{
		"none is down":                               {func(*fixture) {}, nil},
		"one is down":                                {func(f *fixture) { f.down(1, 0) }, nil},
		"two are down":                               {func(f *fixture) { f.down(1, 0); f.down(2, 0) }, []string{"s-2", "s-1"}},
		"two have been down for long":                {func(f *fixture) { f.down(0, long); f.down(1, long) }, []string{"s-3", "s-2", "s-1", "s-0"}},
		"one of two has been down for long":          {func(f *fixture) { f.down(0, long); f.down(1, 0) }, []string{"s-3", "s-1", "s-0"}},
		"two have nearly been down for long":         {func(f *fixture) { f.down(0, long-time.Second); f.down(1, long-time.Second) }, []string{"s-1", "s-0"}},
		"one is missing, another has long been down": {func(f *fixture) { f.Leaders = f.Leaders[:3]; f.down(0, long) }, []string{"s-2", "s-0"}},
		"one goes, another has long been down":       {func(f *fixture) { f.leader(3).Deleting = true; f.down(0, long) }, []string{"s-2", "s-0"}},
		"those that are down are kept by a partition": {func(f *fixture) {
			f.down(0, 0)
			f.down(1, 0)
			f.Leader.Spec.UpdateStrategy.RollingUpdate.Partition = ptr.To[int32](1)
		}, []string{"s-1"}},
		"those that are down are kept by a partition that is not applied yet": {func(f *fixture) {
			f.down(1, 0)
			f.down(2, 0)
			f.Set.Spec.RolloutStrategy.RollingUpdateConfiguration.Partition = ptr.To[int32](2)
		}, []string{"s-2"}},
		"one of the update is down": {func(f *fixture) {
			f.down(2, 0)
			f.down(3, 0)
			f.leader(3).Revision = f.Leader.Labels["leaderworkerset.sigs.k8s.io/template-revision-hash"]
		}, []string{"s-2"}},
		"one is above the replicas":           {func(f *fixture) { f.down(2, 0); f.down(3, 0); f.Leader.Spec.Replicas = ptr.To[int32](3) }, nil},
		"one above the replicas is available": {func(f *fixture) { f.down(1, 0); f.down(2, 0); f.Leader.Spec.Replicas = ptr.To[int32](3) }, []string{"s-2", "s-1"}},
		"the set is paused":                   {func(f *fixture) { f.down(1, 0); f.down(2, 0); f.Set.Spec.Paused = ptr.To(true) }, nil},
		"the StatefulSet controller does not know yet": {func(f *fixture) {
			f.down(1, 0)
			f.down(2, 0)
			f.Leader.Generation = 2
			f.Leader.Status.ObservedGeneration = 1
		}, nil},
		"the cluster replaces one at a time": {func(f *fixture) { f.Leader.Spec.UpdateStrategy.RollingUpdate.MaxUnavailable = nil }, []string{"s-3", "s-2"}},
		"the cluster replaces one at a time, and one is down": {func(f *fixture) {
			f.Leader.Spec.UpdateStrategy.RollingUpdate.MaxUnavailable = nil
			f.down(0, 0)
		}, []string{"s-3", "s-0"}},
	} {
		t.Run(name, func(t *testing.T) {
			f := released(t)
			c.change(f)
			if diff := cmp.Diff(c.want, deleted(replaceStuck(look(f.Observed)))); diff != "" {
				t.Error("leaders to delete (-want +got):\n" + diff)
			}
		})
	}
}

// TestNextLookAtBrokenGroups has a decision made once the first group that holds up an update counts as broken.
func TestNextLookAtBrokenGroups(t *testing.T) {
	f := released(t)
	f.down(0, time.Minute)
	f.down(1, 3*time.Minute)
	f.down(2, brokenAfter)
	f.down(3, 5*time.Minute)
	f.leader(3).Revision = f.Leader.Labels["leaderworkerset.sigs.k8s.io/template-revision-hash"]
	if p := replaceStuck(look(f.Observed)); p.RequeueAfter != brokenAfter-3*time.Minute {
		t.Errorf("after %s", p.RequeueAfter)
	}
}

// TestCountedLeaderHoldsUpAnUpdate replaces a leader whose restart waits for its backoff, but only once it is stored that the restart counts.
func TestCountedLeaderHoldsUpAnUpdate(t *testing.T) {
	f := released(t)
	f.Set.Spec.GroupRestartBackoff = &leaderworkersetv1.GroupRestartBackoff{BaseSeconds: ptr.To[int32](10)}
	f.Set.Status.Groups = []leaderworkersetv1.GroupStatus{{Index: 2, Restarts: 1, RestartsInRow: 1, LastRestartTime: ptr.To(f.Now), RestartedLeader: "before"}}
	f.down(1, 0)
	f.down(2, 0)
	restarted(f.leader(2))
	p := decide(t, f.Observed)
	if p.Status == nil || p.Status.Groups[0].Restarts != 2 || p.Status.Groups[0].RestartAt == nil {
		t.Fatalf("the restart does not wait: %+v", p.Status)
	}
	if diff := cmp.Diff([]string{"s-1"}, deleted(p)); diff != "" {
		t.Error("leaders to delete with the first plan (-want +got):\n" + diff)
	}
	f.Set.Status = *p.Status
	if diff := cmp.Diff([]string{"s-2", "s-1"}, deleted(decide(t, f.Observed))); diff != "" {
		t.Error("leaders to delete with the second plan (-want +got):\n" + diff)
	}
}
