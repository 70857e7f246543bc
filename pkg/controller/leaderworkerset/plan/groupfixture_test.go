// Copyright The jobset-apiserver Authors.
// SPDX-License-Identifier: Apache-2.0

package plan

import (
	"fmt"
	"maps"
	"slices"
	"testing"
	"time"

	appsv1 "k8s.io/api/apps/v1"
	corev1 "k8s.io/api/core/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/types"
	"k8s.io/utils/ptr"

	jobsetv1alpha2 "github.com/jobset-apiserver/jobset-apiserver/pkg/apis/jobset/v1alpha2"
	leaderworkersetv1 "github.com/jobset-apiserver/jobset-apiserver/pkg/apis/leaderworkerset/v1"
	"github.com/jobset-apiserver/jobset-apiserver/pkg/apis/leaderworkerset/v1/helper"
	hostplan "github.com/jobset-apiserver/jobset-apiserver/pkg/controller/host/plan"
)

// began is the time at which the fixtures begin.
var began = metav1.NewTime(time.Unix(1_800_000_000, 0))

// fixture is a set whose groups are complete and ready unless a test changes them.
type fixture struct {
	t testing.TB
	Observed
}

// newFixture returns a set "s" of groups of a size.
func newFixture(t testing.TB, replicas, size int32) *fixture {
	t.Helper()
	set := &leaderworkersetv1.LeaderWorkerSet{
		ObjectMeta: metav1.ObjectMeta{Name: "s", Namespace: "ns", UID: "set", Generation: 1},
		Spec: leaderworkersetv1.LeaderWorkerSetSpec{
			Replicas: &replicas,
			LeaderWorkerTemplate: leaderworkersetv1.LeaderWorkerTemplate{
				WorkerTemplate: corev1.PodTemplateSpec{Spec: corev1.PodSpec{Containers: []corev1.Container{{Name: "main", Image: "new"}}}},
				GroupSize:      &size, RestartPolicy: leaderworkersetv1.RestartPolicyRecreateGroupOnPodRestart,
			},
			StartupPolicy: leaderworkersetv1.StartupPolicyLeaderCreated,
		},
	}
	leaderworkersetv1.SetObjectDefaults_LeaderWorkerSet(set)
	f := &fixture{t: t, Observed: Observed{Set: set, Now: began}}
	f.Revisions = append(f.Revisions, f.revision(set, 1))
	key := f.Revisions[0].Labels[leaderworkersetv1.RevisionKey]
	f.Leader = &appsv1.StatefulSet{
		ObjectMeta: metav1.ObjectMeta{Name: "s", Namespace: "ns", UID: "leader-set", Labels: map[string]string{leaderworkersetv1.RevisionKey: key}},
		Spec:       appsv1.StatefulSetSpec{Replicas: ptr.To(replicas)},
		Status:     appsv1.StatefulSetStatus{Replicas: replicas},
	}
	for i := range replicas {
		f.addGroup(i, size, key)
	}
	return f
}

// revision returns the revision of a set.
func (f *fixture) revision(set *leaderworkersetv1.LeaderWorkerSet, number int64) *appsv1.ControllerRevision {
	f.t.Helper()
	data, err := helper.RevisionPayload(set)
	if err != nil {
		f.t.Fatal(err)
	}
	r := &appsv1.ControllerRevision{Revision: number}
	r.Name, r.Data.Raw = fmt.Sprintf("s-%d", number), data
	r.Labels = map[string]string{leaderworkersetv1.RevisionKey: helper.RevisionKey(data)}
	return r
}

// addGroup adds a group that is ready. UIDs are derived from names and the number of pods that had them.
func (f *fixture) addGroup(index, size int32, key string) {
	leader := fmt.Sprintf("s-%d", index)
	f.Leaders = append(f.Leaders, Pod{
		Ref: Ref{Name: leader, UID: types.UID(leader + "/1")}, Controller: "leader-set", Group: index, Revision: key, Phase: corev1.PodRunning,
		Ready: true, Node: "node-" + leader, Created: f.Now,
	})
	if size > 1 {
		f.addWorkers(index, size, key)
	}
}

func (f *fixture) addWorkers(index, size int32, key string) {
	l := f.leader(index)
	w := Workers{
		Ref: Ref{Name: l.Name, UID: "sts/" + l.UID}, Leader: l.UID, ResourceVersion: "7", Revision: key, Replicas: size - 1, Created: size - 1, Ready: true,
	}
	for i := int32(1); i < size; i++ {
		name := fmt.Sprintf("%s-%d", l.Name, i)
		w.Pods = append(w.Pods, Pod{
			Ref: Ref{Name: name, UID: types.UID(name) + "@" + l.UID}, Controller: w.UID, Index: i, Group: index, Revision: key, Phase: corev1.PodRunning,
			Ready: true, Node: "node-" + name, Created: f.Now,
		})
	}
	f.Workers = append(f.Workers, w)
}

// leader returns the leader of a group.
func (f *fixture) leader(index int32) *Pod {
	f.t.Helper()
	for i := range f.Leaders {
		if f.Leaders[i].Name == fmt.Sprintf("s-%d", index) {
			return &f.Leaders[i]
		}
	}
	f.t.Fatalf("group %d has no leader", index)
	return nil
}

// workers returns the workers of a group.
func (f *fixture) workers(index int32) *Workers {
	f.t.Helper()
	for i := range f.Observed.Workers {
		if f.Observed.Workers[i].Leader == f.leader(index).UID {
			return &f.Observed.Workers[i]
		}
	}
	f.t.Fatalf("group %d has no workers", index)
	return nil
}

// worker returns a worker pod of a group.
func (f *fixture) worker(group, index int32) *Pod {
	f.t.Helper()
	return &f.workers(group).Pods[index-1]
}

// forgetWorkers removes the workers of a group.
func (f *fixture) forgetWorkers(index int32) {
	uid := f.leader(index).UID
	f.Observed.Workers = slices.DeleteFunc(f.Observed.Workers, func(w Workers) bool { return w.Leader == uid })
}

// replace replaces a group as the cluster does once its leader was deleted.
func (f *fixture) replace(index int32) {
	f.t.Helper()
	old := *f.leader(index)
	f.forgetWorkers(index)
	f.Leaders = slices.DeleteFunc(f.Leaders, func(p Pod) bool { return p.UID == old.UID })
	f.addGroup(index, helper.Size(f.Set), old.Revision)
	l := f.leader(index)
	l.UID = old.UID + "'"
	f.forgetWorkers(index)
	for i := range f.Observed.Workers {
		if f.Observed.Workers[i].Name == l.Name {
			f.Observed.Workers = slices.Delete(f.Observed.Workers, i, i+1)
			break
		}
	}
	if helper.Size(f.Set) > 1 {
		f.addWorkers(index, helper.Size(f.Set), old.Revision)
	}
}

// decide decides until nothing is asked. What the snapshot does not have cannot be obtained.
func decide(t testing.TB, o Observed) Plan {
	t.Helper()
	p := Decide(o)
	if len(p.Questions()) == 0 {
		return p
	}
	o.Causes = maps.Clone(o.Causes)
	if o.Causes == nil {
		o.Causes = causes(nil)
	}
	for _, m := range p.Asks.Causes {
		o.Causes[m.Leader] = hostplan.NotObtained[*jobsetv1alpha2.FailureCause]()
	}
	if p = Decide(o); len(p.Questions()) > 0 {
		t.Fatalf("asked again: %+v", p.Asks)
	}
	return p
}

// pass decides once and stores the status.
func (f *fixture) pass() Plan {
	f.t.Helper()
	p := decide(f.t, f.Observed)
	if p.Status != nil {
		f.Set.Status = *p.Status
	}
	f.Evaluated = map[types.UID]bool{}
	for _, uid := range p.Evaluated {
		f.Evaluated[uid] = true
	}
	f.GoneLeaders = slices.DeleteFunc(f.GoneLeaders, func(p Pod) bool { return f.Evaluated[p.UID] })
	return p
}

// stabilize stores what is decided about the status until nothing changes, and returns the first plan that changed
// nothing.
func (f *fixture) stabilize() Plan {
	f.t.Helper()
	for range 10 {
		if p := f.pass(); p.Status == nil {
			return p
		}
	}
	f.t.Fatal("the status changes again and again")
	return Plan{}
}

// later moves the clock.
func (f *fixture) later(d time.Duration) { f.Now = metav1.NewTime(f.Now.Add(d)) }

// status returns the entry of a group.
func (f *fixture) status(index int32) leaderworkersetv1.GroupStatus {
	for _, e := range f.Set.Status.Groups {
		if e.Index == index {
			return e
		}
	}
	return leaderworkersetv1.GroupStatus{Index: -1}
}

// deleted returns the names of the leaders that a plan deletes.
func deleted(p Plan) (names []string) {
	for _, d := range p.DeleteLeaders {
		names = append(names, d.Name)
	}
	return names
}

// createdWorkers returns the names of the StatefulSets of workers that a plan creates.
func createdWorkers(p Plan) (names []string) {
	for _, w := range p.CreateWorkers {
		names = append(names, w.Name)
	}
	return names
}

// condition returns a condition of a set: its status, and its message.
func (f *fixture) condition(kind string) (metav1.ConditionStatus, string) {
	for _, c := range f.Set.Status.Conditions {
		if c.Type == kind {
			return c.Status, c.Message
		}
	}
	return "", ""
}
