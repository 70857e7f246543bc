// Copyright The jobset-apiserver Authors.
// SPDX-License-Identifier: Apache-2.0

package plan

import (
	"cmp"
	"fmt"
	"maps"
	"slices"

	corev1 "k8s.io/api/core/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"

	disaggregatedsetv1 "github.com/jobset-apiserver/jobset-apiserver/pkg/apis/disaggregatedset/v1"
	"github.com/jobset-apiserver/jobset-apiserver/pkg/apis/disaggregatedset/v1/helper"
	"github.com/jobset-apiserver/jobset-apiserver/pkg/apis/generic/reasons"
	leaderworkersetv1 "github.com/jobset-apiserver/jobset-apiserver/pkg/apis/leaderworkerset/v1"
	hostplan "github.com/jobset-apiserver/jobset-apiserver/pkg/controller/host/plan"
)

// OrphanKind is the kind of an orphan.
type OrphanKind string

// Kinds of orphans.
const (
	OrphanLeaderWorkerSet OrphanKind = "LeaderWorkerSet"
	OrphanService         OrphanKind = "Service"
	OrphanScaler          OrphanKind = "DisaggregatedSetRoleScaler"
)

// Orphan is an object without a controller that is made like a child of the set in its label: the set was deleted
// without its children, or the objects were restored from a backup without their owners.
type Orphan struct {
	Ref
	// Kind of the object.
	Kind OrphanKind
	// Set is the name of the set in its label.
	Set string
	// Slice is the slice in its labels; 0 for scalers.
	Slice int32
}

// Adoption is an orphan that gets the set as its controller.
type Adoption struct {
	Orphan
	// Owner is the set.
	Owner metav1.OwnerReference
}

// OrphanOf returns what decisions use of an object without a controller. It returns nil if the object has a controller,
// is being deleted, or lacks the labels or the name of a child of a set.
func OrphanOf(object metav1.Object) *Orphan {
	labels := object.GetLabels()
	orphan := &Orphan{Ref: Ref{Name: object.GetName(), UID: object.GetUID()}, Set: labels[disaggregatedsetv1.SetNameLabelKey]}
	like := Child{Role: labels[disaggregatedsetv1.RoleLabelKey], Revision: labels[disaggregatedsetv1.RevisionLabelKey]}
	if orphan.Set == "" || like.Role == "" || metav1.GetControllerOfNoCopy(object) != nil || object.GetDeletionTimestamp() != nil {
		return nil
	}
	want := ""
	if _, ok := object.(*disaggregatedsetv1.DisaggregatedSetRoleScaler); ok {
		orphan.Kind, want = OrphanScaler, helper.ScalerName(orphan.Set, like.Role)
	} else {
		like.Slice, like.Legacy = sliceOf(labels)
		orphan.Slice = like.Slice
		orphan.Kind, want = inSlices(object, orphan.Set, like)
	}
	if orphan.Name != want {
		return nil
	}
	return orphan
}

// inSlices returns the kind of a LeaderWorkerSet or of its Service, and the name that it has as a child of a set; empty
// if it cannot be one.
func inSlices(object metav1.Object, set string, like Child) (kind OrphanKind, name string) {
	if like.Slice < 0 || like.Revision == "" {
		return "", ""
	}
	name = helper.SetName(set, like.Slice, like.Revision, like.Role)
	if like.Legacy {
		name = legacyName(set, like.Revision, like.Role)
	}
	switch o := object.(type) {
	case *leaderworkersetv1.LeaderWorkerSet:
		return OrphanLeaderWorkerSet, name
	case *corev1.Service:
		if o.Spec.ClusterIP == corev1.ClusterIPNone && maps.Equal(o.Spec.Selector, serviceLabels(set, like)) {
			return OrphanService, helper.ServiceName(name)
		}
	}
	return "", ""
}

// legacyName is the name of a LeaderWorkerSet that early versions have made, which has no slice.
func legacyName(set, revision, role string) string {
	return fmt.Sprintf("%s-%s-%s", set, revision, role)
}

// adoptions returns the adoptions of all orphans. What the set needs no more, such as a former revision, is adopted
// like the rest, and then goes as it does in an update.
func adoptions(obs Observed) (list []Adoption) {
	for _, orphan := range obs.Orphans {
		owner := ownerReference(obs.Set)
		if orphan.Kind == OrphanScaler {
			owner = scalerOwner(obs.Set)
		}
		list = append(list, Adoption{orphan, owner})
	}
	slices.SortFunc(list, func(a, b Adoption) int { return cmp.Or(cmp.Compare(a.Kind, b.Kind), cmp.Compare(a.Name, b.Name)) })
	return list
}

// orphaned returns whether there is an orphan of a kind for which a function holds.
func (o *Observed) orphaned(kind OrphanKind, is func(Orphan) bool) bool {
	return slices.ContainsFunc(o.Orphans, func(orphan Orphan) bool { return orphan.Kind == kind && is(orphan) })
}

// awaits returns whether a slice waits until orphans are adopted, since what is created or scaled depends on what there
// is: on the LeaderWorkerSets of the slice, and on the scalers of roles.
func (s *slice) awaits() bool {
	if s.obs.orphaned(OrphanLeaderWorkerSet, func(o Orphan) bool { return o.Slice == s.index }) {
		return true
	}
	return slices.ContainsFunc(s.roles, func(r roleState) bool {
		return r.external && r.scaler == nil && s.obs.orphanedName(OrphanScaler, helper.ScalerName(s.obs.Set.Name, r.Name))
	})
}

// orphanedName returns whether there is an orphan of a kind and name.
func (o *Observed) orphanedName(kind OrphanKind, name string) bool {
	return o.orphaned(kind, func(orphan Orphan) bool { return orphan.Name == name })
}

// adopted returns the event about the adoptions of one pass.
func adopted(p Plan, which []int) Event {
	return Event{Type: corev1.EventTypeNormal, Reason: reasons.AdoptedChild, Action: actionAdopt, Note: hostplan.NoteAdopted(len(which),
		func(i int) string { return string(p.Adopt[which[i]].Kind) + " " + p.Adopt[which[i]].Name })}
}
