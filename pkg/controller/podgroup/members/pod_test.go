// Copyright The jobset-apiserver Authors.
// SPDX-License-Identifier: Apache-2.0

package members

import (
	"reflect"
	"strings"
	"testing"
	"time"

	"github.com/google/go-cmp/cmp"
	corev1 "k8s.io/api/core/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/utils/ptr"

	"github.com/jobset-apiserver/jobset-apiserver/pkg/controller/podgroup/plan"
)

func diff(t *testing.T, what string, want, got any) {
	t.Helper()
	if d := cmp.Diff(want, got); d != "" {
		t.Errorf("%s (-want +got):\n%s", what, d)
	}
}

func owned(version, kind, name string) []metav1.OwnerReference {
	return []metav1.OwnerReference{{APIVersion: version, Kind: kind, Name: name, UID: "uid-1", Controller: ptr.To(true)}}
}

func TestWhatIsKeptOfAPod(t *testing.T) {
	prefix := plan.Prefixes[1]
	created := metav1.NewTime(time.Unix(1000, 0))
	pod := &corev1.Pod{
		ObjectMeta: metav1.ObjectMeta{
			Namespace: "ns", Name: "a", UID: "uid-a", ResourceVersion: "17", CreationTimestamp: created, DeletionTimestamp: &created,
			Labels:          map[string]string{prefix.GroupKey: "g", prefix.ReadyKey: "true", prefix.SizeKey: "3"},
			Annotations:     map[string]string{prefix.SizeKey: strings.Repeat("9", 1000)},
			OwnerReferences: owned("batch/v1", "Job", "job"),
		},
		Status: corev1.PodStatus{
			Phase:      corev1.PodFailed,
			Conditions: []corev1.PodCondition{{Type: corev1.PodReady, Status: corev1.ConditionTrue}},
			ContainerStatuses: []corev1.ContainerStatus{
				{State: corev1.ContainerState{Terminated: &corev1.ContainerStateTerminated{FinishedAt: metav1.NewTime(time.Unix(1020, 0))}}},
				{State: corev1.ContainerState{Terminated: &corev1.ContainerStateTerminated{FinishedAt: metav1.NewTime(time.Unix(1010, 0))}}},
			},
		},
	}
	transformed, err := Transform(prefix)(pod)
	if err != nil {
		t.Fatal(err)
	}
	kept := transformed.(*Pod)
	diff(t, "pod", plan.Pod{
		Name: "a", UID: "uid-a", Owner: plan.Owner{Kind: plan.KindJob, Name: "job", UID: "uid-1"}, SizeLabel: "3", SizeAnnotation: strings.Repeat("9", maxStated),
		Created: 1000, Ended: 1020, Phase: plan.Failed, Ready: true, Terminating: true, Labeled: true,
	}, kept.Pod)
	diff(t, "metadata", []string{"ns", "a", "17"}, []string{kept.GetObjectMeta().GetNamespace(), kept.GetObjectMeta().GetName(), kept.GetObjectMeta().GetResourceVersion()})
	index, err := GroupIndex(kept)
	diff(t, "index", []string{"ns/g"}, index)
	if err != nil {
		t.Error(err)
	}
	again, err := Transform(prefix)(kept)
	if err != nil || again != transformed {
		t.Errorf("transformed twice: %v (%v)", again, err)
	}
	// A pod of another prefix is none of this one.
	index, err = GroupIndex(Of(pod, plan.Prefixes[0]))
	if len(index) > 0 || err != nil {
		t.Errorf("index of a pod without a group: %v (%v)", index, err)
	}
	if size := reflect.TypeFor[Pod]().Size(); size > 256 {
		t.Errorf("%d bytes are kept of a pod, beside its name and UID", size)
	}
}

func TestOwnersOfPods(t *testing.T) {
	set := map[string]string{"jobset.sigs.k8s.io/jobset-name": "set", "jobset.sigs.k8s.io/jobset-uid": "uid-set"}
	for name, tc := range map[string]struct {
		owners []metav1.OwnerReference
		labels map[string]string
		want   plan.Owner
	}{
		"none":                      {nil, set, plan.Owner{}},
		"a Job":                     {owned("batch/v1", "Job", "x"), nil, plan.Owner{Kind: plan.KindJob, Name: "x", UID: "uid-1"}},
		"a Job of a JobSet":         {owned("batch/v1", "Job", "x"), set, plan.Owner{Kind: plan.KindJobSet, Name: "set", UID: "uid-set"}},
		"a StatefulSet":             {owned("apps/v1", "StatefulSet", "x"), set, plan.Owner{Kind: plan.KindStatefulSet, Name: "x", UID: "uid-1"}},
		"a ReplicaSet":              {owned("apps/v1", "ReplicaSet", "x"), nil, plan.Owner{Kind: plan.KindReplicaSet, Name: "x", UID: "uid-1"}},
		"another kind":              {owned("example.com/v1", "Job", "x"), set, plan.Owner{Name: "x", UID: "uid-1"}},
		"one that does not control": {[]metav1.OwnerReference{{APIVersion: "batch/v1", Kind: "Job", Name: "x", UID: "1"}}, nil, plan.Owner{}},
		"a set of a LeaderWorkerSet": {
			owned("apps/v1", "StatefulSet", "x"), map[string]string{leaderWorkerSetNameKey: "lws"}, plan.Owner{Kind: plan.KindLeaderWorkerSet, Name: "lws"}},
	} {
		t.Run(name, func(t *testing.T) {
			pod := &corev1.Pod{ObjectMeta: metav1.ObjectMeta{OwnerReferences: tc.owners, Labels: tc.labels}}
			diff(t, "owner", tc.want, Of(pod, plan.Prefixes[0]).Owner)
		})
	}
}
