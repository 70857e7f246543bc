// Copyright The jobset-apiserver Authors.
// SPDX-License-Identifier: Apache-2.0

package plan

import (
	"fmt"
	"testing"

	"github.com/google/go-cmp/cmp"
	appsv1 "k8s.io/api/apps/v1"
	corev1 "k8s.io/api/core/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/utils/ptr"

	leaderworkersetv1 "github.com/jobset-apiserver/jobset-apiserver/pkg/apis/leaderworkerset/v1"
)

// childrenMade returns what a set of two groups, with a Service for each, is made of: its own children first.
func childrenMade(t *testing.T) (f *fixture, all []metav1.Object) {
	t.Helper()
	f = newFixture(t, 2, 3)
	f.Set.Spec.NetworkConfig = &leaderworkersetv1.NetworkConfig{SubdomainPolicy: ptr.To(leaderworkersetv1.SubdomainUniquePerReplica)}
	f.Revisions = append(f.Revisions[:0], f.revision(f.Set, 1))
	relabel(f)
	f.stabilize()
	s := look(f.Observed)
	rev, groups := s.rev, s.groups
	for _, service := range createServices(s).CreateServices {
		all = append(all, service)
	}
	for i := range groups {
		all = append(all, workerStatefulSet(f.Set, &groups[i]))
	}
	own := []metav1.Object{
		leaderStatefulSet(f.Set, rev.key, target{0, 2}), newRevision(f.Observed, f.Revisions[0].Data.Raw, rev.key, "").create,
		headlessService(f.Set, f.Set.Name, *metav1.NewControllerRef(f.Set, setKind), nil),
	}
	all = append(own, all...)
	for i, object := range all {
		object.SetUID(f.Set.UID + "/child")
		object.SetOwnerReferences(nil)
		object.SetCreationTimestamp(metav1.NewTime(f.Now.Add(0)))
		object.SetAnnotations(map[string]string{"number": fmt.Sprint(i)})
	}
	return f, all
}

// TestOrphansAreAdopted gives all children of a set that have lost their owner the owner that each would have been created with.
func TestOrphansAreAdopted(t *testing.T) {
	f, all := childrenMade(t)
	for _, object := range all {
		orphan := OrphanOf(object)
		if orphan == nil {
			t.Fatalf("%T %s is not taken for an orphan", object, object.GetName())
		}
		f.Orphans = append(f.Orphans, *orphan)
	}
	leaders := f.Observed.Workers
	f.Observed.Workers = nil
	var got []string
	for _, a := range Decide(f.Observed).Adopt {
		got = append(got, fmt.Sprintf("%s %s by %s %s", a.Kind, a.Name, a.Owner.Kind, a.Owner.UID))
	}
	want := []string{
		"ControllerRevision " + all[1].GetName() + " by LeaderWorkerSet set", "Service s by LeaderWorkerSet set", "Service s-0 by Pod s-0/1",
		"Service s-1 by Pod s-1/1", "StatefulSet s by LeaderWorkerSet set", "StatefulSet s-0 by Pod s-0/1", "StatefulSet s-1 by Pod s-1/1",
	}
	if diff := cmp.Diff(want, got); diff != "" {
		t.Error("adoptions (-want +got):\n" + diff)
	}
	f.Observed.Workers = leaders
	f.leader(0).Deleting = true
	for _, a := range Decide(f.Observed).Adopt {
		if a.Owner.Kind == "Pod" && (a.Kind == OrphanStatefulSet || a.Owner.UID == "s-0/1") {
			t.Errorf("%s %s is adopted by a pod that has workers, or is being deleted", a.Kind, a.Name)
		}
	}
}

// TestOthersAreNotAdopted has objects that are no children, or not those of the groups that exist.
func TestOthersAreNotAdopted(t *testing.T) {
	const leader, revision, service, groupService, workers = 0, 1, 2, 3, 5
	sts := func(object metav1.Object) *appsv1.StatefulSet { return object.(*appsv1.StatefulSet) }
	for name, c := range map[string]struct {
		of     int
		change func(object metav1.Object)
	}{
		"a StatefulSet that is controlled": {leader, func(o metav1.Object) {
			o.SetOwnerReferences([]metav1.OwnerReference{{UID: "another", Controller: ptr.To(true)}})
		}},
		"a StatefulSet that is being deleted": {leader, func(o metav1.Object) { o.SetDeletionTimestamp(&began) }},
		"a StatefulSet without the label":     {leader, func(o metav1.Object) { o.SetLabels(nil) }},
		"a StatefulSet of another selector":   {leader, func(o metav1.Object) { sts(o).Spec.Selector.MatchLabels["app"] = "x" }},
		"a StatefulSet of expressions": {leader, func(o metav1.Object) {
			sts(o).Spec.Selector.MatchExpressions = make([]metav1.LabelSelectorRequirement, 1)
		}},
		"a StatefulSet of another set":                  {leader, func(o metav1.Object) { o.GetLabels()[leaderworkersetv1.SetNameLabelKey] = "t" }},
		"workers of another group":                      {workers, func(o metav1.Object) { sts(o).Spec.Selector.MatchLabels[leaderworkersetv1.GroupKeyLabelKey] = "x" }},
		"workers of another revision":                   {workers, func(o metav1.Object) { o.GetLabels()[leaderworkersetv1.RevisionKey] = "old" }},
		"workers that are older than the leader":        {workers, func(o metav1.Object) { o.SetCreationTimestamp(metav1.NewTime(began.Add(-1e9))) }},
		"workers of a group that does not exist":        {workers, func(o metav1.Object) { o.SetName("s-7") }},
		"a Service with an address":                     {service, func(o metav1.Object) { o.(*corev1.Service).Spec.ClusterIP = "10.0.0.1" }},
		"a Service that selects more":                   {service, func(o metav1.Object) { o.(*corev1.Service).Spec.Selector["app"] = "x" }},
		"a Service of a group that does not exist":      {groupService, func(o metav1.Object) { o.SetName("s-7") }},
		"a revision of a StatefulSet":                   {revision, func(o metav1.Object) { o.(*appsv1.ControllerRevision).Data.Raw = []byte(`{"spec":{"template":{}}}`) }},
		"a revision that cannot be read":                {revision, func(o metav1.Object) { o.(*appsv1.ControllerRevision).Data.Raw = []byte(`[`) }},
		"a revision with another controller":            {revision, func(o metav1.Object) { o.SetOwnerReferences([]metav1.OwnerReference{{Controller: ptr.To(true)}}) }},
		"a Service of the name of a worker StatefulSet": {groupService, func(o metav1.Object) { delete(o.(*corev1.Service).Spec.Selector, leaderworkersetv1.GroupIndexLabelKey) }},
	} {
		t.Run(name, func(t *testing.T) {
			f, all := childrenMade(t)
			f.Observed.Workers = nil
			c.change(all[c.of])
			if orphan := OrphanOf(all[c.of]); orphan != nil {
				f.Orphans = append(f.Orphans, *orphan)
			}
			if p := Decide(f.Observed); len(p.Adopt) > 0 {
				t.Errorf("adopted: %+v", p.Adopt)
			}
		})
	}
}

// TestAdoptionOfTheLeaders adopts the StatefulSet of the leaders, and reports a name that is taken only if that fails.
func TestAdoptionOfTheLeaders(t *testing.T) {
	f, all := childrenMade(t)
	f.Orphans = []Orphan{*OrphanOf(all[0])}
	f.Leader, f.LeaderTaken, f.Leaders, f.Observed.Workers = nil, true, nil, nil
	p := Decide(f.Observed)
	if len(p.Adopt) != 1 || p.ApplyLeader != nil {
		t.Fatalf("adopted %+v, applied %v", p.Adopt, p.ApplyLeader)
	}
	reasons := func(r Results) (all []string) {
		for _, e := range Finish(f.Observed, p, r).Others {
			all = append(all, e.Reason+": "+e.Note)
		}
		return all
	}
	if diff := cmp.Diff([]string{"AdoptedChild: Adopted StatefulSet s, which had no controller"}, reasons(Results{Adopted: []int{0}})); diff != "" {
		t.Error("events (-want +got):\n" + diff)
	}
	want := []string{"FailedAdopt: Failed to adopt StatefulSet s: no"}
	if diff := cmp.Diff(want, reasons(Results{AdoptError: "Failed to adopt StatefulSet s: no"})); diff != "" {
		t.Error("events (-want +got):\n" + diff)
	}
}
