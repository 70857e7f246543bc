// Copyright The jobset-apiserver Authors.
// SPDX-License-Identifier: Apache-2.0

package plan

import (
	"slices"
	"testing"
	"time"

	batchv1 "k8s.io/api/batch/v1"
	corev1 "k8s.io/api/core/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/types"
	"k8s.io/apimachinery/pkg/util/sets"
	"k8s.io/utils/ptr"

	jobsetv1alpha2 "github.com/jobset-apiserver/jobset-apiserver/pkg/apis/jobset/v1alpha2"
	hostplan "github.com/jobset-apiserver/jobset-apiserver/pkg/controller/host/plan"
)

func TestForgetWhenOnlyThatRoomIsLeft(t *testing.T) {
	for name, tc := range map[string]struct {
		attempt jobsetv1alpha2.Attempt
		shutOut []types.UID
		minutes int
		placed  bool
		want    bool
		again   time.Duration
	}{
		"not before a Job may have moved":   {attempt: runs(2, keepsOff(1, 30, "n1", "n2"), created(2)), shutOut: []types.UID{"uid-js-w-1"}, minutes: 11, placed: true, again: 4 * time.Minute},
		"when it has not":                   {attempt: runs(2, keepsOff(1, 30, "n1", "n2"), created(2)), shutOut: []types.UID{"uid-js-w-1"}, minutes: 15, placed: true, want: true},
		"after some minutes":                {attempt: runs(2, keepsOff(1, 30, "n1", "n2"), created(2)), shutOut: []types.UID{"uid-js-w-1"}, minutes: 5, want: true},
		"not before":                        {attempt: runs(2, keepsOff(1, 30, "n1", "n2"), created(2)), shutOut: []types.UID{"uid-js-w-1"}, minutes: 4, again: time.Minute},
		"not for other reasons":             {attempt: runs(2, keepsOff(1, 30, "n1", "n2"), created(2)), minutes: 50},
		"not for a Job that keeps off none": {attempt: runs(2, keepsOff(1, 30, "n1", "n2"), created(2)), shutOut: []types.UID{"uid-js-w-2"}, minutes: 50},
		"not once all were ready":           {attempt: runs(2, keepsOff(1, 30, "n1", "n2"), created(2), readySince(3)), shutOut: []types.UID{"uid-js-w-1"}, minutes: 50},
		"not at once in a new attempt": {attempt: runs(2, keepsOff(1, 30, "n1", "n2"), created(2), func(a *jobsetv1alpha2.Attempt) {
			a.RequestTime = ptr.To(metav1.NewMicroTime(now.Add(-2 * time.Minute)))
		}), shutOut: []types.UID{"uid-js-w-1"}, minutes: 50, again: 3 * time.Minute},
	} {
		t.Run(name, func(t *testing.T) {
			js := newSet(with("w", 3), failurePolicy(3), restarted(1, 1), avoids("1h"), withAttempts(past(1), tc.attempt))
			jobs := []*batchv1.Job{jobNamed("w", 0, attempt("1"), ready, avoiding("n1,n2")), jobNamed("w", 1, attempt("1"), avoiding("n1,n2")), jobNamed("w", 2, attempt("1"))}
			o := observe(js, jobs...)
			o.KeepAttempts, o.Nodes, o.ShutOut = true, hostplan.Of(30), hostplan.Of(sets.New(tc.shutOut...))
			if tc.placed {
				js.Annotations[jobsetv1alpha2.ExclusiveKey] = rack
				o.Gates.ExclusivePlacement, o.MoveAfter = true, 10*time.Minute
				js.Status.Placement = racks(1, 0, "a", "b", "c")
			}
			o.Unschedulable = Unschedulable{Pods: 1, Reason: "no node fits", Since: now.Add(-time.Duration(tc.minutes) * time.Minute)}
			p := Decide(o)
			diff(t, "deleted at once", []string(nil), refNames(p.DeleteJobs))
			if tc.again > 0 {
				diff(t, "again after", tc.again, p.RequeueAfter)
			}
			if got := statusAfter(o, p).Attempts[1].ForgetTime != nil; got != tc.want {
				t.Fatalf("forgotten: %t", got)
			}
			if tc.want {
				forgetsOnce(t, o, p)
			}
		})
	}
}

// TestJobsThatKeepOffForgottenNodes has a Job alone restart, with a new attempt that keeps off no node, before a Job of the attempt that forgot
// its nodes was created once more.
func TestJobsThatKeepOffForgottenNodes(t *testing.T) {
	for name, tc := range map[string]struct {
		attempt jobsetv1alpha2.Attempt
		keeps   string
		minutes int
		deleted []string
		again   time.Duration
	}{
		"after some minutes":                 {attempt: runs(2, created(2)), keeps: "n1,n2", minutes: 5, deleted: []string{"js-w-1"}},
		"not before":                         {attempt: runs(2, created(2)), keeps: "n1,n2", minutes: 4, again: time.Minute},
		"not once all were ready":            {attempt: runs(2, created(2), readySince(3)), keeps: "n1,n2", minutes: 50},
		"not for a Job that keeps off none":  {attempt: runs(2, created(2)), minutes: 50},
		"at once if its attempt forgot them": {attempt: runs(2, keepsOff(1, 30, "n1", "n2", "n3"), created(2), forgot), keeps: "n1,n2", minutes: 4, deleted: []string{"js-w-1"}},
	} {
		t.Run(name, func(t *testing.T) {
			js := newSet(with("w", 2), failurePolicy(3), restarted(1, 1), avoids("1h"), withAttempts(past(1), tc.attempt))
			o := observe(js, jobNamed("w", 0, attempt("1"), ready), jobNamed("w", 1, attempt("1"), avoiding(tc.keeps)))
			o.KeepAttempts, o.Nodes, o.ShutOut = true, hostplan.Of(30), hostplan.Known[sets.Set[types.UID]]{}
			o.Unschedulable = Unschedulable{Pods: 1, Reason: "no node fits", Since: now.Add(-time.Duration(tc.minutes) * time.Minute)}
			if Decide(o).Asks.ShutOut {
				o.ShutOut = hostplan.Of(sets.New[types.UID]("uid-js-w-1"))
			}
			p := Decide(o)
			diff(t, "deleted", tc.deleted, refNames(p.DeleteJobs))
			if tc.again > 0 {
				diff(t, "again after", tc.again, p.RequeueAfter)
			}
		})
	}
}

// forgetsOnce follows a set that forgets nodes: one event, and the Jobs without room are replaced by such as keep off no node.
func forgetsOnce(t *testing.T, o Observed, p Plan) {
	t.Helper()
	want := Event{Type: corev1.EventTypeWarning, Reason: reasonNodesForgotten,
		Note: "pods of attempt 2 found no room without nodes n1, n2 for some minutes; their jobs are created again, and no restart is counted"}
	if !slices.Contains(p.Events, want) {
		t.Errorf("events: %v", p.Events)
	}
	js := o.JobSet.DeepCopy()
	js.Status = *p.Status
	o.JobSet = js
	p = Decide(o)
	diff(t, "deleted", []string{"js-w-1"}, refNames(p.DeleteJobs))
	diff(t, "restarts", int32(1), statusAfter(o, p).Restarts)
	if slices.ContainsFunc(p.Events, func(e Event) bool { return e.Reason == reasonNodesForgotten }) {
		t.Error("the event is repeated")
	}
	o.Jobs, o.ShutOut, o.Unschedulable = []*batchv1.Job{o.Jobs[0], o.Jobs[2]}, hostplan.NotObtained[sets.Set[types.UID]](), Unschedulable{}
	p = Decide(o)
	diff(t, "created", []string{"js-w-1"}, names(p.CreateJobs))
	diff(t, "annotation", "", p.CreateJobs[0].Annotations[jobsetv1alpha2.AvoidedNodesKey])
	if affinity := p.CreateJobs[0].Spec.Template.Spec.Affinity; affinity != nil && affinity.NodeAffinity != nil {
		t.Errorf("node affinity: %v", affinity.NodeAffinity)
	}
}
