// Copyright The jobset-apiserver Authors.
// SPDX-License-Identifier: Apache-2.0

package scenario

import (
	"testing"

	"github.com/google/go-cmp/cmp"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/client-go/kubernetes/fake"

	"github.com/jobset-apiserver/jobset-apiserver/pkg/generated/clientset/versioned"
	fakesets "github.com/jobset-apiserver/jobset-apiserver/pkg/generated/clientset/versioned/fake"
	"github.com/jobset-apiserver/jobset-apiserver/test/bench/cluster"
)

func TestGroupsAreScaledUpAndDown(t *testing.T) {
	for n, want := range map[int][]scaling{
		100: {{"scale up", 100, 200}, {"scale down", 200, 50}},
		1:   {{"scale up", 1, 2}, {"scale down", 2, 1}},
	} {
		if d := cmp.Diff(want, scalings(n), cmp.AllowUnexported(scaling{})); d != "" {
			t.Errorf("%d groups (-want +got):\n%s", n, d)
		}
	}
}

// TestScaledGroupsKeepTheLowestNumbers compares what is left of both kinds.
func TestScaledGroupsKeepTheLowestNumbers(t *testing.T) {
	kube, sets := fake.NewClientset(), versioned.Interface(fakesets.NewClientset())
	s := &space{runner: &runner{Env: &Env{Sizes: Sizes{ServingGroups: 4, ServingPods: 3}, Cluster: &cluster.Cluster{Kube: kube, JobSets: sets}}}, name: "bench"}
	ctx := t.Context()
	for _, pods := range []podsInGroups{statefulSets{}, groupsOfSet{}} {
		if err := pods.create(ctx, s, 4); err != nil {
			t.Fatal(err)
		}
		for _, change := range scalings(4) {
			if err := pods.scale(ctx, s, change.from, change.to); err != nil {
				t.Fatal(err)
			}
			if got := numberOfGroups(t, s, pods); got != change.to {
				t.Errorf("%T %s: %d groups, want %d", pods, change.phase, got, change.to)
			}
		}
	}
	for i := range 2 {
		if _, err := kube.AppsV1().StatefulSets("bench").Get(ctx, groupName(i), metav1.GetOptions{}); err != nil {
			t.Error(err)
		}
	}
}

func numberOfGroups(t *testing.T, s *space, pods podsInGroups) int {
	t.Helper()
	if _, are := pods.(statefulSets); are {
		list, err := s.Cluster.Kube.AppsV1().StatefulSets(s.name).List(t.Context(), metav1.ListOptions{})
		if err != nil {
			t.Fatal(err)
		}
		return len(list.Items)
	}
	set, err := s.Cluster.JobSets.LeaderworkersetV1().LeaderWorkerSets(s.name).Get(t.Context(), setName, metav1.GetOptions{})
	if err != nil {
		t.Fatal(err)
	}
	return int(*set.Spec.Replicas)
}
