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
	hostplan "github.com/jobset-apiserver/jobset-apiserver/pkg/controller/host/plan"
)

func TestTroubles(t *testing.T) {
	quota := hostplan.BlockedChild{What: "Service s could not be created or updated", Refusal: hostplan.Refusal{Reason: "QuotaExceeded", Message: "exceeded quota: q"}}
	away := hostplan.BlockedChild{What: "Service s could not be created or updated", Refusal: hostplan.Refusal{Reason: "FailedCreate", Message: "no answer", MayPass: true}}
	told := &metav1.Condition{Type: leaderworkersetv1.ConditionChildCreationFailure, Status: metav1.ConditionTrue, Reason: "QuotaExceeded", Message: "m"}
	for name, tc := range map[string]struct {
		known   *metav1.Condition
		change  func(o *Observed, p *Plan)
		results Results
		want    string
		wantDue time.Duration
	}{
		"none":            {},
		"a quota":         {results: Results{Blocked: []hostplan.BlockedChild{quota}}, want: "True QuotaExceeded Service s could not be created or updated: exceeded quota: q"},
		"one that passes": {results: Results{Blocked: []hostplan.BlockedChild{away}}, wantDue: hostplan.PassesAfter},
		"one that stays": {
			change:  func(o *Observed, _ *Plan) { o.TroubledSince = o.Now.Add(-time.Minute) },
			results: Results{Blocked: []hostplan.BlockedChild{away}}, want: "True FailedCreate Service s could not be created or updated: no answer",
		},
		"another StatefulSet has the name of that of the leaders": {
			change: func(o *Observed, _ *Plan) { o.Leader, o.LeaderTaken = nil, true },
			want:   "True NameConflict StatefulSet s could not be created: a StatefulSet with this name exists and does not belong to the LeaderWorkerSet; it is created once that one is deleted",
		},
		"another Service has the name": {
			results: Results{TakenServices: []string{"s"}}, wantDue: 10 * time.Second,
			want: "True NameConflict Service s could not be created: a Service with this name exists and does not belong to the LeaderWorkerSet; it is created once that one is deleted",
		},
		"that of a leader that is about to go": {
			change:  func(o *Observed, _ *Plan) { o.Leaders[0].Created = o.Now },
			results: Results{TakenWorkers: []string{"s-0"}}, wantDue: 10 * time.Second,
		},
		"another StatefulSet has the name of workers": {
			results: Results{TakenWorkers: []string{"s-0"}}, wantDue: 10 * time.Second,
			want: "True NameConflict StatefulSet s-0 could not be created: a StatefulSet with this name exists and does not belong to the leader pod of its name; it is created once that one is deleted",
		},
		"all is there":                  {known: told, want: "False ChildrenCreated no child is refused"},
		"the time of the pass was over": {known: told, results: Results{Interrupted: true}, want: "True QuotaExceeded m"},
		"a later plan has more":         {known: told, change: func(_ *Observed, p *Plan) { p.More = true }, want: "True QuotaExceeded m"},
		"the set goes":                  {change: func(o *Observed, _ *Plan) { o.Set.DeletionTimestamp = &o.Now }, results: Results{Blocked: []hostplan.BlockedChild{quota}}},
	} {
		t.Run(name, func(t *testing.T) {
			f := newFixture(t, 1, 2)
			f.Now = metav1.NewTime(f.Now.Truncate(time.Second))
			f.Set.CreationTimestamp = metav1.NewTime(f.Now.Add(-time.Hour))
			f.leader(0).Created = f.Set.CreationTimestamp
			if tc.known != nil {
				f.Set.Status.Conditions = append(f.Set.Status.Conditions, *tc.known)
			}
			p := Plan{Reading: &Reading{}}
			if tc.change != nil {
				tc.change(&f.Observed, &p)
			}
			out, got := Finish(f.Observed, p, tc.results), ""
			status := &f.Set.Status
			if out.Status != nil {
				status = out.Status
			}
			if c := meta.FindStatusCondition(status.Conditions, leaderworkersetv1.ConditionChildCreationFailure); c != nil {
				got = fmt.Sprintf("%s %s %s", c.Status, c.Reason, c.Message)
			}
			if got != tc.want || out.RequeueAfter != tc.wantDue {
				t.Errorf("got %q, again after %s; want %q, %s", got, out.RequeueAfter, tc.want, tc.wantDue)
			}
		})
	}
}

func TestRefusedPods(t *testing.T) {
	at := metav1.NewTime(time.Date(2026, 11, 26, 12, 0, 0, 0, time.UTC))
	told := metav1.Condition{Type: leaderworkersetv1.ConditionPodCreationFailure, Status: metav1.ConditionTrue, Reason: "QuotaExceeded", Message: "pods of 2 StatefulSets cannot be created: earlier words"}
	for name, tc := range map[string]struct {
		told       bool
		refused    int
		since, age time.Duration
		want       string
		wantDue    time.Duration
	}{
		"none":               {},
		"not at first":       {refused: 1, since: time.Second, wantDue: 4 * time.Second},
		"after some time":    {refused: 1, since: 5 * time.Second, want: "True QuotaExceeded pods of 1 StatefulSet cannot be created: exceeded quota: q", wantDue: hostplan.PodsRefusedAgain},
		"long ago":           {refused: 1, since: time.Hour, age: 3 * time.Minute, wantDue: hostplan.PodsRefusedAgain},
		"long ago, and told": {told: true, refused: 2, age: 20 * time.Minute, want: "True QuotaExceeded " + told.Message, wantDue: hostplan.PodsRefusedAgain},
		"another number":     {told: true, refused: 3, want: "True QuotaExceeded pods of 3 StatefulSets cannot be created: exceeded quota: q", wantDue: hostplan.PodsRefusedAgain},
		"none any more":      {told: true, want: "False PodsCreated no pods are refused"},
	} {
		t.Run(name, func(t *testing.T) {
			set := &leaderworkersetv1.LeaderWorkerSet{}
			if tc.told {
				set.Status.Conditions = []metav1.Condition{told}
			}
			o := Observed{Set: set, Now: at}
			for range tc.refused {
				o.RefusedPods = append(o.RefusedPods, hostplan.Refusal{Reason: "QuotaExceeded", Message: "exceeded quota: q", At: at.Add(-tc.age)})
				o.PodsRefusedSince = at.Add(-tc.since)
			}
			b := newStatus(o)
			due, got := b.fold(podsRefused(&o)), ""
			if c := meta.FindStatusCondition(b.next.Conditions, leaderworkersetv1.ConditionPodCreationFailure); c != nil {
				got = fmt.Sprintf("%s %s %s", c.Status, c.Reason, c.Message)
			}
			if got != tc.want || due != tc.wantDue {
				t.Errorf("got %q, again after %s; want %q, %s", got, due, tc.want, tc.wantDue)
			}
		})
	}
}

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
