// Copyright The jobset-apiserver Authors.
// SPDX-License-Identifier: Apache-2.0

package tree

import (
	"encoding/json"
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
	"github.com/jobset-apiserver/jobset-apiserver/test/builders"
)

// rolesOf is a set with a role that runs in the current and in an earlier revision, and one whose LeaderWorkerSet does not exist.
func rolesOf(t *testing.T) *snapshot.Roles {
	t.Helper()
	set := &disaggregatedsetv1.DisaggregatedSet{ObjectMeta: metav1.ObjectMeta{Name: "llm", Namespace: builders.Namespace, UID: "llm", CreationTimestamp: ago(3 * time.Hour)}}
	for _, role := range []string{"prefill", "decode"} {
		set.Spec.Roles = append(set.Spec.Roles, disaggregatedsetv1.DisaggregatedRoleSpec{Name: role, Spec: builders.LeaderWorkerSet(role, 1, 2).Spec})
	}
	set.Status.Conditions = []metav1.Condition{{Type: "Progressing", Status: metav1.ConditionTrue, Reason: "RolloutInProgress", Message: "Not all roles are ready"}}
	revision, err := helper.Revision(set)
	if err != nil {
		t.Fatal(err)
	}
	var all []leaderworkersetv1.LeaderWorkerSet
	var sets []appsv1.StatefulSet
	var pods []corev1.Pod
	for _, of := range []string{revision, "earlier"} {
		g := newReplicasOf(1, 2, func(lws *leaderworkersetv1.LeaderWorkerSet) {
			lws.Name, lws.UID, lws.Labels = helper.SetName("llm", 0, of, "prefill"), types.UID("prefill-"+of), helper.Labels("llm", 0, of, "prefill")
			lws.OwnerReferences = []metav1.OwnerReference{*metav1.NewControllerRef(set, disaggregatedsetv1.SchemeGroupVersion.WithKind("DisaggregatedSet"))}
		})
		g.add(0, of)
		all, sets, pods = append(all, *g.set), append(sets, g.sets...), append(pods, g.pods...)
	}
	r := snapshot.AssembleRoles(set, all)
	r.Now = now
	r.AssembleChildren(sets, pods)
	return r
}

func TestRolesWithTheirGroups(t *testing.T) {
	r := rolesOf(t)
	want := `NAME STATE READY RESTARTS REVISION AGE NODE MESSAGE
disaggregatedset/llm Progressing 0/2 0 @REV 3h RolloutInProgress: Not all roles are ready
├─ leaderworkerset/llm-0-@REV-prefill Pending 0/1 0 new 3h
│ └─ group/0 Ready 2/2 0 @REV 60m of an earlier revision
│ ├─ pod/llm-0-@REV-prefill-0 Running 1/1 0 @REV 60m node-0
│ └─ pod/llm-0-@REV-prefill-0-1 Running 1/1 0 @REV 60m node-0
├─ leaderworkerset/llm-0-earlier-prefill Pending 0/1 0 new 3h of an earlier revision
│ └─ group/0 Ready 2/2 0 earlier 60m of an earlier revision
│ ├─ pod/llm-0-earlier-prefill-0 Running 1/1 0 earlier 60m node-0
│ └─ pod/llm-0-earlier-prefill-0-1 Running 1/1 0 earlier 60m node-0
└─ leaderworkerset/llm-0-@REV-decode Missing not created yet; ask ` + "`kubectl jobset why dset/llm`" + ` if this stays`
	same(t, strings.ReplaceAll(want, "@REV", r.Revision), newRoles(r).Lines(cli.Terminal{}, now, false))
}

func TestRolesAsData(t *testing.T) {
	r := rolesOf(t)
	data, err := json.Marshal(newRoles(r))
	if err != nil {
		t.Fatal(err)
	}
	for _, want := range []string{
		`"rolesReady":0,"roleCount":2`, `"revision":"` + r.Revision + `"`, `"role":"prefill","slice":0,"current":true,"name":"llm-0-` + r.Revision + `-prefill"`, `"current":false`,
		`"role":"decode","slice":0,"current":true,"name":"llm-0-` + r.Revision + `-decode"`,
	} {
		if !strings.Contains(string(data), want) {
			t.Errorf("%s is missing in %s", want, data)
		}
	}
}
