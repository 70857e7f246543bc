// Copyright The jobset-apiserver Authors.
// SPDX-License-Identifier: Apache-2.0

package plan

import (
	"fmt"
	"maps"
	"slices"
	"strings"

	corev1 "k8s.io/api/core/v1"
	"k8s.io/apimachinery/pkg/api/meta"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"

	leaderworkersetv1 "github.com/jobset-apiserver/jobset-apiserver/pkg/apis/leaderworkerset/v1"
)

// maxNamedGroups is how many failed groups a message names.
const maxNamedGroups = 10

// exhausted returns whether a group was recreated as often as it may be.
func exhausted(set *leaderworkersetv1.LeaderWorkerSet, e *leaderworkersetv1.GroupStatus) bool {
	limit := set.Spec.LeaderWorkerTemplate.MaxGroupRestarts
	return limit != nil && e.Restarts >= *limit
}

// reportFailed reports that a group is left as it is.
func (r *restarts) reportFailed(e *leaderworkersetv1.GroupStatus) {
	r.st.event(corev1.EventTypeWarning, leaderworkersetv1.ReasonMaxGroupRestartsExceeded, ActionUpdate,
		fmt.Sprintf("Group %d has failed again after %s and is left as it is; maxGroupRestarts is %d", e.Index, times(e.Restarts),
			*r.Set.Spec.LeaderWorkerTemplate.MaxGroupRestarts))
}

func times(restarts int32) string {
	if restarts == 1 {
		return "1 restart"
	}
	return fmt.Sprintf("%d restarts", restarts)
}

// reportLimit sets the condition Failed while groups have used up maxGroupRestarts.
func (r *restarts) reportLimit() {
	var named []string
	more := 0
	for _, index := range slices.Sorted(maps.Keys(r.entries)) {
		switch e := r.entries[index]; {
		case !e.Failed:
		case len(named) < maxNamedGroups:
			named = append(named, fmt.Sprintf("group %d (%s)", index, times(e.Restarts)))
		default:
			more++
		}
	}
	current := meta.FindStatusCondition(r.st.next.Conditions, leaderworkersetv1.ConditionFailed)
	next := metav1.Condition{
		Type: leaderworkersetv1.ConditionFailed, Status: metav1.ConditionTrue, Reason: leaderworkersetv1.ReasonMaxGroupRestartsExceeded,
		LastTransitionTime: r.Now, ObservedGeneration: r.Set.Generation,
	}
	switch {
	case len(named) > 0:
		next.Message = r.exceeded(named, more)
	case current == nil:
		return
	default:
		next.Status, next.Message = metav1.ConditionFalse, "No group has used up maxGroupRestarts"
	}
	if current == nil {
		r.st.next.Conditions = append(r.st.next.Conditions, next)
		return
	}
	if current.Status == next.Status {
		next.LastTransitionTime = current.LastTransitionTime
	}
	*current = next
}

func (r *restarts) exceeded(named []string, more int) string {
	has := "has"
	if len(named)+more > 1 {
		has = "have"
	}
	if more > 0 {
		named = append(named, fmt.Sprintf("%d more", more))
	}
	list := named[0]
	if last := len(named) - 1; last > 0 {
		list = strings.Join(named[:last], ", ") + " and " + named[last]
	}
	// maxGroupRestarts is set: follow ends what is failed otherwise.
	limit := int32(0)
	if m := r.Set.Spec.LeaderWorkerTemplate.MaxGroupRestarts; m != nil {
		limit = *m
	}
	return fmt.Sprintf("%s%s %s failed again; maxGroupRestarts is %d", strings.ToUpper(list[:1]), list[1:], has, limit)
}
