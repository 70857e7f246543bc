// Copyright The jobset-apiserver Authors.
// SPDX-License-Identifier: Apache-2.0

package plan

import (
	"fmt"
	"slices"
	"strings"
	"testing"
	"time"

	appsv1 "k8s.io/api/apps/v1"
	corev1 "k8s.io/api/core/v1"
	"k8s.io/apimachinery/pkg/api/meta"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/types"
	"k8s.io/apimachinery/pkg/util/intstr"
	"k8s.io/utils/ptr"

	leaderworkersetv1 "github.com/jobset-apiserver/jobset-apiserver/pkg/apis/leaderworkerset/v1"
	"github.com/jobset-apiserver/jobset-apiserver/pkg/apis/leaderworkerset/v1/helper"
	hostplan "github.com/jobset-apiserver/jobset-apiserver/pkg/controller/host/plan"
)

// world is a cluster with one set. Its StatefulSet controller creates, replaces and removes leader pods, and groups
// become ready when a test says so.
type world struct {
	t       *testing.T
	set     *leaderworkersetv1.LeaderWorkerSet
	leader  *appsv1.StatefulSet
	applied string
	// generation is the generation of the leader StatefulSet after it was applied.
	generation int64
	pods       map[int32]*worldPod
	revisions  []*appsv1.ControllerRevision
	services   []Child
	// current is the key of the revision that the StatefulSet controller gives to pods below the partition.
	current string
	// frozen means that there is no StatefulSet controller: tests make pods themselves.
	frozen bool
	// counting is how the StatefulSet controller bounds what it replaces.
	counting counting
	// refuse says why the API refuses a leader StatefulSet.
	refuse func(*appsv1.StatefulSet) string
	// taken are the indexes of pods that are gone because of an update.
	taken map[int32]bool
	uids  int
	now   time.Time
	// broken are the keys of revisions of which no group becomes ready.
	broken map[string]bool
	// targets are what was applied, each time that it changed. events are the notes of all events.
	targets []string
	events  []string
	// partitions counts how often a partition went up without a new revision.
	ups int
}

// counting is how a StatefulSet controller counts.
type counting int

const (
	// countAll replaces pods while fewer than maxUnavailable of all pods are unavailable, as with the feature MaxUnavailableStatefulSet.
	countAll counting = iota
	// countOne replaces one pod at a time, the highest first, and waits for those above the next one, as without it.
	countOne
)

// worldPod is a leader pod and its workers, which share its revision.
type worldPod struct {
	uid             types.UID
	key             string
	ready, deleting bool
	lacksWorkers    bool
	// since is since when it is not ready.
	since time.Time
	// taken means that it replaces one that was ready, because of an update.
	taken bool
}

func (p *worldPod) fail(now time.Time) {
	if p.ready {
		p.since = now
	}
	p.ready = false
}

func newWorld(t *testing.T, change func(*leaderworkersetv1.LeaderWorkerSet)) *world {
	t.Helper()
	set := &leaderworkersetv1.LeaderWorkerSet{
		ObjectMeta: metav1.ObjectMeta{Name: "test-sample", Namespace: "default", UID: "set", Generation: 1},
		Spec: leaderworkersetv1.LeaderWorkerSetSpec{
			Replicas: ptr.To[int32](2),
			LeaderWorkerTemplate: leaderworkersetv1.LeaderWorkerTemplate{
				GroupSize: ptr.To[int32](2), RestartPolicy: leaderworkersetv1.RestartPolicyRecreateGroupOnPodRestart,
				LeaderTemplate: &corev1.PodTemplateSpec{Spec: corev1.PodSpec{Containers: []corev1.Container{{Name: "c", Image: "1"}}}},
				WorkerTemplate: corev1.PodTemplateSpec{Spec: corev1.PodSpec{Containers: []corev1.Container{{Name: "c", Image: "1"}}}},
			},
			RolloutStrategy: leaderworkersetv1.RolloutStrategy{
				Type: leaderworkersetv1.RolloutStrategyRollingUpdate, RollingUpdateConfiguration: &leaderworkersetv1.RollingUpdateConfiguration{
					Partition: ptr.To[int32](0), MaxUnavailable: ptr.To(intstr.FromInt32(1)), MaxSurge: ptr.To(intstr.FromInt32(0)),
				},
			},
			StartupPolicy: leaderworkersetv1.StartupPolicyLeaderCreated,
			NetworkConfig: &leaderworkersetv1.NetworkConfig{SubdomainPolicy: ptr.To(leaderworkersetv1.SubdomainShared)},
		},
	}
	w := &world{t: t, set: set, pods: map[int32]*worldPod{}, broken: map[string]bool{}, taken: map[int32]bool{}, now: time.Date(2030, 1, 1, 0, 0, 0, 0, time.UTC)}
	if change != nil {
		change(set)
	}
	return w
}

// spec changes the spec of the set.
func (w *world) spec(change func(*leaderworkersetv1.LeaderWorkerSetSpec)) {
	w.set = w.set.DeepCopy()
	change(&w.set.Spec)
	w.set.Generation++
}

func (w *world) replicas(n int32) func(*leaderworkersetv1.LeaderWorkerSetSpec) {
	return func(s *leaderworkersetv1.LeaderWorkerSetSpec) { s.Replicas = &n }
}

// image changes the template of leaders.
func (w *world) image(image string) func(*leaderworkersetv1.LeaderWorkerSetSpec) {
	return func(s *leaderworkersetv1.LeaderWorkerSetSpec) {
		s.LeaderWorkerTemplate.LeaderTemplate.Spec.Containers[0].Image = image
	}
}

func (w *world) partition(n int32) func(*leaderworkersetv1.LeaderWorkerSetSpec) {
	return func(s *leaderworkersetv1.LeaderWorkerSetSpec) {
		s.RolloutStrategy.RollingUpdateConfiguration.Partition = &n
	}
}

func rolling(replicas, unavailable, surge, partition int32) func(*leaderworkersetv1.LeaderWorkerSet) {
	return func(set *leaderworkersetv1.LeaderWorkerSet) {
		set.Spec.Replicas = &replicas
		set.Spec.RolloutStrategy.RollingUpdateConfiguration = &leaderworkersetv1.RollingUpdateConfiguration{
			Partition: &partition, MaxUnavailable: ptr.To(intstr.FromInt32(unavailable)), MaxSurge: ptr.To(intstr.FromInt32(surge)),
		}
	}
}

func (w *world) uid() types.UID {
	w.uids++
	return types.UID(fmt.Sprintf("uid-%d", w.uids))
}

// observe returns the snapshot of the world.
func (w *world) observe() Observed {
	o := Observed{
		Set: w.set, Leader: w.leader, Applied: w.applied, AppliedGeneration: w.generation, Services: slices.Clone(w.services), Revisions: slices.Clone(w.revisions),
		CountsWaited: countsMost, Now: metav1.NewTime(w.now),
	}
	if w.leader != nil && w.leader.Status.CurrentRevision != "" {
		o.LeaderKey = hostplan.Of(w.current)
	}
	for i, p := range w.pods {
		name := helper.LeaderPodName(w.set.Name, i)
		o.Leaders = append(o.Leaders, Pod{
			Ref: Ref{Name: name, UID: p.uid}, Controller: "leader", Index: 0, Group: i, Revision: p.key, Phase: corev1.PodRunning, Ready: p.ready, Deleting: p.deleting, Created: o.Now,
			NotReadySince: metav1.NewTime(p.since),
		})
		if p.lacksWorkers {
			continue
		}
		o.Workers = append(o.Workers, Workers{
			Ref: Ref{Name: name, UID: "workers-" + p.uid}, Leader: p.uid, Revision: p.key, Replicas: 1, Created: 1, Ready: p.ready, Deleting: p.deleting,
		})
	}
	return o
}

// stabilize runs all controllers until none has anything to do.
func (w *world) stabilize() *world {
	w.t.Helper()
	for range 200 {
		acted := w.step()
		if w.statefulSetController() || acted {
			continue
		}
		w.checkRest()
		return w
	}
	w.t.Fatalf("never at rest: %s", w)
	return w
}

// checkRest checks that a plan without anything to do says so.
func (w *world) checkRest() {
	w.t.Helper()
	if p := decide(w.t, w.observe()); p.ApplyLeader != nil && w.refuse == nil || p.Status != nil || p.CreateRevision != nil || len(p.DeleteRevisions)+len(p.CreateServices)+len(p.DeleteLeaders) > 0 {
		w.t.Fatalf("not at rest: %+v", p)
	}
}

// ready makes groups ready at their revision.
func (w *world) ready(indexes ...int32) *world {
	w.t.Helper()
	for _, i := range indexes {
		if w.pods[i] == nil {
			w.t.Fatalf("no group %d", i)
		}
		w.pods[i].ready = true
	}
	return w.stabilize()
}

// become puts groups in place that are ready at the current revision, as upstream's tests do it.
func (w *world) become(indexes ...int32) *world {
	w.t.Helper()
	for _, i := range indexes {
		w.pods[i] = &worldPod{uid: w.uid(), key: revisionOf(w.observe()).key, ready: true}
	}
	return w.stabilize()
}

func (w *world) all() []int32 {
	var out []int32
	for i := range w.pods {
		out = append(out, i)
	}
	slices.Sort(out)
	return out
}

// true returns the conditions that are True, in order.
func (w *world) conditions() string {
	var out []string
	for _, c := range w.set.Status.Conditions {
		if c.Status == metav1.ConditionTrue {
			out = append(out, c.Type)
		}
	}
	slices.Sort(out)
	return strings.Join(out, " ")
}

func (w *world) available() bool {
	return meta.IsStatusConditionTrue(w.set.Status.Conditions, leaderworkersetv1.ConditionAvailable)
}

// String returns the world in the words of the reference: (partition, replicas, ready/updated) and the groups.
func (w *world) String() string {
	return fmt.Sprintf("(%d,%d,%d/%d)", partitionOf(w.leader), *w.leader.Spec.Replicas, w.set.Status.ReadyReplicas, w.set.Status.UpdatedReplicas)
}

// groups returns the groups: o for an old one, N for a new one, - for one that is not ready.
func (w *world) groups() string {
	var out []string
	k := revisionOf(w.observe()).key
	for _, i := range w.all() {
		s := "o"
		if w.pods[i].key == k {
			s = "N"
		}
		if !w.pods[i].ready {
			s += "-"
		}
		out = append(out, s)
	}
	return strings.Join(out, " ")
}
