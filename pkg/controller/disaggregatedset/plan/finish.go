// Copyright The jobset-apiserver Authors.
// SPDX-License-Identifier: Apache-2.0

package plan

import (
	"fmt"
	"math"
	"slices"
	"time"

	corev1 "k8s.io/api/core/v1"
	"k8s.io/apimachinery/pkg/api/equality"
	"k8s.io/apimachinery/pkg/api/meta"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"

	disaggregatedsetv1 "github.com/jobset-apiserver/jobset-apiserver/pkg/apis/disaggregatedset/v1"
	"github.com/jobset-apiserver/jobset-apiserver/pkg/apis/disaggregatedset/v1/helper"
	"github.com/jobset-apiserver/jobset-apiserver/pkg/apis/generic/reasons"
	hostplan "github.com/jobset-apiserver/jobset-apiserver/pkg/controller/host/plan"
)

// retryNamesAfter is when to look again at names that other objects have. No watch shows when an object without our labels is gone.
const retryNamesAfter = 30 * time.Second

// Finish returns the next status, and the events about what was written.
func Finish(obs Observed, p Plan, r Results) Outcome {
	if obs.Set.DeletionTimestamp != nil {
		return Outcome{}
	}
	out := Outcome{Events: events(obs, p, r), Continue: r.Interrupted && r.Accepted > 0}
	if r.NameTaken {
		out.LookAfter = retryNamesAfter
	}
	next := status(obs, p)
	out.TroubledSince = reportTroubles(obs, p, r, next)
	if !equality.Semantic.DeepEqual(*next, obs.Set.Status) {
		out.Status = next
	}
	return out
}

// reportTroubles puts the conditions in place that say what keeps the set from having all its roles, and returns since when children are
// blocked. Nothing is due: what blocks children is tried again after its errors.
func reportTroubles(obs Observed, p Plan, r Results, next *disaggregatedsetv1.DisaggregatedSetStatus) time.Time {
	children := r.Blocked
	for _, name := range p.Conflicts {
		children = append(children, hostplan.BlockedChild{What: "scaler " + name + " could not be created", Refusal: hostplan.Refusal{
			Reason:  reasons.NameConflict,
			Message: "a scaler with this name exists and does not belong to the DisaggregatedSet; it is created once that one is deleted",
		}})
	}
	var troubles []hostplan.Trouble
	if p.Revision != "" {
		troubles = append(troubles, rolesBlocked(obs, p.Revision))
	}
	since := hostplan.RefusedSince(obs.TroubledSince, obs.Now.Time, len(children) > 0, r.Interrupted)
	complete := p.Revision != "" && !r.Interrupted && !r.Skipped
	troubles = append(troubles, hostplan.ChildTroubles(disaggregatedsetv1.ConditionChildCreationFailure, next.Conditions, children, since,
		complete)...)
	next.Conditions, _, _ = hostplan.Fold(next.Conditions, obs.Set.Generation, obs.Now, troubles...)
	return since
}

// status counts the groups of each role over all slices and revisions.
func status(obs Observed, p Plan) *disaggregatedsetv1.DisaggregatedSetStatus {
	next := obs.Set.Status.DeepCopy()
	if p.Revision == "" {
		return next
	}
	next.ObservedGeneration = obs.Set.Generation
	next.RoleStatuses = nil
	available := true
	for _, role := range roles(obs) {
		count := countRole(obs, role.Name, p.Revision)
		next.RoleStatuses = append(next.RoleStatuses, count)
		desired, decided := role.desired()
		desired *= int64(helper.Slices(obs.Set))
		available = available && decided && int64(count.Replicas) == desired && count.ReadyReplicas == count.Replicas &&
			count.UpdatedReplicas == count.Replicas
	}
	setConditions(next, available, obs)
	for i := range next.Conditions {
		next.Conditions[i].ObservedGeneration = obs.Set.Generation
	}
	return next
}

// countRole counts the groups of a role. While one of its LeaderWorkerSets cannot be read, the counts stay.
func countRole(obs Observed, role, revision string) disaggregatedsetv1.RoleStatus {
	count := disaggregatedsetv1.RoleStatus{Name: role}
	if obs.unknownRole(role) {
		for _, known := range obs.Set.Status.RoleStatuses {
			if known.Name == role {
				return known
			}
		}
		return count
	}
	for _, c := range obs.Children {
		if c.Role != role {
			continue
		}
		count.Replicas = plus(count.Replicas, c.Current)
		count.ReadyReplicas = plus(count.ReadyReplicas, c.Ready)
		if c.Revision == revision {
			count.UpdatedReplicas = plus(count.UpdatedReplicas, c.Updated)
		}
	}
	return count
}

// plus adds a count of a child, which others can write. The sum is one that the status can hold.
func plus(sum, count int32) int32 {
	return int32(min(int64(sum)+max(0, int64(count)), math.MaxInt32))
}

// setConditions makes one of Available and Progressing true. The other one is false if it was there, with the reason of the first one.
func setConditions(status *disaggregatedsetv1.DisaggregatedSetStatus, available bool, obs Observed) {
	is, isNot := disaggregatedsetv1.ConditionProgressing, disaggregatedsetv1.ConditionAvailable
	reason := disaggregatedsetv1.ReasonRolloutInProgress
	message := "Not all roles have reached their desired replica count, ready and updated to the current revision"
	if available {
		is, isNot, reason = isNot, is, disaggregatedsetv1.ReasonAllRolesReady
		message = "All roles have reached their desired replica count, ready and updated to the current revision"
	}
	if wait := obs.waitMessage(); wait != "" {
		is, isNot, reason, message = disaggregatedsetv1.ConditionProgressing, disaggregatedsetv1.ConditionAvailable,
			disaggregatedsetv1.ReasonChildUnreadable, wait
	}
	condition := metav1.Condition{
		Type: is, Status: metav1.ConditionTrue, Reason: reason, Message: message, ObservedGeneration: obs.Set.Generation,
		LastTransitionTime: obs.Now,
	}
	meta.SetStatusCondition(&status.Conditions, condition)
	if meta.FindStatusCondition(status.Conditions, isNot) != nil {
		condition.Type, condition.Status = isNot, metav1.ConditionFalse
		meta.SetStatusCondition(&status.Conditions, condition)
	}
}

// scalerStatuses returns the scalers of roles whose status changes.
func scalerStatuses(obs Observed, p Plan) (changed []*disaggregatedsetv1.DisaggregatedSetRoleScaler) {
	for _, role := range roles(obs) {
		unreadable := func(u Unreadable) bool {
			return u.Kind == OrphanScaler && role.scaler != nil && u.Name == role.scaler.Name
		}
		if role.scaler == nil || obs.unknownRole(role.Name) || obs.unreadable(unreadable) {
			continue
		}
		next := role.scaler.Status.DeepCopy()
		next.Replicas, next.Selector, next.ObservedGeneration = 0, helper.Selector(obs.Set.Name, role.Name), role.scaler.Generation
		for _, c := range obs.Children {
			if c.Role == role.Name {
				next.Replicas = plus(next.Replicas, c.Current)
			}
		}
		meta.SetStatusCondition(&next.Conditions, metav1.Condition{
			Type: disaggregatedsetv1.ConditionReady, Status: metav1.ConditionTrue, Reason: disaggregatedsetv1.ReasonBound,
			Message: "Scaler bound to a live DisaggregatedSet role", ObservedGeneration: role.scaler.Generation, LastTransitionTime: obs.Now,
		})
		if !equality.Semantic.DeepEqual(*next, role.scaler.Status) {
			scaler := role.scaler.DeepCopy()
			scaler.Status = *next
			changed = append(changed, scaler)
		}
	}
	return changed
}

const (
	actionAdopt    = "Adopt"
	actionCreate   = "Create"
	actionUpdate   = "Update"
	actionDelete   = "Delete"
	actionMigrate  = "Migrate"
	actionConflict = "Conflict"
)

func events(obs Observed, p Plan, r Results) (list []Event) {
	add := func(scaler, reason, action, format string, args ...any) {
		list = append(list, Event{
			Type: corev1.EventTypeNormal, Reason: reason, Action: action, Note: fmt.Sprintf(format, args...), Related: scaler,
		})
	}
	if len(r.Adopted) > 0 {
		list = append(list, adopted(p, r.Adopted))
	}
	for _, i := range r.CreatedScalers {
		s := p.CreateScalers[i]
		add(s.Name, "ScalerCreated", actionCreate, "Created scaler %s for role %s", s.Name, s.Labels[disaggregatedsetv1.RoleLabelKey])
	}
	for _, i := range r.DeletedScalers {
		name := p.DeleteScalers[i].Name
		add(name, "ScalerDeleted", actionDelete, "Deleted scaler %s (role %s is no longer External)",
			name, name[min(len(obs.Set.Name)+1, len(name)):])
	}
	for i, result := range r.Slices {
		list = append(list, sliceEvents(p.Slices[i], result, p.Revision)...)
	}
	for _, name := range p.Conflicts {
		if !obs.Conflicts[name] {
			list = append(list, Event{
				Type: corev1.EventTypeWarning, Reason: "ScalerConflict", Action: actionConflict, Related: name,
				Note: fmt.Sprintf("Scaler %s exists but is not controlled by this DisaggregatedSet; not adopting", name),
			})
		}
	}
	for _, failed := range r.Failed {
		list = append(list, Event{Type: corev1.EventTypeWarning, Reason: "Failed" + string(failed.Verb), Action: string(failed.Verb),
			Note: failed.Note})
	}
	return list
}

// NamesScaler returns whether an object to which an event of the plan is related is a scaler, and no LeaderWorkerSet.
func (p Plan) NamesScaler(name string) bool {
	return slices.Contains(p.Conflicts, name) || slices.ContainsFunc(p.DeleteScalers, func(ref Ref) bool { return ref.Name == name }) ||
		slices.ContainsFunc(p.CreateScalers, func(s *disaggregatedsetv1.DisaggregatedSetRoleScaler) bool { return s.Name == name })
}

func sliceEvents(p SlicePlan, r SliceResult, revision string) (list []Event) {
	add := func(child, reason, action, format string, args ...any) {
		list = append(list, Event{
			Type: corev1.EventTypeNormal, Reason: reason, Action: action, Note: fmt.Sprintf(format, args...), Related: child,
		})
	}
	if p.Starts && r.Done {
		add("", "RollingUpdateStarted", actionUpdate, "Started rolling update to revision %s", revision)
	}
	for _, i := range r.DeletedChildren {
		switch child := p.DeleteChildren[i]; child.Reason {
		case Drained:
			add(child.Name, "LWSDeleted", actionDelete, "Deleted drained LWS %s", child.Name)
		case SliceRemoved:
			add(child.Name, "LWSDeleted", actionDelete, "Deleted LWS %s for removed slice %d", child.Name, p.Slice)
		case Migrated:
			add(child.Name, "LWSDeleted", actionMigrate, "Deleted legacy slice-0 LWS %s to recreate it in slice-aware form", child.Name)
		}
	}
	for _, i := range r.Scaled {
		s := p.Scale[i]
		reason, direction := "ScalingUp", "up"
		if s.To < s.From {
			reason, direction = "ScalingDown", "down"
		}
		add(s.Name, reason, actionUpdate, "Scaling %s %s LWS %s from %d to %d replicas", direction, s.Role, s.Name, s.From, s.To)
	}
	if p.Completes && len(r.DeletedChildren) == len(p.DeleteChildren) {
		add("", "RollingUpdateCompleted", actionUpdate, "Completed rolling update to revision %s", revision)
	}
	return list
}
