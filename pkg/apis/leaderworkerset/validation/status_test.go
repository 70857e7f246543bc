// Copyright The jobset-apiserver Authors.
// SPDX-License-Identifier: Apache-2.0

package validation_test

import (
	"fmt"
	"strings"
	"testing"

	"github.com/google/go-cmp/cmp"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/types"
	"k8s.io/utils/ptr"

	"github.com/jobset-apiserver/jobset-apiserver/pkg/apis/jobset"
	"github.com/jobset-apiserver/jobset-apiserver/pkg/apis/leaderworkerset"
	"github.com/jobset-apiserver/jobset-apiserver/pkg/apis/leaderworkerset/validation"
)

func TestStatus(t *testing.T) {
	type status = leaderworkerset.LeaderWorkerSetStatus
	condition := metav1.Condition{Type: "Available", Status: metav1.ConditionTrue, Reason: "AllGroupsReady", LastTransitionTime: metav1.Now()}
	bad := condition
	bad.Status, bad.Reason = "Maybe", "no reason"
	leaders := make([]types.UID, validation.MaxRestartLeaders+1)
	for i := range leaders {
		leaders[i] = types.UID(fmt.Sprint(i))
	}
	restart := func(r leaderworkerset.RequestedRestart) status { return status{Restart: &r} }
	for name, tc := range map[string]struct {
		status status
		want   []string
	}{
		"nothing":                   {},
		"what a controller writes":  {status: status{Conditions: []metav1.Condition{condition}, Replicas: 2, ReadyReplicas: 2, UpdatedReplicas: 2, HPAPodSelector: "a=b", ObservedGeneration: 1}},
		"a bad condition":           {status{Conditions: []metav1.Condition{bad}}, append(unsupported("status.conditions[0].status"), invalid("status.conditions[0].reason")...)},
		"two conditions of a type":  {status{Conditions: []metav1.Condition{condition, condition}}, []string{"FieldValueDuplicate status.conditions[1]"}},
		"101 conditions":            {status{Conditions: make([]metav1.Condition, 101)}, []string{"FieldValueTooMany status.conditions"}},
		"negative counts":           {status{Replicas: -1, ReadyReplicas: -1, UpdatedReplicas: -1, ObservedGeneration: -1}, invalid("status.readyReplicas", "status.updatedReplicas", "status.replicas", "status.observedGeneration")},
		"a selector that is long":   {status{HPAPodSelector: strings.Repeat("a", 1025)}, []string{"FieldValueTooLong status.hpaPodSelector"}},
		"1001 groups":               {status{Groups: make([]leaderworkerset.GroupStatus, 1001)}, []string{"FieldValueTooMany status.groups"}},
		"a group twice":             {status{Groups: make([]leaderworkerset.GroupStatus, 2)}, []string{"FieldValueDuplicate status.groups[1]"}},
		"a group with bad values":   {status{Groups: []leaderworkerset.GroupStatus{{Index: -1, Restarts: -1, RestartsInRow: -1, RestartedLeader: types.UID(strings.Repeat("a", 129)), FirstCause: &jobset.FailureCause{}}}}, append(invalid("status.groups[0].index", "status.groups[0].restarts", "status.groups[0].restartsInRow"), "FieldValueTooLong status.groups[0].restartedLeader", "FieldValueRequired status.groups[0].firstCause.job")},
		"a restart":                 {status: restart(leaderworkerset.RequestedRestart{Groups: []int32{0, 3}, Leaders: []types.UID{"a", "b"}})},
		"a restart with < 0 left":   {restart(leaderworkerset.RequestedRestart{GroupsLeft: ptr.To[int32](-1)}), invalid("status.restart.groupsLeft")},
		"a restart of a group < 0":  {restart(leaderworkerset.RequestedRestart{Groups: []int32{-1}}), invalid("status.restart.groups[0]")},
		"a restart with duplicates": {restart(leaderworkerset.RequestedRestart{Groups: []int32{1, 1}, Leaders: []types.UID{"a", "a"}}), []string{"FieldValueDuplicate status.restart.groups[1]", "FieldValueDuplicate status.restart.leaders[1]"}},
		"a restart of too many":     {restart(leaderworkerset.RequestedRestart{Groups: make([]int32, 1001), Leaders: leaders}), []string{"FieldValueTooMany status.restart.groups", "FieldValueTooMany status.restart.leaders"}},
		"an unknown action":         {status{LastAction: &leaderworkerset.LastAction{Action: "Delete", Group: ptr.To[int32](-1), Revision: -1}}, append(unsupported("status.lastAction.action"), invalid("status.lastAction.group", "status.lastAction.revision")...)},
		"texts that are too long":   {status{LastAction: &leaderworkerset.LastAction{Action: "Pause", User: strings.Repeat("a", 257), Reason: strings.Repeat("ä", 1025)}}, []string{"FieldValueTooLong status.lastAction.user", "FieldValueTooLong status.lastAction.reason"}},
	} {
		t.Run(name, func(t *testing.T) {
			old, next := merged(t, ""), merged(t, "")
			next.Status = tc.status
			if diff := cmp.Diff(tc.want, kinds(validation.ValidateLeaderWorkerSetStatusUpdate(next, old))); diff != "" {
				t.Errorf("errors (-want +got):\n%s", diff)
			}
			if errs := validation.ValidateLeaderWorkerSetStatusUpdate(next, next.DeepCopy()); len(errs) > 0 {
				t.Errorf("what is stored already is refused: %v", errs)
			}
		})
	}
}
