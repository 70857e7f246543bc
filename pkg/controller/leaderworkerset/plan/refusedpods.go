// Copyright The jobset-apiserver Authors.
// SPDX-License-Identifier: Apache-2.0

package plan

import (
	"fmt"
	"strings"
	"time"

	appsv1 "k8s.io/api/apps/v1"
	corev1 "k8s.io/api/core/v1"
	"k8s.io/apimachinery/pkg/api/meta"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/utils/ptr"

	leaderworkersetv1 "github.com/jobset-apiserver/jobset-apiserver/pkg/apis/leaderworkerset/v1"
	hostplan "github.com/jobset-apiserver/jobset-apiserver/pkg/controller/host/plan"
)

// podsCannotBeCreated is in the message of the condition.
const podsCannotBeCreated = " cannot be created: "

// RefusedPods are the pods that the API refuses to the StatefulSet controller.
type RefusedPods struct {
	// StatefulSets is the number of those that lack pods for that; 0 if nothing is refused.
	StatefulSets int
	// Reason and Message come from the newest refusal, and At is when that was.
	Reason, Message string
	At              time.Time
	// Since is since when there are any.
	Since time.Time
}

// LacksLeaders returns whether the StatefulSet of leaders has fewer pods than it should.
func LacksLeaders(leader *appsv1.StatefulSet, pods []Pod) bool {
	return leader.DeletionTimestamp == nil && len(pods) < int(ptr.Deref(leader.Spec.Replicas, 1))
}

// LacksPods returns whether there are fewer workers than there should be.
func (w *Workers) LacksPods() bool { return !w.Deleting && len(w.Pods) < int(w.Replicas) }

// setPodsRefused reports pods that have been refused for some time, and returns when that is due. The message stays while the number of
// StatefulSets and the reason do.
func (b *statusBuilder) setPodsRefused() time.Duration {
	refused := &b.o.RefusedPods
	c := meta.FindStatusCondition(b.next.Conditions, leaderworkersetv1.ConditionPodCreationFailure)
	known := c != nil && c.Status == metav1.ConditionTrue
	head := refusedPodsOf(refused.StatefulSets)
	if refused.StatefulSets == 0 {
		if known {
			b.setCondition(leaderworkersetv1.ConditionPodCreationFailure, metav1.ConditionFalse, leaderworkersetv1.ReasonPodsCreated,
				"no pods are refused")
		}
		return 0
	}
	switch reports, due := hostplan.ReportsRefused(known, refused.Since, refused.At, b.o.Now.Time); {
	case due > 0:
		return due
	case reports && (!known || c.Reason != refused.Reason || !strings.HasPrefix(c.Message, head)):
		b.setCondition(leaderworkersetv1.ConditionPodCreationFailure, metav1.ConditionTrue, refused.Reason, head+refused.Message)
		if !known {
			b.event(corev1.EventTypeWarning, leaderworkersetv1.ConditionPodCreationFailure, ActionCreate, head+refused.Message)
		}
	}
	return hostplan.PodsRefusedAgain
}

// refusedPodsOf is how the message about pods of so many StatefulSets begins.
func refusedPodsOf(statefulSets int) string {
	if statefulSets == 1 {
		return "pods of 1 StatefulSet" + podsCannotBeCreated
	}
	return fmt.Sprintf("pods of %d StatefulSets", statefulSets) + podsCannotBeCreated
}

// setCondition puts a condition in place that says nothing about how far the set is.
func (b *statusBuilder) setCondition(conditionType string, status metav1.ConditionStatus, reason, message string) {
	meta.SetStatusCondition(&b.next.Conditions, metav1.Condition{
		Type: conditionType, Status: status, Reason: reason, Message: message, LastTransitionTime: b.o.Now,
		ObservedGeneration: b.o.Set.Generation,
	})
}
