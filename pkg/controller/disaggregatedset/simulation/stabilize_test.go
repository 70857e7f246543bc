// Copyright The jobset-apiserver Authors.
// SPDX-License-Identifier: Apache-2.0

package simulation

import (
	"slices"
	"strings"
	"time"

	"k8s.io/apimachinery/pkg/api/meta"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"

	disaggregatedsetv1 "github.com/jobset-apiserver/jobset-apiserver/pkg/apis/disaggregatedset/v1"
	"github.com/jobset-apiserver/jobset-apiserver/pkg/apis/disaggregatedset/v1/helper"
	"github.com/jobset-apiserver/jobset-apiserver/pkg/controller/disaggregatedset/plan"
	"github.com/jobset-apiserver/jobset-apiserver/test/simulation"
)

const (
	ruleRest    = "every history comes to rest"
	ruleWake    = "at rest nothing is written"
	ruleIs      = "a set at rest is as its spec says"
	ruleFollows = "the groups of a role follow its scaler, and the scaler shows them"
)

// maxRounds is how often everybody may get a turn until all is at rest.
const maxRounds = 1500

// stabilize lets everything come to rest: nothing fails any more, every component gets a turn in every round, and no
// user interferes.
func (e *env) stabilize() {
	e.Note("from here on nothing fails")
	e.EndTrouble()
	e.faults.failing, e.faults.ending = 0, 0
	clear(e.aggregated.Refusals)
	clear(e.main.Refusals)
	e.DeliverLate()
	if e.set() == nil && e.Dice.Percent(50) {
		e.createSet()
	}
	if !e.Stabilize(maxRounds, e.round, func() time.Time { return e.process.worker.Due() }) {
		e.Fail(ruleRest, "%d rounds were not enough", maxRounds)
	}
}

// round gives everybody a turn. It returns whether anybody used it.
func (e *env) round() bool {
	busy := false
	for e.DeliverLate() {
		busy = true
	}
	e.removeOthers(func() bool { return true })
	removeLost(e, e.children, func(child string) string { return child })
	removeLost(e, e.services, helper.ServiceName)
	busy = e.ShowAll(e.process.caches()) || busy
	before := e.Seen["syncs"]
	e.sync()
	busy = busy || e.Seen["syncs"] > before
	for _, lws := range slices.Clone(e.children.Objects) {
		busy = e.grow(lws) || busy
	}
	return e.CollectGarbage() || busy
}

// removeLost removes what has lost the labels by which caches know it, unless it has a name that the set needs: a user must do that.
func removeLost[T simulation.Object](e *env, of *simulation.Resource[T], nameOf func(child string) string) {
	needed := map[string]bool{}
	if ds := e.set(); ds != nil {
		revision, err := helper.Revision(ds)
		if err != nil {
			panic(err)
		}
		for i := range helper.Slices(ds) {
			for j := range ds.Spec.Roles {
				needed[nameOf(helper.SetName(name, i, revision, ds.Spec.Roles[j].Name))] = true
			}
		}
	}
	for _, object := range slices.Clone(of.Objects) {
		if !labeled(object) && !needed[object.GetName()] && object.GetDeletionTimestamp() == nil {
			e.Note("user deletes the %s %s, which has no labels", of.Kind, object.GetName())
			of.Delete(object, metav1.DeletePropagationBackground)
		}
	}
}

// written is how often something was written.
func (e *env) written() int { return e.aggregated.Versions.Last + e.main.Versions.Last }

// checkRest checks that a set at rest is as its spec says.
func (e *env) checkRest() {
	before := e.written()
	e.process.worker.Add(name)
	e.sync()
	if e.written() != before && !e.careless {
		e.Fail(ruleWake, "a pass changes something")
	}
	ds := e.set()
	if ds == nil {
		e.Seen["at rest: gone"]++
		for _, lws := range e.children.Objects {
			e.Fail(ruleIs, "the set is gone, and %s is left", lws.Name)
		}
		return
	}
	if ds.DeletionTimestamp != nil {
		e.Fail(ruleIs, "it is being deleted, and stays")
	}
	for _, orphan := range e.orphans() {
		e.Fail(ruleAdopted, "%s is not", orphan.GetName())
	}
	o := e.stored(ds)
	for i := range helper.Slices(ds) {
		e.checkSlice(o, i)
	}
	for _, c := range o.Children {
		if c.Slice >= helper.Slices(ds) {
			e.Fail(ruleIs, "%s is left", c.Name)
		}
	}
	e.checkScalers(o)
	e.rules.checkStatus(o, &ds.Status)
	if meta.IsStatusConditionTrue(ds.Status.Conditions, disaggregatedsetv1.ConditionChildCreationFailure) {
		e.Fail(ruleIs, "it says that children cannot be created: %v", ds.Status.Conditions)
	}
	available := meta.IsStatusConditionTrue(ds.Status.Conditions, disaggregatedsetv1.ConditionAvailable)
	if stuck := strings.HasPrefix(imageOf(ds), "bad"); available {
		e.Seen["at rest: available"]++
	} else if !stuck {
		e.Fail(ruleIs, "it is not available")
	} else {
		e.Seen["at rest: an update that stands still"]++
	}
}

func imageOf(ds disaggregatedSet) string {
	return ds.Spec.Roles[0].Spec.LeaderWorkerTemplate.WorkerTemplate.Spec.Containers[0].Image
}

// stored returns what is stored about a set.
func (e *env) stored(ds disaggregatedSet) plan.Observed {
	o := plan.Observed{Set: ds}
	for _, lws := range e.children.Objects {
		if metav1.IsControlledBy(lws, ds) {
			o.Children = append(o.Children, plan.ChildOf(lws))
		}
	}
	for _, s := range e.services.Objects {
		if metav1.IsControlledBy(s, ds) && labeled(s) { // without labels, its slice is not known
			o.Services = append(o.Services, plan.ServiceOf(s))
		}
	}
	for _, s := range e.scalers.Objects {
		if metav1.IsControlledBy(s, ds) {
			o.Scalers = append(o.Scalers, s)
		}
	}
	return o
}

// checkSlice checks a slice at rest. In one whose update stands still, the former revision serves.
func (e *env) checkSlice(o plan.Observed, index int32) {
	revision, err := helper.Revision(o.Set)
	if err != nil {
		panic(err)
	}
	v := &view{rules: e.rules, o: o, p: plan.SlicePlan{Slice: index}, revision: revision}
	services := map[string]bool{}
	for _, s := range o.Services {
		if s.Slice == index {
			services[s.Name] = true
		}
	}
	if serving := servingRevisions(o, v.children(), revision); len(serving) > 0 && v.found(services) == "" {
		e.Fail(ruleServices, "revisions %q of slice %d serve, and the Services are %v", serving, index, services)
	}
	if strings.HasPrefix(imageOf(o.Set), "bad") {
		return
	}
	asked := false
	for i := range o.Set.Spec.Roles {
		role := &o.Set.Spec.Roles[i]
		want, decided := desired(o, role)
		asked = asked || want > 0
		child := find(o, helper.SetName(name, index, revision, role.Name))
		switch {
		case !decided || child.Name == "" || int64(child.Replicas) != want:
			rule := ruleIs
			if helper.External(role) {
				rule = ruleFollows
			}
			e.Fail(rule, "role %s of slice %d is to have %d groups: %+v", role.Name, index, want, child)
		case child.Initial != nil:
			e.Fail(ruleIs, "%s still says that it is being updated", child.Name)
		}
	}
	if n := len(v.children()); n != len(o.Set.Spec.Roles) {
		e.Fail(ruleIs, "slice %d has %d LeaderWorkerSets", index, n)
	}
	for _, c := range v.children() {
		delete(services, helper.ServiceName(c.Name))
	}
	if len(services) > 0 {
		e.Fail(ruleIs, "Services of slice %d are left: %v", index, services)
	}
	if !asked {
		e.Seen["at rest: at 0"]++
	}
}

// checkScalers checks that each role that others scale has a scaler, and what it shows.
func (e *env) checkScalers(o plan.Observed) {
	roles := map[string]string{}
	for i := range o.Set.Spec.Roles {
		if role := &o.Set.Spec.Roles[i]; helper.External(role) {
			roles[helper.ScalerName(name, role.Name)] = role.Name
		}
	}
	for _, s := range o.Scalers {
		role, wanted := roles[s.Name]
		if !wanted {
			e.Fail(ruleIs, "the scaler %s is left", s.Name)
		}
		delete(roles, s.Name)
		var groups int32
		for _, c := range o.Children {
			if c.Role == role {
				groups += c.Current
			}
		}
		if s.Status.Replicas != groups || s.Status.ObservedGeneration != s.Generation || s.Status.Selector != helper.Selector(name, role) {
			e.Fail(ruleFollows, "the scaler %s shows %+v of %d groups", s.Name, s.Status, groups)
		}
		e.Seen["at rest: scaled roles"]++
	}
	if len(roles) > 0 {
		e.Fail(ruleIs, "scalers are missing: %v", roles)
	}
}
