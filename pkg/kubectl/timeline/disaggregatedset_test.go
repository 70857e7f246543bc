// Copyright The jobset-apiserver Authors.
// SPDX-License-Identifier: Apache-2.0

package timeline

import (
	"bytes"
	"encoding/json"
	"fmt"
	"strings"
	"testing"
	"time"

	appsv1 "k8s.io/api/apps/v1"
	corev1 "k8s.io/api/core/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/types"

	disaggregatedsetv1 "github.com/jobset-apiserver/jobset-apiserver/pkg/apis/disaggregatedset/v1"
	"github.com/jobset-apiserver/jobset-apiserver/pkg/apis/disaggregatedset/v1/helper"
	leaderworkersetv1 "github.com/jobset-apiserver/jobset-apiserver/pkg/apis/leaderworkerset/v1"
	"github.com/jobset-apiserver/jobset-apiserver/pkg/kubectl/cli"
	"github.com/jobset-apiserver/jobset-apiserver/pkg/kubectl/snapshot"
	"github.com/jobset-apiserver/jobset-apiserver/test/golden"
)

// rollout is a set whose role decode runs in two revisions, with so many replicas of the current one, of which the last is not ready.
func rollout(groups int) *Roles {
	set := &disaggregatedsetv1.DisaggregatedSet{ObjectMeta: metav1.ObjectMeta{Name: "llm", Namespace: "team-a", UID: "llm", CreationTimestamp: metav1.NewTime(noon)}}
	for _, role := range []string{"prefill", "decode"} {
		set.Spec.Roles = append(set.Spec.Roles, disaggregatedsetv1.DisaggregatedRoleSpec{Name: role})
	}
	set.Status.Conditions = []metav1.Condition{{Type: "Progressing", Status: metav1.ConditionTrue, Reason: "RolloutInProgress"}}
	var all []leaderworkersetv1.LeaderWorkerSet
	var sets []appsv1.StatefulSet
	var pods []corev1.Pod
	add := func(revision, role string, groups int, created float64, ready ...float64) {
		g := newReplicasOf(int32(groups), func(lws *leaderworkersetv1.LeaderWorkerSet) {
			lws.Name = helper.SetName("llm", 0, revision, role)
			lws.UID, lws.Labels = types.UID(lws.Name), helper.Labels("llm", 0, revision, role)
			lws.OwnerReferences = []metav1.OwnerReference{*metav1.NewControllerRef(set, disaggregatedsetv1.SchemeGroupVersion.WithKind("DisaggregatedSet"))}
		})
		g.set.CreationTimestamp = metav1.NewTime(after(created))
		for i, second := range ready {
			g.group(i, newKey, created+5, second)
		}
		all, sets, pods = append(all, *g.set), append(sets, g.sets...), append(pods, g.pods...)
	}
	ready := make([]float64, groups)
	for i := range groups - 1 {
		ready[i] = float64(6000 + i)
	}
	add("00000001", "decode", 1, 1, 300)
	add("00000002", "prefill", 1, 5400, 5700)
	add("00000002", "decode", groups, 5400, ready...)
	r := snapshot.AssembleRoles(set, all)
	r.Revision, r.Now = "00000002", after(10800)
	r.AssembleChildren(sets, pods)
	return buildRoles(r)
}

func TestChartOfRoles(t *testing.T) {
	for name, groups := range map[string]int{"disaggregatedset": 2, "disaggregatedset-crowd": 40} {
		for _, width := range []int{60, 100} {
			got := text(rollout(groups), screen{Terminal: cli.Terminal{Width: width}, zone: time.UTC})
			for _, line := range strings.Split(got, "\n") {
				if cli.Columns(line) > width {
					t.Errorf("wider than %d columns: %q", width, line)
				}
			}
			golden.Compare(t, fmt.Sprintf("%s-%d.txt", name, width), got)
		}
	}
}

func TestRolesAsDataAndPage(t *testing.T) {
	roles := rollout(2)
	data, err := json.Marshal(roles)
	if err != nil {
		t.Fatal(err)
	}
	var page bytes.Buffer
	if err := Page(&page, roles, time.UTC); err != nil {
		t.Fatal(err)
	}
	for text, wants := range map[string][]string{
		string(data): {
			`"disaggregatedSet":"llm","namespace":"team-a","state":"Progressing"`, `"role":"prefill","slice":0,"current":true,"leaderWorkerSet":"llm-0-00000002-prefill"`,
			`"role":"decode","slice":0,"current":false,"leaderWorkerSet":"llm-0-00000001-decode"`,
		},
		page.String(): {"prefill 0", "0-00000002-decode 1", "0-00000001-decode 0"},
	} {
		for _, want := range wants {
			if !strings.Contains(text, want) {
				t.Errorf("%s is missing in %s", want, text)
			}
		}
	}
}
