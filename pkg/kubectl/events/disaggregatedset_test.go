// Copyright The jobset-apiserver Authors.
// SPDX-License-Identifier: Apache-2.0

package events

import (
	"testing"

	corev1 "k8s.io/api/core/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"

	disaggregatedsetv1 "github.com/jobset-apiserver/jobset-apiserver/pkg/apis/disaggregatedset/v1"
	leaderworkersetv1 "github.com/jobset-apiserver/jobset-apiserver/pkg/apis/leaderworkerset/v1"
	"github.com/jobset-apiserver/jobset-apiserver/test/builders"
)

func TestMembersOfDisaggregatedSet(t *testing.T) {
	set := &disaggregatedsetv1.DisaggregatedSet{ObjectMeta: metav1.ObjectMeta{Name: "llm"}}
	for _, name := range []string{"decode", "decode-big"} {
		set.Spec.Roles = append(set.Spec.Roles, disaggregatedsetv1.DisaggregatedRoleSpec{
			Name: name, Spec: builders.LeaderWorkerSet("", 2, 2, func(lws *leaderworkersetv1.LeaderWorkerSet) {
				lws.Spec.LeaderWorkerTemplate.VolumeClaimTemplates = []corev1.PersistentVolumeClaim{{ObjectMeta: metav1.ObjectMeta{Name: "cache"}}}
			}).Spec,
		})
	}
	members := membersOfRoles(set)
	for _, tc := range []struct {
		kind, name string
		want       bool
	}{
		{"DisaggregatedSet", "llm", true}, {"DisaggregatedSet", "llm-0-3f9a61c2-decode", false}, {"LeaderWorkerSet", "llm", false},
		{"LeaderWorkerSet", "llm-0-3f9a61c2-decode", true}, {"LeaderWorkerSet", "llm-11-00000000-decode-big", true},
		{"LeaderWorkerSet", "my-llm-0-3f9a61c2-decode", false}, {"LeaderWorkerSet", "llm-0-3f9a61c2-prefill", false}, {"LeaderWorkerSet", "llm-a-3f9a61c2-decode", false},
		{"DisaggregatedSetRoleScaler", "llm-decode", true}, {"DisaggregatedSetRoleScaler", "llm-prefill", false},
		{"Service", "llm-0-3f9a61c2-decode-prv", true}, {"Service", "llm-0-3f9a61c2-decode", true}, {"Service", "llm-prv", false},
		{"StatefulSet", "llm-0-3f9a61c2-decode-1", true}, {"StatefulSet", "llm-0-3f9a61c2-decode-big", true}, {"StatefulSet", "llm-0-3f9a61c2-decode-small", false},
		{"Pod", "llm-0-3f9a61c2-decode-1-2", true}, {"Pod", "llm-0-3f9a61c2-decode-big-1-2", true}, {"Pod", "llm-0-3f9a61c2-decode-big", false}, {"Pod", "llm-0-decode-1", false},
		{"PersistentVolumeClaim", "cache-llm-0-3f9a61c2-decode-1", true}, {"PersistentVolumeClaim", "other-llm-0-3f9a61c2-decode-1", false},
		{"PodGroup", "llm-0-3f9a61c2-decode-1-6859c84d69", true}, {"Workload", "leaderworkerset-llm-0-3f9a61c2-decode-0-1a2b3", true},
	} {
		if got := members.Has(tc.kind, tc.name); got != tc.want {
			t.Errorf("%s %s: got %v, want %v", tc.kind, tc.name, got, tc.want)
		}
	}
}
