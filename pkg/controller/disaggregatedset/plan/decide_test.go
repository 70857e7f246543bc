// Copyright The jobset-apiserver Authors.
// SPDX-License-Identifier: Apache-2.0

package plan

import (
	"fmt"
	"slices"
	"testing"

	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/utils/ptr"

	disaggregatedsetv1 "github.com/jobset-apiserver/jobset-apiserver/pkg/apis/disaggregatedset/v1"
	"github.com/jobset-apiserver/jobset-apiserver/pkg/apis/disaggregatedset/v1/helper"
)

// service returns a set with the roles prefill and decode, each of so many groups.
func service(replicas int32) *disaggregatedsetv1.DisaggregatedSet {
	ds := &disaggregatedsetv1.DisaggregatedSet{ObjectMeta: metav1.ObjectMeta{Name: "llm", Namespace: "ml", UID: "set", Generation: 1}}
	for _, name := range []string{"prefill", "decode"} {
		role := disaggregatedsetv1.DisaggregatedRoleSpec{Name: name}
		role.Spec.Replicas = ptr.To(replicas)
		ds.Spec.Roles = append(ds.Spec.Roles, role)
	}
	return ds
}

func revisionOf(t *testing.T, ds *disaggregatedsetv1.DisaggregatedSet) string {
	t.Helper()
	revision, err := helper.Revision(ds)
	if err != nil {
		t.Fatal(err)
	}
	return revision
}

// child returns a LeaderWorkerSet of slice 0 all of whose groups are ready.
func child(revision, role string, replicas int32) Child {
	name := helper.SetName("llm", 0, revision, role)
	return Child{
		Ref: Ref{Name: name, UID: "uid"}, Revision: revision, Role: role, Replicas: replicas, Current: replicas, Ready: replicas, Updated: replicas,
	}
}

// writes lists what a plan writes.
func writes(p Plan) (list []string) {
	add := func(format string, args ...any) { list = append(list, fmt.Sprintf(format, args...)) }
	for _, a := range p.Adopt {
		add("adopt %s %s", a.Kind, a.Name)
	}
	for _, s := range p.CreateScalers {
		add("create scaler %s %d", s.Name, s.Spec.Replicas)
	}
	for _, s := range p.DeleteScalers {
		add("delete scaler %s", s.Name)
	}
	for _, s := range p.Slices {
		for _, ref := range s.DeleteServices {
			add("delete service %s", ref.Name)
		}
		for _, d := range s.DeleteChildren {
			add("delete %s %s", d.Name, d.Reason)
		}
		for _, a := range s.Annotate {
			add("annotate %s %d", a.Name, ptr.Deref(a.Initial, -1))
		}
		for _, c := range s.Create {
			add("create %s %d", c.Name, c.Replicas)
		}
		for _, c := range s.Scale {
			add("scale %s %d-%d", c.Name, c.From, c.To)
		}
		for _, c := range s.CreateServices {
			add("create service %s", c.Name)
		}
	}
	return list
}

func TestDecide(t *testing.T) {
	checkDecisions(t, map[string]decision{
		"a new set": {want: []string{"create " + name(0, "prefill") + " 2", "create " + name(0, "decode") + " 2"}},
		"two slices": {
			change: func(ds *disaggregatedsetv1.DisaggregatedSet) { ds.Spec.Slices = ptr.To[int32](2) },
			want: []string{
				"create " + name(0, "prefill") + " 2", "create " + name(0, "decode") + " 2",
				"create " + name(1, "prefill") + " 2", "create " + name(1, "decode") + " 2",
			},
		},
		"at rest":   {obs: Observed{Children: []Child{child(now, "prefill", 2), child(now, "decode", 2)}, Services: services}},
		"not ready": {obs: Observed{Children: []Child{child(now, "prefill", 2), unready(child(now, "decode", 2))}}},
		"ready": {
			obs:  Observed{Children: []Child{child(now, "prefill", 2), child(now, "decode", 2)}},
			want: []string{"create service " + name(0, "prefill") + "-prv", "create service " + name(0, "decode") + "-prv"},
		},
		"scaled": {
			obs:  Observed{Children: []Child{child(now, "prefill", 1), child(now, "decode", 3)}, Services: services},
			want: []string{"scale " + name(0, "prefill") + " 1-2", "scale " + name(0, "decode") + " 3-2"},
		},
		"a child is missing": {
			obs:  Observed{Children: []Child{child(now, "prefill", 2)}, Services: services},
			want: []string{"create " + name(0, "decode") + " 2"},
		},
		"a child is being deleted": {
			obs: Observed{Children: []Child{child(now, "prefill", 2), {Ref: Ref{Name: name(0, "decode")}, Role: "decode", Revision: now, Deleting: true}}, Services: services},
		},
		"a slice is removed": {
			obs: Observed{
				Children: []Child{child(now, "prefill", 2), child(now, "decode", 2), inSlice(1, child(now, "prefill", 2))},
				Services: append(slices.Clone(services), served(inSlice(1, child(now, "prefill", 2)))),
			},
			want: []string{"delete service " + name(1, "prefill") + "-prv", "delete " + name(1, "prefill") + " SliceRemoved"},
		},
		"a rollout begins": {
			obs:  Observed{Children: []Child{child("a", "prefill", 2), annotated(child("a", "decode", 2), 7)}, Services: formerly},
			want: []string{"annotate llm-0-a-decode 2", "annotate llm-0-a-prefill 2"},
		},
		"all are annotated": {
			obs:  Observed{Children: []Child{annotated(child("a", "prefill", 2), 2), annotated(child("a", "decode", 2), 2)}, Services: formerly},
			want: []string{"create " + name(0, "prefill") + " 0", "create " + name(0, "decode") + " 0"},
		},
		"the first step": {
			obs: Observed{Children: []Child{
				annotated(child("a", "prefill", 2), 2), annotated(child("a", "decode", 2), 2), child(now, "prefill", 0), child(now, "decode", 0),
			}, Services: formerly},
			want: []string{"scale " + name(0, "decode") + " 0-1", "scale " + name(0, "prefill") + " 0-1"},
		},
		"a step waits": {
			obs: Observed{Children: []Child{
				annotated(child("a", "prefill", 2), 2), annotated(child("a", "decode", 2), 2), unready(child(now, "prefill", 1)), child(now, "decode", 1),
			}, Services: formerly},
		},
		"former revisions are drained newest first": {
			obs: Observed{Children: []Child{
				created(annotated(child("a", "prefill", 1), 1), 1), created(annotated(child("a", "decode", 1), 1), 1),
				created(annotated(child("b", "prefill", 1), 1), 2), created(annotated(child("b", "decode", 1), 1), 2),
				child(now, "prefill", 1), child(now, "decode", 1),
			}, Services: services},
			want: []string{"scale llm-0-b-prefill 1-0", "scale llm-0-b-decode 1-0"},
		},
		"drained revisions are deleted": {
			obs: Observed{
				Children: []Child{child("a", "prefill", 0), child("a", "decode", 0), child(now, "prefill", 2), child(now, "decode", 2)},
				Services: append(slices.Clone(services), served(child("a", "prefill", 0))),
			},
			want: []string{"delete service llm-0-a-prefill-prv", "delete llm-0-a-decode Drained", "delete llm-0-a-prefill Drained"},
		},
		"former Services stay until the current revision is ready": {
			obs: Observed{
				Children: []Child{annotated(child("a", "prefill", 2), 2), annotated(child("a", "decode", 2), 2), unready(child(now, "prefill", 1)), unready(child(now, "decode", 1))},
				Services: []Service{served(child("a", "prefill", 2)), served(child("a", "decode", 2))},
			},
		},
		"a way back": {
			obs: Observed{Children: []Child{
				annotated(child(now, "prefill", 1), 2), annotated(child(now, "decode", 1), 2), child("b", "prefill", 1), child("b", "decode", 1),
			}, Services: services},
			want: []string{
				"annotate " + name(0, "prefill") + " -1", "annotate " + name(0, "decode") + " -1", "annotate llm-0-b-decode 1", "annotate llm-0-b-prefill 1",
			},
		},
		"children of early versions stay": {
			obs: Observed{
				Children: []Child{legacy(child(now, "prefill", 2)), legacy(child(now, "decode", 2))},
				Services: []Service{served(legacy(child(now, "prefill", 2))), served(legacy(child(now, "decode", 2)))},
			},
		},
		"children of early versions are migrated": {
			change: func(ds *disaggregatedsetv1.DisaggregatedSet) { ds.Spec.Slices = ptr.To[int32](2) },
			obs: Observed{
				Children: []Child{legacy(child(now, "prefill", 2)), inSlice(1, child(now, "prefill", 2)), inSlice(1, child(now, "decode", 2))},
				Services: []Service{
					served(legacy(child(now, "prefill", 2))), served(inSlice(1, child(now, "prefill", 2))), served(inSlice(1, child(now, "decode", 2))),
				},
			},
			want: []string{"delete service llm-" + now + "-prefill-prv", "delete llm-" + now + "-prefill Migrated"},
		},
		"a child whose slice nobody can say": {
			obs: Observed{
				Children: []Child{child(now, "prefill", 2), child(now, "decode", 2), {Ref: Ref{Name: "odd"}, Slice: -1, Revision: now, Role: "prefill", Replicas: 5}},
				Services: services,
			},
		},
		"a scaler of a new role": {
			change: scaledByOthers,
			want:   []string{"create scaler llm-prefill 1", "create " + name(0, "prefill") + " 1", "create " + name(0, "decode") + " 2"},
		},
		"a scaler of a role that runs": {
			change: scaledByOthers,
			obs:    Observed{Children: []Child{child(now, "prefill", 5), child(now, "decode", 2)}, Services: services},
			want:   []string{"create scaler llm-prefill 5"},
		},
		"a scaler of a role that runs in slices, of which one stays": {
			change: scaledByOthers,
			obs:    Observed{Children: []Child{child(now, "prefill", 2), inSlice(1, child(now, "prefill", 2)), inSlice(2, child(now, "prefill", 3)), child(now, "decode", 2)}, Services: services},
			want:   []string{"create scaler llm-prefill 2", "delete " + name(1, "prefill") + " SliceRemoved", "delete " + name(2, "prefill") + " SliceRemoved"},
		},
		"a scaler of a role that is being updated": {
			change: scaledByOthers,
			obs:    Observed{Children: []Child{annotated(child("old", "prefill", 1), 4), annotated(child("old", "decode", 1), 2), child(now, "prefill", 3), child(now, "decode", 1)}, Services: services},
			want:   []string{"create scaler llm-prefill 4", "scale " + name(0, "decode") + " 1-2"},
		},
		"a scaler decides": {
			change: scaledByOthers,
			obs:    Observed{Children: []Child{child(now, "prefill", 5), child(now, "decode", 2)}, Services: services, Scalers: []*disaggregatedsetv1.DisaggregatedSetRoleScaler{scaler(3)}},
			want:   []string{"scale " + name(0, "prefill") + " 5-3"},
		},
		"a scaler of somebody else": {
			change: scaledByOthers,
			obs:    Observed{Children: []Child{child(now, "prefill", 5), child(now, "decode", 2)}, Services: services, TakenScalers: map[string]bool{"llm-prefill": true}},
		},
		"a scaler that is no longer wanted": {
			obs: Observed{
				Children: []Child{child(now, "prefill", 2), child(now, "decode", 2)}, Services: services, Scalers: []*disaggregatedsetv1.DisaggregatedSetRoleScaler{scaler(2)},
			},
			want: []string{"delete scaler llm-prefill"},
		},
		"fewer groups of a scaled role wait for the end of a rollout": {
			change: scaledByOthers,
			obs: Observed{
				Children: []Child{
					annotated(child("a", "prefill", 1), 3), annotated(child("a", "decode", 1), 2), child(now, "prefill", 3), child(now, "decode", 2),
				},
				Services: services, Scalers: []*disaggregatedsetv1.DisaggregatedSetRoleScaler{scaler(1)},
			},
			want: []string{"scale llm-0-a-decode 1-0", "scale llm-0-a-prefill 1-0"},
		},
		"a set that is being deleted": {
			change: func(ds *disaggregatedsetv1.DisaggregatedSet) { ds.DeletionTimestamp = ptr.To(metav1.Now()) },
		},
	})
}
