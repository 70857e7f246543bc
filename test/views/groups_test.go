// Copyright The jobset-apiserver Authors.
// SPDX-License-Identifier: Apache-2.0

package views

import (
	"testing"

	appsv1 "k8s.io/api/apps/v1"
	corev1 "k8s.io/api/core/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/runtime"

	disaggregatedsetv1 "github.com/jobset-apiserver/jobset-apiserver/pkg/apis/disaggregatedset/v1"
	dshelper "github.com/jobset-apiserver/jobset-apiserver/pkg/apis/disaggregatedset/v1/helper"
	leaderworkersetv1 "github.com/jobset-apiserver/jobset-apiserver/pkg/apis/leaderworkerset/v1"
	rolesplan "github.com/jobset-apiserver/jobset-apiserver/pkg/controller/disaggregatedset/plan"
	hostplan "github.com/jobset-apiserver/jobset-apiserver/pkg/controller/host/plan"
	groupsplan "github.com/jobset-apiserver/jobset-apiserver/pkg/controller/leaderworkerset/plan"
	"github.com/jobset-apiserver/jobset-apiserver/test/builders"
)

// groupsOf adds a LeaderWorkerSet of one group of one pod.
func groupsOf(_ *testing.T, a *api, f fault, set *leaderworkersetv1.LeaderWorkerSet) *leaderworkersetv1.LeaderWorkerSet {
	var leader *appsv1.StatefulSet
	var pod *corev1.Pod
	for _, at := range later() {
		o := groupsplan.Observed{Set: set, Leader: leader, LeaderTaken: f.taken, Now: at, ServedSince: began.Time, TroubledSince: began.Time}
		if leader != nil && f.refused != "" {
			o.PodsRefusedSince, o.RefusedPods = began.Time, []hostplan.Refusal{{Reason: f.reason(), Message: f.refused, At: at.Time}}
		}
		if pod != nil {
			o.Leaders, o.UnschedulableSince = []groupsplan.Pod{groupsplan.PodOf(pod)}, began.Time
		}
		p := groupsplan.Decide(o)
		out := groupsplan.Finish(o, p, groupsplan.Results{NameTaken: f.taken, LeaderApplied: p.ApplyLeader != nil && !f.taken})
		if out.Status != nil {
			set = set.DeepCopy()
			set.Status = *out.Status
		}
		if leader == nil && p.ApplyLeader != nil && !f.taken {
			leader = builders.LeaderStatefulSet(set, p.ApplyLeader.Labels[leaderworkersetv1.RevisionKey], func(s *appsv1.StatefulSet) {
				s.Status = appsv1.StatefulSetStatus{ObservedGeneration: 1}
			})
			ready := builders.LeaderPod(set, leader, 0)
			if pod = f.pod(ready.Name, ready.Labels, leader, metav1.TypeMeta{APIVersion: "apps/v1", Kind: "StatefulSet"}); pod != nil {
				leader.Status.Replicas = 1
			}
		}
	}
	if leader != nil {
		a.add("statefulsets", leader)
		f.event(a, "StatefulSet", leader)
	} else {
		a.add("statefulsets", &appsv1.StatefulSet{ObjectMeta: metav1.ObjectMeta{Name: set.Name, Namespace: set.Namespace, UID: "other"}})
	}
	if pod != nil {
		a.add("pods", pod)
	}
	a.add("leaderworkersets", set)
	return set
}

// roleSet adds a DisaggregatedSet of one role, of which the LeaderWorkerSet has the fault. If a name is taken, it is the name of a
// StatefulSet of that.
func roleSet(t *testing.T, a *api, f fault) runtime.Object {
	set := builders.LeaderWorkerSet("llm", 1, 1)
	ds := &disaggregatedsetv1.DisaggregatedSet{ObjectMeta: metav1.ObjectMeta{Name: "llm", Namespace: builders.Namespace, UID: "llm-uid", CreationTimestamp: began, Generation: 1}}
	ds.Spec.Roles = []disaggregatedsetv1.DisaggregatedRoleSpec{{Name: "decode"}}
	ds.Spec.Roles[0].Spec.Replicas, ds.Spec.Roles[0].Spec.LeaderWorkerTemplate = set.Spec.Replicas, set.Spec.LeaderWorkerTemplate
	revision, err := dshelper.Revision(ds)
	if err != nil {
		t.Fatal(err)
	}
	set.Name, set.Labels, set.CreationTimestamp = dshelper.SetName("llm", 0, revision, "decode"), dshelper.Labels("llm", 0, revision, "decode"), began
	set.UID = "llm-decode-uid"
	set.OwnerReferences = []metav1.OwnerReference{*metav1.NewControllerRef(ds, disaggregatedsetv1.SchemeGroupVersion.WithKind("DisaggregatedSet"))}
	set = groupsOf(t, a, f, set)
	out := rolesplan.Finish(rolesplan.Observed{Set: ds, Children: []rolesplan.Child{rolesplan.ChildOf(set)}, Now: now}, rolesplan.Plan{Revision: revision}, rolesplan.Results{})
	if out.Status != nil {
		ds.Status = *out.Status
	}
	a.add("disaggregatedsets", ds)
	return ds
}
