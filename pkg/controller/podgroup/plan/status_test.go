// Copyright The jobset-apiserver Authors.
// SPDX-License-Identifier: Apache-2.0

package plan

import (
	"testing"
	"time"

	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"

	batchv1alpha1 "github.com/jobset-apiserver/jobset-apiserver/pkg/apis/batch/v1alpha1"
)

// next returns the group as it is once the status of the plan is stored.
func next(t *testing.T, o Observed) (*batchv1alpha1.PodReadinessGroup, Plan) {
	t.Helper()
	p := Decide(o)
	if p.Status == nil {
		t.Fatal("no status")
	}
	g := o.Group.DeepCopy()
	g.Status = *p.Status
	return g, p
}

func TestStatusFollowsTheGroup(t *testing.T) {
	const min = 3
	at := metav1.NewTime(now)
	condition := func(status metav1.ConditionStatus, reason, message string) []metav1.Condition {
		return []metav1.Condition{{
			Type: "Ready", Status: status, Reason: reason, Message: message, ObservedGeneration: 1, LastTransitionTime: at,
		}}
	}
	g, p := next(t, observed(pod("a"), pod("b", in(Pending))).grouped(group(min)))
	diff(t, "status of a group that waits", batchv1alpha1.PodReadinessGroupStatus{
		Phase: batchv1alpha1.GroupPending, Pods: 2, Running: 1, ObservedGeneration: 1,
		Conditions: condition(metav1.ConditionFalse, ReasonPodsNotRunning, "1 of 3 pods run"),
	}, g.Status)
	diff(t, "its events", 0, len(p.Events))

	g, p = next(t, observed(pods(min)...).grouped(g))
	diff(t, "status of a group that is ready", batchv1alpha1.PodReadinessGroupStatus{
		Phase: batchv1alpha1.GroupReady, Pods: 3, Running: 3, ReadyTime: &at, ObservedGeneration: 1,
		Conditions: condition(metav1.ConditionTrue, ReasonPodsRunning, "3 of 3 pods run"),
	}, g.Status)
	diff(t, "its events", []Event{{Type: "Normal", Reason: EventReady, Note: "3 of 3 pods run"}}, p.Events)

	later := observed(pods(min, labeled)...).grouped(g)
	later.Now = now.Add(time.Minute)
	g, p = next(t, later)
	diff(t, "pods with the label", int32(min), g.Status.Ready)
	diff(t, "events of labels", 0, len(p.Events))
	later.Group = g
	diff(t, "nothing to write", (*batchv1alpha1.PodReadinessGroupStatus)(nil), Decide(later).Status)

	later = observed(pod("a", labeled), pod("b", labeled), pod("c", ended(5))).grouped(g)
	g, p = next(t, later)
	diff(t, "phase of a group that has lost a pod", batchv1alpha1.GroupDegraded, g.Status.Phase)
	diff(t, "its time of readiness", &at, g.Status.ReadyTime)
	diff(t, "its events", []Event{{Type: "Warning", Reason: EventDegraded, Note: "2 of 3 pods run"}}, p.Events)

	g, p = next(t, observed(pods(min, labeled)...).grouped(g))
	diff(t, "phase of a group that has a replacement", batchv1alpha1.GroupReady, g.Status.Phase)
	diff(t, "its events", []Event{{Type: "Normal", Reason: EventReady, Note: "3 of 3 pods run"}}, p.Events)

	g, p = next(t, observed().grouped(g))
	diff(t, "phase of a group that has gone", batchv1alpha1.GroupDegraded, g.Status.Phase)
	diff(t, "its events", 0, len(p.Events))
}

// TestCountsAreWrittenOnceASecond has a group of which one pod after the other starts.
func TestCountsAreWrittenOnceASecond(t *testing.T) {
	const n = 100
	all := pods(n, in(Pending))
	o := observed(all...).grouped(group(n))
	writes := 0
	for i := range n {
		all[i].Phase = Running
		p := Decide(o)
		if p.Status != nil {
			o.Group = o.Group.DeepCopy()
			o.Group.Status, o.Written = *p.Status, o.Now
			writes++
		} else if p.LookAgain <= 0 || p.LookAgain > statusEvery {
			t.Fatalf("pod %d: counts are not written, and looked at again in %s", i, p.LookAgain)
		}
		o.Now = o.Now.Add(20 * time.Millisecond)
	}
	// Two seconds: at once, after a second, and at once when the group is ready.
	diff(t, "writes", 3, writes)
	diff(t, "phase", batchv1alpha1.GroupReady, o.Group.Status.Phase)
}

func TestConditionSaysWhatIsMissing(t *testing.T) {
	recent := observed(pods(2)...).grouped(group(0))
	recent.LastNew = now
	unread := observed(pods(2, ownedBy(job))...).grouped(group(0))
	unread.OwnersError = "reading Job ns/job: forbidden"
	whenReady := observed(pod("a", ready), pod("b")).grouped(group(2))
	whenReady.Group.Spec.ReadyWhen = batchv1alpha1.ReadyWhenReady
	for name, tc := range map[string]struct {
		o               Observed
		reason, message string
	}{
		"settling": {recent, ReasonSettling, "2 of 2 pods run; nothing states the size of the group, and pods were added in the last 2s"},
		"owners that cannot be read": {unread, ReasonSizeUnknown,
			"2 of 2 existing pods run; the size of the group is not known: reading Job ns/job: forbidden"},
		"a malformed size": {observed(pod("a"), pod("b", in(Pending), states("x"))).grouped(group(0)), ReasonPodsNotRunning,
			"1 of 2 pods run; batch.jobset-apiserver.io/pod-group-size must be a number from 1 to 100000 on all pods of the group"},
		"ready pods are counted": {whenReady, ReasonPodsNotRunning, "1 of 2 pods are ready"},
	} {
		t.Run(name, func(t *testing.T) {
			g, _ := next(t, tc.o)
			diff(t, "reason", tc.reason, g.Status.Conditions[0].Reason)
			diff(t, "message", tc.message, g.Status.Conditions[0].Message)
		})
	}
}

func TestAnotherPrefixWritesNoStatus(t *testing.T) {
	o := observed(pods(2)...).grouped(group(2))
	o.ShowStatus = false
	p := Decide(o)
	diff(t, "status", (*batchv1alpha1.PodReadinessGroupStatus)(nil), p.Status)
	diff(t, "look again", time.Duration(0), p.LookAgain)
	diff(t, "pods to label", 2, len(p.Label))
}
