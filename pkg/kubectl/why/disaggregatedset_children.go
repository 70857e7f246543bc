// Copyright The jobset-apiserver Authors.
// SPDX-License-Identifier: Apache-2.0

package why

import (
	"fmt"
	"slices"
	"strings"

	corev1 "k8s.io/api/core/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"

	"github.com/jobset-apiserver/jobset-apiserver/pkg/apis/disaggregatedset/v1/helper"
	lwshelper "github.com/jobset-apiserver/jobset-apiserver/pkg/apis/leaderworkerset/v1/helper"
)

// What prevents the creation of LeaderWorkerSets, scalers and Services of a DisaggregatedSet, and their deletion.

// belonging says whose an object is that has the name of a child.
func (d *diagnosis) belonging(o metav1.Object) string {
	owner := metav1.GetControllerOf(o)
	switch {
	case owner == nil:
		return "has no owner"
	case owner.Kind == d.kind().Title && owner.Name == d.Name:
		return fmt.Sprintf("belongs to an earlier %s of this name, UID %s", owner.Kind, owner.UID)
	}
	return fmt.Sprintf("belongs to %s %s", owner.Kind, owner.Name)
}

// roleSetNameTaken finds LeaderWorkerSets with names that the set needs, which the set does not control.
func roleSetNameTaken(d *diagnosis) []Finding {
	names := sortedKeys(d.TakenRoleSets)
	if len(names) == 0 {
		return nil
	}
	first := d.TakenRoleSets[names[0]]
	belongs := d.belonging(first)
	f := Finding{
		Cause: LeaderWorkerSetNameTaken,
		Summary: fmt.Sprintf("the set needs the name of the LeaderWorkerSet %s, which exists and %s; the role waits until that "+
			"LeaderWorkerSet is deleted",
			first.Name, belongs),
		Commands: []string{d.kubectl("describe lws %s", first.Name), d.kubectl("delete lws %s  # if it is not needed", first.Name)},
	}
	for _, name := range names {
		set := d.TakenRoleSets[name]
		f.Evidence = append(f.Evidence, Fact{Object: object("leaderworkerset", name), Text: "exists and " + d.belonging(set),
			Time: at(set.CreationTimestamp.Time)})
	}
	return []Finding{f}
}

// scalerNameTaken finds scalers with names that the set needs, which the set does not control.
func scalerNameTaken(d *diagnosis) (out []Finding) {
	for i := range d.RolesSet.Spec.Roles {
		role := &d.RolesSet.Spec.Roles[i]
		name := helper.ScalerName(d.Name, role.Name)
		scaler := d.Scalers[name]
		if !helper.External(role) || scaler == nil || metav1.IsControlledBy(scaler, d.RolesSet) {
			continue
		}
		belongs := d.belonging(scaler)
		out = append(out, Finding{
			Cause: ScalerNameTaken,
			Summary: fmt.Sprintf("the role %s needs the name of the scaler %s, which exists and %s; the role keeps its size, and what scales "+
				"that scaler has no effect on it",
				role.Name, name, belongs),
			Evidence: []Fact{{Object: object("disaggregatedsetrolescaler", name), Text: "exists and " + belongs,
				Time: at(scaler.CreationTimestamp.Time)}},
			Commands: []string{d.kubectl("describe dsrs %s", name), d.kubectl("delete dsrs %s  # if it is not needed: the set then makes its own",
				name)},
		})
	}
	return out
}

// takenNote is how the controller reports a name that another object has, which other findings explain.
const takenNote = "another object that this DisaggregatedSet does not control has the name"

// roleChildRefused looks for a child that the API does not take. A series of such events keeps the text of its first one.
func roleChildRefused(d *diagnosis) []Finding {
	if len(d.TakenRoleSets) > 0 {
		return nil
	}
	for _, e := range d.about(d.RolesSet.UID, lwshelper.ReasonFailedCreate, lwshelper.ReasonFailedUpdate, lwshelper.ReasonFailedDelete) {
		if d.Now.Sub(seen(&e)) <= refusalRepeats && !strings.Contains(e.Message, takenNote) {
			return []Finding{d.roleRefusal(&e)}
		}
	}
	return nil
}

// roleRefusal says why the API does not take a child.
func (d *diagnosis) roleRefusal(e *corev1.Event) Finding {
	what, message, _ := strings.Cut(e.Message, ": ")
	name := what[strings.LastIndex(what, " ")+1:]
	verb := strings.ToLower(strings.TrimPrefix(e.Reason, "Failed"))
	what = "LeaderWorkerSet " + name
	switch {
	case strings.HasSuffix(name, helper.ServiceName("")):
		what = "Service " + name
	case d.isScaler(name):
		what = "scaler " + name
	}
	f := Finding{
		Cause: LeaderWorkerSetRefused, Evidence: []Fact{eventFact(e)},
		Commands: []string{d.kubectl("events --for disaggregatedset/%s --types=Warning", d.Name)},
	}
	if missing := missingRoleSets(d.Roles); len(missing) > 0 && !d.forbidden("leaderworkersets") {
		f.Evidence = append(f.Evidence, Fact{Object: d.set(), Text: fmt.Sprintf("%s not created: %s", count(len(missing), "LeaderWorkerSet"),
			some(missing, maxFacts))})
	}
	d.refusedWrite(&f, verb, what, message, d.kubectl("edit disaggregatedset %s  # correct the role: it is tried again", d.Name))
	return f
}

// isScaler returns whether the name belongs to the scaler of a role.
func (d *diagnosis) isScaler(name string) bool {
	for i := range d.RolesSet.Spec.Roles {
		if name == helper.ScalerName(d.Name, d.RolesSet.Spec.Roles[i].Name) {
			return true
		}
	}
	return false
}

// serviceOfRoleForeign finds Services with the names of Services of roles, which the set does not control.
func serviceOfRoleForeign(d *diagnosis) []Finding {
	for _, name := range sortedKeys(d.Services) {
		service := d.Services[name]
		if service == nil || metav1.IsControlledBy(service, d.RolesSet) {
			continue
		}
		belongs := d.belonging(service)
		return []Finding{{
			Cause: ServiceForeign,
			Summary: fmt.Sprintf("a Service %s exists and %s, so that clients do not find %s: the set makes its own Service once that one is "+
				"deleted",
				name, belongs, d.roleWords(strings.TrimSuffix(name, helper.ServiceName("")))),
			Evidence: []Fact{{Object: object("service", name), Text: "exists and " + belongs, Time: at(service.CreationTimestamp.Time)}},
			Commands: []string{d.kubectl("describe service %s", name), d.kubectl("delete service %s  # if it is not needed", name)},
		}}
	}
	return nil
}

// roleSetGoing finds LeaderWorkerSets of the current revision that were deleted, and that keep their names until they are gone.
func roleSetGoing(d *diagnosis) []Finding {
	for _, s := range d.Roles.Sets {
		if s.DeletionTimestamp == nil || !d.Roles.Current(s) || len(foreignFinalizers(s)) > 0 {
			continue
		}
		since := s.DeletionTimestamp.Time
		return []Finding{{
			Cause:    Restarting,
			Summary:  fmt.Sprintf("%s was deleted %s, and is created again when it is gone with its pods", d.roleWords(s.Name), ago(d.Now, since)),
			Evidence: []Fact{{Object: object("leaderworkerset", s.Name), Text: "is being deleted", Time: at(since)}},
			Commands: []string{d.kubectl("get pods -l leaderworkerset.sigs.k8s.io/name=%s", s.Name)},
		}}
	}
	return nil
}

// rolesDeletion says what a set that is deleted waits for.
func rolesDeletion(d *diagnosis) []Finding {
	set, since := d.RolesSet, d.RolesSet.DeletionTimestamp.Time
	if held := foreignFinalizers(set); len(held) > 0 {
		return []Finding{d.keptBy(set, held)}
	}
	names := []string{}
	for _, s := range d.Roles.Sets {
		names = append(names, s.Name)
	}
	slices.Sort(names)
	left := "no LeaderWorkerSet is left"
	if len(names) > 0 {
		left = fmt.Sprintf("%s left: %s", count(len(names), "LeaderWorkerSet"), some(names, maxFacts))
	}
	return []Finding{{
		Cause:    Deleting,
		Summary:  fmt.Sprintf("the set was deleted %s and waits until its LeaderWorkerSets are gone", ago(d.Now, since)),
		Evidence: []Fact{{Object: d.set(), Text: "deleted; " + left, Time: at(since)}},
		Commands: []string{d.kubectl("wait --for=delete disaggregatedset/%s", set.Name)},
	}}
}
