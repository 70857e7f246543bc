// Copyright The jobset-apiserver Authors.
// SPDX-License-Identifier: Apache-2.0

package simulation

import (
	"slices"
	"testing"

	corev1 "k8s.io/api/core/v1"
	"k8s.io/apimachinery/pkg/api/meta"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"

	disaggregatedsetv1 "github.com/jobset-apiserver/jobset-apiserver/pkg/apis/disaggregatedset/v1"
	"github.com/jobset-apiserver/jobset-apiserver/pkg/apis/disaggregatedset/v1/helper"
	"github.com/jobset-apiserver/jobset-apiserver/pkg/controller/disaggregatedset/plan"
	"github.com/jobset-apiserver/jobset-apiserver/test/simulation"
)

// enough is the number of histories in which a defect must show. Most show in the first few.
const enough = 1_500

// TestHistoriesShowDefects makes sure that histories can fail, and by which rule.
func TestHistoriesShowDefects(t *testing.T) {
	with := func(change func(*mutant)) mutant {
		m := faultless
		change(&m)
		return m
	}
	histories.ShowDefects(t, enough, map[string]simulation.Defect[mutant]{
		"failed passes that are not tried again":           {Mutant: with(func(m *mutant) { m.careless = true }), Rules: []string{ruleIs, ruleFollows, ruleServices, ruleStatus}},
		"a pass each second":                               {Mutant: with(func(m *mutant) { m.restless = true }), Rules: []string{simulation.RulePasses}},
		"failures that are tried again at once":            {Mutant: with(func(m *mutant) { m.insistent = true }), Rules: []string{simulation.RuleRefusals, simulation.RulePasses}},
		"denied children that are asked for too early":     {Mutant: with(func(m *mutant) { m.hurried = true }), Rules: []string{simulation.RuleDeniedChild, simulation.RuleDeniedObject}},
		"children of others that are adopted":              {Mutant: with(func(m *mutant) { m.adopting = true }), Rules: []string{simulation.RuleOthers}, First: 159},
		"what others control, adopted":                     {Mutant: with(func(m *mutant) { m.sees = uncontrolled }), Rules: []string{ruleAdopted, simulation.RuleOthers}},
		"what is being deleted, adopted":                   {Mutant: with(func(m *mutant) { m.sees = staying }), Rules: []string{ruleAdopted}, First: 105},
		"what has other labels, adopted":                   {Mutant: with(func(m *mutant) { m.sees = labeledByName }), Rules: []string{ruleAdopted, simulation.RuleOthers}},
		"adoptions without a look at the stored set":       {Mutant: with(func(m *mutant) { m.trusting = true }), Rules: []string{ruleAdopted}},
		"orphans that nobody adopts":                       {Mutant: deciding(nil, func(_ plan.Observed, p *plan.Plan) { p.Adopt = nil }), Rules: []string{ruleAdopted, ruleIs, ruleRest}},
		"orphans that are not waited for":                  {Mutant: deciding(func(o *plan.Observed) { o.Orphans = nil }, adoptAll), Rules: []string{ruleAdopted}},
		"scalers that do not wait for orphans":             {Mutant: deciding(nil, seedAtOnce), Rules: []string{ruleAdopted}},
		"sets that do not wait for what former ones leave": {Mutant: with(func(m *mutant) { m.hasty = true }), Rules: []string{ruleAdopted}, First: 124},
		"a status of a scaler that ends with its pass":     {Mutant: with(func(m *mutant) { m.torn = true }), Rules: []string{ruleStored}},
		"a scaler that begins with the sum":                {Mutant: deciding(nil, seedBySum), Rules: []string{ruleSeed}},
		"an update at 0 without Services":                  {Mutant: deciding(nil, allRolesMustServe), Rules: []string{ruleServices}},
		"Services of a former revision that go too early":  {Mutant: deciding(nil, unpublish), Rules: []string{ruleServices}},
		"Services of a former revision that stay":          {Mutant: deciding(nil, keepServices), Rules: []string{ruleIs}},
		"former groups that go at once":                    {Mutant: deciding(nil, drainAtOnce), Rules: []string{ruleAvailable}},
		"new groups that come at once":                     {Mutant: deciding(nil, growAtOnce), Rules: []string{ruleSurge, ruleInStep, ruleStep}},
		"a step that does not wait":                        {Mutant: deciding(allReady, nil), Rules: []string{ruleStep}},
		"LeaderWorkerSets that are deleted with groups":    {Mutant: deciding(nil, deleteFormer), Rules: []string{ruleRuns}},
		"a slice that stays":                               {Mutant: deciding(nil, keepSlices), Rules: []string{ruleIs}},
		"an autoscaler that is ignored":                    {Mutant: deciding(ignoreScalers, nil), Rules: []string{ruleFollows, ruleRuns, ruleIs}},
		"the status of a scaler that is not kept":          {Mutant: deciding(nil, func(_ plan.Observed, p *plan.Plan) { p.ScalerStatuses = nil }), Rules: []string{ruleFollows}},
		"a scaler that is not deleted":                     {Mutant: deciding(nil, func(_ plan.Observed, p *plan.Plan) { p.DeleteScalers = nil }), Rules: []string{ruleIs}},
		"a set that is Available too early":                {Mutant: finishing(early), Rules: []string{ruleStatus}},
		"conditions whose times move":                      {Mutant: finishing(restless), Rules: []string{ruleConditions, ruleRest}},
		"a status that is stored in each pass":             {Mutant: finishing(talkative), Rules: []string{ruleRest, ruleWake}},
		"refusals that nobody sees":                        {Mutant: finishing(silent), Rules: []string{ruleVisible}},
		"a scaler of somebody else that nobody sees":       {Mutant: deciding(nil, func(_ plan.Observed, p *plan.Plan) { p.Conflicts = nil }), Rules: []string{ruleVisible}, First: 108},
		"a name that is not that of the role":              {Mutant: deciding(nil, misnamed), Rules: []string{ruleOnce}},
		"a role that is not created again":                 {Mutant: deciding(nil, missing), Rules: []string{ruleIs, ruleFollows}},
		"an annotation that stays when an update is over":  {Mutant: deciding(nil, keepInitial), Rules: []string{ruleIs, ruleRest}},
		"groups that the user did not want fewer of going": {Mutant: deciding(nil, oneLess), Rules: []string{ruleRuns, ruleAvailable}},
	})
}

// deciding is a controller that is given something else than what is, or does something else than what is decided.
func deciding(misread func(*plan.Observed), does func(plan.Observed, *plan.Plan)) mutant {
	return mutant{finish: plan.Finish, decide: simulation.Deciding(plan.Decide, copied, misread, does)}
}

// copied returns a snapshot with copies of its lists.
func copied(o plan.Observed) *plan.Observed {
	o.Children, o.Scalers = slices.Clone(o.Children), slices.Clone(o.Scalers)
	return &o
}

func seedBySum(o plan.Observed, p *plan.Plan) {
	for _, s := range p.CreateScalers {
		var sum int32
		for _, c := range o.Children {
			if c.Role == s.Labels[disaggregatedsetv1.RoleLabelKey] {
				sum += c.Replicas
			}
		}
		s.Spec.Replicas = max(1, sum)
	}
}

// each changes the plans of slices that stay.
func each(o plan.Observed, p *plan.Plan, change func(*plan.SlicePlan)) {
	for i := range p.Slices {
		if p.Slices[i].Slice < helper.Slices(o.Set) {
			change(&p.Slices[i])
		}
	}
}

func allRolesMustServe(o plan.Observed, p *plan.Plan) {
	for i := range o.Set.Spec.Roles {
		if want, decided := desired(o, &o.Set.Spec.Roles[i]); want == 0 && decided {
			each(o, p, func(s *plan.SlicePlan) { s.CreateServices, s.DeleteServices = nil, nil })
		}
	}
}

func unpublish(o plan.Observed, p *plan.Plan) {
	each(o, p, func(s *plan.SlicePlan) {
		for _, service := range o.Services {
			if service.Revision != p.Revision && service.Slice == s.Slice && !slices.Contains(s.DeleteServices, service.Ref) {
				s.DeleteServices = append(s.DeleteServices, service.Ref)
			}
		}
	})
}

func keepServices(o plan.Observed, p *plan.Plan) {
	each(o, p, func(s *plan.SlicePlan) { s.DeleteServices = nil })
}

func drainAtOnce(o plan.Observed, p *plan.Plan) {
	each(o, p, func(s *plan.SlicePlan) {
		if len(s.Scale) == 0 {
			return
		}
		for _, c := range o.Children {
			if c.Slice == s.Slice && c.Revision != p.Revision && !c.Deleting {
				scale(s, c, 0)
			}
		}
	})
}

// scale replaces what is planned for a LeaderWorkerSet.
func scale(s *plan.SlicePlan, c plan.Child, to int32) {
	s.Scale = slices.DeleteFunc(s.Scale, func(other plan.Scaling) bool { return other.Name == c.Name })
	if to != c.Replicas {
		s.Scale = append(s.Scale, plan.Scaling{Ref: c.Ref, ResourceVersion: c.ResourceVersion, Role: c.Role, From: c.Replicas, To: to})
	}
}

func growAtOnce(o plan.Observed, p *plan.Plan) {
	each(o, p, func(s *plan.SlicePlan) {
		for i := range o.Set.Spec.Roles {
			role := &o.Set.Spec.Roles[i]
			c := find(o, helper.SetName(name, s.Slice, p.Revision, role.Name))
			if want, decided := desired(o, role); decided && c.Name != "" && int64(c.Replicas) < want && len(s.Scale) > 0 {
				scale(s, c, int32(want))
			}
		}
	})
}

func allReady(o *plan.Observed) {
	for i := range o.Children {
		o.Children[i].Ready = o.Children[i].Replicas
	}
}

func deleteFormer(o plan.Observed, p *plan.Plan) {
	each(o, p, func(s *plan.SlicePlan) {
		for _, c := range o.Children {
			if c.Slice == s.Slice && c.Revision != p.Revision && !c.Deleting && c.Replicas == 1 {
				s.DeleteChildren = append(s.DeleteChildren, plan.Deletion{Ref: c.Ref, Reason: plan.Drained})
			}
		}
	})
}

func keepSlices(o plan.Observed, p *plan.Plan) {
	p.Slices = slices.DeleteFunc(p.Slices, func(s plan.SlicePlan) bool { return s.Slice >= helper.Slices(o.Set) })
}

func ignoreScalers(o *plan.Observed) {
	for i, s := range o.Scalers {
		o.Scalers[i] = s.DeepCopy()
		o.Scalers[i].Spec.Replicas = 1
	}
}

func misnamed(o plan.Observed, p *plan.Plan) {
	each(o, p, func(s *plan.SlicePlan) {
		for i := range s.Create {
			s.Create[i].Name += "-x"
		}
	})
}

func missing(o plan.Observed, p *plan.Plan) {
	each(o, p, func(s *plan.SlicePlan) {
		if len(o.Children) > 0 {
			s.Create = nil
		}
	})
}

func keepInitial(o plan.Observed, p *plan.Plan) {
	each(o, p, func(s *plan.SlicePlan) {
		s.Annotate = slices.DeleteFunc(s.Annotate, func(a plan.Annotation) bool { return a.Initial == nil })
	})
}

func oneLess(o plan.Observed, p *plan.Plan) {
	each(o, p, func(s *plan.SlicePlan) {
		for i := range s.Scale {
			if s.Scale[i].To < s.Scale[i].From && s.Scale[i].To > 0 {
				s.Scale[i].To--
			}
		}
	})
}

// finishing is a controller that stores or reports something else.
func finishing(change func(plan.Observed, *plan.Outcome)) mutant {
	return mutant{decide: plan.Decide, finish: func(o plan.Observed, p plan.Plan, r plan.Results) plan.Outcome {
		out := plan.Finish(o, p, r)
		if out.Status != nil {
			out.Status = out.Status.DeepCopy()
		}
		change(o, &out)
		return out
	}}
}

func early(_ plan.Observed, out *plan.Outcome) {
	if out.Status != nil {
		meta.SetStatusCondition(&out.Status.Conditions, metav1.Condition{Type: disaggregatedsetv1.ConditionAvailable, Status: metav1.ConditionTrue, Reason: disaggregatedsetv1.ReasonAllRolesReady})
		meta.RemoveStatusCondition(&out.Status.Conditions, disaggregatedsetv1.ConditionProgressing)
	}
}

func restless(o plan.Observed, out *plan.Outcome) {
	if out.Status != nil {
		for i := range out.Status.Conditions {
			out.Status.Conditions[i].LastTransitionTime = o.Now
		}
	}
}

func talkative(o plan.Observed, out *plan.Outcome) {
	if out.Status == nil {
		out.Status = o.Set.Status.DeepCopy()
	}
}

func silent(_ plan.Observed, out *plan.Outcome) {
	out.Events = slices.DeleteFunc(out.Events, func(e plan.Event) bool { return e.Type == corev1.EventTypeWarning })
}
