// Copyright The jobset-apiserver Authors.
// SPDX-License-Identifier: Apache-2.0

package why

import (
	"context"
	"fmt"
	"slices"

	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/runtime"

	disaggregatedsetv1 "github.com/jobset-apiserver/jobset-apiserver/pkg/apis/disaggregatedset/v1"
	lwshelper "github.com/jobset-apiserver/jobset-apiserver/pkg/apis/leaderworkerset/v1/helper"
	"github.com/jobset-apiserver/jobset-apiserver/pkg/kubectl/cli"
	"github.com/jobset-apiserver/jobset-apiserver/pkg/kubectl/snapshot"
)

// The kind DisaggregatedSet, its rules and its report. What is wrong with the pods of a role is the diagnosis of its LeaderWorkerSet.

// rolesKind is the kind DisaggregatedSet.
func rolesKind() *kind {
	return &kind{
		Kind: cli.DisaggregatedSet, noun: "set", prefix: cli.DisaggregatedSet.Short() + "/", label: disaggregatedsetv1.SetNameLabelKey,
		children: "LeaderWorkerSets", readChildren: (*loader).readRoleSets, essential: []string{"leaderworkersets", "events"},
		podsOfChildren: true,
		controls:       "DisaggregatedSets", gate: gateOfRoles,
		read: (*loader).readRolesSet, assemble: (*loader).assembleRoles, more: (*loader).readMoreOfRoles, list: listRolesSets,
	}
}

// DisaggregatedSet is the Diagnoser of DisaggregatedSets.
func DisaggregatedSet(ctx context.Context, c *cli.Clients, name string) (*Report, error) {
	return explain(ctx, c, rolesKind(), name, diagnoseRoles)
}

// rolesSubject is a DisaggregatedSet as a subject.
type rolesSubject struct {
	endless
	*disaggregatedsetv1.DisaggregatedSet
}

func (s rolesSubject) observed() bool {
	return s.Status.ObservedGeneration > 0 || len(s.Status.Conditions) > 0
}

func (s rolesSubject) failedOn() string { return "" }

func listRolesSets(ctx context.Context, l *loader, namespace string, options metav1.ListOptions) (runtime.Object, error) {
	return l.JobSets.DisaggregatedsetV1().DisaggregatedSets(namespace).List(ctx, options)
}

// The rules of DisaggregatedSets, by state.
var (
	rolesRules = map[string][]rule{
		stateUnknown:               {storeRefused, gateOff, apiServiceUnavailable, nodesLost, schedulingRefused, containersWaiting},
		stateNotFound:              {notFound, childrenBlocked},
		lwshelper.PhaseTerminating: {rolesDeletion, childrenBlocked},
	}
	rolesRunning = []rule{
		olderThanNamespace, controllerOfGate, childUnreadable, roleSetNameTaken, scalerNameTaken, roleChildRefused, serviceOfRoleForeign,
		childrenBlocked, rolesUnreadable,
		roleSetGoing, causesOfRoles, rolloutInProgress, rolesHealth,
	}
)

// diagnoseRoles explains the state of a DisaggregatedSet. It finds something in every case, also that all is well.
func diagnoseRoles(e *Evidence) *Report {
	d := newDiagnosis(e)
	if e.RolesSet == nil {
		phase := d.unreadPhase()
		return d.report(phase, rolesRules[phase.State])
	}
	s := snapshot.SummarizeRoles(e.RolesSet)
	apply, known := rolesRules[s.State]
	if !known {
		apply = rolesRunning
	}
	r := d.report(s.Phase, apply)
	r.RoleCounts, r.ReplicaCounts, r.Notes = &s.RoleCounts, &s.ReplicaCounts, d.idleRoles()
	for _, child := range e.RoleChildren {
		for _, note := range diagnoseLeaderWorkerSet(child).Notes {
			r.Notes = append(r.Notes, d.roleWords(child.Name)+": "+note)
		}
		r.NotLookedAt = append(r.NotLookedAt, child.NotLookedAt...)
	}
	slices.SortFunc(r.NotLookedAt, compareGaps)
	r.NotLookedAt = slices.Compact(r.NotLookedAt)
	return r
}

// roleWords names the role of a LeaderWorkerSet, like "role decode (lws/llm-0-3f9a61c2-decode)".
func (d *diagnosis) roleWords(leaderWorkerSet string) string {
	for _, s := range d.Roles.Sets {
		if s.Name == leaderWorkerSet {
			return fmt.Sprintf("role %s (%s/%s)", s.Role, cli.LeaderWorkerSet.Short(), s.Name)
		}
	}
	return cli.LeaderWorkerSet.Short() + "/" + leaderWorkerSet
}

// causesOfRoles are the findings about LeaderWorkerSets that are not ready. That one of them starts is said of the set.
func causesOfRoles(d *diagnosis) (out []Finding) {
	for _, child := range d.RoleChildren {
		for _, f := range diagnoseLeaderWorkerSet(child).Findings {
			if f.Cause.Normal() || f.Cause == NotFound || f.Cause == ControllerNotRunning {
				continue
			}
			f.Summary = d.roleWords(child.Name) + ": " + f.Summary
			out = append(out, f)
		}
	}
	return out
}

// rolesUnreadable reports that the cause is not known because the user may not read what shows it.
func rolesUnreadable(d *diagnosis) []Finding {
	if d.RolesSet.Status.ObservedGeneration == d.RolesSet.Generation && d.rolesAvailable() {
		return nil
	}
	return cannotRead(d)
}
