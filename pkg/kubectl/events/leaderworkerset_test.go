// Copyright The jobset-apiserver Authors.
// SPDX-License-Identifier: Apache-2.0

package events

import (
	"testing"

	corev1 "k8s.io/api/core/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"

	leaderworkersetv1 "github.com/jobset-apiserver/jobset-apiserver/pkg/apis/leaderworkerset/v1"
	"github.com/jobset-apiserver/jobset-apiserver/test/builders"
)

func TestMembersOfLeaderWorkerSet(t *testing.T) {
	members := membersOfLeaderWorkerSet(builders.LeaderWorkerSet("vllm", 2, 3, func(set *leaderworkersetv1.LeaderWorkerSet) {
		set.Spec.LeaderWorkerTemplate.VolumeClaimTemplates = []corev1.PersistentVolumeClaim{{ObjectMeta: metav1.ObjectMeta{Name: "cache"}}}
	}))
	for _, tc := range []struct {
		kind, name string
		want       bool
	}{
		{"LeaderWorkerSet", "vllm", true}, {"LeaderWorkerSet", "vllm-0", false}, {"JobSet", "vllm", false},
		{"StatefulSet", "vllm", true}, {"StatefulSet", "vllm-12", true}, {"StatefulSet", "vllm-0-1", false}, {"StatefulSet", "vllm-b", false},
		{"Service", "vllm", true}, {"Service", "vllm-1", true}, {"Service", "vllm-api", false},
		{"Pod", "vllm-0", true}, {"Pod", "vllm-0-2", true}, {"Pod", "vllm", false}, {"Pod", "vllm-0-2-3", false}, {"Pod", "vllm-b-0", false}, {"Pod", "vllm-", false},
		{"PersistentVolumeClaim", "cache-vllm-0-1", true}, {"PersistentVolumeClaim", "other-vllm-0-1", false},
		{"PodGroup", "vllm-0-6859c84d69", true}, {"PodGroup", "vllm-6859c84d69", false}, {"PodGroup", "vllm", false},
		{"Workload", "leaderworkerset-vllm-0-1a2b3", true}, {"Workload", "leaderworkerset-vllm-b-0-1a2b3", false},
	} {
		if got := members.Has(tc.kind, tc.name); got != tc.want {
			t.Errorf("%s %s: got %v, want %v", tc.kind, tc.name, got, tc.want)
		}
	}
}
