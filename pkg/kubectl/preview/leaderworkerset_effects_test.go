// Copyright The jobset-apiserver Authors.
// SPDX-License-Identifier: Apache-2.0

package preview

import (
	"testing"

	"github.com/google/go-cmp/cmp"
	corev1 "k8s.io/api/core/v1"
	"k8s.io/apimachinery/pkg/api/resource"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"
	"k8s.io/apimachinery/pkg/runtime"
	"k8s.io/apimachinery/pkg/util/intstr"
	"k8s.io/utils/ptr"

	leaderworkersetv1 "github.com/jobset-apiserver/jobset-apiserver/pkg/apis/leaderworkerset/v1"
)

// effectOnGroups is a change of a LeaderWorkerSet of four replicas, and what the preview says that it does.
type effectOnGroups struct {
	live []groupChange
	// earlier is a change before this one; nil for none.
	earlier, change groupChange
	want            Effect
	// replaced are the indexes of the replicas that are replaced, and replicas is how many there are then; 0 for four.
	replaced []int
	groups   int
	// template means that the template of the leader pods changes without another revision, so that their StatefulSet replaces them.
	template bool
	// later looks at what the controller does next.
	later func(*testing.T, *leaderWorkerSetModel)
}

func image(name string) groupChange {
	return func(set *leaderworkersetv1.LeaderWorkerSet) {
		set.Spec.LeaderWorkerTemplate.WorkerTemplate.Spec.Containers[0].Image = name
	}
}

func replicas(n int32) groupChange {
	return func(set *leaderworkersetv1.LeaderWorkerSet) { set.Spec.Replicas = ptr.To(n) }
}

func pause(set *leaderworkersetv1.LeaderWorkerSet) { set.Spec.Paused = ptr.To(true) }

func unpause(set *leaderworkersetv1.LeaderWorkerSet) { set.Spec.Paused = nil }

func partition(n int32) groupChange {
	return func(set *leaderworkersetv1.LeaderWorkerSet) {
		set.Spec.RolloutStrategy.RollingUpdateConfiguration.Partition = ptr.To(n)
	}
}

func claimOf(size string) groupChange {
	return func(set *leaderworkersetv1.LeaderWorkerSet) {
		claim := corev1.PersistentVolumeClaim{ObjectMeta: metav1.ObjectMeta{Name: "data"}}
		claim.Spec.Resources.Requests = corev1.ResourceList{corev1.ResourceStorage: resource.MustParse(size)}
		set.Spec.LeaderWorkerTemplate.VolumeClaimTemplates = []corev1.PersistentVolumeClaim{claim}
	}
}

var everyGroup = []int{0, 1, 2, 3}

var effectsOnGroups = map[string]effectOnGroups{
	"image":                    {change: image("v2"), want: EffectRoll, replaced: everyGroup},
	"image of a paused set":    {live: []groupChange{pause}, change: image("v2"), want: EffectOnResume},
	"more replicas":            {change: replicas(6), want: EffectScale, groups: 6},
	"fewer replicas":           {change: replicas(1), want: EffectScale, groups: 1},
	"a lower partition":        {live: []groupChange{partition(2)}, earlier: image("v2"), change: partition(0), want: EffectRoll, replaced: []int{0, 1}},
	"pause":                    {change: pause, want: EffectImmediate, later: nothingRolls},
	"resume of a stopped roll": {live: []groupChange{pause}, earlier: image("v2"), change: unpause, want: EffectImmediate, replaced: everyGroup},
	"size of the surge": {want: EffectImmediate, change: func(set *leaderworkersetv1.LeaderWorkerSet) {
		set.Spec.RolloutStrategy.RollingUpdateConfiguration.MaxSurge = ptr.To(intstr.FromInt32(2))
	}},
	"startup policy": {want: EffectNextReplica, later: workersWaitForLeader, change: func(set *leaderworkersetv1.LeaderWorkerSet) {
		set.Spec.StartupPolicy = leaderworkersetv1.StartupPolicyLeaderReady
	}},
	"history of revisions": {want: EffectImmediate, change: func(set *leaderworkersetv1.LeaderWorkerSet) { set.Spec.RevisionHistoryLimit = ptr.To[int32](3) }},
	"backoff": {want: EffectImmediate, change: func(set *leaderworkersetv1.LeaderWorkerSet) {
		set.Spec.GroupRestartBackoff = &leaderworkersetv1.GroupRestartBackoff{BaseSeconds: ptr.To[int32](20)}
	}},
	"limit of restarts": {want: EffectImmediate, change: func(set *leaderworkersetv1.LeaderWorkerSet) {
		set.Spec.LeaderWorkerTemplate.MaxGroupRestarts = ptr.To[int32](2)
	}},
	"restart policy": {want: EffectRoll, replaced: everyGroup, change: func(set *leaderworkersetv1.LeaderWorkerSet) {
		set.Spec.LeaderWorkerTemplate.RestartPolicy = leaderworkersetv1.RestartPolicyNone
	}},
	"network": {want: EffectRoll, replaced: everyGroup, change: func(set *leaderworkersetv1.LeaderWorkerSet) {
		set.Spec.NetworkConfig.SubdomainPolicy = ptr.To(leaderworkersetv1.SubdomainUniquePerReplica)
	}},
	"claims": {live: []groupChange{claimOf("1Gi")}, change: claimOf("2Gi"), want: EffectNever},
	"exclusive placement": {want: EffectRoll, template: true, change: func(set *leaderworkersetv1.LeaderWorkerSet) {
		metav1.SetMetaDataAnnotation(&set.ObjectMeta, leaderworkersetv1.ExclusiveKeyAnnotationKey, "rack")
	}},
	"other labels": {want: EffectNone, change: func(set *leaderworkersetv1.LeaderWorkerSet) { set.Labels = map[string]string{"team": "ml"} }},
}

// nothingRolls changes the image, and expects that no replica is replaced.
func nothingRolls(t *testing.T, m *leaderWorkerSetModel) {
	t.Helper()
	before := m.uids()
	m.edit(image("v3"))
	m.rest()
	if diff := cmp.Diff(before, m.uids()); diff != "" {
		t.Errorf("groups are replaced while updates are paused (-before +after):\n%s", diff)
	}
}

// workersWaitForLeader adds a replica, whose workers are created once its leader is ready.
func workersWaitForLeader(t *testing.T, m *leaderWorkerSetModel) {
	t.Helper()
	m.edit(replicas(5))
	for range 4 {
		m.step()
	}
	if len(m.groups) != 5 || m.groups[4].workers {
		t.Errorf("groups %+v: want five, and no workers of the last one before its leader is ready", m.groups)
	}
	m.rest()
	if !m.groups[4].workers {
		t.Error("the last group has no workers after its leader is ready")
	}
}

func (m *leaderWorkerSetModel) edit(change groupChange) {
	m.set = m.set.DeepCopy()
	change(m.set)
	m.set.Generation++
}

// uids are the UIDs of the leaders, which a replica that is replaced gets again.
func (m *leaderWorkerSetModel) uids() (uids []string) {
	for i := range m.groups {
		uids = append(uids, string(m.groups[i].uid))
	}
	return uids
}

// TestEffectsOnLeaderWorkerSets has the controller decide about a set whose replicas are ready and that is changed, and compares what it does
// with the effect of which the preview speaks.
func TestEffectsOnLeaderWorkerSets(t *testing.T) {
	for name, tc := range effectsOnGroups {
		t.Run(name, func(t *testing.T) {
			m := newLeaderWorkerSetModel(llm(tc.live...))
			m.rest()
			if tc.earlier != nil {
				m.edit(tc.earlier)
				m.rest()
			}
			before, uids, sts := m.set, m.uids(), m.leader
			m.edit(tc.change)
			p := &leaderWorkerSetPreviewer{out: LeaderWorkerSetPreview{Object: Object{Changes: changesBetween(encodedGroups(t, before), encodedGroups(t, m.set))}}}
			p.describeUpdate(before, m.set)
			if len(p.out.Changes) == 0 {
				t.Fatal("nothing changes")
			}
			for _, c := range p.out.Changes {
				if c.Effect != tc.want {
					t.Errorf("%s: the effect is %s (%s): want %s", c.Field, c.Effect, c.Text, tc.want)
				}
			}
			m.rest()
			tc.check(t, m, uids)
			revises := tc.replaced != nil || tc.want == EffectOnResume || tc.want == EffectNever
			if changed := !cmp.Equal(sts.Spec.Template, m.leader.Spec.Template); !revises && changed != tc.template {
				t.Errorf("the template of the leaders changes: %v: want %v", changed, tc.template)
			}
			if changed := !cmp.Equal(sts.Spec.VolumeClaimTemplates, m.leader.Spec.VolumeClaimTemplates); changed != (tc.want == EffectNever) {
				t.Errorf("the claims of the StatefulSet, which the API does not let change, change: %v", changed)
			}
			if tc.later != nil {
				tc.later(t, m)
			}
		})
	}
}

// check looks at which replicas the controller has replaced, created and deleted.
func (tc *effectOnGroups) check(t *testing.T, m *leaderWorkerSetModel, before []string) {
	t.Helper()
	if tc.want == EffectNever {
		return // the model lets the claims change
	}
	after, groups := m.uids(), len(before)
	if tc.groups > 0 {
		groups = tc.groups
	}
	if len(after) != groups {
		t.Errorf("%d groups: want %d", len(after), groups)
	}
	if diff := cmp.Diff(tc.replaced, differing(before, after)); diff != "" {
		t.Errorf("groups that are replaced (-want +got):\n%s", diff)
	}
	if tc.want == EffectOnResume {
		m.edit(unpause)
		m.rest()
		if diff := cmp.Diff(everyGroup, differing(before, m.uids())); diff != "" {
			t.Errorf("groups that are replaced after the resume (-want +got):\n%s", diff)
		}
	}
}

// differing returns the places of the items that differ, up to the end of the shorter list.
func differing(a, b []string) (places []int) {
	for i := range min(len(a), len(b)) {
		if a[i] != b[i] {
			places = append(places, i)
		}
	}
	return places
}

func encodedGroups(t *testing.T, set *leaderworkersetv1.LeaderWorkerSet) *unstructured.Unstructured {
	t.Helper()
	content, err := runtime.DefaultUnstructuredConverter.ToUnstructured(set)
	if err != nil {
		t.Fatal(err)
	}
	return &unstructured.Unstructured{Object: content}
}
