// Copyright The jobset-apiserver Authors.
// SPDX-License-Identifier: Apache-2.0

package plan

import (
	"testing"

	"github.com/google/go-cmp/cmp"
	corev1 "k8s.io/api/core/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/types"
	"k8s.io/utils/ptr"

	jobsetv1alpha2 "github.com/jobset-apiserver/jobset-apiserver/pkg/apis/jobset/v1alpha2"
	leaderworkersetv1 "github.com/jobset-apiserver/jobset-apiserver/pkg/apis/leaderworkerset/v1"
)

func restarted(p *Pod) { p.Restarted = true }

func TestTriggers(t *testing.T) {
	const none, onRestart, afterStart = leaderworkersetv1.RestartPolicyNone, leaderworkersetv1.RestartPolicyRecreateGroupOnPodRestart,
		leaderworkersetv1.RestartPolicyRecreateGroupAfterStart
	for name, c := range map[string]struct {
		policy    leaderworkersetv1.RestartPolicyType
		annotated bool
		change    func(f *fixture)
		want      bool
	}{
		"nothing has happened":                {policy: onRestart, change: func(*fixture) {}},
		"worker restarted":                    {policy: onRestart, change: func(f *fixture) { restarted(f.worker(1, 2)) }, want: true},
		"worker restarted, policy None":       {policy: none, change: func(f *fixture) { restarted(f.worker(1, 2)) }},
		"worker restarted, policy Default":    {policy: leaderworkersetv1.RestartPolicyDefault, change: func(f *fixture) { restarted(f.worker(1, 2)) }},
		"leader restarted":                    {policy: onRestart, change: func(f *fixture) { restarted(f.leader(1)) }, want: true},
		"init container of a pending worker":  {policy: onRestart, change: func(f *fixture) { restarted(f.worker(1, 1)); f.worker(1, 1).Phase = corev1.PodPending }, want: true},
		"restarted and failed since":          {policy: onRestart, change: func(f *fixture) { restarted(f.worker(1, 1)); f.worker(1, 1).Phase = corev1.PodFailed }},
		"restarted and succeeded since":       {policy: onRestart, change: func(f *fixture) { restarted(f.worker(1, 1)); f.worker(1, 1).Phase = corev1.PodSucceeded }},
		"failed worker":                       {policy: onRestart, change: func(f *fixture) { f.worker(1, 1).Phase = corev1.PodFailed }},
		"worker is being deleted":             {policy: onRestart, change: func(f *fixture) { f.worker(1, 1).Deleting = true }, want: true},
		"failed worker is being deleted":      {policy: onRestart, change: func(f *fixture) { f.worker(1, 1).Phase = corev1.PodFailed; f.worker(1, 1).Deleting = true }, want: true},
		"leader is being deleted":             {policy: onRestart, change: func(f *fixture) { f.leader(1).Deleting = true }},
		"leader and worker are being deleted": {policy: onRestart, change: func(f *fixture) { f.leader(1).Deleting = true; f.worker(1, 1).Deleting = true }},
		"worker restarted, leader is being deleted": {policy: onRestart, change: func(f *fixture) {
			restarted(f.worker(1, 1))
			f.leader(1).Deleting = true
		}},
		"worker restarted, another pends": {policy: onRestart, change: func(f *fixture) {
			restarted(f.worker(1, 1))
			f.worker(1, 2).Phase = corev1.PodPending
		}, want: true},
		"worker of another revision": {policy: onRestart, change: func(f *fixture) {
			restarted(f.worker(1, 1))
			f.worker(1, 1).Revision = "old"
		}},
		"worker of another StatefulSet": {policy: onRestart, change: func(f *fixture) {
			restarted(f.worker(1, 1))
			f.worker(1, 1).Controller = "sts/s-1/0"
		}},
		"workers of another leader": {policy: onRestart, change: func(f *fixture) {
			restarted(f.worker(1, 1))
			f.workers(1).Leader = "s-1/0"
		}},
		"worker that nobody saw go":                      {policy: onRestart, change: func(f *fixture) { f.workers(1).Lost = 1 }, want: true},
		"worker that goes":                               {policy: onRestart, change: func(f *fixture) { f.worker(1, 1).Deleting = true }, want: true},
		"worker that goes before the group was complete": {policy: onRestart, change: func(f *fixture) { f.workers(1).NeverComplete, f.worker(1, 1).Deleting = true, true }},
		"worker that failed before, and goes": {policy: onRestart, change: func(f *fixture) {
			f.workers(1).NeverComplete, f.worker(1, 1).Deleting = true, true
			restarted(f.worker(1, 1))
		}, want: true},
		"worker that nobody saw go, None":     {policy: none, change: func(f *fixture) { f.workers(1).Lost = 1 }},
		"lost worker of a former incarnation": {policy: onRestart, change: func(f *fixture) { f.workers(1).Lost = 1; f.workers(1).Leader = "s-1/0" }},
		"lost worker of another revision":     {policy: onRestart, change: func(f *fixture) { f.workers(1).Lost = 1; f.workers(1).Revision = "old" }},

		"after start: worker restarted": {policy: afterStart, change: func(f *fixture) { restarted(f.worker(1, 2)) }, want: true},
		"after start: another pends": {policy: afterStart, change: func(f *fixture) {
			restarted(f.worker(1, 1))
			f.worker(1, 2).Phase = corev1.PodPending
		}},
		"after start: the leader pends": {policy: afterStart, change: func(f *fixture) {
			restarted(f.worker(1, 1))
			f.leader(1).Phase = corev1.PodPending
		}},
		"after start: the worker itself pends": {policy: afterStart, change: func(f *fixture) {
			restarted(f.worker(1, 1))
			f.worker(1, 1).Phase = corev1.PodPending
		}},
		"after start: a worker is missing": {policy: afterStart, change: func(f *fixture) {
			restarted(f.worker(1, 1))
			f.workers(1).Pods = f.workers(1).Pods[:1]
		}},
		"after start: no workers yet":              {policy: afterStart, change: func(f *fixture) { restarted(f.leader(1)); f.forgetWorkers(1) }},
		"after start: a pod of a group pends":      {policy: afterStart, change: func(f *fixture) { f.leader(0).Phase = corev1.PodPending; restarted(f.worker(1, 1)) }, want: true},
		"after start: replacement pends":           {policy: afterStart, change: func(f *fixture) { f.workers(1).Lost = 1; f.worker(1, 1).Phase = corev1.PodPending }, want: true},
		"after start: replacement missing":         {policy: afterStart, change: func(f *fixture) { f.workers(1).Lost = 1; f.workers(1).Pods = f.workers(1).Pods[1:] }, want: true},
		"after start: replacement and leader pend": {policy: afterStart, change: func(f *fixture) { f.workers(1).Lost = 1; f.leader(1).Phase = corev1.PodPending }},
		"after start: lost before others began": {policy: afterStart, change: func(f *fixture) {
			f.workers(1).Lost = 1
			f.worker(1, 1).Phase = corev1.PodPending
			f.worker(1, 2).Phase = corev1.PodPending
		}},
		"annotation: worker restarted": {policy: onRestart, annotated: true, change: func(f *fixture) { restarted(f.worker(1, 2)) }, want: true},
		"annotation: another pends":    {policy: onRestart, annotated: true, change: func(f *fixture) { restarted(f.worker(1, 1)); f.worker(1, 2).Phase = corev1.PodPending }},
		"annotation: policy None":      {policy: none, annotated: true, change: func(f *fixture) { restarted(f.worker(1, 1)) }},
	} {
		t.Run(name, func(t *testing.T) {
			f := newFixture(t, 2, 3)
			f.Set.Spec.LeaderWorkerTemplate.RestartPolicy = c.policy
			f.Revisions = append(f.Revisions[:0], f.revision(f.Set, 1))
			relabel(f)
			if c.annotated {
				f.Set.Annotations = map[string]string{leaderworkersetv1.RecreateGroupAfterStartAnnotationKey: ""}
			}
			f.stabilize()
			c.change(f)
			f.stabilize()
			want := []string(nil)
			if c.want {
				want = []string{"s-1"}
			}
			if diff := cmp.Diff(want, deleted(Decide(f.Observed))); diff != "" {
				t.Error("leaders to delete (-want +got):\n" + diff)
			}
		})
	}
}

// relabel gives all children the key of the first revision.
func relabel(f *fixture) {
	key := f.Revisions[0].Labels[leaderworkersetv1.RevisionKey]
	f.Leader.Labels[leaderworkersetv1.RevisionKey] = key
	for i := range f.Leaders {
		f.Leaders[i].Revision = key
	}
	for i := range f.Workers {
		f.Workers[i].Revision = key
		for j := range f.Workers[i].Pods {
			f.Workers[i].Pods[j].Revision = key
		}
	}
}

// TestRestartIsStoredFirst follows a restart: a plan that only stores it, then the deletion with upstream's event, and nothing more.
func TestRestartIsStoredFirst(t *testing.T) {
	f := newFixture(t, 2, 3)
	f.stabilize()
	restarted(f.worker(1, 2))
	f.Causes = causes(map[types.UID]*jobsetv1alpha2.FailureCause{"s-1/1": {Job: "s-1", Pod: "s-1-2", ExitCode: ptr.To[int32](137), Reason: "OOMKilled"}})

	p := Decide(f.Observed)
	if len(p.DeleteLeaders) > 0 {
		t.Fatalf("the plan that counts a restart deletes %v", deleted(p))
	}
	f.Set.Status = *p.Status
	want := leaderworkersetv1.GroupStatus{
		Index: 1, Restarts: 1, RestartedLeader: "s-1/1", LastRestartTime: &f.Now, Incomplete: true,
		FirstCause: &jobsetv1alpha2.FailureCause{Job: "s-1", Pod: "s-1-2", ExitCode: ptr.To[int32](137), Reason: "OOMKilled"},
	}
	if diff := cmp.Diff([]leaderworkersetv1.GroupStatus{want}, f.Set.Status.Groups); diff != "" {
		t.Fatal("status.groups (-want +got):\n" + diff)
	}

	p = f.stabilize()
	event := Event{
		Type: "Normal", Reason: "RecreateGroup", Action: "Delete", Note: "Worker pod s-1-2 failed, deleted leader pod s-1 to recreate group 1", Related: "s-1",
	}
	if diff := cmp.Diff([]Deletion{{Ref: Ref{Name: "s-1", UID: "s-1/1"}, Event: &event, Group: 1}}, p.DeleteLeaders); diff != "" {
		t.Fatal("deletions (-want +got):\n" + diff)
	}

	f.leader(1).Deleting = true
	f.worker(1, 1).Deleting, f.worker(1, 2).Deleting = true, true
	if p := f.stabilize(); len(p.DeleteLeaders) > 0 || f.status(1).Restarts != 1 {
		t.Fatalf("the group is restarted twice: %v, %d restarts", deleted(p), f.status(1).Restarts)
	}
	f.replace(1)
	if p := f.stabilize(); len(p.DeleteLeaders) > 0 || f.status(1).Restarts != 1 {
		t.Fatalf("the new group is restarted: %v, %d restarts", deleted(p), f.status(1).Restarts)
	}
	restarted(f.leader(1))
	f.stabilize()
	if got := f.status(1).Restarts; got != 2 {
		t.Fatalf("restarts = %d after another failure, want 2", got)
	}
}

// TestRestartIsNotLost loses the trigger between the plan that counts and the one that deletes.
func TestRestartIsNotLost(t *testing.T) {
	f := newFixture(t, 1, 3)
	f.stabilize()
	f.worker(0, 1).Deleting = true
	f.pass()
	f.worker(0, 1).Deleting = false
	f.worker(0, 1).UID = "replacement"
	if diff := cmp.Diff([]string{"s-0"}, deleted(f.stabilize())); diff != "" {
		t.Error("leaders to delete (-want +got):\n" + diff)
	}
}

// TestOneGroupDelaysNoOther has a group fail while another one lacks its workers, and a third is to be deleted.
func TestOneGroupDelaysNoOther(t *testing.T) {
	f := newFixture(t, 4, 3)
	restarted(f.worker(3, 1))
	f.pass()
	f.forgetWorkers(0)
	restarted(f.worker(2, 1))
	p := f.pass()
	if f.status(2).Restarts != 1 {
		t.Fatalf("the failure of group 2 is not stored: %+v", f.Set.Status.Groups)
	}
	if diff := cmp.Diff([]string{"s-0"}, createdWorkers(p)); diff != "" {
		t.Error("workers to create (-want +got):\n" + diff)
	}
	if diff := cmp.Diff([]string{"s-3"}, deleted(p)); diff != "" {
		t.Error("leaders to delete (-want +got):\n" + diff)
	}
	if p.ApplyLeader == nil || len(p.CreateServices) != 1 {
		t.Errorf("apply %v, services %v", p.ApplyLeader, p.CreateServices)
	}
}

// TestLeaderDeletedByUser replaces a group whose leader a user has deleted: one restart counts.
func TestLeaderDeletedByUser(t *testing.T) {
	f := newFixture(t, 1, 3)
	f.stabilize()
	f.leader(0).Deleting = true
	f.stabilize()
	old := f.Observed.Workers[0]
	f.Leaders[0].UID, f.Leaders[0].Deleting = "s-0/2", false
	old.Pods[0].Deleting, old.Pods[1].Deleting = true, true
	p := f.stabilize()
	if len(p.DeleteLeaders) > 0 || f.status(0).Restarts != 1 {
		t.Errorf("deleted %v, status.groups %v; want one restart", deleted(p), f.Set.Status.Groups)
	}
	if len(p.CreateWorkers) > 0 {
		t.Error("workers are created while those of the former leader have their name")
	}
	f.Observed.Workers = nil
	if diff := cmp.Diff([]string{"s-0"}, createdWorkers(f.stabilize())); diff != "" {
		t.Error("workers to create (-want +got):\n" + diff)
	}
}

// TestRestartWithoutCause records what is known of the pods if no cause is.
func TestRestartWithoutCause(t *testing.T) {
	for name, c := range map[string]struct {
		change func(f *fixture)
		want   jobsetv1alpha2.FailureCause
		note   string
	}{
		"restarted leader": {
			func(f *fixture) { restarted(f.leader(0)) },
			jobsetv1alpha2.FailureCause{Job: "s", Pod: "s-0", Node: "node-s-0", Message: "a container of the pod restarted"},
			"Worker pod s-0 failed, deleted leader pod s-0 to recreate group 0",
		},
		"deleted worker": {
			func(f *fixture) { f.worker(0, 2).Deleting = true },
			jobsetv1alpha2.FailureCause{Job: "s-0", Pod: "s-0-2", Node: "node-s-0-2", Message: "the pod was deleted"},
			"Worker pod s-0-2 failed, deleted leader pod s-0 to recreate group 0",
		},
		"lost worker": {
			func(f *fixture) {
				f.workers(0).Lost = 1
				f.worker(0, 1).Created = metav1.NewTime(f.Now.Add(1e9))
			},
			jobsetv1alpha2.FailureCause{Job: "s-0", Pod: "s-0-1", Message: "the pod was deleted and replaced before it was looked at"},
			"Worker pod s-0-1 failed, deleted leader pod s-0 to recreate group 0",
		},
		"lost worker that was seen": {
			func(f *fixture) {
				f.workers(0).Lost, f.workers(0).FirstLost = 2, LostPod{Name: "s-0-2", Node: "node-a"}
				f.workers(0).Pods = nil
			},
			jobsetv1alpha2.FailureCause{Job: "s-0", Pod: "s-0-2", Node: "node-a", Message: "the pod was deleted"},
			"Worker pod s-0-2 failed, deleted leader pod s-0 to recreate group 0",
		},
		"lost worker without a replacement": {
			func(f *fixture) { f.workers(0).Lost, f.workers(0).Pods = 1, nil },
			jobsetv1alpha2.FailureCause{Job: "s-0", Message: "a worker pod was deleted"},
			"Worker pod s-0 failed, deleted leader pod s-0 to recreate group 0",
		},
	} {
		t.Run(name, func(t *testing.T) {
			f := newFixture(t, 1, 3)
			f.stabilize()
			c.change(f)
			p := f.stabilize()
			if diff := cmp.Diff(&c.want, f.status(0).FirstCause); diff != "" {
				t.Error("firstCause (-want +got):\n" + diff)
			}
			if len(p.DeleteLeaders) != 1 || p.DeleteLeaders[0].Event.Note != c.note {
				t.Errorf("deletions %+v, want one with the event %q", p.DeleteLeaders, c.note)
			}
		})
	}
}
