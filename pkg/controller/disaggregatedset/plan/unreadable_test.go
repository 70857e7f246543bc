// Copyright The jobset-apiserver Authors.
// SPDX-License-Identifier: Apache-2.0

package plan

import (
	"testing"

	"github.com/google/go-cmp/cmp"

	disaggregatedsetv1 "github.com/jobset-apiserver/jobset-apiserver/pkg/apis/disaggregatedset/v1"
)

// TestWhatIsUnknownStays: nothing is created, scaled, or deleted that depends on an object which cannot be read.
func TestWhatIsUnknownStays(t *testing.T) {
	two := func(ds *disaggregatedsetv1.DisaggregatedSet) { slices := int32(2); ds.Spec.Slices = &slices }
	nameless := Unreadable{Kind: OrphanLeaderWorkerSet, Name: "llm-0-a-prefill", Slice: AnySlice}
	decode := Unreadable{Kind: OrphanLeaderWorkerSet, Name: name(0, "decode"), Slice: 0, Role: "decode"}
	lostScaler := Unreadable{Kind: OrphanScaler, Name: "llm-prefill", Slice: AnySlice}
	rolling := []Child{child("a", "prefill", 2), child("a", "decode", 2), child(now, "prefill", 0), child(now, "decode", 0)}
	checkDecisions(t, map[string]decision{
		"a new set": {obs: Observed{Unreadable: []Unreadable{nameless}}},
		"a role that only seems to have another size": {obs: Observed{
			Children: []Child{child(now, "prefill", 2), child(now, "decode", 1)}, Services: services, Unreadable: []Unreadable{decode},
		}},
		"a rollout": {obs: Observed{Children: rolling, Services: formerly, Unreadable: []Unreadable{nameless}}},
		"a revision that only seems to be drained": {obs: Observed{
			Children: append([]Child{child("a", "decode", 0)}, rolling[2:]...), Unreadable: []Unreadable{nameless},
		}},
		"another slice goes on": {
			change: two,
			obs: Observed{
				Children: []Child{child(now, "prefill", 1), child(now, "decode", 2), inSlice(1, child(now, "prefill", 1)), inSlice(1, child(now, "decode", 2))},
				Services: append([]Service{served(inSlice(1, child(now, "prefill", 2))), served(inSlice(1, child(now, "decode", 2)))}, services...), Unreadable: []Unreadable{decode},
			},
			want: []string{"scale " + name(1, "prefill") + " 1-2"},
		},
		"a slice that should go": {obs: Observed{
			Children: []Child{child(now, "prefill", 2), child(now, "decode", 2), inSlice(1, child(now, "prefill", 2)), inSlice(1, child(now, "decode", 2))},
			Services: services, Unreadable: []Unreadable{{Kind: OrphanLeaderWorkerSet, Name: name(1, "decode"), Slice: 1, Role: "decode"}},
		}},
		"a scaler whose size is not known": {change: scaledByOthers, obs: Observed{
			Children: []Child{child(now, "prefill", 5), child(now, "decode", 1)}, Services: services, Unreadable: []Unreadable{lostScaler},
		}},
		"a scaler whose size is known from before": {change: scaledByOthers, obs: Observed{
			Children: []Child{child(now, "prefill", 5), child(now, "decode", 2)}, Services: services, Unreadable: []Unreadable{lostScaler},
			Scalers: []*disaggregatedsetv1.DisaggregatedSetRoleScaler{scaler(6)},
		}, want: []string{"scale " + name(0, "prefill") + " 5-6"}},
		"a scaler that is wanted no more, and that cannot be read": {obs: Observed{
			Children: []Child{child(now, "prefill", 2), child(now, "decode", 2)}, Services: services, Unreadable: []Unreadable{lostScaler},
			Scalers: []*disaggregatedsetv1.DisaggregatedSetRoleScaler{scaler(6)},
		}},
	})
}

// TestCountsOfAnUnreadableRoleStay: they are what was last known, and the set says what it waits for.
func TestCountsOfAnUnreadableRoleStay(t *testing.T) {
	ds := service(2)
	ds.Status.RoleStatuses = []disaggregatedsetv1.RoleStatus{{Name: "prefill", Replicas: 2}, {Name: "decode", Replicas: 2, ReadyReplicas: 2}}
	obs := Observed{Set: ds, Children: []Child{child(now, "prefill", 2), child(now, "decode", 0)}, Unreadable: []Unreadable{
		{Kind: OrphanLeaderWorkerSet, Name: "llm-b", Role: "decode", Cause: "damaged"}, {Kind: OrphanLeaderWorkerSet, Name: "llm-c", Role: "decode", Cause: "other"},
	}}
	out := Finish(obs, Decide(obs), Results{})
	want := []disaggregatedsetv1.RoleStatus{{Name: "prefill", Replicas: 2, ReadyReplicas: 2, UpdatedReplicas: 2}, {Name: "decode", Replicas: 2, ReadyReplicas: 2}}
	if diff := cmp.Diff(want, out.Status.RoleStatuses); diff != "" {
		t.Errorf("counts (-want +got):\n%s", diff)
	}
	message := "The server cannot read LeaderWorkerSet llm-b (and 1 more), so what depends on it stays as it is until an administrator repairs or removes it: damaged"
	if c := out.Status.Conditions[0]; c.Type != disaggregatedsetv1.ConditionProgressing || c.Reason != "ChildUnreadable" || c.Message != message {
		t.Errorf("condition %+v", c)
	}
}
