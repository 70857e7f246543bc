// Copyright The jobset-apiserver Authors.
// SPDX-License-Identifier: Apache-2.0

package why

import (
	"context"
	"slices"

	corev1 "k8s.io/api/core/v1"
	apierrors "k8s.io/apimachinery/pkg/api/errors"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"

	disaggregatedsetv1 "github.com/jobset-apiserver/jobset-apiserver/pkg/apis/disaggregatedset/v1"
	"github.com/jobset-apiserver/jobset-apiserver/pkg/apis/disaggregatedset/v1/helper"
	leaderworkersetv1 "github.com/jobset-apiserver/jobset-apiserver/pkg/apis/leaderworkerset/v1"
	"github.com/jobset-apiserver/jobset-apiserver/pkg/kubectl/snapshot"
)

// The reading of DisaggregatedSets.

// maxRoleChildren bounds how many LeaderWorkerSets that are not ready are diagnosed.
const maxRoleChildren = 3

func (l *loader) readRolesSet(ctx context.Context) error {
	set, err := l.JobSets.DisaggregatedsetV1().DisaggregatedSets(l.Namespace).Get(ctx, l.e.Name, metav1.GetOptions{})
	if err == nil {
		l.e.RolesSet = set
	}
	return err
}

func (l *loader) readRoleSets(ctx context.Context) {
	if list, err := l.JobSets.LeaderworkersetV1().LeaderWorkerSets(l.Namespace).List(ctx, l.named()); l.got("leaderworkersets", err) {
		l.roleSets = list.Items
	}
}

// assembleRoles keeps the LeaderWorkerSets of the set.
func (l *loader) assembleRoles() {
	l.e.Roles = snapshot.AssembleRoles(l.e.RolesSet, l.roleSets)
}

// readMoreOfRoles are the readings for the rules that only DisaggregatedSets have.
func (l *loader) readMoreOfRoles() []func(context.Context) {
	if l.e.RolesSet.DeletionTimestamp != nil {
		return nil
	}
	reads := []func(context.Context){func(ctx context.Context) {
		l.readScalers(ctx)
		l.readServicesOfRoles(ctx)
	}}
	if !l.e.forbidden("leaderworkersets") {
		reads = append(reads, l.readTakenRoleSets)
	}
	for _, s := range rolesToDiagnose(l.e.Roles) {
		reads = append(reads, func(ctx context.Context) { l.readRoleChild(ctx, s) })
	}
	return reads
}

// rolesToDiagnose returns a few LeaderWorkerSets that are not ready, first one of each role of the current revision.
func rolesToDiagnose(r *snapshot.Roles) []snapshot.RoleSet {
	var first, others []snapshot.RoleSet
	for _, s := range r.Sets {
		switch {
		case s.Ready() || s.DeletionTimestamp != nil:
		case r.Current(s) && !slices.ContainsFunc(first, func(have snapshot.RoleSet) bool { return have.Role == s.Role }):
			first = append(first, s)
		default:
			others = append(others, s)
		}
	}
	all := append(first, others...)
	return all[:min(len(all), maxRoleChildren)]
}

// readRoleChild reads a LeaderWorkerSet that is not ready, and what explains its state.
func (l *loader) readRoleChild(ctx context.Context, s snapshot.RoleSet) {
	child, err := load(ctx, l.Clients, leaderWorkerSetKind(), s.Name)
	if !l.got("leaderworkersets", err) {
		return
	}
	if child.Set != nil && child.Set.UID == s.UID {
		l.mu.Lock()
		defer l.mu.Unlock()
		l.e.RoleChildren = append(l.e.RoleChildren, child)
		place := func(e *Evidence) int {
			return slices.IndexFunc(l.e.Roles.Sets, func(s snapshot.RoleSet) bool { return s.Name == e.Name })
		}
		slices.SortFunc(l.e.RoleChildren, func(a, b *Evidence) int { return place(a) - place(b) })
	}
}

// missingRoleSets are the names of the LeaderWorkerSets of the current revision that do not exist.
func missingRoleSets(r *snapshot.Roles) (names []string) {
	for _, s := range r.Absent() {
		names = append(names, helper.SetName(r.Set.Name, int32(s.Slice), s.Revision, s.Role))
	}
	return names
}

// readTakenRoleSets reads the LeaderWorkerSets of others under the names that the set needs.
func (l *loader) readTakenRoleSets(ctx context.Context) {
	found := map[string]*leaderworkersetv1.LeaderWorkerSet{}
	byName(ctx, l, "leaderworkersets", missingRoleSets(l.e.Roles), found,
		func(ctx context.Context, name string) (*leaderworkersetv1.LeaderWorkerSet, error) {
			return l.JobSets.LeaderworkersetV1().LeaderWorkerSets(l.Namespace).Get(ctx, name, metav1.GetOptions{})
		})
	l.e.TakenRoleSets = map[string]*leaderworkersetv1.LeaderWorkerSet{}
	for name, set := range found {
		if set != nil && !metav1.IsControlledBy(set, l.e.RolesSet) {
			l.e.TakenRoleSets[name] = set
		}
	}
}

// readScalers reads the scalers of roles that others scale.
func (l *loader) readScalers(ctx context.Context) {
	var names []string
	for i := range l.e.RolesSet.Spec.Roles {
		if role := &l.e.RolesSet.Spec.Roles[i]; helper.External(role) {
			names = append(names, helper.ScalerName(l.e.Name, role.Name))
		}
	}
	l.e.Scalers = map[string]*disaggregatedsetv1.DisaggregatedSetRoleScaler{}
	byName(ctx, l, "disaggregatedsetrolescalers", names, l.e.Scalers,
		func(ctx context.Context, name string) (*disaggregatedsetv1.DisaggregatedSetRoleScaler, error) {
			return l.JobSets.DisaggregatedsetV1().DisaggregatedSetRoleScalers(l.Namespace).Get(ctx, name, metav1.GetOptions{})
		})
}

// readServicesOfRoles reads the Services of the LeaderWorkerSets that should have one, if some have none.
func (l *loader) readServicesOfRoles(ctx context.Context) {
	wanted := servicesOfRoles(l.e)
	if len(wanted) == 0 {
		return
	}
	list, err := l.Kube.CoreV1().Services(l.Namespace).List(ctx, l.named())
	if err != nil && !apierrors.IsForbidden(err) { // who may not list them may read them by name
		l.gap("services", err)
		return
	}
	if err != nil {
		list = &corev1.ServiceList{}
	}
	wanted = slices.DeleteFunc(wanted, func(name string) bool {
		return slices.ContainsFunc(list.Items, func(s corev1.Service) bool { return s.Name == name && metav1.IsControlledBy(&s, l.e.RolesSet) })
	})
	byName(ctx, l, "services", wanted, l.e.Services, func(ctx context.Context, name string) (*corev1.Service, error) {
		return l.Kube.CoreV1().Services(l.Namespace).Get(ctx, name, metav1.GetOptions{})
	})
}

// servicesOfRoles are the names of the Services of the current revision in the slices in which it serves: each role
// that is to have replicas has one that is ready.
func servicesOfRoles(e *Evidence) (names []string) {
	for slice := range int(helper.Slices(e.RolesSet)) {
		var ofSlice []string
		serves := true
		for i := range e.RolesSet.Spec.Roles {
			role := &e.RolesSet.Spec.Roles[i]
			s, found := e.Roles.Find(slice, role.Name)
			if groups, known := desiredReplicas(e, role); known && groups == 0 {
				continue
			}
			if serves = serves && found && s.Status.ReadyReplicas > 0; serves {
				ofSlice = append(ofSlice, helper.ServiceName(s.Name))
			}
		}
		if serves {
			names = append(names, ofSlice...)
		}
	}
	return names
}

// desiredReplicas returns how many replicas a role should have in each slice; false if its scaler is not known.
func desiredReplicas(e *Evidence, role *disaggregatedsetv1.DisaggregatedRoleSpec) (groups int, known bool) {
	if helper.External(role) {
		scaler := e.Scalers[helper.ScalerName(e.Name, role.Name)]
		if scaler == nil || !metav1.IsControlledBy(scaler, e.RolesSet) {
			return 0, false
		}
		return int(scaler.Spec.Replicas), true
	}
	return int(max(0, replicasOf(role))), true
}
