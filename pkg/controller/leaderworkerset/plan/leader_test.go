// Copyright The jobset-apiserver Authors.
// SPDX-License-Identifier: Apache-2.0

package plan

import (
	"testing"

	"github.com/google/go-cmp/cmp"
	appsv1 "k8s.io/api/apps/v1"
	corev1 "k8s.io/api/core/v1"
	"k8s.io/apimachinery/pkg/api/resource"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/util/intstr"
	"k8s.io/utils/ptr"
	"sigs.k8s.io/yaml"

	leaderworkersetv1 "github.com/jobset-apiserver/jobset-apiserver/pkg/apis/leaderworkerset/v1"
)

// fullSet uses everything that the leader StatefulSet depends on.
func fullSet(set *leaderworkersetv1.LeaderWorkerSet) {
	rolling(10, 2, 3, 4)(set)
	set.Labels = map[string]string{"team": "a", leaderworkersetv1.RevisionKey: "lost"}
	set.Annotations = map[string]string{
		"note": "b", leaderworkersetv1.ExclusiveKeyAnnotationKey: "rack", leaderworkersetv1.SubGroupExclusiveKeyAnnotationKey: "host", leaderworkersetv1.ReplicasAnnotationKey: "lost",
	}
	set.Spec.NetworkConfig.SubdomainPolicy = ptr.To(leaderworkersetv1.SubdomainUniquePerReplica)
	t := &set.Spec.LeaderWorkerTemplate
	t.GroupSize = ptr.To[int32](4)
	t.SubGroupPolicy = &leaderworkersetv1.SubGroupPolicy{Type: ptr.To(leaderworkersetv1.SubGroupPolicyLeaderWorker), SubGroupSize: ptr.To[int32](2)}
	t.LeaderTemplate.Labels = map[string]string{"role": "leader", leaderworkersetv1.WorkerIndexLabelKey: "lost"}
	t.LeaderTemplate.Annotations = map[string]string{"c": "d"}
	t.PersistentVolumeClaimRetentionPolicy = &appsv1.StatefulSetPersistentVolumeClaimRetentionPolicy{WhenDeleted: "Delete", WhenScaled: "Retain"}
	t.VolumeClaimTemplates = []corev1.PersistentVolumeClaim{{
		ObjectMeta: metav1.ObjectMeta{Name: "data", Labels: map[string]string{"lost": ""}},
		Spec: corev1.PersistentVolumeClaimSpec{
			AccessModes: []corev1.PersistentVolumeAccessMode{corev1.ReadWriteOnce}, StorageClassName: ptr.To("fast"), VolumeName: "lost",
			Resources: corev1.VolumeResourceRequirements{Requests: corev1.ResourceList{"storage": resource.MustParse("1Gi")}},
		},
	}}
}

const fullLeader = `
metadata:
  name: test-sample
  namespace: default
  labels: {team: a, leaderworkerset.sigs.k8s.io/name: test-sample, leaderworkerset.sigs.k8s.io/template-revision-hash: KEY}
  annotations:
    note: b
    leaderworkerset.sigs.k8s.io/exclusive-topology: rack
    leaderworkerset.sigs.k8s.io/subgroup-exclusive-topology: host
    leaderworkerset.sigs.k8s.io/replicas: "10"
  ownerReferences:
  - {apiVersion: leaderworkerset.x-k8s.io/v1, kind: LeaderWorkerSet, name: test-sample, uid: set, controller: true, blockOwnerDeletion: true}
spec:
  serviceName: test-sample
  replicas: 10
  podManagementPolicy: Parallel
  updateStrategy:
    type: RollingUpdate
    rollingUpdate: {partition: 4, maxUnavailable: 5}
  selector:
    matchLabels: {leaderworkerset.sigs.k8s.io/name: test-sample, leaderworkerset.sigs.k8s.io/worker-index: "0"}
  template:
    metadata:
      labels:
        role: leader
        leaderworkerset.sigs.k8s.io/name: test-sample
        leaderworkerset.sigs.k8s.io/worker-index: "0"
        leaderworkerset.sigs.k8s.io/template-revision-hash: KEY
      annotations:
        c: d
        leaderworkerset.sigs.k8s.io/size: "4"
        leaderworkerset.sigs.k8s.io/exclusive-topology: rack
        leaderworkerset.sigs.k8s.io/subgroup-exclusive-topology: host
        leaderworkerset.sigs.k8s.io/subgroup-size: "2"
        leaderworkerset.sigs.k8s.io/subgroup-policy-type: LeaderWorker
        leaderworkerset.sigs.k8s.io/subdomainPolicy: UniquePerReplica
    spec:
      containers:
      - {name: c, image: "1"}
  persistentVolumeClaimRetentionPolicy: {whenDeleted: Delete, whenScaled: Retain}
  volumeClaimTemplates:
  - metadata: {name: data}
    spec:
      accessModes: [ReadWriteOnce]
      storageClassName: fast
      resources: {requests: {storage: 1Gi}}
`

func TestLeaderStatefulSet(t *testing.T) {
	want := &appsv1.StatefulSet{}
	if err := yaml.UnmarshalStrict([]byte(fullLeader), want); err != nil {
		t.Fatal(err)
	}
	w := newWorld(t, fullSet)
	want.Labels[leaderworkersetv1.RevisionKey] = revisionOf(w.observe()).key
	want.Spec.Template.Labels[leaderworkersetv1.RevisionKey] = revisionOf(w.observe()).key
	p := Decide(w.observe())
	if diff := cmp.Diff(want, p.ApplyLeader); diff != "" {
		t.Error(diff)
	}
	worker := newWorld(t, func(set *leaderworkersetv1.LeaderWorkerSet) {
		set.Spec.LeaderWorkerTemplate.LeaderTemplate = nil
		set.Spec.LeaderWorkerTemplate.WorkerTemplate.Spec.Containers[0].Name = "worker"
		set.Annotations = map[string]string{leaderworkersetv1.SubGroupExclusiveKeyAnnotationKey: "host", leaderworkersetv1.ExclusiveKeyAnnotationKey: ""}
	})
	got := Decide(worker.observe()).ApplyLeader.Spec
	if diff := cmp.Diff(map[string]string{leaderworkersetv1.SizeAnnotationKey: "2"}, got.Template.Annotations); diff != "" || got.Template.Spec.Containers[0].Name != "worker" {
		t.Errorf("a leader of the template of workers: %s %+v", diff, got.Template)
	}
}

// live returns a StatefulSet as the API stores it.
func live(sts *appsv1.StatefulSet) *appsv1.StatefulSet {
	out := sts.DeepCopy()
	out.ResourceVersion, out.UID, out.ManagedFields = "7", "u", []metav1.ManagedFieldsEntry{{Manager: "lws"}}
	out.Spec.RevisionHistoryLimit = ptr.To[int32](10)
	s := &out.Spec.Template.Spec
	s.RestartPolicy, s.DNSPolicy, s.SecurityContext = corev1.RestartPolicyAlways, corev1.DNSClusterFirst, &corev1.PodSecurityContext{}
	s.Containers[0].TerminationMessagePath = "/dev/termination-log"
	for i := range out.Spec.VolumeClaimTemplates {
		c := &out.Spec.VolumeClaimTemplates[i]
		c.Kind, c.APIVersion, c.Status.Phase, c.Spec.VolumeMode = "PersistentVolumeClaim", "v1", corev1.ClaimPending, ptr.To(corev1.PersistentVolumeFilesystem)
	}
	return out
}

func TestLeaderIsAppliedOnlyIfItLacksSomething(t *testing.T) {
	w := newWorld(t, fullSet).stabilize().finish()
	intended := leaderStatefulSet(w.set, key(w.leader), target{4, 10})
	w.applied = ApplyHash(intended)
	for name, c := range map[string]struct {
		change func(*appsv1.StatefulSet)
		want   bool
	}{
		"as stored": {func(*appsv1.StatefulSet) {}, false},
		"a label of somebody else": {func(s *appsv1.StatefulSet) {
			s.Labels["x"] = "y"
			s.Annotations["x"] = "y"
			s.Spec.Template.Annotations["x"] = "y"
		}, false},
		"a container of somebody else": {func(s *appsv1.StatefulSet) {
			s.Spec.Template.Spec.Containers = append([]corev1.Container{{Name: "sidecar"}}, s.Spec.Template.Spec.Containers...)
		}, false},
		"an owner more": {func(s *appsv1.StatefulSet) {
			s.OwnerReferences = append([]metav1.OwnerReference{{UID: "x"}}, s.OwnerReferences...)
		}, false},
		"fields that belong to its creation": {func(s *appsv1.StatefulSet) {
			s.ManagedFields = []metav1.ManagedFieldsEntry{{Manager: leaderworkersetv1.FieldManager, Operation: metav1.ManagedFieldsOperationUpdate}}
		}, true},
		"no label":             {func(s *appsv1.StatefulSet) { delete(s.Labels, "team") }, true},
		"another annotation":   {func(s *appsv1.StatefulSet) { s.Annotations["note"] = "c" }, true},
		"another image":        {func(s *appsv1.StatefulSet) { s.Spec.Template.Spec.Containers[0].Image = "2" }, true},
		"no container":         {func(s *appsv1.StatefulSet) { s.Spec.Template.Spec.Containers = nil }, true},
		"other replicas":       {func(s *appsv1.StatefulSet) { s.Spec.Replicas = ptr.To[int32](11) }, true},
		"no owner":             {func(s *appsv1.StatefulSet) { s.OwnerReferences = nil }, true},
		"another strategy":     {func(s *appsv1.StatefulSet) { s.Spec.UpdateStrategy.Type = appsv1.OnDeleteStatefulSetStrategyType }, true},
		"another service name": {func(s *appsv1.StatefulSet) { s.Spec.ServiceName = "x" }, true},
		"other maxUnavailable": {func(s *appsv1.StatefulSet) {
			s.Spec.UpdateStrategy.RollingUpdate.MaxUnavailable = ptr.To(intstr.FromInt32(1))
		}, true},
		"another storage class": {func(s *appsv1.StatefulSet) { s.Spec.VolumeClaimTemplates[0].Spec.StorageClassName = ptr.To("slow") }, true},
		"an access mode more": {func(s *appsv1.StatefulSet) {
			c := &s.Spec.VolumeClaimTemplates[0].Spec
			c.AccessModes = append(c.AccessModes, corev1.ReadOnlyMany)
		}, true},
	} {
		w.leader = live(intended)
		c.change(w.leader)
		if p := Decide(w.observe()); (p.ApplyLeader != nil) != c.want {
			t.Errorf("%s: applied %t", name, !c.want)
		}
	}
	w.leader, w.applied = live(intended), "another"
	if Decide(w.observe()).ApplyLeader == nil {
		t.Error("what was removed from the set stays in the StatefulSet")
	}
	w.applied = ""
	if Decide(w.observe()).ApplyLeader == nil {
		t.Error("a controller that has just started does not apply")
	}
}

func TestDecideLeavesAloneWhatGoesAndWhatIsNotOfTheSet(t *testing.T) {
	w := atRest(t, 3, 1, 0, 0)
	w.spec(w.image("2"))
	now := metav1.NewTime(w.now)
	o := w.observe()
	o.Set = o.Set.DeepCopy()
	o.Set.DeletionTimestamp = &now
	if diff := cmp.Diff(Plan{}, Decide(o)); diff != "" {
		t.Errorf("a set that is being deleted: %s", diff)
	}
	o = w.observe()
	o.Leader = o.Leader.DeepCopy()
	o.Leader.DeletionTimestamp = &now
	if diff := cmp.Diff(Plan{RequeueAfter: leaderGoneAfter}, Decide(o)); diff != "" {
		t.Errorf("a StatefulSet that is being deleted: %s", diff)
	}
	o = newWorld(t, nil).observe()
	o.LeaderTaken = true
	p := Decide(o)
	if p.ApplyLeader != nil || p.CreateRevision != nil || p.RequeueAfter != nameFreeAfter {
		t.Errorf("a StatefulSet of somebody else: %+v", p)
	}
	out := Finish(o, p, Results{})
	const want = "Failed to create leader statefulset test-sample: a StatefulSet with this name exists and does not belong to the LeaderWorkerSet"
	if len(out.Others) != 1 || out.Others[0].Note != want || out.Others[0].Reason != "FailedCreate" || out.Others[0].Type != corev1.EventTypeWarning {
		t.Errorf("events %+v", out.Others)
	}
}

func TestServices(t *testing.T) {
	w := newWorld(t, nil)
	services := Decide(w.observe()).CreateServices
	want := &corev1.Service{
		ObjectMeta: metav1.ObjectMeta{
			Name: "test-sample", Namespace: "default", Labels: map[string]string{"leaderworkerset.sigs.k8s.io/name": "test-sample"},
			OwnerReferences: []metav1.OwnerReference{*metav1.NewControllerRef(w.set, setKind)},
		},
		Spec: corev1.ServiceSpec{ClusterIP: "None", PublishNotReadyAddresses: true, Selector: map[string]string{"leaderworkerset.sigs.k8s.io/name": "test-sample"}},
	}
	if diff := cmp.Diff([]*corev1.Service{want}, services); diff != "" {
		t.Error(diff)
	}
	w.stabilize()
	w.services = nil
	if got := Decide(w.observe()).CreateServices; len(got) != 1 {
		t.Errorf("a Service that was deleted: %v", got)
	}

	w = atRest(t, 3, 1, 0, 0)
	w.spec(func(s *leaderworkersetv1.LeaderWorkerSetSpec) {
		s.NetworkConfig = &leaderworkersetv1.NetworkConfig{SubdomainPolicy: ptr.To(leaderworkersetv1.SubdomainUniquePerReplica)}
	})
	w.pods[1].deleting = true
	w.services = append(w.services, Child{Ref: Ref{Name: "test-sample-2"}, Controller: w.pods[2].uid})
	services = decide(t, w.observe()).CreateServices
	yes := true
	want = &corev1.Service{
		ObjectMeta: metav1.ObjectMeta{
			Name: "test-sample-0", Namespace: "default", Labels: map[string]string{"leaderworkerset.sigs.k8s.io/name": "test-sample"},
			OwnerReferences: []metav1.OwnerReference{{APIVersion: "v1", Kind: "Pod", Name: "test-sample-0", UID: w.pods[0].uid, Controller: &yes, BlockOwnerDeletion: &yes}},
		},
		Spec: corev1.ServiceSpec{ClusterIP: "None", PublishNotReadyAddresses: true, Selector: map[string]string{
			"leaderworkerset.sigs.k8s.io/name": "test-sample", "leaderworkerset.sigs.k8s.io/group-index": "0",
		}},
	}
	if diff := cmp.Diff([]*corev1.Service{want}, services); diff != "" {
		t.Error(diff)
	}
}

// TestServicesOfOthers has Services with the label of the set, which anybody can give them.
func TestServicesOfOthers(t *testing.T) {
	w := atRest(t, 2, 1, 0, 0)
	unique := func(s *leaderworkersetv1.LeaderWorkerSetSpec) {
		s.NetworkConfig = &leaderworkersetv1.NetworkConfig{SubdomainPolicy: ptr.To(leaderworkersetv1.SubdomainUniquePerReplica)}
	}
	for name, tc := range map[string]struct {
		services []Child
		orphans  []Orphan
		unique   bool
		want     []string
	}{
		"of the set":                   {services: []Child{{Ref: Ref{Name: "test-sample"}, Controller: w.set.UID}}},
		"of nobody":                    {services: []Child{{Ref: Ref{Name: "test-sample"}}}, want: []string{"test-sample"}},
		"of another set":               {services: []Child{{Ref: Ref{Name: "test-sample"}, Controller: "other"}}, want: []string{"test-sample"}},
		"of nobody, and adopted":       {services: []Child{{Ref: Ref{Name: "test-sample"}}}, orphans: []Orphan{{Ref: Ref{Name: "test-sample"}, Kind: OrphanService}}},
		"of a leader":                  {unique: true, services: []Child{{Ref: Ref{Name: "test-sample-0"}, Controller: w.pods[0].uid}}, want: []string{"test-sample-1"}},
		"of the set in place of a pod": {unique: true, services: []Child{{Ref: Ref{Name: "test-sample-0"}, Controller: w.set.UID}}, want: []string{"test-sample-0", "test-sample-1"}},
		"of a leader that is gone": {
			unique: true, services: []Child{{Ref: Ref{Name: "test-sample-0"}, Controller: "gone", OfLeader: true}}, want: []string{"test-sample-1"},
		},
	} {
		t.Run(name, func(t *testing.T) {
			o := w.observe()
			o.Services, o.Orphans = tc.services, tc.orphans
			if tc.unique {
				o.Set = o.Set.DeepCopy()
				unique(&o.Set.Spec)
			}
			var got []string
			for _, service := range decide(t, o).CreateServices {
				got = append(got, service.Name)
			}
			if diff := cmp.Diff(tc.want, got); diff != "" {
				t.Error(diff)
			}
		})
	}
}
