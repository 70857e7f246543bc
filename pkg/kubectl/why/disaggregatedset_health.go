// Copyright The jobset-apiserver Authors.
// SPDX-License-Identifier: Apache-2.0

package why

import (
	"fmt"
	"slices"
	"strings"
	"time"

	"k8s.io/apimachinery/pkg/api/meta"
	"k8s.io/utils/ptr"

	disaggregatedsetv1 "github.com/jobset-apiserver/jobset-apiserver/pkg/apis/disaggregatedset/v1"
	"github.com/jobset-apiserver/jobset-apiserver/pkg/apis/disaggregatedset/v1/helper"
	"github.com/jobset-apiserver/jobset-apiserver/pkg/kubectl/snapshot"
)

// What a DisaggregatedSet does: an update, a start, a run.

func replicasOf(role *disaggregatedsetv1.DisaggregatedRoleSpec) int32 {
	return ptr.Deref(role.Spec.Replicas, 1)
}

// rolesAvailable returns whether the controller says that all replicas of all roles are ready and updated.
func (d *diagnosis) rolesAvailable() bool {
	return meta.IsStatusConditionTrue(d.RolesSet.Status.Conditions, disaggregatedsetv1.ConditionAvailable)
}

// roleFacts are the LeaderWorkerSets that are not ready.
func (d *diagnosis) roleFacts() (facts []Fact) {
	late := slices.DeleteFunc(slices.Clone(d.Roles.Sets), func(s snapshot.RoleSet) bool { return s.Ready() })
	for i, s := range late {
		if i == maxFacts {
			return append(facts, Fact{Object: d.set(), Text: fmt.Sprintf("%s more are not ready", count(len(late)-i, "LeaderWorkerSet"))})
		}
		facts = append(facts, Fact{Object: object("leaderworkerset", s.Name), Text: d.placeOf(s) + ": " + readyOf(s),
			Time: at(s.CreationTimestamp.Time)})
	}
	return facts
}

// placeOf names the role of a LeaderWorkerSet, with the slice if there are several, and whether it is of a former revision.
func (d *diagnosis) placeOf(s snapshot.RoleSet) string {
	words := "role " + s.Role
	if helper.Slices(d.RolesSet) > 1 {
		words += fmt.Sprintf(", slice %d", s.Slice)
	}
	if !d.Roles.Current(s) {
		words += ", former revision " + s.Revision
	}
	return words
}

func readyOf(s snapshot.RoleSet) string {
	return fmt.Sprintf("%d of %s ready", s.Status.ReadyReplicas, count(s.Wanted(), "group"))
}

// rolesCommands show the LeaderWorkerSets of the set, and why the first one that is not ready is not.
func (d *diagnosis) rolesCommands() []string {
	commands := []string{d.kubectl("get lws -l %s=%s", disaggregatedsetv1.SetNameLabelKey, d.Name)}
	for _, s := range d.Roles.Sets {
		if !s.Ready() {
			return append(commands, d.plugin("why lws/%s", s.Name))
		}
	}
	return commands
}

// roleWordsReady count the replicas of each role, like "prefill 2/4, decode 2/2".
func (d *diagnosis) roleWordsReady() string {
	var words []string
	for _, role := range snapshot.SummarizeRoles(d.RolesSet).Roles {
		words = append(words, fmt.Sprintf("%s %d/%d", role.Name, role.ReplicasReady, role.ReplicasWanted))
	}
	return strings.Join(words, ", ")
}

// formerReplicas returns the LeaderWorkerSets of former revisions that have replicas.
func (d *diagnosis) formerReplicas() []snapshot.RoleSet {
	return slices.DeleteFunc(slices.Clone(d.Roles.Sets), func(s snapshot.RoleSet) bool {
		return d.Roles.Current(s) || s.Slice >= int(helper.Slices(d.RolesSet)) || s.Wanted() == 0
	})
}

// rolloutInProgress says how far a rollout is, and what its next step waits for. One whose next step has waited for long is stuck.
func rolloutInProgress(d *diagnosis) []Finding {
	former := d.formerReplicas()
	if len(former) == 0 || d.Roles.Revision == "" {
		return nil
	}
	var done, rest int
	var waitsFor []string
	last := time.Time{}
	later := func(t time.Time) {
		if t.After(last) {
			last = t
		}
	}
	for _, s := range former {
		rest += s.Wanted()
	}
	for _, s := range d.Roles.Sets {
		later(s.CreationTimestamp.Time)
		for _, c := range s.Status.Conditions {
			later(c.LastTransitionTime.Time)
		}
		if d.Roles.Current(s) {
			if done += s.Wanted(); !s.Ready() {
				waitsFor = append(waitsFor, d.placeOf(s)+" ("+readyOf(s)+")")
			}
		}
	}
	f := Finding{Cause: Updating, Evidence: d.roleFacts(), Commands: d.rolesCommands()}
	f.Summary = fmt.Sprintf("a rollout to the revision %s is in progress: it has %s, and former revisions have %d", d.Roles.Revision,
		count(done, "group"), rest)
	if len(waitsFor) > 0 {
		f.Summary += "; the next step waits for " + some(waitsFor, maxFacts)
		if d.Now.Sub(last) > updateGrace {
			f.Cause = UpdateStuck
			f.Summary += fmt.Sprintf(", and nothing has changed for %s", span(d.Now, last))
			f.Commands = append(f.Commands, d.kubectl("apply -f FILE  # the former templates, to roll back"))
		}
	}
	if len(f.Evidence) == 0 {
		f.Evidence = []Fact{{Object: d.set(), Text: "ready groups of roles: " + d.roleWordsReady()}}
	}
	return []Finding{f}
}

// rolesHealth says what the set does when nothing else is to be said.
func rolesHealth(d *diagnosis) []Finding {
	if len(d.formerReplicas()) > 0 {
		return nil
	}
	f := Finding{
		Cause: Starting, Summary: "starting, no problem found: ready groups of roles: " + d.roleWordsReady(), Evidence: d.roleFacts(),
		Commands: d.rolesCommands(),
	}
	if d.rolesAvailable() && d.RolesSet.Status.ObservedGeneration == d.RolesSet.Generation && len(f.Evidence) == 0 {
		f.Cause, f.Summary = Running, "runs: ready groups of roles: "+d.roleWordsReady()
	}
	if missing := missingRoleSets(d.Roles); f.Cause == Starting && len(missing) > 0 && !d.forbidden("leaderworkersets") {
		f.Evidence = append(f.Evidence, Fact{
			Object: d.set(), Text: fmt.Sprintf("%s not created yet: %s", count(len(missing), "LeaderWorkerSet"), some(missing, maxFacts)),
			Time: at(d.RolesSet.CreationTimestamp.Time),
		})
	}
	return []Finding{f}
}

// idleRoles are notes about roles whose scalers ask for no replicas.
func (d *diagnosis) idleRoles() (notes []string) {
	for i := range d.RolesSet.Spec.Roles {
		role := &d.RolesSet.Spec.Roles[i]
		if groups, known := desiredReplicas(d.Evidence, role); helper.External(role) && known && groups == 0 {
			notes = append(notes, fmt.Sprintf("the role %s has no groups, because its scaler %s asks for none", role.Name,
				helper.ScalerName(d.Name, role.Name)))
		}
	}
	return notes
}
