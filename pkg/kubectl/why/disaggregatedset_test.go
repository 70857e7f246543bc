// Copyright The jobset-apiserver Authors.
// SPDX-License-Identifier: Apache-2.0

package why

import (
	"strings"
	"testing"
	"time"

	corev1 "k8s.io/api/core/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/types"
	"k8s.io/utils/ptr"

	disaggregatedsetv1 "github.com/jobset-apiserver/jobset-apiserver/pkg/apis/disaggregatedset/v1"
	"github.com/jobset-apiserver/jobset-apiserver/pkg/apis/disaggregatedset/v1/helper"
	leaderworkersetv1 "github.com/jobset-apiserver/jobset-apiserver/pkg/apis/leaderworkerset/v1"
	"github.com/jobset-apiserver/jobset-apiserver/pkg/kubectl/snapshot"
	"github.com/jobset-apiserver/jobset-apiserver/pkg/namespaceuid"
	"github.com/jobset-apiserver/jobset-apiserver/test/builders"
)

// rolesCluster is what belongs to a DisaggregatedSet, to be changed before it is assembled.
type rolesCluster struct {
	*Evidence
	sets []leaderworkersetv1.LeaderWorkerSet
}

// runningRoles is a set with the roles prefill and decode, each of two replicas, all ready.
func runningRoles() *rolesCluster {
	healthy := healthy()
	set := &disaggregatedsetv1.DisaggregatedSet{ObjectMeta: metav1.ObjectMeta{Namespace: "team", Name: "llm", UID: "llm", Generation: 1, CreationTimestamp: before(time.Hour)}}
	set.Status.ObservedGeneration = 1
	for _, name := range []string{"prefill", "decode"} {
		set.Spec.Roles = append(set.Spec.Roles, disaggregatedsetv1.DisaggregatedRoleSpec{Name: name, Spec: builders.LeaderWorkerSet(name, 2, 2).Spec})
		set.Status.RoleStatuses = append(set.Status.RoleStatuses, disaggregatedsetv1.RoleStatus{Name: name, Replicas: 2, ReadyReplicas: 2, UpdatedReplicas: 2})
	}
	c := &rolesCluster{Evidence: &Evidence{
		of: rolesKind(), Namespace: "team", Name: "llm", Now: healthy.Now, RolesSet: set, Leases: healthy.Leases, LeasesRead: true, Services: map[string]*corev1.Service{},
	}}
	c.available(true)
	revision, err := helper.Revision(set)
	if err != nil {
		panic(err)
	}
	for i := range set.Spec.Roles {
		c.add(revision, set.Spec.Roles[i].Name, 2)
	}
	return c
}

// add adds a LeaderWorkerSet with so many replicas, all ready.
func (c *rolesCluster) add(revision, role string, groups int32) {
	name := helper.SetName("llm", 0, revision, role)
	set := builders.LeaderWorkerSet(name, groups, 2)
	set.Namespace, set.UID, set.CreationTimestamp, set.Status.ReadyReplicas = "team", types.UID(name), before(time.Hour), groups
	set.Labels = helper.Labels("llm", 0, revision, role)
	set.OwnerReferences = []metav1.OwnerReference{{APIVersion: disaggregatedsetv1.SchemeGroupVersion.String(), Kind: "DisaggregatedSet", Name: "llm", UID: "llm", Controller: ptr.To(true)}}
	c.sets = append(c.sets, *set)
}

// available sets the conditions as the controller does.
func (c *rolesCluster) available(is bool) {
	conditions := map[bool]metav1.Condition{
		true:  {Type: "Available", Status: metav1.ConditionTrue, Reason: "AllRolesReady", Message: "All roles have reached their desired replica count", LastTransitionTime: before(time.Hour)},
		false: {Type: "Progressing", Status: metav1.ConditionTrue, Reason: "RolloutInProgress", Message: "Not all roles have reached their desired replica count", LastTransitionTime: before(time.Hour)},
	}
	c.RolesSet.Status.Conditions = []metav1.Condition{conditions[is]}
}

func (c *rolesCluster) evidence() *Evidence {
	c.Roles = snapshot.AssembleRoles(c.RolesSet, c.sets)
	return c.Evidence
}

// notReadyRole makes one replica of the role decode not ready.
func notReadyRole(c *rolesCluster) {
	c.available(false)
	c.sets[1].Status.ReadyReplicas = 1
	c.RolesSet.Status.RoleStatuses[1].ReadyReplicas = 1
}

// diagnosed adds the diagnosis of the LeaderWorkerSet of the role decode.
func diagnosed(change ...func(*leaderWorkerSetCluster)) func(*rolesCluster) {
	return func(c *rolesCluster) {
		notReadyRole(c)
		child := runningLeaderWorkerSet()
		for _, f := range change {
			f(child)
		}
		e := child.evidence()
		e.Name = c.sets[1].Name
		c.RoleChildren = append(c.RoleChildren, e)
	}
}

// rolls makes the set one that is being updated: the revision before has two replicas of each role left, and the new one
// has one, which is not ready.
func rolls(age time.Duration) func(*rolesCluster) {
	return func(c *rolesCluster) {
		c.available(false)
		for i := range c.sets {
			c.sets[i].Spec.Replicas, c.sets[i].Status.ReadyReplicas, c.sets[i].CreationTimestamp = ptr.To[int32](1), 0, before(age)
		}
		c.sets[0].Status.ReadyReplicas = 1
		c.add("0ld0ld00", "prefill", 2)
		c.add("0ld0ld00", "decode", 2)
		for i := range c.RolesSet.Status.RoleStatuses {
			c.RolesSet.Status.RoleStatuses[i] = disaggregatedsetv1.RoleStatus{Name: c.RolesSet.Spec.Roles[i].Name, Replicas: 3, ReadyReplicas: 2, UpdatedReplicas: 1}
		}
	}
}

// scaled gives the role decode to a scaler.
func scaled(groups int32, owned bool) func(*rolesCluster) {
	return func(c *rolesCluster) {
		c.RolesSet.Spec.Roles[1].Scaling = &disaggregatedsetv1.RoleScaling{Mode: disaggregatedsetv1.RoleScalingExternal}
		scaler := &disaggregatedsetv1.DisaggregatedSetRoleScaler{ObjectMeta: metav1.ObjectMeta{Name: "llm-decode", OwnerReferences: c.sets[0].OwnerReferences, CreationTimestamp: before(time.Hour)}}
		if scaler.Spec.Replicas = groups; !owned {
			scaler.OwnerReferences = []metav1.OwnerReference{{Kind: "DisaggregatedSet", Name: "llm", UID: "before", Controller: ptr.To(true)}}
		}
		c.Scalers = map[string]*disaggregatedsetv1.DisaggregatedSetRoleScaler{"llm-decode": scaler}
	}
}

// lacksRole removes the LeaderWorkerSet of the role decode.
func lacksRole(c *rolesCluster) {
	c.available(false)
	c.sets = c.sets[:1]
	c.RolesSet.Status.RoleStatuses[1] = disaggregatedsetv1.RoleStatus{Name: "decode"}
}

// warnsOfRoles adds a warning about the set.
func warnsOfRoles(reason, message string) func(*rolesCluster) {
	return func(c *rolesCluster) {
		c.Events = append(c.Events, corev1.Event{
			InvolvedObject: corev1.ObjectReference{Kind: "DisaggregatedSet", Name: "llm", UID: "llm"}, Reason: reason, Message: message, LastTimestamp: before(time.Minute),
		})
	}
}

// unobservedRoles makes the set one that no controller has seen, with a lease of the controller that has the gate off or on.
func unobservedRoles(gate string) func(*rolesCluster) {
	return func(c *rolesCluster) {
		c.sets, c.RolesSet.Status = nil, disaggregatedsetv1.DisaggregatedSetStatus{}
		c.Leases[0].Labels = map[string]string{"feature-gates.jobset-apiserver.io/DisaggregatedSet": gate}
	}
}

// rolesCase is how a set differs from the running one, and what has to be found first in it.
type rolesCase struct {
	change      []func(*rolesCluster)
	want        Cause
	wantSummary string
	wantCommand string
}

func rolesCases() map[string]rolesCase {
	return map[string]rolesCase{
		"all is well": {want: Running, wantSummary: "runs: ready groups of roles: prefill 2/2, decode 2/2", wantCommand: "get lws -l disaggregatedset.x-k8s.io/name=llm"},
		"a role starts": {change: []func(*rolesCluster){notReadyRole}, want: Starting,
			wantSummary: "starting, no problem found: ready groups of roles: prefill 2/2, decode 1/2", wantCommand: "why lws/llm-0-"},
		"a pod of a role finds no node": {change: []func(*rolesCluster){diagnosed(workerWaits(withoutNode("0/3 nodes are available: 3 Insufficient cpu.")))}, want: UnschedulableResources,
			wantSummary: "-decode): 1 pod finds no node with enough room: 3 nodes: Insufficient cpu", wantCommand: "describe pod vllm-1-1"},
		"groups of a role are left": {change: []func(*rolesCluster){diagnosed(recreated(leaderworkersetv1.GroupStatus{Restarts: 3, Failed: true}), says("Failed", "MaxGroupRestartsExceeded", "Group 1 has failed again"))},
			want: MaxRestartsReached, wantSummary: "-decode): group 1 has used up its 3 restarts", wantCommand: "restart lws/"},
		"a rollout": {change: []func(*rolesCluster){rolls(time.Minute)}, want: Updating,
			wantSummary: "it has 2 groups, and former revisions have 4; the next step waits for role decode (0 of 1 group ready)", wantCommand: "why lws/llm-0-"},
		"a rollout that is stuck": {change: []func(*rolesCluster){rolls(20 * time.Minute)}, want: UpdateStuck, wantSummary: "role decode (0 of 1 group ready), and nothing has changed for 20m", wantCommand: "to roll back"},
		"the name of a LeaderWorkerSet is taken": {change: []func(*rolesCluster){lacksRole, func(c *rolesCluster) {
			c.TakenRoleSets = map[string]*leaderworkersetv1.LeaderWorkerSet{"llm-0-x-decode": {ObjectMeta: metav1.ObjectMeta{Name: "llm-0-x-decode"}}}
		}, warnsOfRoles("FailedCreate", "Could not create llm-0-x-decode: another object that this DisaggregatedSet does not control has the name: delete it")}, want: LeaderWorkerSetNameTaken,
			wantSummary: "the set needs the name of the LeaderWorkerSet llm-0-x-decode, which exists and has no owner", wantCommand: "delete lws llm-0-x-decode"},
		"a LeaderWorkerSet that the server cannot read": {change: []func(*rolesCluster){func(c *rolesCluster) {
			c.RolesSet.Status.Conditions = []metav1.Condition{{Type: "Progressing", Status: metav1.ConditionTrue, Reason: "ChildUnreadable", Message: "The server cannot read LeaderWorkerSet llm-0-x-decode, so what depends on it stays as it is until an administrator repairs or removes it: damaged"}}
		}}, want: ChildUnreadable, wantSummary: "The server cannot read LeaderWorkerSet llm-0-x-decode", wantCommand: "jobset doctor"},
		"the name of a scaler is taken": {change: []func(*rolesCluster){scaled(5, false)}, want: ScalerNameTaken,
			wantSummary: "the role decode needs the name of the scaler llm-decode, which exists and belongs to an earlier DisaggregatedSet of this name, UID before", wantCommand: "delete dsrs llm-decode"},
		"the name of a Service is taken": {change: []func(*rolesCluster){func(c *rolesCluster) {
			name := c.sets[1].Name + "-prv"
			c.Services[name] = &corev1.Service{ObjectMeta: metav1.ObjectMeta{Name: name}}
		}}, want: ServiceForeign, wantSummary: "-decode-prv exists and has no owner, so that clients do not find role decode", wantCommand: "delete service llm-0-"},
		"a quota refuses a role": {change: []func(*rolesCluster){lacksRole, warnsOfRoles("FailedCreate", `Could not create llm-0-x-decode: leaderworkersets.leaderworkerset.x-k8s.io "llm-0-x-decode" is forbidden: exceeded quota: sets, requested: count/leaderworkersets=1`)},
			want: LeaderWorkerSetRefused, wantSummary: "a quota refuses the LeaderWorkerSet llm-0-x-decode: quota sets: requested", wantCommand: "describe resourcequota"},
		"another party deletes a LeaderWorkerSet": {change: []func(*rolesCluster){lacksRole, warnsOfRoles("FailedCreate", `Could not create llm-0-x-decode: leaderworkerset llm-0-x-decode was deleted 3 times within a minute, each time after the controller had created it; the API does not say who deletes it, the audit log does; the controller creates it again at 2026-01-01T00:01:03Z`)},
			want: ChildUndoneByOther, wantSummary: "leaderworkerset llm-0-x-decode was deleted 3 times within a minute", wantCommand: "events --for disaggregatedset/llm"},
		"a scaler cannot be deleted": {change: []func(*rolesCluster){warnsOfRoles("FailedDelete", `Could not delete llm-decode: disaggregatedsetrolescalers.disaggregatedset.x-k8s.io "llm-decode" is forbidden: User "controller" cannot delete resource`)},
			want: LeaderWorkerSetRefused, wantSummary: "the controller has no permission to delete the scaler llm-decode: user controller cannot delete resource", wantCommand: "events --for disaggregatedset/llm"},
		"the API does not answer": {change: []func(*rolesCluster){lacksRole, warnsOfRoles("FailedCreate", `Could not create llm-0-x-decode: etcdserver: request timed out`)},
			want: RequestFailed, wantSummary: "the controller could not create the LeaderWorkerSet llm-0-x-decode, and tries again: etcdserver: request timed out"},
		"a refusal that is over": {change: []func(*rolesCluster){warnsOfRoles("FailedCreate", "Could not create x: y"), func(c *rolesCluster) { c.Events[0].LastTimestamp = before(10 * time.Minute) }}, want: Running},
		"the controller has the gate off": {change: []func(*rolesCluster){unobservedRoles("false")}, want: FeatureGateOff,
			wantSummary: "jobset-controller runs without the feature gate DisaggregatedSet, so nothing happens to the set", wantCommand: "turn on DisaggregatedSet in both programs"},
		"the controller does not act":     {change: []func(*rolesCluster){unobservedRoles("true")}, want: ControllerNotActing, wantSummary: "the controller of DisaggregatedSets runs, but has not acted on the set"},
		"the controller does not run":     {change: []func(*rolesCluster){notReadyRole, func(c *rolesCluster) { c.Leases[0].Spec.HolderIdentity = nil }}, want: ControllerNotRunning, wantSummary: "the controller of DisaggregatedSets does not run"},
		"older than its namespace":        {change: []func(*rolesCluster){olderRoles}, want: OlderThanNamespace, wantSummary: "the namespace was created after the set", wantCommand: "annotate disaggregatedset llm"},
		"a LeaderWorkerSet was deleted":   {change: []func(*rolesCluster){goingRole()}, want: Restarting, wantSummary: "-decode) was deleted 60s ago, and is created again when it is gone"},
		"a finalizer keeps it":            {change: []func(*rolesCluster){goingRole("example.com/keep")}, want: FinalizerBlocksDeletion, wantSummary: "the set cannot continue: the finalizer example.com/keep keeps leaderworkerset/llm-0-"},
		"the set was deleted":             {change: []func(*rolesCluster){deletedRoles()}, want: Deleting, wantSummary: "waits until its LeaderWorkerSets are gone", wantCommand: "wait --for=delete disaggregatedset/llm"},
		"a finalizer keeps the set":       {change: []func(*rolesCluster){deletedRoles("example.com/keep")}, want: FinalizerBlocksDeletion, wantSummary: "the finalizer example.com/keep keeps it", wantCommand: "patch disaggregatedset llm"},
		"LeaderWorkerSets cannot be read": {change: []func(*rolesCluster){lacksRole, func(c *rolesCluster) { c.sets, c.NotLookedAt = nil, []Gap{{"leaderworkersets", reasonForbidden}} }}, want: CauseUnknown, wantSummary: "cause unknown: cannot read leaderworkersets"},
	}
}

func olderRoles(c *rolesCluster) {
	c.RolesSet.Status.Conditions = append(c.RolesSet.Status.Conditions, metav1.Condition{Type: namespaceuid.Condition, Status: metav1.ConditionTrue, Reason: "x", Message: "the namespace was created after the set"})
}

func goingRole(finalizers ...string) func(*rolesCluster) {
	return func(c *rolesCluster) {
		c.sets[1].DeletionTimestamp, c.sets[1].Finalizers = ptr.To(before(time.Minute)), finalizers
		notReadyRole(c)
	}
}

func deletedRoles(finalizers ...string) func(*rolesCluster) {
	return func(c *rolesCluster) {
		c.RolesSet.DeletionTimestamp, c.RolesSet.Finalizers = ptr.To(before(time.Minute)), finalizers
	}
}

func TestCausesOfDisaggregatedSets(t *testing.T) {
	for name, tc := range rolesCases() {
		t.Run(name, func(t *testing.T) {
			c := runningRoles()
			for _, change := range tc.change {
				change(c)
			}
			first := diagnoseRoles(c.evidence()).Findings[0]
			if first.Cause != tc.want || !strings.Contains(first.Summary, tc.wantSummary) || !strings.Contains(strings.Join(first.Commands, "\n"), tc.wantCommand) {
				t.Errorf("got %s: %s\n%v\nwant %s: %s", first.Cause, first.Summary, first.Commands, tc.want, tc.wantSummary)
			}
			if len(first.Commands) == 0 || len(first.Evidence) == 0 && first.Cause != Running {
				t.Errorf("no evidence or no commands: %+v", first)
			}
		})
	}
}

// TestIdleRoleIsANote has a scaler that asks for no replicas.
func TestIdleRoleIsANote(t *testing.T) {
	c := runningRoles()
	scaled(0, true)(c)
	r := diagnoseRoles(c.evidence())
	if len(r.Notes) != 1 || !strings.Contains(r.Notes[0], "the role decode has no groups, because its scaler llm-decode asks for none") {
		t.Errorf("notes: %q", r.Notes)
	}
}
