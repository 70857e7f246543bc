// Copyright The jobset-apiserver Authors.
// SPDX-License-Identifier: Apache-2.0

package run_test

import (
	"testing"
	"time"

	"github.com/google/go-cmp/cmp"
	corev1 "k8s.io/api/core/v1"
	"k8s.io/apimachinery/pkg/api/resource"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/utils/ptr"

	"github.com/jobset-apiserver/jobset-apiserver/pkg/apis/archive"
	"github.com/jobset-apiserver/jobset-apiserver/pkg/apis/jobset"
	"github.com/jobset-apiserver/jobset-apiserver/pkg/apis/leaderworkerset"
	leaderworkersetv1 "github.com/jobset-apiserver/jobset-apiserver/pkg/apis/leaderworkerset/v1"
	"github.com/jobset-apiserver/jobset-apiserver/pkg/registry/leaderworkerset/leaderworkerset/run"
	"github.com/jobset-apiserver/jobset-apiserver/pkg/unreadable"
)

var begin = time.Date(2026, 1, 2, 3, 4, 5, 0, time.UTC)

func minute(n int) metav1.Time { return metav1.NewTime(begin.Add(time.Duration(n) * time.Minute)) }

// serving is a set of 2 groups of 3 pods that was created at minute 0, and whose groups are all ready since minute 10.
func serving() *leaderworkerset.LeaderWorkerSet {
	template := func(priority, cpu string) corev1.PodTemplateSpec {
		return corev1.PodTemplateSpec{Spec: corev1.PodSpec{PriorityClassName: priority, Containers: []corev1.Container{{
			Name: "main", Resources: corev1.ResourceRequirements{Requests: corev1.ResourceList{"cpu": resource.MustParse(cpu)}},
		}}}}
	}
	return &leaderworkerset.LeaderWorkerSet{
		ObjectMeta: metav1.ObjectMeta{Namespace: "team", Name: "llm", UID: "uid-1", CreationTimestamp: minute(0)},
		Spec: leaderworkerset.LeaderWorkerSetSpec{Replicas: ptr.To[int32](2), LeaderWorkerTemplate: leaderworkerset.LeaderWorkerTemplate{
			GroupSize: ptr.To[int32](3), LeaderTemplate: ptr.To(template("", "1")), WorkerTemplate: template("high", "4"),
		}},
		Status: leaderworkerset.LeaderWorkerSetStatus{
			Replicas: 2, ReadyReplicas: 2,
			Conditions: []metav1.Condition{{Type: leaderworkersetv1.ConditionAvailable, Status: metav1.ConditionTrue, LastTransitionTime: minute(10)}},
		},
	}
}

func failed(index, restarts int32, at int, limit bool) leaderworkerset.GroupStatus {
	return leaderworkerset.GroupStatus{
		Index: index, Restarts: restarts, Failed: limit, FirstCause: &jobset.FailureCause{Job: "llm", Pod: "p", Node: "n", Time: ptr.To(minute(at))},
	}
}

func TestDescribe(t *testing.T) {
	whole := func(change func(*archive.Run)) *archive.Run {
		r := &archive.Run{
			ObjectMeta: metav1.ObjectMeta{Namespace: "team"},
			Object: archive.RunObject{
				APIVersion: "leaderworkerset.x-k8s.io/v1", Kind: "LeaderWorkerSet", Name: "llm", UID: "uid-1", Execution: 1, CreationTime: minute(0),
			},
			BeginTime: metav1.NewMicroTime(begin), EndTime: metav1.NewMicroTime(minute(100).Time), Attempts: 1, Pods: 6, PriorityClass: "high",
			ReadyMilliseconds: 90 * 60_000, Resources: []archive.ResourceTime{{Name: "cpu", AmountSeconds: 90 * 60 * (2*1 + 4*4)}},
			Children: []archive.RunChild{{Name: "groups", Kind: "StatefulSet", Wanted: 2, Ready: 2}},
		}
		change(r)
		return r
	}
	for name, tc := range map[string]struct {
		change func(*leaderworkerset.LeaderWorkerSet)
		want   *archive.Run
	}{
		"a set that serves": {change: func(*leaderworkerset.LeaderWorkerSet) {}, want: whole(func(*archive.Run) {})},
		"a set whose deletion was requested": {
			change: func(set *leaderworkerset.LeaderWorkerSet) { set.DeletionTimestamp = ptr.To(minute(20)) },
			want: whole(func(r *archive.Run) {
				r.ReadyMilliseconds, r.Resources[0].AmountSeconds = 10*60_000, 10*60*18
			}),
		},
		"a set that failed may go on, and has not ended": {
			change: func(set *leaderworkerset.LeaderWorkerSet) {
				set.Status.ReadyReplicas = 1
				set.Status.Conditions = []metav1.Condition{
					{Type: leaderworkersetv1.ConditionAvailable, Status: metav1.ConditionFalse, LastTransitionTime: minute(30)},
					{Type: leaderworkersetv1.ConditionFailed, Status: metav1.ConditionTrue, Reason: "GroupFailed", Message: "group 0 has failed"},
				}
				set.Status.Groups = []leaderworkerset.GroupStatus{failed(0, 3, 30, true), failed(1, 2, 20, false)}
			},
			want: whole(func(r *archive.Run) {
				r.ReadyMilliseconds, r.Resources, r.Restarts, r.Reason, r.Message = 0, nil, 5, "GroupFailed", "group 0 has failed"
				r.Children[0].Ready, r.Children[0].Failed = 1, 1
				r.Failures = []archive.RunFailure{
					{Attempt: 2, Child: "llm", Pod: "p", Node: "n", Time: ptr.To(minute(20))}, {Attempt: 4, Child: "llm", Pod: "p", Node: "n", Time: ptr.To(minute(30))},
				}
			}),
		},
		"a set without groups": {change: func(set *leaderworkerset.LeaderWorkerSet) { set.Status = leaderworkerset.LeaderWorkerSetStatus{} }},
		"a placeholder": {change: func(set *leaderworkerset.LeaderWorkerSet) {
			set.Annotations = map[string]string{unreadable.Annotation: "damaged"}
		}},
	} {
		t.Run(name, func(t *testing.T) {
			set := serving()
			tc.change(set)
			before := set.DeepCopy()
			got := run.Describe(set, minute(100).Time)
			if tc.want != nil && got != nil {
				tc.want.Name, tc.want.UID = got.Name, got.UID
			}
			if diff := cmp.Diff(tc.want, got); diff != "" {
				t.Errorf("run (-want +got):\n%s", diff)
			}
			if diff := cmp.Diff(before, set); diff != "" {
				t.Errorf("the set has changed (-before +after):\n%s", diff)
			}
		})
	}
}
