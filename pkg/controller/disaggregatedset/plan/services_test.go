// Copyright The jobset-apiserver Authors.
// SPDX-License-Identifier: Apache-2.0

package plan

import (
	"slices"
	"testing"

	"k8s.io/apimachinery/pkg/util/intstr"
	"k8s.io/utils/ptr"

	disaggregatedsetv1 "github.com/jobset-apiserver/jobset-apiserver/pkg/apis/disaggregatedset/v1"
	leaderworkersetv1 "github.com/jobset-apiserver/jobset-apiserver/pkg/apis/leaderworkerset/v1"
)

// What exists at the moment is not all that a decision depends on: groups restart, roles are at 0, and revisions go
// while their sizes are still needed.
func TestDecideBeyondWhatExists(t *testing.T) {
	checkDecisions(t, map[string]decision{
		"a scaler of a role of which two updates are under way": {
			change: scaledByOthers,
			obs: Observed{Children: []Child{
				annotated(child("a", "prefill", 2), 2), annotated(child("a", "decode", 1), 1), annotated(child("b", "prefill", 2), 2), annotated(child("b", "decode", 1), 1),
				child(now, "prefill", 1), unready(child(now, "decode", 1)),
			}, Services: append(slices.Clone(formerly), served(child("b", "prefill", 2)), served(child("b", "decode", 1)))},
			want: []string{"create scaler llm-prefill 4"},
		},
		"a scaler of a role whose last update had fewer groups": {
			change: scaledByOthers,
			obs: Observed{Children: []Child{
				annotated(child("a", "prefill", 0), 6), annotated(child("a", "decode", 0), 2), child(now, "prefill", 2), child(now, "decode", 2),
			}, Services: services},
			want: []string{"create scaler llm-prefill 2", "delete llm-0-a-decode Drained", "delete llm-0-a-prefill Drained"},
		},
		"a scaler of a role that is at 0 when it is updated": {
			change: func(ds *disaggregatedsetv1.DisaggregatedSet) {
				scaledByOthers(ds)
				ds.Spec.Roles[1].Spec.Replicas = ptr.To[int32](0)
			},
			obs: Observed{Children: []Child{child("a", "prefill", 0), child("a", "decode", 0)}},
			want: []string{
				"create scaler llm-prefill 0", "delete llm-0-a-decode Drained", "delete llm-0-a-prefill Drained", "create " + name(0, "prefill") + " 0", "create " + name(0, "decode") + " 0",
			},
		},
		"a scaler of a role whose LeaderWorkerSet is being deleted": {
			change: scaledByOthers,
			obs:    Observed{Children: []Child{going(child(now, "prefill", 5)), child(now, "decode", 2)}, Services: services},
			want:   []string{"create scaler llm-prefill 5"},
		},
		"a role at 0 keeps no revision from serving": {
			change: scaledByOthers,
			obs: Observed{
				Children: []Child{child(now, "prefill", 0), child(now, "decode", 2)}, Scalers: []*disaggregatedsetv1.DisaggregatedSetRoleScaler{scaler(0)},
				Services: []Service{served(child("a", "prefill", 0)), served(child("a", "decode", 0))},
			},
			want: []string{
				"delete service llm-0-a-prefill-prv", "delete service llm-0-a-decode-prv", "create service " + name(0, "prefill") + "-prv", "create service " + name(0, "decode") + "-prv",
			},
		},
		"an update while a role is at 0": {
			change: scaledByOthers,
			obs: Observed{
				Children: []Child{annotated(child("a", "prefill", 0), 0), annotated(child("a", "decode", 2), 2), child(now, "prefill", 0), child(now, "decode", 1)},
				Scalers:  []*disaggregatedsetv1.DisaggregatedSetRoleScaler{scaler(0)},
				Services: []Service{served(child("a", "prefill", 0)), served(child("a", "decode", 2))},
			},
			want: []string{
				"create service " + name(0, "prefill") + "-prv", "create service " + name(0, "decode") + "-prv", "scale llm-0-a-decode 2-1",
			},
		},
		"a role that nobody scales is not at 0 because its update begins": {
			change: scaledByOthers,
			obs: Observed{
				Children:     []Child{annotated(child("a", "prefill", 2), 2), annotated(child("a", "decode", 2), 2), child(now, "prefill", 0), child(now, "decode", 1)},
				TakenScalers: map[string]bool{"llm-prefill": true}, Services: formerly,
			},
			want: []string{"scale " + name(0, "prefill") + " 0-1"},
		},
		"Services of a former revision stay while one of its groups restarts": {
			obs: Observed{
				Children: []Child{annotated(unready(child("a", "prefill", 1)), 2), annotated(child("a", "decode", 1), 2), unready(child(now, "prefill", 2)), child(now, "decode", 2)},
				Services: formerly,
			},
		},
		"Services of a former revision stay while it may serve again": {
			obs: Observed{
				Children: []Child{annotated(unready(child("a", "prefill", 1)), 2), annotated(child("a", "decode", 1), 2), lagging(child(now, "prefill", 2)), child(now, "decode", 2)},
				Services: append(slices.Clone(services), formerly...),
			},
		},
		"a former revision that serves is published while the current one does not": {
			obs: Observed{
				Children: []Child{annotated(child("a", "prefill", 2), 2), annotated(child("a", "decode", 2), 2), unready(child(now, "prefill", 1)), unready(child(now, "decode", 1))},
			},
			want: []string{"create service llm-0-a-prefill-prv", "create service llm-0-a-decode-prv"},
		},
		"Services of former revisions go when the set is at 0": {
			change: func(ds *disaggregatedsetv1.DisaggregatedSet) {
				ds.Spec.Roles[0].Spec.Replicas, ds.Spec.Roles[1].Spec.Replicas = ptr.To[int32](0), ptr.To[int32](0)
			},
			obs: Observed{
				Children: []Child{child(now, "prefill", 0), child(now, "decode", 0)}, Services: append(slices.Clone(services), formerly...),
			},
			want: []string{"delete service llm-0-a-prefill-prv", "delete service llm-0-a-decode-prv"},
		},
		"the last step leaves a role that nobody scales as large as it was": {
			change: func(ds *disaggregatedsetv1.DisaggregatedSet) {
				scaledByOthers(ds)
				for i := range ds.Spec.Roles {
					ds.Spec.Roles[i].Spec.RolloutStrategy.RollingUpdateConfiguration = &leaderworkersetv1.RollingUpdateConfiguration{
						MaxUnavailable: ptr.To(intstr.FromInt32(1)), MaxSurge: ptr.To(intstr.FromInt32(0)),
					}
				}
			},
			obs: Observed{
				Children:     []Child{annotated(child("a", "prefill", 1), 3), annotated(child("a", "decode", 1), 3), child(now, "prefill", 2), child(now, "decode", 2)},
				TakenScalers: map[string]bool{"llm-prefill": true}, Services: services,
			},
			want: []string{"scale " + name(0, "prefill") + " 2-3", "scale llm-0-a-decode 1-0", "scale llm-0-a-prefill 1-0"},
		},
	})
}
