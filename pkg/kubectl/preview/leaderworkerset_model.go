// Copyright The jobset-apiserver Authors.
// SPDX-License-Identifier: Apache-2.0

package preview

import (
	"fmt"
	"time"

	appsv1 "k8s.io/api/apps/v1"
	corev1 "k8s.io/api/core/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/types"
	"k8s.io/utils/ptr"

	leaderworkersetv1 "github.com/jobset-apiserver/jobset-apiserver/pkg/apis/leaderworkerset/v1"
	"github.com/jobset-apiserver/jobset-apiserver/pkg/apis/leaderworkerset/v1/helper"
	"github.com/jobset-apiserver/jobset-apiserver/pkg/controller/leaderworkerset/plan"
)

// maxModelled is the highest number of replicas whose rolling update is played through.
const maxModelled = 200

// modelNode is the node of all pods of a model, in a domain of the same name.
const modelNode = "node"

// leaderWorkerSetModel plays through what the controller does about a set, in a cluster where pods are ready once the controller has
// nothing else to do. The code of the controller makes the decisions.
type leaderWorkerSetModel struct {
	set       *leaderworkersetv1.LeaderWorkerSet
	leader    *appsv1.StatefulSet
	applied   string
	revisions []*appsv1.ControllerRevision
	services  []plan.Child
	// replicas are the replicas that exist.
	groups []modelReplica
	now    metav1.Time
}

// modelReplica is a replica of the model.
type modelReplica struct {
	key  string
	uid  types.UID
	size int32
	// workers means that the StatefulSet of its workers exists, and ready that all of its pods are.
	workers, ready bool
}

func newLeaderWorkerSetModel(set *leaderworkersetv1.LeaderWorkerSet) *leaderWorkerSetModel {
	set = set.DeepCopy()
	set.Status, set.DeletionTimestamp = leaderworkersetv1.LeaderWorkerSetStatus{}, nil
	return &leaderWorkerSetModel{set: set, now: metav1.NewTime(time.Unix(0, 0))}
}

func (m *leaderWorkerSetModel) observe() plan.Observed {
	o := plan.Observed{
		Set: m.set, Leader: m.leader, Applied: m.applied, Revisions: m.revisions, Services: m.services, Now: m.now,
		Domains: map[string]string{modelNode: modelNode},
	}
	for i, g := range m.groups {
		name, phase := helper.LeaderPodName(m.set.Name, i), corev1.PodPending
		if g.ready {
			phase = corev1.PodRunning
		}
		o.Leaders = append(o.Leaders, plan.Pod{
			Ref: plan.Ref{Name: name, UID: g.uid}, Controller: m.leader.UID, Group: int32(i), Revision: g.key,
			Phase: phase, Ready: g.ready, Node: modelNode, Created: m.now,
		})
		if g.workers {
			o.Workers = append(o.Workers, plan.Workers{
				Ref: plan.Ref{Name: name, UID: g.uid + "-workers"}, Leader: g.uid, Revision: g.key, Replicas: g.size - 1, Created: g.size - 1,
				Ready: g.ready,
			})
		}
	}
	return o
}

// step lets the controller decide once, and the others do what follows.
func (m *leaderWorkerSetModel) step() plan.Plan {
	m.now = metav1.NewTime(m.now.Add(time.Minute))
	p := plan.Decide(m.observe())
	if p.Status != nil {
		m.set.Status = *p.Status
	}
	if p.CreateRevision != nil {
		m.revisions = append(m.revisions, p.CreateRevision)
	}
	for _, s := range p.CreateServices {
		m.services = append(m.services, plan.ChildOf(s))
	}
	for i := range p.CreateWorkers {
		if _, group := helper.ParentAndOrdinal(p.CreateWorkers[i].Name); int(group) < len(m.groups) {
			m.groups[group].workers = true
		}
	}
	if p.ApplyLeader != nil {
		m.applied = plan.ApplyHash(p.ApplyLeader)
		m.leader = p.ApplyLeader.DeepCopy()
		m.leader.UID = "leader"
	}
	if m.leader != nil {
		m.roll()
	}
	return p
}

// roll does what the controller of StatefulSets does.
func (m *leaderWorkerSetModel) roll() {
	count := int(ptr.Deref(m.leader.Spec.Replicas, 1))
	key, partition := m.leader.Labels[leaderworkersetv1.RevisionKey], int(*m.leader.Spec.UpdateStrategy.RollingUpdate.Partition)
	m.groups = m.groups[:min(len(m.groups), count)]
	fresh := modelReplica{key: key, size: helper.Size(m.set)}
	for i := range m.groups {
		if i >= partition && m.groups[i].key != key {
			m.groups[i] = fresh
		}
	}
	for len(m.groups) < count {
		g := fresh
		if len(m.groups) < partition && len(m.groups) > 0 {
			g.key, g.size = m.groups[0].key, m.groups[0].size // below the partition, pods get the former revision
		}
		m.groups = append(m.groups, g)
	}
	for i := range m.groups {
		m.groups[i].uid = types.UID(fmt.Sprintf("%d-%s", i, m.groups[i].key))
	}
	m.leader.Status.Replicas = int32(count)
}

// Stage is a state of the leader StatefulSet in a rolling update. Groups with an index of the partition and above have the new revision.
type Stage struct {
	Partition int32 `json:"partition"`
	Replicas  int32 `json:"replicas"`
}

// rest lets the controller decide until it has nothing to do, and returns the states that the leader StatefulSet went through.
func (m *leaderWorkerSetModel) rest() (stages []Stage) {
	quiet := 0 // passes without a write; one may only store the status
	for range 20 * (len(m.groups) + int(helper.Replicas(m.set)) + 5) {
		p := m.step()
		if p.ApplyLeader == nil && p.CreateRevision == nil && len(p.CreateWorkers) == 0 {
			if quiet++; quiet == 3 && !m.ready() {
				return stages
			} else if quiet == 3 {
				quiet = 0
			}
			continue
		}
		quiet = 0
		if p.ApplyLeader == nil {
			continue
		}
		next := Stage{*p.ApplyLeader.Spec.UpdateStrategy.RollingUpdate.Partition, *p.ApplyLeader.Spec.Replicas}
		if len(stages) == 0 || stages[len(stages)-1] != next {
			stages = append(stages, next)
		}
	}
	return stages
}

// ready makes all replicas ready, and returns whether one was not.
func (m *leaderWorkerSetModel) ready() (changed bool) {
	for i := range m.groups {
		changed = changed || !m.groups[i].ready
		m.groups[i].ready = true
	}
	return changed
}

// rollout returns the states that the leader StatefulSet goes through when a set whose replicas are all ready changes,
// and the StatefulSets before and after.
func rollout(live, next *leaderworkersetv1.LeaderWorkerSet) (stages []Stage, before, after *appsv1.StatefulSet) {
	m := newLeaderWorkerSetModel(live)
	m.set.Spec.Paused = nil
	m.rest()
	before = m.leader
	status := m.set.Status
	m.set = newLeaderWorkerSetModel(next).set
	m.set.UID, m.set.Status = live.UID, status
	m.set.Generation = live.Generation + 1
	stages = m.rest()
	return stages, before, m.leader
}
