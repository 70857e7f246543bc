// Copyright The jobset-apiserver Authors.
// SPDX-License-Identifier: Apache-2.0

package plan

import (
	"fmt"
	"testing"
	"time"

	corev1 "k8s.io/api/core/v1"
	"k8s.io/apimachinery/pkg/api/meta"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"

	leaderworkersetv1 "github.com/jobset-apiserver/jobset-apiserver/pkg/apis/leaderworkerset/v1"
)

func TestUnschedulablePods(t *testing.T) {
	const words = "0/3 nodes are available: 3 Insufficient cpu."
	at := metav1.NewTime(time.Date(2026, 11, 26, 12, 0, 0, 0, time.UTC))
	waits := func(name string) Pod { return Pod{Ref: Ref{Name: name}, Unschedulable: words + " " + name} }
	told := metav1.Condition{Type: leaderworkersetv1.ConditionPodsUnschedulable, Status: metav1.ConditionTrue, Reason: "Unschedulable", Message: "2 pods cannot be scheduled: earlier words"}
	for name, tc := range map[string]struct {
		told             bool
		leaders, workers []Pod
		since            time.Duration
		want             string
		wantDue          time.Duration
		wantEvents       int
	}{
		"none":                    {leaders: []Pod{{Ref: Ref{Name: "s-0"}, Node: "n"}}},
		"not at first":            {leaders: []Pod{waits("s-0")}, since: time.Second, wantDue: 14 * time.Second},
		"after some time":         {leaders: []Pod{waits("s-1"), waits("s-0")}, workers: []Pod{waits("s-0-1")}, since: 15 * time.Second, want: "True Unschedulable 3 pods cannot be scheduled: " + words + " s-0", wantEvents: 1},
		"another number":          {told: true, leaders: []Pod{waits("s-0")}, since: time.Hour, want: "True Unschedulable 1 pod cannot be scheduled: " + words + " s-0"},
		"the same number":         {told: true, leaders: []Pod{waits("s-0"), waits("s-1")}, since: time.Hour, want: "True Unschedulable " + told.Message},
		"told by another process": {told: true, leaders: []Pod{waits("s-0"), waits("s-1")}, want: "True Unschedulable " + told.Message},
		"none any more":           {told: true, leaders: []Pod{{Ref: Ref{Name: "s-0"}, Node: "n"}}, want: "False PodsScheduled no pod waits for a node"},
		"of a pod that goes":      {leaders: []Pod{{Ref: Ref{Name: "s-0"}, Unschedulable: words, Deleting: true}}, since: time.Hour},
	} {
		t.Run(name, func(t *testing.T) {
			set := &leaderworkersetv1.LeaderWorkerSet{}
			if tc.told {
				set.Status.Conditions = []metav1.Condition{told}
			}
			o := Observed{Set: set, Leaders: tc.leaders, Workers: []Workers{{Pods: tc.workers}}, UnschedulableSince: at.Add(-tc.since), Now: at}
			b := newStatus(o)
			due, got := b.fold(podsUnschedulable(&o)), ""
			if c := meta.FindStatusCondition(b.next.Conditions, leaderworkersetv1.ConditionPodsUnschedulable); c != nil {
				got = fmt.Sprintf("%s %s %s", c.Status, c.Reason, c.Message)
			}
			if got != tc.want || due != tc.wantDue || len(b.events) != tc.wantEvents {
				t.Errorf("got %q, again after %s, %d events; want %q, %s, %d", got, due, len(b.events), tc.want, tc.wantDue, tc.wantEvents)
			}
		})
	}
}

// TestPodWaitsForNode: pods that gates hold wait for something else, and a pod with a node does not wait any more.
func TestPodWaitsForNode(t *testing.T) {
	refused := corev1.PodCondition{Type: corev1.PodScheduled, Status: corev1.ConditionFalse, Reason: corev1.PodReasonUnschedulable, Message: "no node"}
	gated := refused
	gated.Reason = corev1.PodReasonSchedulingGated
	for name, tc := range map[string]struct {
		condition corev1.PodCondition
		node      string
		want      string
	}{
		"no node fits": {condition: refused, want: "no node"}, "held by a gate": {condition: gated}, "it has a node": {condition: refused, node: "n"},
	} {
		pod := &corev1.Pod{Spec: corev1.PodSpec{NodeName: tc.node}, Status: corev1.PodStatus{Conditions: []corev1.PodCondition{tc.condition}}}
		if got := PodOf(pod).Unschedulable; got != tc.want {
			t.Errorf("%s: got %q, want %q", name, got, tc.want)
		}
	}
}
