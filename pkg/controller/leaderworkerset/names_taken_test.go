// Copyright The jobset-apiserver Authors.
// SPDX-License-Identifier: Apache-2.0

package leaderworkerset

import (
	"strings"
	"testing"

	appsv1 "k8s.io/api/apps/v1"
	corev1 "k8s.io/api/core/v1"
	"k8s.io/apimachinery/pkg/api/meta"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/runtime"
	"k8s.io/client-go/kubernetes/fake"
	"k8s.io/utils/clock"

	"github.com/jobset-apiserver/jobset-apiserver/pkg/apis/generic/reasons"
	leaderworkersetv1 "github.com/jobset-apiserver/jobset-apiserver/pkg/apis/leaderworkerset/v1"
	"github.com/jobset-apiserver/jobset-apiserver/pkg/controller/leaderworkerset/plan"
)

// TestNamesThatOthersHave has objects of others under the names of children: those of another set, or of a JobSet with such a Service.
func TestNamesThatOthersHave(t *testing.T) {
	child := func(owner []metav1.OwnerReference, name string) metav1.ObjectMeta {
		return metav1.ObjectMeta{Namespace: "ns", Name: name, UID: "child", OwnerReferences: owner}
	}
	set, leader := controlledBy("LeaderWorkerSet", "lws", "set"), controlledBy("Pod", "lws-0", "leader")
	service := func(owner []metav1.OwnerReference, name string) *corev1.Service {
		return &corev1.Service{ObjectMeta: child(owner, name)}
	}
	workers := func(owner []metav1.OwnerReference) *appsv1.StatefulSet {
		return &appsv1.StatefulSet{ObjectMeta: child(owner, "lws-0")}
	}
	for name, tc := range map[string]struct {
		exists runtime.Object
		plan   plan.Plan
		want   string
	}{
		"the Service of a JobSet": {
			exists: service(controlledBy("JobSet", "lws", "other"), "lws"), plan: plan.Plan{CreateServices: []*corev1.Service{service(set, "lws")}},
			want: "Service lws could not be created: a Service with this name exists and does not belong to the LeaderWorkerSet",
		},
		"the Service of a set that is named like a group": {
			exists: service(controlledBy("LeaderWorkerSet", "lws-0", "other"), "lws-0"), plan: plan.Plan{CreateServices: []*corev1.Service{service(leader, "lws-0")}},
			want: "Service lws-0 could not be created: a Service with this name exists and does not belong to the LeaderWorkerSet",
		},
		"the leaders of a set that is named like a group": {
			exists: workers(controlledBy("LeaderWorkerSet", "lws-0", "other")), plan: plan.Plan{CreateWorkers: []plan.NewWorkers{{StatefulSet: workers(leader)}}},
			want: "StatefulSet lws-0 could not be created: a StatefulSet with this name exists and does not belong to the leader pod of its name",
		},
	} {
		t.Run(name, func(t *testing.T) {
			owner := refusedOwner()
			s := syncerOf(owner, fake.NewClientset(tc.exists), clock.RealClock{})
			obs := &plan.Observed{Set: owner, Now: metav1.Now()}
			results, err := s.Apply(t.Context(), obs, tc.plan)
			if err != nil {
				t.Fatal(err)
			}
			status := plan.Finish(*obs, tc.plan, results).Status
			if status == nil {
				t.Fatal("the status says nothing")
			}
			c := meta.FindStatusCondition(status.Conditions, leaderworkersetv1.ConditionChildCreationFailure)
			if c == nil || c.Status != metav1.ConditionTrue || c.Reason != reasons.NameConflict || !strings.HasPrefix(c.Message, tc.want) {
				t.Errorf("condition %+v, want %q", c, tc.want)
			}
		})
	}
}
