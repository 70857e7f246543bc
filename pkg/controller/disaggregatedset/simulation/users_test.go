// Copyright The jobset-apiserver Authors.
// SPDX-License-Identifier: Apache-2.0

package simulation

import (
	"context"
	"slices"

	corev1 "k8s.io/api/core/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/util/intstr"
	"k8s.io/utils/ptr"

	"github.com/jobset-apiserver/jobset-apiserver/pkg/apis/disaggregatedset"
	disaggregatedsetv1 "github.com/jobset-apiserver/jobset-apiserver/pkg/apis/disaggregatedset/v1"
	"github.com/jobset-apiserver/jobset-apiserver/pkg/apis/disaggregatedset/v1/helper"
	leaderworkersetv1 "github.com/jobset-apiserver/jobset-apiserver/pkg/apis/leaderworkerset/v1"
	registry "github.com/jobset-apiserver/jobset-apiserver/pkg/registry/disaggregatedset/disaggregatedset"
	"github.com/jobset-apiserver/jobset-apiserver/test/simulation"
)

// This file holds what users, autoscalers and others do. What the server makes of a set is made by its real strategy.

var strategy = registry.NewStrategy(nil)

// randomSet returns a set of two or three roles.
func randomSet(d simulation.Dice) disaggregatedSet {
	ds := &disaggregatedsetv1.DisaggregatedSet{ObjectMeta: metav1.ObjectMeta{Name: name, Namespace: namespace}}
	for _, role := range []string{"prefill", "decode", "encode"}[:simulation.OneOf(d, 2, 2, 3)] {
		ds.Spec.Roles = append(ds.Spec.Roles, randomRole(d, role))
	}
	setImage(ds, "a")
	if !slices.ContainsFunc(ds.Spec.Roles, func(r disaggregatedsetv1.DisaggregatedRoleSpec) bool { return helper.External(&r) }) {
		ds.Spec.Slices = simulation.OneOf(d, nil, nil, ptr.To[int32](2), ptr.To[int32](3))
	}
	return ds
}

func randomRole(d simulation.Dice, name string) disaggregatedsetv1.DisaggregatedRoleSpec {
	role := disaggregatedsetv1.DisaggregatedRoleSpec{Name: name}
	role.Spec.Replicas = ptr.To(int32(1 + d.IntN(5)))
	if d.Percent(25) {
		role.Scaling = &disaggregatedsetv1.RoleScaling{Mode: disaggregatedsetv1.RoleScalingExternal}
	}
	if d.Percent(50) {
		role.Spec.RolloutStrategy = randomRollout(d)
	}
	return role
}

func randomRollout(d simulation.Dice) leaderworkersetv1.RolloutStrategy {
	surge, unavailable := d.IntN(maxSurge+1), d.IntN(2)
	if surge+unavailable == 0 {
		surge = 1
	}
	return leaderworkersetv1.RolloutStrategy{Type: leaderworkersetv1.RolloutStrategyRollingUpdate, RollingUpdateConfiguration: &leaderworkersetv1.RollingUpdateConfiguration{
		Partition: ptr.To[int32](0), MaxSurge: ptr.To(intstr.FromInt32(int32(surge))), MaxUnavailable: ptr.To(intstr.FromInt32(int32(unavailable))),
	}}
}

func setImage(ds disaggregatedSet, image string) {
	for i := range ds.Spec.Roles {
		ds.Spec.Roles[i].Spec.LeaderWorkerTemplate.WorkerTemplate.Spec.Containers = []corev1.Container{{Name: "main", Image: image}}
	}
}

func hub(ds disaggregatedSet) *disaggregatedset.DisaggregatedSet {
	ds = ds.DeepCopy()
	disaggregatedsetv1.SetObjectDefaults_DisaggregatedSet(ds)
	var out disaggregatedset.DisaggregatedSet
	if err := disaggregatedsetv1.Convert_v1_DisaggregatedSet_To_disaggregatedset_DisaggregatedSet(ds, &out, nil); err != nil {
		panic(err)
	}
	return &out
}

func served(ds *disaggregatedset.DisaggregatedSet) disaggregatedSet {
	var out disaggregatedsetv1.DisaggregatedSet
	if err := disaggregatedsetv1.Convert_disaggregatedset_DisaggregatedSet_To_v1_DisaggregatedSet(ds, &out, nil); err != nil {
		panic(err)
	}
	return &out
}

func (e *env) createSet() {
	ds := e.sets.Create(served(hub(e.template)))
	e.Note("user creates the set %s: %s", ds.UID, describeSpec(ds))
	e.rules.decidedSizes(ds)
	e.created = e.Now()
	e.meddled = e.meddled && len(e.orphans()) > 0
}

// userActs is what users do to the set.
func (e *env) userActs() {
	ds := e.set()
	switch n := e.Dice.IntN(100); {
	case ds == nil:
		if e.Dice.Percent(30) {
			e.createSet()
		}
	case n < 6 && ds.DeletionTimestamp == nil:
		how := simulation.OneOf(e.Dice, metav1.DeletePropagationBackground, metav1.DeletePropagationForeground, metav1.DeletePropagationOrphan)
		e.Note("user deletes the set: %s", how)
		e.Seen["deletions: "+string(how)]++
		e.sets.Delete(ds, how)
	default:
		e.edit(ds)
	}
}

// edit lets a user change the spec. What the server refuses changes nothing.
func (e *env) edit(before disaggregatedSet) {
	wanted := before.DeepCopy()
	spec := &wanted.Spec
	role := &spec.Roles[e.Dice.IntN(len(spec.Roles))]
	what := simulation.OneOf(e.Dice, "image", "image", "image", "replicas", "replicas", "all at 0", "mode", "mode", "slices", "limits", "roles", "metadata")
	switch what {
	case "image":
		setImage(wanted, simulation.OneOf(e.Dice, "a", "b", "c", "d", "bad"))
		if e.Dice.Percent(30) {
			role.Spec.Replicas = ptr.To(int32(1 + e.Dice.IntN(5)))
		}
	case "replicas":
		role.Spec.Replicas = ptr.To(int32(1 + e.Dice.IntN(5)))
	case "all at 0":
		n := int32(simulation.OneOf(e.Dice, 0, 2))
		for i := range spec.Roles {
			spec.Roles[i].Spec.Replicas = ptr.To(n)
		}
	case "mode":
		if role.Scaling = nil; !helper.External(&before.Spec.Roles[slices.IndexFunc(before.Spec.Roles, func(r disaggregatedsetv1.DisaggregatedRoleSpec) bool { return r.Name == role.Name })]) {
			role.Scaling = &disaggregatedsetv1.RoleScaling{Mode: disaggregatedsetv1.RoleScalingExternal}
			spec.Slices = simulation.OneOf[*int32](e.Dice, nil, ptr.To[int32](1))
		}
	case "slices":
		spec.Slices = ptr.To(int32(1 + e.Dice.IntN(3)))
	case "limits":
		role.Spec.RolloutStrategy = randomRollout(e.Dice)
	case "roles":
		if n := len(spec.Roles); n == 3 {
			spec.Roles = spec.Roles[:2]
		} else {
			spec.Roles = append(spec.Roles, randomRole(e.Dice, "encode"))
			spec.Roles[n].Scaling = nil
			spec.Roles[n].Spec.LeaderWorkerTemplate = *spec.Roles[0].Spec.LeaderWorkerTemplate.DeepCopy()
		}
	case "metadata":
		wanted.Labels = map[string]string{"touched": string(e.NewUID("label"))}
	}
	next, prev := hub(wanted), hub(before)
	strategy.PrepareForUpdate(context.Background(), next, prev)
	if errs := strategy.ValidateUpdate(context.Background(), next, prev); len(errs) > 0 {
		e.Seen["edits refused"]++
		return
	}
	after := served(next)
	e.Seen["edits: "+what]++
	e.Note("user changes %s: %s", what, describeSpec(after))
	e.sets.Put(after)
	e.rules.decidedSizes(after)
}

// autoscale lets an autoscaler scale a role.
func (e *env) autoscale() {
	if len(e.scalers.Objects) == 0 {
		return
	}
	scaler := simulation.OneOf(e.Dice, e.scalers.Objects...)
	n := int32(e.Dice.IntN(6))
	e.Note("an autoscaler scales %s to %d", scaler.Name, n)
	e.Seen["roles scaled"]++
	scaler = e.scalers.Change(scaler, func(next roleScaler) { next.Spec.Replicas, next.Generation = n, next.Generation+1 })
	e.rules.decidedSize(scaler.Labels[disaggregatedsetv1.RoleLabelKey], n)
}

// meddle lets a user touch what the controller has made.
func (e *env) meddle() {
	how := simulation.OneOf(e.Dice, metav1.DeletePropagationBackground, metav1.DeletePropagationForeground)
	switch n := e.Dice.IntN(100); {
	case n < 25 && len(e.services.Objects) > 0:
		s := simulation.OneOf(e.Dice, e.services.Objects...)
		e.Note("user deletes the service %s", s.Name)
		e.services.Delete(s, how)
	case n < 35 && len(e.services.Objects) > 0:
		s := simulation.OneOf(e.Dice, e.services.Objects...)
		e.Note("user takes the labels from the service %s", s.Name)
		e.services.Change(s, func(next service) { next.Labels = nil })
	case n < 50 && len(e.scalers.Objects) > 0:
		s := simulation.OneOf(e.Dice, e.scalers.Objects...)
		e.Note("user deletes the scaler %s", s.Name)
		e.scalers.Delete(s, how)
	case len(e.children.Objects) == 0:
	default:
		e.meddleWith(simulation.OneOf(e.Dice, e.children.Objects...), how)
	}
}

func (e *env) meddleWith(lws leaderWorkerSet, how metav1.DeletionPropagation) {
	switch n := e.Dice.IntN(100); {
	case n < 50:
		e.Note("user deletes the leaderworkerset %s", lws.Name)
		e.Seen["children deleted by others"]++
		e.children.Delete(lws, how)
	case n < 75:
		e.Note("user takes the labels from the leaderworkerset %s", lws.Name)
		e.children.Change(lws, func(next leaderWorkerSet) { next.Labels = nil })
	default:
		to := int32(e.Dice.IntN(6))
		e.Note("user scales the leaderworkerset %s to %d", lws.Name, to)
		e.meddled = true
		e.rules.decidedSize(lws.Labels[disaggregatedsetv1.RoleLabelKey], to)
		e.children.Change(lws, func(next leaderWorkerSet) { next.Spec.Replicas = ptr.To(to) })
	}
}
