// Copyright The jobset-apiserver Authors.
// SPDX-License-Identifier: Apache-2.0

package plan

import (
	"cmp"
	"maps"
	"slices"

	appsv1 "k8s.io/api/apps/v1"
	corev1 "k8s.io/api/core/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"

	leaderworkersetv1 "github.com/jobset-apiserver/jobset-apiserver/pkg/apis/leaderworkerset/v1"
	"github.com/jobset-apiserver/jobset-apiserver/pkg/apis/leaderworkerset/v1/helper"
	hostplan "github.com/jobset-apiserver/jobset-apiserver/pkg/controller/host/plan"
)

// OrphanKind is the kind of an orphan.
type OrphanKind string

// Kinds of orphans.
const (
	OrphanStatefulSet OrphanKind = "StatefulSet"
	OrphanService     OrphanKind = "Service"
	OrphanRevision    OrphanKind = "ControllerRevision"
)

// Orphan is an object without a controller that is made like a child of the set in its label: the set was deleted
// without its children, or the objects were restored from a backup without their owners.
type Orphan struct {
	Ref
	// Kind of the object.
	Kind OrphanKind
	// Revision is the key of its revision; empty for Services.
	Revision string
	// Created is when it was created.
	Created metav1.Time
}

// LedBy returns whether a StatefulSet of workers belongs to the group of a leader pod that has its name.
func (o *Orphan) LedBy(leader *Pod) bool {
	return o.Revision == leader.Revision && !o.Created.Before(&leader.Created)
}

// Adoption is an orphan that gets a controller.
type Adoption struct {
	Orphan
	// Owner is the set, or a leader pod.
	Owner metav1.OwnerReference
}

// OrphanOf returns what decisions use of an object without a controller. It returns nil if the object has a controller,
// is not made like a child of the set in its label, or is being deleted.
func OrphanOf(object metav1.Object) *Orphan {
	set := object.GetLabels()[leaderworkersetv1.SetNameLabelKey]
	if set == "" || metav1.GetControllerOfNoCopy(object) != nil || object.GetDeletionTimestamp() != nil {
		return nil
	}
	kind, like := OrphanKind(""), false
	switch o := object.(type) {
	case *appsv1.StatefulSet:
		kind, like = OrphanStatefulSet, likeStatefulSet(o, set)
	case *corev1.Service:
		kind, like = OrphanService, likeService(o, set)
	case *appsv1.ControllerRevision:
		kind, like = OrphanRevision, helper.IsRevision(o.Data.Raw)
	}
	if !like {
		return nil
	}
	return &Orphan{
		Ref: Ref{Name: object.GetName(), UID: object.GetUID()}, Kind: kind, Revision: object.GetLabels()[leaderworkersetv1.RevisionKey],
		Created: object.GetCreationTimestamp(),
	}
}

// likeStatefulSet returns whether a StatefulSet selects the leader pods of a set, or the workers of one group of it.
func likeStatefulSet(sts *appsv1.StatefulSet, set string) bool {
	if sts.Spec.Selector == nil || len(sts.Spec.Selector.MatchExpressions) > 0 {
		return false
	}
	labels := sts.Spec.Selector.MatchLabels
	if sts.Name == set {
		return maps.Equal(labels, map[string]string{leaderworkersetv1.SetNameLabelKey: set, leaderworkersetv1.WorkerIndexLabelKey: "0"})
	}
	parent, index := helper.ParentAndOrdinal(sts.Name)
	_, grouped := labels[leaderworkersetv1.GroupIndexLabelKey]
	return index >= 0 && parent == set && len(labels) == 3 && grouped && labels[leaderworkersetv1.SetNameLabelKey] == set &&
		labels[leaderworkersetv1.GroupKeyLabelKey] == helper.GroupKey(sts.Namespace, sts.Name)
}

// likeService returns whether a Service is headless and selects the pods of a set, or those of one group of it.
func likeService(service *corev1.Service, set string) bool {
	selector := service.Spec.Selector
	if service.Spec.ClusterIP != corev1.ClusterIPNone || selector[leaderworkersetv1.SetNameLabelKey] != set {
		return false
	}
	if service.Name == set {
		return len(selector) == 1
	}
	parent, index := helper.ParentAndOrdinal(service.Name)
	_, grouped := selector[leaderworkersetv1.GroupIndexLabelKey]
	return index >= 0 && parent == set && len(selector) == 2 && grouped
}

// adopt gives orphans the controller that would have created them. Workers that are older than the leader pod of their
// name, or of another revision, belong to another group, and stay as they are.
func adopt(s *snapshot) (p Plan) {
	if len(s.Orphans) == 0 {
		return p
	}
	leaders := make(map[string]*group, len(s.groups))
	for i := range s.groups {
		leaders[s.groups[i].leader.Name] = &s.groups[i]
	}
	inOrder := func(a, b Orphan) int { return cmp.Or(cmp.Compare(a.Kind, b.Kind), cmp.Compare(a.Name, b.Name)) }
	for _, orphan := range slices.SortedFunc(slices.Values(s.Orphans), inOrder) {
		owner, found := ownerOf(s.Set, orphan, leaders)
		switch {
		case !found:
		case len(p.Adopt) == maxGroupWrites:
			p.More = true
			return p
		default:
			p.Adopt = append(p.Adopt, Adoption{orphan, owner})
		}
	}
	return p
}

// ownerOf returns what would have created an orphan, if it is there.
func ownerOf(set *leaderworkersetv1.LeaderWorkerSet, orphan Orphan, leaders map[string]*group) (owner metav1.OwnerReference, found bool) {
	if orphan.Name == set.Name || orphan.Kind == OrphanRevision {
		return *metav1.NewControllerRef(set, setKind), true
	}
	g := leaders[orphan.Name]
	switch {
	case g == nil || g.leader.Deleting:
		return owner, false
	case orphan.Kind == OrphanStatefulSet && (g.workers != nil || g.size == 1 || !orphan.LedBy(g.leader)):
		return owner, false
	}
	return leaderReference(g.leader), true
}

// adoptions returns the events about adoptions.
func (p *Plan) adoptions(r Results) (out []Event) {
	if len(r.Adopted) > 0 {
		out = append(out, p.adopted(r.Adopted))
	}
	if r.AdoptError != "" {
		out = append(out, Event{Type: corev1.EventTypeWarning, Reason: reasonFailedAdopt, Action: ActionUpdate, Note: r.AdoptError})
	}
	return out
}

// adopted is the event about the adoptions of one pass.
func (p *Plan) adopted(which []int) Event {
	return Event{Type: corev1.EventTypeNormal, Reason: reasonAdoptedChild, Action: ActionUpdate, Note: hostplan.NoteAdopted(len(which),
		func(i int) string { return string(p.Adopt[which[i]].Kind) + " " + p.Adopt[which[i]].Name })}
}

// adopts returns whether the plan adopts the StatefulSet of the leaders.
func (p *Plan) adopts(set string) bool {
	for i := range p.Adopt {
		if p.Adopt[i].Kind == OrphanStatefulSet && p.Adopt[i].Name == set {
			return true
		}
	}
	return false
}
