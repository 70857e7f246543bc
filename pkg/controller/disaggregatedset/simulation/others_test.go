// Copyright The jobset-apiserver Authors.
// SPDX-License-Identifier: Apache-2.0

package simulation

import (
	"slices"
	"strings"
	"time"

	corev1 "k8s.io/api/core/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/utils/ptr"

	disaggregatedsetv1 "github.com/jobset-apiserver/jobset-apiserver/pkg/apis/disaggregatedset/v1"
	"github.com/jobset-apiserver/jobset-apiserver/pkg/apis/disaggregatedset/v1/helper"
	leaderworkersetv1 "github.com/jobset-apiserver/jobset-apiserver/pkg/apis/leaderworkerset/v1"
	"github.com/jobset-apiserver/jobset-apiserver/pkg/controller/disaggregatedset/plan"
	"github.com/jobset-apiserver/jobset-apiserver/test/simulation"
)

// This file holds the objects of others, and the objects that have lost their owner, which look alike.

// ruleAdopted is about objects that nothing controls and that are made like children. Nothing else is.
const ruleAdopted = "what nothing controls, and is made like a child, is adopted, and nothing else is"

// othersAct lets another owner take a name that the set needs, or give it back.
func (e *env) othersAct() {
	ds := e.set()
	if e.Dice.Percent(40) || ds == nil {
		e.removeOthers(func() bool { return e.Dice.Percent(60) })
		return
	}
	role := simulation.OneOf(e.Dice, ds.Spec.Roles...).Name
	revision, err := helper.Revision(ds)
	if err != nil {
		panic(err)
	}
	child := helper.SetName(name, e.Dice.Int32N(helper.Slices(ds)), revision, role)
	meta := metav1.ObjectMeta{Namespace: namespace, Labels: simulation.OneOf(e.Dice, nil, helper.Labels(name, 0, revision, role))}
	switch e.Dice.IntN(3) {
	case 0:
		meta.OwnerReferences = e.anotherOwner()
	case 1: // as if a user had copied a part of the labels
		meta.Labels = map[string]string{disaggregatedsetv1.SetNameLabelKey: name}
	}
	e.Seen["objects of others"]++
	switch meta.Name = child; e.Dice.IntN(3) {
	case 0:
		if _, taken := e.children.Store.Get(child); !taken {
			e.Note("somebody else creates the leaderworkerset %s", child)
			lws := &leaderworkersetv1.LeaderWorkerSet{ObjectMeta: meta, Spec: *ds.Spec.Roles[0].Spec.DeepCopy()}
			e.children.Create(lws)
		}
	case 1:
		if meta.Name = helper.ServiceName(child); !has(&e.services.Store, meta.Name) {
			e.Note("somebody else creates the service %s", meta.Name)
			e.services.Create(&corev1.Service{ObjectMeta: meta})
		}
	default:
		if meta.Name = helper.ScalerName(name, role); !has(&e.scalers.Store, meta.Name) {
			e.Note("somebody else creates the scaler %s", meta.Name)
			e.scalers.Create(&disaggregatedsetv1.DisaggregatedSetRoleScaler{ObjectMeta: meta})
		}
	}
}

func has[T metav1.Object](s *simulation.Store[T], name string) bool {
	_, found := s.Get(name)
	return found
}

// removeOthers removes objects that no DisaggregatedSet controls, and that none is to adopt.
func (e *env) removeOthers(this func() bool) {
	removeUnowned(e, e.children, this)
	removeUnowned(e, e.services, this)
	removeUnowned(e, e.scalers, this)
}

func removeUnowned[T simulation.Object](e *env, of *simulation.Resource[T], this func() bool) {
	for _, object := range slices.Clone(of.Objects) {
		if !ownedBySet(object) && !e.adoptable(object) && this() {
			e.Note("the %s of somebody else named %s is gone", of.Kind, object.GetName())
			of.Delete(object, metav1.DeletePropagationBackground)
		}
	}
}

// anotherOwner returns the reference to an object of another kind that controls objects of others.
func (e *env) anotherOwner() []metav1.OwnerReference {
	owner, found := e.others.Store.Get("other")
	if !found {
		owner = e.others.Create(&corev1.ConfigMap{ObjectMeta: metav1.ObjectMeta{Name: "other", Namespace: namespace}})
	}
	return []metav1.OwnerReference{{APIVersion: "v1", Kind: "ConfigMap", Name: owner.Name, UID: owner.UID, Controller: ptr.To(true)}}
}

// childLike returns whether an object has the labels, the name and the selector of a child of the set.
func childLike(object metav1.Object) bool {
	labels := object.GetLabels()
	role := labels[disaggregatedsetv1.RoleLabelKey]
	if labels[disaggregatedsetv1.SetNameLabelKey] != name || role == "" {
		return false
	}
	child := strings.Join([]string{name, labels[disaggregatedsetv1.SliceLabelKey], labels[disaggregatedsetv1.RevisionLabelKey], role}, "-")
	switch o := object.(type) {
	case leaderWorkerSet:
		return o.Name == child
	case service:
		return o.Name == child+"-prv" && o.Spec.ClusterIP == corev1.ClusterIPNone && len(o.Spec.Selector) == 4
	}
	return object.GetName() == name+"-"+role
}

// adoptable returns whether the set should adopt an object. Without a set, a user may remove the object.
func (e *env) adoptable(object metav1.Object) bool {
	ds := e.set()
	return ds != nil && ds.DeletionTimestamp == nil && len(object.GetOwnerReferences()) == 0 && object.GetDeletionTimestamp() == nil && childLike(object)
}

// orphans returns the objects that the set is to adopt.
func (e *env) orphans() (list []metav1.Object) {
	list = adoptableOf(e, list, e.children.Objects)
	list = adoptableOf(e, list, e.services.Objects)
	return adoptableOf(e, list, e.scalers.Objects)
}

func adoptableOf[T metav1.Object](e *env, list []metav1.Object, objects []T) []metav1.Object {
	for _, object := range objects {
		if e.adoptable(object) {
			list = append(list, object)
		}
	}
	return list
}

// disownSome takes the owners from some children, as a restore from a backup does.
func (e *env) disownSome() {
	e.Note("some children lose their owner")
	e.Seen["children that lost their owner"]++
	disown(e, e.children)
	disown(e, e.services)
	disown(e, e.scalers)
}

func disown[T simulation.Object](e *env, of *simulation.Resource[T]) {
	for _, object := range slices.Clone(of.Objects) {
		if ownedBySet(object) && e.Dice.Percent(50) {
			of.Change(object, func(next T) { next.SetOwnerReferences(nil) })
		}
	}
}

// adopted checks an object that a controller changes: it gets no second controller, none while it is being deleted, and
// none that has not been seen to exist.
func (r *rules) adopted(before, after metav1.Object) {
	was, is := metav1.GetControllerOfNoCopy(before), metav1.GetControllerOfNoCopy(after)
	switch {
	case is == nil || was != nil && was.UID == is.UID && len(before.GetOwnerReferences()) == len(after.GetOwnerReferences()):
		return
	case was != nil:
		r.Fail(ruleAdopted, "%s has another controller", before.GetName())
	case before.GetDeletionTimestamp() != nil:
		r.Fail(ruleAdopted, "%s is being deleted", before.GetName())
	case !childLike(before):
		r.Fail(ruleAdopted, "%s is not made like a child", before.GetName())
	case !r.confirmed[is.UID]:
		r.Fail(ruleAdopted, "nobody has asked whether the set %s exists, which adopts %s", is.UID, before.GetName())
	}
	r.Seen["adoptions"]++
	if lws, ok := after.(leaderWorkerSet); ok {
		r.decidedSize(lws.Labels[disaggregatedsetv1.RoleLabelKey], r.groupsBeside(lws))
	}
}

// beside checks that nothing is created in a slice beside LeaderWorkerSets that are to be adopted.
func (r *rules) beside(o plan.Observed, p plan.SlicePlan) {
	for _, orphan := range o.Orphans {
		if orphan.Kind == plan.OrphanLeaderWorkerSet && orphan.Slice == p.Slice && len(p.Create) > 0 {
			r.Fail(ruleAdopted, "%s is created beside %s, which is to be adopted", p.Create[0].Name, orphan.Name)
		}
	}
}

// besideFormer checks that a set which has just been created creates no other revision beside the LeaderWorkerSets of a
// former set, as far as its cache shows them. They are about to lose their owner, or to be deleted.
func (r *rules) besideFormer(o plan.Observed, p plan.SlicePlan) {
	if r.Now().Sub(r.created) >= 30*time.Second {
		return
	}
	for _, lws := range r.process.children.Objects {
		if ownedBySet(lws) && !metav1.IsControlledBy(lws, o.Set) && lws.DeletionTimestamp == nil && plan.ChildOf(lws).Slice == p.Slice && len(p.Create) > 0 {
			r.Fail(ruleAdopted, "%s is created beside %s of a former set", p.Create[0].Name, lws.Name)
		}
	}
}

// besideScalers checks that no scaler is created while it is not known how many groups its role has.
func (r *rules) besideScalers(o plan.Observed, p plan.Plan) {
	for _, orphan := range o.Orphans {
		if orphan.Kind != plan.OrphanService && len(p.CreateScalers) > 0 && (orphan.Kind == plan.OrphanLeaderWorkerSet || orphan.Name == p.CreateScalers[0].Name) {
			r.Fail(ruleAdopted, "the scaler %s is created before %s is adopted", p.CreateScalers[0].Name, orphan.Name)
		}
	}
}
