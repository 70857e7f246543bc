// Copyright The jobset-apiserver Authors.
// SPDX-License-Identifier: Apache-2.0

package snapshot

import (
	"cmp"
	"context"
	"fmt"
	"slices"
	"strings"
	"time"

	"golang.org/x/sync/errgroup"
	appsv1 "k8s.io/api/apps/v1"
	corev1 "k8s.io/api/core/v1"
	"k8s.io/apimachinery/pkg/api/meta"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"

	disaggregatedsetv1 "github.com/jobset-apiserver/jobset-apiserver/pkg/apis/disaggregatedset/v1"
	"github.com/jobset-apiserver/jobset-apiserver/pkg/apis/disaggregatedset/v1/helper"
	leaderworkersetv1 "github.com/jobset-apiserver/jobset-apiserver/pkg/apis/leaderworkerset/v1"
	lwshelper "github.com/jobset-apiserver/jobset-apiserver/pkg/apis/leaderworkerset/v1/helper"
	"github.com/jobset-apiserver/jobset-apiserver/pkg/kubectl/cli"
)

// Roles is a DisaggregatedSet with its LeaderWorkerSets, as read at one time.
type Roles struct {
	Set *disaggregatedsetv1.DisaggregatedSet
	// Revision is the current one; "" if it is not known.
	Revision string
	// Sets are the LeaderWorkerSets that the set controls: those of the current revision first, then by slice, and by role
	// in the order of the spec.
	Sets []RoleSet
	// Now is when the reading began.
	Now time.Time
}

// RoleSet is the LeaderWorkerSet of a role, with what its labels say. A set of an early version has no slice, and belongs to slice 0.
type RoleSet struct {
	*leaderworkersetv1.LeaderWorkerSet
	Role, Revision string
	Slice          int
	// Children are the StatefulSets and pods of the LeaderWorkerSet; nil unless LoadRoles read them.
	Children *LeaderWorkerSet
}

// LoadRoles reads a DisaggregatedSet and its LeaderWorkerSets with their StatefulSets and pods: one list call for each kind.
func LoadRoles(ctx context.Context, c *cli.Clients, name string) (*Roles, error) {
	now := time.Now()
	set, err := c.JobSets.DisaggregatedsetV1().DisaggregatedSets(c.Namespace).Get(ctx, name, metav1.GetOptions{})
	if err != nil {
		return nil, err
	}
	list, err := c.JobSets.LeaderworkersetV1().LeaderWorkerSets(c.Namespace).List(ctx,
		metav1.ListOptions{LabelSelector: disaggregatedsetv1.SetNameLabelKey + "=" + name, ResourceVersion: "0"})
	if err != nil {
		return nil, fmt.Errorf("listing the leaderworkersets of disaggregatedset %s: %w", name, err)
	}
	r := AssembleRoles(set, list.Items)
	r.Now = now
	if len(r.Sets) == 0 {
		return r, nil
	}
	return r, r.loadChildren(ctx, c)
}

// loadChildren reads the StatefulSets and pods of all LeaderWorkerSets.
func (r *Roles) loadChildren(ctx context.Context, c *cli.Clients) error {
	var sets *appsv1.StatefulSetList
	var pods *corev1.PodList
	names := make([]string, 0, len(r.Sets))
	for i := range r.Sets {
		names = append(names, r.Sets[i].Name)
	}
	selector := leaderworkersetv1.SetNameLabelKey + " in (" + strings.Join(names, ",") + ")"
	options := metav1.ListOptions{LabelSelector: selector, ResourceVersion: "0"}
	group, ctx := errgroup.WithContext(ctx)
	group.Go(func() (err error) {
		if sets, err = c.Kube.AppsV1().StatefulSets(c.Namespace).List(ctx, options); err != nil {
			err = fmt.Errorf("listing the statefulsets of disaggregatedset %s: %w", r.Set.Name, err)
		}
		return err
	})
	group.Go(func() (err error) {
		if pods, err = c.Kube.CoreV1().Pods(c.Namespace).List(ctx, options); err != nil {
			err = fmt.Errorf("listing the pods of disaggregatedset %s: %w", r.Set.Name, err)
		}
		return err
	})
	if err := group.Wait(); err != nil {
		return err
	}
	r.AssembleChildren(sets.Items, pods.Items)
	return nil
}

// AssembleChildren gives to each LeaderWorkerSet its own StatefulSets and pods.
func (r *Roles) AssembleChildren(sets []appsv1.StatefulSet, pods []corev1.Pod) {
	setsOf, podsOf := map[string][]appsv1.StatefulSet{}, map[string][]corev1.Pod{}
	for i := range sets {
		owner := sets[i].Labels[leaderworkersetv1.SetNameLabelKey]
		setsOf[owner] = append(setsOf[owner], sets[i])
	}
	for i := range pods {
		owner := pods[i].Labels[leaderworkersetv1.SetNameLabelKey]
		podsOf[owner] = append(podsOf[owner], pods[i])
	}
	for i := range r.Sets {
		s := &r.Sets[i]
		s.Children = AssembleLeaderWorkerSet(s.LeaderWorkerSet, setsOf[s.Name], podsOf[s.Name], r.Now)
	}
}

// AssembleRoles keeps the LeaderWorkerSets that the set controls, and sorts them.
func AssembleRoles(set *disaggregatedsetv1.DisaggregatedSet, all []leaderworkersetv1.LeaderWorkerSet) *Roles {
	r := &Roles{Set: set}
	r.Revision, _ = helper.Revision(set)
	for i := range all {
		lws := &all[i]
		if metav1.IsControlledBy(lws, set) {
			r.Sets = append(r.Sets, RoleSet{
				LeaderWorkerSet: lws, Role: lws.Labels[disaggregatedsetv1.RoleLabelKey], Revision: lws.Labels[disaggregatedsetv1.RevisionLabelKey],
				Slice: max(0, number(lws.Labels[disaggregatedsetv1.SliceLabelKey])),
			})
		}
	}
	former := func(s RoleSet) int {
		if r.Current(s) {
			return 0
		}
		return 1
	}
	slices.SortFunc(r.Sets, func(a, b RoleSet) int {
		return cmp.Or(former(a)-former(b), cmp.Compare(a.Slice, b.Slice), cmp.Compare(r.place(a.Role), r.place(b.Role)),
			cmp.Compare(a.Name, b.Name))
	})
	return r
}

// place is the place of a role in the spec. One that was removed comes last.
func (r *Roles) place(role string) int {
	at := slices.IndexFunc(r.Set.Spec.Roles, func(s disaggregatedsetv1.DisaggregatedRoleSpec) bool { return s.Name == role })
	if at < 0 {
		return len(r.Set.Spec.Roles)
	}
	return at
}

// Current returns whether a LeaderWorkerSet is of the current revision, and of a slice and role that should be.
func (r *Roles) Current(s RoleSet) bool {
	return s.Revision == r.Revision && s.Slice < int(helper.Slices(r.Set)) && r.place(s.Role) < len(r.Set.Spec.Roles)
}

// Find returns the LeaderWorkerSet of the current revision for a role in a slice; false if there is none.
func (r *Roles) Find(slice int, role string) (RoleSet, bool) {
	at := slices.IndexFunc(r.Sets, func(s RoleSet) bool { return r.Current(s) && s.Slice == slice && s.Role == role })
	if at < 0 {
		return RoleSet{}, false
	}
	return r.Sets[at], true
}

// Absent returns a RoleSet without a LeaderWorkerSet for each one of the current revision that does not exist; none if the revision is not
// known.
func (r *Roles) Absent() (absent []RoleSet) {
	if r.Revision == "" {
		return nil
	}
	for slice := range int(helper.Slices(r.Set)) {
		for i := range r.Set.Spec.Roles {
			if role := r.Set.Spec.Roles[i].Name; !r.has(slice, role) {
				absent = append(absent, RoleSet{Role: role, Revision: r.Revision, Slice: slice})
			}
		}
	}
	return absent
}

func (r *Roles) has(slice int, role string) bool {
	_, found := r.Find(slice, role)
	return found
}

// Wanted is the number of replicas that the LeaderWorkerSet should have.
func (s RoleSet) Wanted() int { return int(lwshelper.Replicas(s.LeaderWorkerSet)) }

// Ready returns whether all replicas are ready, and none has failed for good.
func (s RoleSet) Ready() bool {
	return int(s.Status.ReadyReplicas) >= s.Wanted() && !meta.IsStatusConditionTrue(s.Status.Conditions, leaderworkersetv1.ConditionFailed)
}

// RoleCounts are the numbers of the roles of a DisaggregatedSet over all slices and revisions.
type RoleCounts struct {
	// RolesReady is the number of roles with all of their replicas ready and updated, of RoleCount.
	RolesReady int `json:"rolesReady"`
	RoleCount  int `json:"roleCount"`
	// Roles are the roles in the order of the spec.
	Roles []RoleCount `json:"roles"`
}

// RoleCount are the numbers of one role.
type RoleCount struct {
	Name string `json:"name"`
	// ReplicasReady and ReplicasUpdated are the numbers of replicas that are ready, and of those of the current revision, of ReplicasWanted.
	ReplicasReady   int `json:"groupsReady"`
	ReplicasUpdated int `json:"groupsUpdated"`
	ReplicasWanted  int `json:"groupsWanted"`
}

// ReadyOf are the roles that are ready, of all, like "1/2".
func (c RoleCounts) ReadyOf() string { return fmt.Sprintf("%d/%d", c.RolesReady, c.RoleCount) }

// RolesSummary is the state of a DisaggregatedSet with its numbers.
type RolesSummary struct {
	Phase
	RoleCounts
	ReplicaCounts
}

// SummarizeRoles returns the state of a DisaggregatedSet.
func SummarizeRoles(set *disaggregatedsetv1.DisaggregatedSet) RolesSummary {
	known := helper.Summarize(set)
	s := RolesSummary{
		Phase{State: known.Phase, Reason: known.Reason, Message: cli.Clean(known.Message)},
		RoleCounts{RoleCount: len(known.Roles), RolesReady: known.RolesReady, Roles: []RoleCount{}},
		ReplicaCounts{ReplicasReady: known.Ready, ReplicasUpdated: known.Updated, ReplicasWanted: known.Wanted},
	}
	for _, role := range known.Roles {
		s.Roles = append(s.Roles, RoleCount{
			Name: role.Name, ReplicasReady: role.Ready, ReplicasUpdated: role.Updated, ReplicasWanted: role.Wanted,
		})
	}
	return s
}
