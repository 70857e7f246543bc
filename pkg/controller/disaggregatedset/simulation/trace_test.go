// Copyright The jobset-apiserver Authors.
// SPDX-License-Identifier: Apache-2.0

package simulation

import (
	"fmt"
	"strings"

	"k8s.io/utils/ptr"

	"github.com/jobset-apiserver/jobset-apiserver/pkg/apis/disaggregatedset/v1/helper"
	"github.com/jobset-apiserver/jobset-apiserver/pkg/controller/disaggregatedset/plan"
)

// describeSpec returns what matters of a set in one line.
func describeSpec(ds disaggregatedSet) string {
	revision, err := helper.Revision(ds)
	if err != nil {
		panic(err)
	}
	words := []string{fmt.Sprintf("generation %d, revision %s, %d slices:", ds.Generation, revision, helper.Slices(ds))}
	for i := range ds.Spec.Roles {
		role := &ds.Spec.Roles[i]
		surge, unavailable := limits(role)
		words = append(words, fmt.Sprintf("%s %d external %t +%d -%d,", role.Name, ptr.Deref(role.Spec.Replicas, 1), helper.External(role), surge, unavailable))
	}
	return strings.Join(words, " ")
}

// describe returns a snapshot in one line.
func describe(o plan.Observed) string {
	words := []string{fmt.Sprintf("%s@%s, %s", o.Set.UID, o.Set.ResourceVersion, describeSpec(o.Set))}
	for _, c := range o.Children {
		words = append(words, fmt.Sprintf("%s %d/%d/%d initial %d deleting %t,", c.Name, c.Ready, c.Current, c.Replicas, ptr.Deref(c.Initial, -1), c.Deleting))
	}
	for _, s := range o.Services {
		words = append(words, s.Name)
	}
	for _, s := range o.Scalers {
		words = append(words, fmt.Sprintf("%s=%d", s.Name, s.Spec.Replicas))
	}
	for _, orphan := range o.Orphans {
		words = append(words, fmt.Sprintf("orphan %s %s", orphan.Kind, orphan.Name))
	}
	return strings.Join(words, " ")
}

// describePlan returns a plan in one line.
func describePlan(p plan.Plan) string {
	var words []string
	add := func(format string, args ...any) { words = append(words, fmt.Sprintf(format, args...)) }
	for _, a := range p.Adopt {
		add("adopt %s %s", a.Kind, a.Name)
	}
	for _, s := range p.CreateScalers {
		add("create scaler %s=%d", s.Name, s.Spec.Replicas)
	}
	for _, s := range p.DeleteScalers {
		add("delete scaler %s", s.Name)
	}
	for _, slice := range p.Slices {
		for _, s := range slice.DeleteServices {
			add("delete service %s", s.Name)
		}
		for _, d := range slice.DeleteChildren {
			add("delete %s %s", d.Name, d.Reason)
		}
		for _, a := range slice.Annotate {
			add("annotate %s %d", a.Name, ptr.Deref(a.Initial, -1))
		}
		for _, c := range slice.Create {
			add("create %s %d", c.Name, c.Replicas)
		}
		for _, s := range slice.Scale {
			add("scale %s %d-%d", s.Name, s.From, s.To)
		}
		for _, s := range slice.CreateServices {
			add("create service %s", s.Name)
		}
	}
	return strings.Join(words, ", ")
}
