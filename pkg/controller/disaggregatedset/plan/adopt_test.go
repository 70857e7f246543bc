// Copyright The jobset-apiserver Authors.
// SPDX-License-Identifier: Apache-2.0

package plan

import (
	"fmt"
	"strings"
	"testing"

	"github.com/google/go-cmp/cmp"
	corev1 "k8s.io/api/core/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/utils/ptr"

	disaggregatedsetv1 "github.com/jobset-apiserver/jobset-apiserver/pkg/apis/disaggregatedset/v1"
	leaderworkersetv1 "github.com/jobset-apiserver/jobset-apiserver/pkg/apis/leaderworkerset/v1"
)

// orphan returns the orphan that a child of the set llm is without its owner.
func orphan(kind OrphanKind, name string, slice int32) Orphan {
	return Orphan{Ref: Ref{Name: name, UID: "uid"}, Kind: kind, Set: "llm", Slice: slice}
}

// TestOrphanOf has the children of a set without their owner, and what is not like them.
func TestOrphanOf(t *testing.T) {
	lws := func() *leaderworkersetv1.LeaderWorkerSet {
		role := &service(2).Spec.Roles[0]
		return Creation{Name: "llm-1-a-prefill", Role: role, Slice: 1, Revision: "a", Replicas: 2}.Child(service(2))
	}
	published := func(c Child) *corev1.Service { return newService(service(2), c) }
	const setKey, roleKey, sliceKey = disaggregatedsetv1.SetNameLabelKey, disaggregatedsetv1.RoleLabelKey, disaggregatedsetv1.SliceLabelKey
	relabeled := func(key, value string) *leaderworkersetv1.LeaderWorkerSet {
		o := lws()
		if o.Labels[key] = value; value == "" {
			delete(o.Labels, key)
		}
		return o
	}
	early := relabeled(sliceKey, "")
	early.Name = "llm-a-prefill"
	owned, going, selective := lws(), lws(), published(inSlice(1, child("a", "prefill", 2)))
	owned.OwnerReferences = []metav1.OwnerReference{{UID: "other", Controller: ptr.To(true)}}
	going.DeletionTimestamp = ptr.To(metav1.Now())
	selective.Spec.Selector["app"] = "mine"
	balanced := published(inSlice(1, child("a", "prefill", 2)))
	balanced.Spec.ClusterIP = "10.0.0.1"
	renamed := scaler(3)
	renamed.Name = "llm-encode"
	for name, tc := range map[string]struct {
		object metav1.Object
		want   string
	}{
		"a LeaderWorkerSet":                       {lws(), "LeaderWorkerSet llm-1-a-prefill of llm, slice 1"},
		"a LeaderWorkerSet of an early version":   {early, "LeaderWorkerSet llm-a-prefill of llm, slice 0"},
		"a Service":                               {published(inSlice(1, child("a", "prefill", 2))), "Service llm-1-a-prefill-prv of llm, slice 1"},
		"a Service of an early version":           {published(legacy(child("a", "prefill", 2))), "Service llm-a-prefill-prv of llm, slice 0"},
		"a scaler":                                {scaler(3), "DisaggregatedSetRoleScaler llm-prefill of llm, slice 0"},
		"a child of another owner":                {owned, ""},
		"a child that is being deleted":           {going, ""},
		"a child without the label of the set":    {relabeled(setKey, ""), ""},
		"a child without the label of the role":   {relabeled(roleKey, ""), ""},
		"a child with the label of another role":  {relabeled(roleKey, "decode"), ""},
		"a child with the label of another set":   {relabeled(setKey, "other"), ""},
		"a child with the label of another slice": {relabeled(sliceKey, "2"), ""},
		"a child with a slice that is no number":  {relabeled(sliceKey, "x"), ""},
		"a child without the label of a revision": {relabeled(disaggregatedsetv1.RevisionLabelKey, ""), ""},
		"a Service with another selector":         {selective, ""},
		"a Service with an address":               {balanced, ""},
		"a scaler of another name":                {renamed, ""},
		"an object of another kind":               {&corev1.Pod{ObjectMeta: lws().ObjectMeta}, ""},
	} {
		t.Run(name, func(t *testing.T) {
			if refs := tc.object.GetOwnerReferences(); len(refs) > 0 && refs[0].UID == "set" {
				tc.object.SetOwnerReferences(nil)
			}
			got := ""
			if o := OrphanOf(tc.object); o != nil {
				got = fmt.Sprintf("%s %s of %s, slice %d", o.Kind, o.Name, o.Set, o.Slice)
			}
			if got != tc.want {
				t.Errorf("orphan %q, want %q", got, tc.want)
			}
		})
	}
}

// TestOrphansComeFirst checks that what depends on an orphan waits until it is adopted, and that nothing else does.
func TestOrphansComeFirst(t *testing.T) {
	twoSlices := func(ds *disaggregatedsetv1.DisaggregatedSet) { ds.Spec.Slices = ptr.To[int32](2) }
	checkDecisions(t, map[string]decision{
		"a LeaderWorkerSet in one of two slices": {
			change: twoSlices, obs: Observed{Orphans: []Orphan{orphan(OrphanLeaderWorkerSet, name(0, "prefill"), 0)}},
			want: []string{"adopt LeaderWorkerSet " + name(0, "prefill"), "create " + name(1, "prefill") + " 2", "create " + name(1, "decode") + " 2"},
		},
		"a LeaderWorkerSet of a role without its scaler": {
			change: scaledByOthers, obs: Observed{Orphans: []Orphan{orphan(OrphanLeaderWorkerSet, name(0, "prefill"), 0)}},
			want: []string{"adopt LeaderWorkerSet " + name(0, "prefill")},
		},
		"a scaler": {
			change: scaledByOthers, obs: Observed{Orphans: []Orphan{orphan(OrphanScaler, "llm-prefill", 0)}},
			want: []string{"adopt DisaggregatedSetRoleScaler llm-prefill"},
		},
		"a scaler of a role that nobody scales any more": {
			obs:  Observed{Orphans: []Orphan{orphan(OrphanScaler, "llm-prefill", 0)}},
			want: []string{"adopt DisaggregatedSetRoleScaler llm-prefill", "create " + name(0, "prefill") + " 2", "create " + name(0, "decode") + " 2"},
		},
		"a Service": {
			obs: Observed{
				Children: []Child{child(now, "prefill", 2), child(now, "decode", 1)}, Orphans: []Orphan{orphan(OrphanService, name(0, "prefill")+"-prv", 0)},
			},
			want: []string{"adopt Service " + name(0, "prefill") + "-prv", "create service " + name(0, "decode") + "-prv", "scale " + name(0, "decode") + " 1-2"},
		},
		"a LeaderWorkerSet of a slice that the set does not have": {
			obs: Observed{
				Children: []Child{child(now, "prefill", 2), child(now, "decode", 2)}, Services: services, Orphans: []Orphan{orphan(OrphanLeaderWorkerSet, name(4, "prefill"), 4)},
			},
			want: []string{"adopt LeaderWorkerSet " + name(4, "prefill")},
		},
	})
}

// TestAdoptionsAreReported has one event for all adoptions of a pass.
func TestAdoptionsAreReported(t *testing.T) {
	p := Plan{}
	var done []int
	for i := range 12 {
		p.Adopt = append(p.Adopt, Adoption{Orphan: orphan(OrphanService, fmt.Sprint("s", i), 0)})
		done = append(done, i)
	}
	got := events(Observed{Set: service(2)}, p, Results{Adopted: done})
	want := "Adopted Service s0, Service s1, Service s2, Service s3, Service s4, Service s5, Service s6, Service s7, Service s8, Service s9 and 2 more, which had no controller"
	if len(got) != 1 || got[0].Note != want || got[0].Reason != "AdoptedChild" {
		t.Error(cmp.Diff(want, fmt.Sprint(got)))
	}
	if got := events(Observed{Set: service(2)}, p, Results{Adopted: done[:1]}); len(got) != 1 || !strings.HasPrefix(got[0].Note, "Adopted Service s0, which") {
		t.Errorf("events %+v", got)
	}
}
