// Copyright The jobset-apiserver Authors.
// SPDX-License-Identifier: Apache-2.0

package plan

import (
	"fmt"
	"strings"
	"testing"
	"time"

	"github.com/google/go-cmp/cmp"
	appsv1 "k8s.io/api/apps/v1"
	corev1 "k8s.io/api/core/v1"
	"k8s.io/apimachinery/pkg/api/resource"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/utils/ptr"

	leaderworkersetv1 "github.com/jobset-apiserver/jobset-apiserver/pkg/apis/leaderworkerset/v1"
	hostplan "github.com/jobset-apiserver/jobset-apiserver/pkg/controller/host/plan"
)

const lws = "leaderworkerset.sigs.k8s.io/"

// TestWorkerStatefulSet compares all of a StatefulSet of workers with the reference.
func TestWorkerStatefulSet(t *testing.T) {
	f := newFixture(t, 1, 4)
	set := f.Set
	set.Labels = map[string]string{"team": "a", lws + "name": "other"}
	set.Annotations = map[string]string{
		"note": "b", lws + "exclusive-topology": "rack", lws + "subgroup-exclusive-topology": "host", "kubectl.kubernetes.io/last-applied-configuration": "{}",
	}
	template := &set.Spec.LeaderWorkerTemplate
	template.WorkerTemplate.Labels = map[string]string{"role": "worker", lws + "group-index": "9"}
	template.WorkerTemplate.Annotations = map[string]string{"x": "y"}
	template.WorkerTemplate.Spec.NodeSelector = map[string]string{"gpu": "yes"}
	template.SubGroupPolicy = &leaderworkersetv1.SubGroupPolicy{SubGroupSize: ptr.To[int32](2), Type: ptr.To(leaderworkersetv1.SubGroupPolicyLeaderWorker)}
	template.PersistentVolumeClaimRetentionPolicy = &appsv1.StatefulSetPersistentVolumeClaimRetentionPolicy{WhenDeleted: appsv1.DeletePersistentVolumeClaimRetentionPolicyType}
	claim := corev1.PersistentVolumeClaimSpec{
		AccessModes: []corev1.PersistentVolumeAccessMode{corev1.ReadWriteOnce}, StorageClassName: ptr.To("fast"), VolumeMode: ptr.To(corev1.PersistentVolumeFilesystem),
		Resources: corev1.VolumeResourceRequirements{Requests: corev1.ResourceList{corev1.ResourceStorage: resource.MustParse("1Gi")}},
	}
	full := claim
	full.VolumeName, full.Selector = "v", &metav1.LabelSelector{}
	template.VolumeClaimTemplates = []corev1.PersistentVolumeClaim{{ObjectMeta: metav1.ObjectMeta{Name: "data", Labels: map[string]string{"lost": "yes"}}, Spec: full}}
	f.Revisions = []*appsv1.ControllerRevision{f.revision(set, 1)}
	relabel(f)
	f.forgetWorkers(0)
	key := f.leader(0).Revision
	f.leader(0).RequestsTPUs = true
	f.Domains = map[string]string{"node-s-0": "rack-7"}

	p := f.stabilize()
	if len(p.CreateWorkers) != 1 {
		t.Fatalf("the plan creates %d StatefulSets of workers, want 1", len(p.CreateWorkers))
	}
	identity := map[string]string{lws + "name": "s", lws + "group-index": "0", lws + "group-key": "1a04bc8b1fbb42bc9af2b0eb4cb9aaf6a6b9fa61"}
	want := &appsv1.StatefulSet{
		ObjectMeta: metav1.ObjectMeta{
			Name: "s-0", Namespace: "ns", Labels: hostplan.Merged(identity, map[string]string{"team": "a", lws + "template-revision-hash": key}), Annotations: set.Annotations,
			OwnerReferences: []metav1.OwnerReference{
				{APIVersion: "v1", Kind: "Pod", Name: "s-0", UID: "s-0/1", Controller: ptr.To(true), BlockOwnerDeletion: ptr.To(true)},
			},
		},
		Spec: appsv1.StatefulSetSpec{
			Replicas: ptr.To[int32](3), Ordinals: &appsv1.StatefulSetOrdinals{Start: 1}, PodManagementPolicy: appsv1.ParallelPodManagement, ServiceName: "s",
			Selector: &metav1.LabelSelector{MatchLabels: identity},
			Template: corev1.PodTemplateSpec{
				ObjectMeta: metav1.ObjectMeta{
					Labels: hostplan.Merged(identity, map[string]string{"role": "worker", lws + "template-revision-hash": key}),
					Annotations: map[string]string{
						"x": "y", lws + "size": "4", lws + "leader-name": "s-0", lws + "leader-requests-tpus": "true", lws + "exclusive-topology": "rack",
						lws + "subgroup-size": "2", lws + "subgroup-policy-type": "LeaderWorker", lws + "subgroup-exclusive-topology": "host",
					},
				},
				Spec: corev1.PodSpec{Containers: []corev1.Container{{Name: "main", Image: "new"}}, NodeSelector: map[string]string{"gpu": "yes", "rack": "rack-7"}},
			},
			VolumeClaimTemplates:                 []corev1.PersistentVolumeClaim{{ObjectMeta: metav1.ObjectMeta{Name: "data"}, Spec: claim}},
			PersistentVolumeClaimRetentionPolicy: template.PersistentVolumeClaimRetentionPolicy,
		},
	}
	// The group key is a hash, whose golden values the helpers test.
	identity[lws+"group-key"] = p.CreateWorkers[0].Labels[lws+"group-key"]
	want.Labels[lws+"group-key"], want.Spec.Template.Labels[lws+"group-key"] = identity[lws+"group-key"], identity[lws+"group-key"]
	if diff := cmp.Diff(want, p.CreateWorkers[0].StatefulSet); diff != "" {
		t.Error("StatefulSet of workers (-want +got):\n" + diff)
	}
	event := Event{Type: "Normal", Reason: "GroupsProgressing", Action: "Create", Note: "Created worker statefulset for leader pod s-0", Related: "s-0"}
	if diff := cmp.Diff(event, p.CreateWorkers[0].Event); diff != "" {
		t.Error("event (-want +got):\n" + diff)
	}
}

func TestWorkersAreDue(t *testing.T) {
	for name, c := range map[string]struct {
		size   int32
		change func(f *fixture)
		want   bool
		after  time.Duration
		notice string
	}{
		"leader created":            {size: 3, change: func(*fixture) {}, want: true},
		"leader pends, unscheduled": {size: 3, change: func(f *fixture) { *f.leader(0) = pending(*f.leader(0)) }, want: true},
		"size 1":                    {size: 1, change: func(*fixture) {}},
		"leader is being deleted":   {size: 3, change: func(f *fixture) { f.leader(0).Deleting = true }},
		"LeaderReady, not ready": {size: 3, change: func(f *fixture) {
			f.Set.Spec.StartupPolicy = leaderworkersetv1.StartupPolicyLeaderReady
			f.leader(0).Ready = false
		}},
		"LeaderReady, ready": {size: 3, change: func(f *fixture) { f.Set.Spec.StartupPolicy = leaderworkersetv1.StartupPolicyLeaderReady }, want: true},
		"workers exist, LeaderReady, not ready any longer": {size: 3, change: func(f *fixture) {
			f.addWorkers(0, 3, f.leader(0).Revision)
			f.Set.Spec.StartupPolicy = leaderworkersetv1.StartupPolicyLeaderReady
			f.leader(0).Ready = false
		}},
		"workers are being deleted": {size: 3, change: func(f *fixture) { f.addWorkers(0, 3, f.leader(0).Revision); f.workers(0).Deleting = true }},
		"name has workers of a leader that is gone": {size: 3, change: func(f *fixture) {
			f.addWorkers(0, 3, f.leader(0).Revision)
			f.Observed.Workers[0].Leader = "s-0/0"
		}},
		"leader has the annotation of workers": {
			size: 3, change: func(f *fixture) { f.leader(0).LeaderName = "s-0" },
			notice: "Failed to create worker statefulset for leader pod s-0: it has the annotation leaderworkerset.sigs.k8s.io/leader-name, which only worker pods have. " +
				"Worker StatefulSets start at ordinal 1, which needs Kubernetes 1.27 or later, or 1.26 with the feature gate StatefulSetStartOrdinal",
		},
		"revision is not there yet": {size: 3, change: func(f *fixture) { f.leader(0).Revision = "unknown" }, after: 2 * time.Second},
		"revision is lost": {
			size: 3, change: (*fixture).lose, after: 30 * time.Second, notice: lostRevision + "Delete the pod to recreate the group",
		},
		"revision is lost, below the partition": {
			size: 3, change: func(f *fixture) {
				f.lose()
				f.Set.Spec.RolloutStrategy.RollingUpdateConfiguration.Partition = ptr.To[int32](1)
			}, after: 30 * time.Second,
			notice: lostRevision + "Lower spec.rolloutStrategy.rollingUpdateConfiguration.partition to 0 to recreate the group at the current revision",
		},
		"revision is lost, the update has not come to the group": {
			size: 3, change: func(f *fixture) { f.lose(); f.releaseFrom(1) }, after: 30 * time.Second,
			notice: lostRevision + "The rolling update recreates the group at the current revision",
		},
		"revision is lost, and the leader StatefulSet is of it": {
			size: 3, change: func(f *fixture) { f.lose(); f.Leader.Labels[leaderworkersetv1.RevisionKey] = "unknown" }, after: 30 * time.Second,
			notice: lostRevision + "The rolling update recreates the group at the current revision",
		},
		"revision is lost, the update is paused": {
			size: 3, change: func(f *fixture) { f.lose(); f.releaseFrom(1); f.Set.Spec.Paused = ptr.To(true) }, after: 30 * time.Second,
			notice: lostRevision + "Set spec.paused to false to recreate the group at the current revision",
		},
		"revision is lost, paused above the partition": {
			size: 3, change: func(f *fixture) { f.lose(); f.Set.Spec.Paused = ptr.To(true) }, after: 30 * time.Second,
			notice: lostRevision + "Delete the pod to recreate the group",
		},
		"exclusive, unscheduled": {size: 3, change: func(f *fixture) { exclusive(f); f.leader(0).Node = "" }},
		"exclusive, node without the label": {
			size: 3, change: exclusive, after: 10 * time.Second,
			notice: `Failed to create worker statefulset for leader pod s-0: its node node-s-0 must have the label "rack" of the annotation leaderworkerset.sigs.k8s.io/exclusive-topology`,
		},
		"exclusive": {size: 3, change: func(f *fixture) { exclusive(f); f.Domains = map[string]string{"node-s-0": "7"} }, want: true},
	} {
		t.Run(name, func(t *testing.T) {
			f := newFixture(t, 1, c.size)
			f.forgetWorkers(0)
			c.change(f)
			p := f.stabilize()
			if got := len(p.CreateWorkers) == 1; got != c.want {
				t.Errorf("workers are created: %t, want %t", got, c.want)
			}
			if p.RequeueAfter != c.after {
				t.Errorf("the next decision is due after %v, want %v", p.RequeueAfter, c.after)
			}
			var notices []string
			for _, e := range p.Notices {
				notices = append(notices, e.Note)
			}
			if got := strings.Join(notices, "\n"); got != c.notice {
				t.Errorf("notice %q, want %q", got, c.notice)
			}
		})
	}
}

const lostRevision = "Failed to create worker statefulset for leader pod s-0: no ControllerRevision of the LeaderWorkerSet has the key \"unknown\" of the pod, " +
	"or it cannot be read. "

// lose gives the leader of the first group a revision that is lost.
func (f *fixture) lose() {
	f.leader(0).Revision = "unknown"
	f.later(time.Minute)
}

// releaseFrom has a rolling update replace the groups from an index on.
func (f *fixture) releaseFrom(index int32) {
	f.Leader.Spec.UpdateStrategy.RollingUpdate = &appsv1.RollingUpdateStatefulSetStrategy{Partition: &index}
}

func pending(p Pod) Pod {
	p.Phase, p.Ready, p.Node = corev1.PodPending, false, ""
	return p
}

func exclusive(f *fixture) {
	f.Set.Annotations = map[string]string{leaderworkersetv1.ExclusiveKeyAnnotationKey: "rack"}
}

// TestWorkersOfFormerRevision recreates a group during an update: it gets the template, the size and the network of its leader.
func TestWorkersOfFormerRevision(t *testing.T) {
	f := newFixture(t, 2, 3)
	old := f.Set.DeepCopy()
	old.Spec.LeaderWorkerTemplate.WorkerTemplate.Spec.Containers[0].Image = "old"
	old.Spec.LeaderWorkerTemplate.GroupSize = ptr.To[int32](5)
	old.Spec.NetworkConfig = &leaderworkersetv1.NetworkConfig{SubdomainPolicy: ptr.To(leaderworkersetv1.SubdomainUniquePerReplica)}
	former := f.revision(old, 1)
	f.Revisions[0].Revision, f.Revisions = 2, append(f.Revisions, former)
	f.leader(0).Revision = former.Labels[leaderworkersetv1.RevisionKey]
	f.forgetWorkers(0)
	p := f.stabilize()
	if len(p.CreateWorkers) != 1 {
		t.Fatalf("the plan creates %d StatefulSets of workers, want 1", len(p.CreateWorkers))
	}
	got := p.CreateWorkers[0].StatefulSet
	type facts struct{ image, size, service, revision, replicas string }
	want := facts{"old", "5", "s-0", former.Labels[leaderworkersetv1.RevisionKey], "4"}
	if diff := cmp.Diff(want, facts{
		got.Spec.Template.Spec.Containers[0].Image, got.Spec.Template.Annotations[lws+"size"], got.Spec.ServiceName, got.Labels[lws+"template-revision-hash"],
		fmt.Sprint(*got.Spec.Replicas),
	}, cmp.AllowUnexported(facts{})); diff != "" {
		t.Error("workers (-want +got):\n" + diff)
	}
}

// TestWorkersAreBounded creates the workers of many groups, of which some are always refused: the others have their turn.
func TestWorkersAreBounded(t *testing.T) {
	const groups = 250
	f := newFixture(t, groups, 2)
	f.Observed.Workers = nil
	f.stabilize()
	created := map[string]bool{}
	for range 20 {
		p := f.stabilize()
		if len(p.CreateWorkers) > maxGroupWrites {
			t.Fatalf("a plan creates %d StatefulSets, want at most %d", len(p.CreateWorkers), maxGroupWrites)
		}
		if len(p.CreateWorkers) == maxGroupWrites && !p.More {
			t.Fatal("no plan follows one that was full")
		}
		for _, name := range createdWorkers(p) {
			if !created[name] && !strings.HasSuffix(name, "7") {
				created[name] = true
				var group int32
				if _, err := fmt.Sscanf(name, "s-%d", &group); err != nil {
					t.Fatal(err)
				}
				f.addWorkers(group, 2, f.leader(group).Revision)
			}
		}
		f.later(time.Second)
	}
	if want := groups - 25; len(created) != want {
		t.Errorf("%d StatefulSets were created, want %d", len(created), want)
	}
}

// TestGroupsThatWaitTakeNoRoom has more leaders without a node than a plan has room for: the others are not delayed,
// and nothing follows at once that would be like this plan.
func TestGroupsThatWaitTakeNoRoom(t *testing.T) {
	const groups, placed = 250, 30
	f := newFixture(t, groups, 2)
	exclusive(f)
	f.Observed.Workers = nil
	for i := range int32(groups) {
		if i%8 == 0 && i/8 < placed {
			f.Domains = hostplan.Merged(f.Domains, map[string]string{f.leader(i).Node: "7"})
		} else {
			f.leader(i).Node = ""
		}
	}
	p := f.stabilize()
	if len(p.CreateWorkers) != placed || p.More {
		t.Errorf("%d groups get workers, more: %t; want %d, false", len(p.CreateWorkers), p.More, placed)
	}
	for name, c := range map[string]struct {
		plan    Plan
		results Results
		want    bool
	}{
		"something was accepted":  {Plan{More: true}, Results{Accepted: 1}, true},
		"the status is stored":    {Plan{More: true, Status: &f.Set.Status, Events: []Event{{Note: "a group is recreated"}}}, Results{}, true},
		"all was refused":         {Plan{More: true}, Results{}, false},
		"the plan was not full":   {Plan{}, Results{Accepted: 1}, false},
		"the time was over first": {Plan{}, Results{Accepted: 1, Interrupted: true}, true},
	} {
		if got := Finish(f.Observed, c.plan, c.results).Continue; got != c.want {
			t.Errorf("%s: continued: %t", name, got)
		}
	}
}
