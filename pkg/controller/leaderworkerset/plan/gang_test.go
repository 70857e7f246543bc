// Copyright The jobset-apiserver Authors.
// SPDX-License-Identifier: Apache-2.0

package plan

import (
	"testing"

	"github.com/google/go-cmp/cmp"
	appsv1 "k8s.io/api/apps/v1"
	corev1 "k8s.io/api/core/v1"
	"k8s.io/apimachinery/pkg/api/resource"
	"k8s.io/utils/ptr"

	leaderworkersetv1 "github.com/jobset-apiserver/jobset-apiserver/pkg/apis/leaderworkerset/v1"
	"github.com/jobset-apiserver/jobset-apiserver/test/podgroupkinds"
)

func list(cpu, memory string) corev1.ResourceList {
	out := corev1.ResourceList{}
	if cpu != "" {
		out[corev1.ResourceCPU] = resource.MustParse(cpu)
	}
	if memory != "" {
		out[corev1.ResourceMemory] = resource.MustParse(memory)
	}
	return out
}

// ganged returns a set of one group of 4 with Volcano.
func ganged(t *testing.T) *fixture {
	f := newFixture(t, 1, 4)
	f.Set.Annotations = map[string]string{
		"volcano.sh/preemptable": "true", "scheduling.volcano.sh/queue-name": "research", "note": "not copied",
	}
	template := &f.Set.Spec.LeaderWorkerTemplate
	template.LeaderTemplate = template.WorkerTemplate.DeepCopy()
	template.LeaderTemplate.Spec.Containers[0].Resources.Requests = list("500m", "1Gi")
	template.WorkerTemplate.Spec.Containers[0].Resources = corev1.ResourceRequirements{
		Requests: list("250m", ""), Limits: corev1.ResourceList{"nvidia.com/gpu": resource.MustParse("8"), corev1.ResourceCPU: resource.MustParse("2")},
	}
	f.Revisions = []*appsv1.ControllerRevision{f.revision(f.Set, 1)}
	relabel(f)
	f.Gang = GangVolcano
	return f
}

func TestPodGroupOfVolcano(t *testing.T) {
	f := ganged(t)
	key := f.leader(0).Revision
	p := f.stabilize()
	if len(p.CreatePodGroups) != 1 {
		t.Fatalf("the plan creates %d PodGroups, want 1", len(p.CreatePodGroups))
	}
	want := map[string]any{
		"apiVersion": "scheduling.volcano.sh/v1beta1", "kind": "PodGroup",
		"metadata": map[string]any{
			"name": "s-0-" + key, "namespace": "ns",
			"labels":          map[string]any{lws + "name": "s", lws + "group-index": "0", lws + "template-revision-hash": key},
			"annotations":     map[string]any{"volcano.sh/preemptable": "true"},
			"ownerReferences": []any{map[string]any{"apiVersion": "v1", "kind": "Pod", "name": "s-0", "uid": "s-0/1", "controller": true, "blockOwnerDeletion": true}},
		},
		"spec": map[string]any{
			"minMember": int64(4), "queue": "research",
			"minResources": map[string]any{"cpu": "1250m", "memory": "1Gi", "nvidia.com/gpu": "24"},
		},
	}
	if diff := cmp.Diff(want, p.CreatePodGroups[0].Object); diff != "" {
		t.Error("PodGroup (-want +got):\n" + diff)
	}
	if got := p.CreatePodGroups[0].DeepCopy().Object; !cmp.Equal(want, got) {
		t.Error("a copy of the PodGroup differs: it holds what JSON does not")
	}
}

func TestPodGroupOfCoscheduling(t *testing.T) {
	f := ganged(t)
	f.Gang = GangCoscheduling
	key := f.leader(0).Revision
	p := f.stabilize()
	if len(p.CreatePodGroups) != 1 {
		t.Fatalf("the plan creates %d PodGroups, want 1", len(p.CreatePodGroups))
	}
	want := map[string]any{
		"apiVersion": "scheduling.x-k8s.io/v1alpha1", "kind": "PodGroup",
		"metadata": map[string]any{
			"name": "s-0-" + key, "namespace": "ns",
			"labels":          map[string]any{lws + "name": "s", lws + "group-index": "0", lws + "template-revision-hash": key},
			"ownerReferences": []any{map[string]any{"apiVersion": "v1", "kind": "Pod", "name": "s-0", "uid": "s-0/1", "controller": true, "blockOwnerDeletion": true}},
		},
		"spec": map[string]any{
			"minMember": int64(4), "minResources": map[string]any{"cpu": "1250m", "memory": "1Gi", "nvidia.com/gpu": "24"},
		},
	}
	if diff := cmp.Diff(want, p.CreatePodGroups[0].Object); diff != "" {
		t.Error("PodGroup (-want +got):\n" + diff)
	}
	f.PodGroups = []Child{ChildOf(p.CreatePodGroups[0])}
	if again := f.stabilize().CreatePodGroups; len(again) > 0 {
		t.Errorf("the plan creates the PodGroup %s that exists", again[0].GetName())
	}
}

func TestPodGroupOfKubernetes(t *testing.T) {
	f := ganged(t)
	f.Gang = GangKubernetes
	p := f.stabilize()
	if len(p.CreatePodGroups) != 1 {
		t.Fatalf("the plan creates %d PodGroups, want 1", len(p.CreatePodGroups))
	}
	got := p.CreatePodGroups[0]
	want := map[string]any{"schedulingPolicy": map[string]any{"gang": map[string]any{"minCount": int64(4)}}}
	if diff := cmp.Diff(want, got.Object["spec"]); diff != "" {
		t.Error("spec (-want +got):\n" + diff)
	}
	for gang, version := range map[GangProvider]string{GangKubernetes: "v1beta1", GangKubernetesAlpha: "v1alpha2"} {
		f.Gang = gang
		if got := f.stabilize().CreatePodGroups[0].GetAPIVersion(); got != "scheduling.k8s.io/"+version {
			t.Errorf("%s makes PodGroups of %s, want scheduling.k8s.io/%s", gang, got, version)
		}
	}
	if got.GetKind() != "PodGroup" || got.GroupVersionKind().Group != "scheduling.k8s.io" || len(got.GetAnnotations()) > 0 {
		t.Errorf("%s with the annotations %v, want a PodGroup of scheduling.k8s.io without", got.GroupVersionKind(), got.GetAnnotations())
	}
}

// TestPodGroupsFitTheirKinds checks the PodGroups against the definitions of schedulers with an own kind.
func TestPodGroupsFitTheirKinds(t *testing.T) {
	for name, change := range map[string]func(*fixture){
		"a group":        func(*fixture) {},
		"LeaderReady":    func(f *fixture) { f.Set.Spec.StartupPolicy = leaderworkersetv1.StartupPolicyLeaderReady },
		"leaders alone":  func(f *fixture) { f.Set.Spec.LeaderWorkerTemplate.GroupSize = ptr.To[int32](1) },
		"no annotations": func(f *fixture) { f.Set.Annotations = nil },
	} {
		for _, gang := range []GangProvider{GangVolcano, GangCoscheduling} {
			t.Run(name+" of "+string(gang), func(t *testing.T) {
				f := ganged(t)
				change(f)
				f.Gang = gang
				groups := f.stabilize().CreatePodGroups
				if len(groups) != 1 {
					t.Fatalf("the plan creates %d PodGroups, want 1", len(groups))
				}
				if err := podgroupkinds.Check(groups[0]); err != nil {
					t.Errorf("%s: %v", groups[0].GetName(), err)
				}
			})
		}
	}
}

func TestPodGroupsAreDue(t *testing.T) {
	for name, c := range map[string]struct {
		change func(f *fixture)
		want   int
		member int64
	}{
		"one is missing":    {func(*fixture) {}, 1, 4},
		"no gangs":          {func(f *fixture) { f.Gang = "" }, 0, 0},
		"leader is deleted": {func(f *fixture) { f.leader(0).Deleting = true }, 0, 0},
		"exists": {func(f *fixture) {
			f.PodGroups = []Child{{Ref: Ref{Name: "s-0-" + f.leader(0).Revision}, Controller: f.leader(0).UID}}
		}, 0, 0},
		"exists, of a leader that is gone": {func(f *fixture) {
			f.PodGroups = []Child{{Ref: Ref{Name: "s-0-" + f.leader(0).Revision}, Controller: "gone", OfLeader: true}}
		}, 0, 0},
		"others have the name": {func(f *fixture) {
			f.PodGroups = []Child{{Ref: Ref{Name: "s-0-" + f.leader(0).Revision}, Controller: "other"}}
		}, 1, 4},
		"one of a former revision": {
			func(f *fixture) { f.PodGroups = []Child{{Ref: Ref{Name: "s-0-old"}, Controller: f.leader(0).UID}} }, 1, 4,
		},
		"LeaderReady": {func(f *fixture) { f.Set.Spec.StartupPolicy = leaderworkersetv1.StartupPolicyLeaderReady }, 1, 1},
		"group of a former size": {func(f *fixture) {
			old := f.Set.DeepCopy()
			old.Spec.LeaderWorkerTemplate.GroupSize = ptr.To[int32](7)
			former := f.revision(old, 1)
			f.Revisions[0].Revision, f.Revisions = 2, append(f.Revisions, former)
			f.leader(0).Revision = former.Labels[leaderworkersetv1.RevisionKey]
		}, 1, 7},
		"unknown revision": {func(f *fixture) { f.leader(0).Revision = "unknown" }, 0, 0},
	} {
		t.Run(name, func(t *testing.T) {
			f := ganged(t)
			c.change(f)
			p := f.stabilize()
			if len(p.CreatePodGroups) != c.want {
				t.Fatalf("the plan creates %d PodGroups, want %d", len(p.CreatePodGroups), c.want)
			}
			for _, g := range p.CreatePodGroups {
				if got := g.Object["spec"].(map[string]any)["minMember"]; got != c.member {
					t.Errorf("minMember = %v, want %d", got, c.member)
				}
			}
		})
	}
}

// TestMinResources counts what the scheduler counts of a pod: init containers, sidecars, overhead and requests of the pod.
func TestMinResources(t *testing.T) {
	always := corev1.ContainerRestartPolicyAlways
	container := func(requests, limits corev1.ResourceList) corev1.Container {
		return corev1.Container{Resources: corev1.ResourceRequirements{Requests: requests, Limits: limits}}
	}
	sidecar := container(list("1", ""), nil)
	sidecar.RestartPolicy = &always
	for name, c := range map[string]struct {
		spec corev1.PodSpec
		want map[string]any
	}{
		"nothing":          {corev1.PodSpec{Containers: []corev1.Container{{}}}, map[string]any{}},
		"sum":              {corev1.PodSpec{Containers: []corev1.Container{container(list("1", "1Gi"), nil), container(list("2", ""), nil)}}, map[string]any{"cpu": "9", "memory": "3Gi"}},
		"limits":           {corev1.PodSpec{Containers: []corev1.Container{container(nil, list("2", ""))}}, map[string]any{"cpu": "6"}},
		"init container":   {corev1.PodSpec{Containers: []corev1.Container{container(list("1", ""), nil)}, InitContainers: []corev1.Container{container(list("4", ""), nil)}}, map[string]any{"cpu": "12"}},
		"sidecar":          {corev1.PodSpec{Containers: []corev1.Container{container(list("1", ""), nil)}, InitContainers: []corev1.Container{sidecar}}, map[string]any{"cpu": "6"}},
		"overhead":         {corev1.PodSpec{Containers: []corev1.Container{container(list("1", ""), nil)}, Overhead: list("500m", "")}, map[string]any{"cpu": "4500m"}},
		"pod":              {corev1.PodSpec{Containers: []corev1.Container{container(list("1", ""), nil)}, Resources: &corev1.ResourceRequirements{Requests: list("3", "")}}, map[string]any{"cpu": "9"}},
		"pod, only limits": {corev1.PodSpec{Containers: []corev1.Container{{}}, Resources: &corev1.ResourceRequirements{Limits: list("3", "")}}, map[string]any{"cpu": "9"}},
		"very many":        {corev1.PodSpec{Containers: []corev1.Container{container(list("9223372036854775807", ""), nil)}}, map[string]any{"cpu": "27670116110564327421"}},
	} {
		t.Run(name, func(t *testing.T) {
			f := newFixture(t, 1, 3)
			f.Set.Spec.LeaderWorkerTemplate.WorkerTemplate.Spec = c.spec
			before := f.Set.DeepCopy()
			if diff := cmp.Diff(c.want, minResources(f.Set)); diff != "" {
				t.Error("minResources (-want +got):\n" + diff)
			}
			if diff := cmp.Diff(before, f.Set); diff != "" {
				t.Error("the set was changed (-want +got):\n" + diff)
			}
		})
	}
}

// TestGangsAreMarked marks the templates of leaders and workers for the webhook of pods, and those of other sets not.
func TestGangsAreMarked(t *testing.T) {
	for gang, want := range map[GangProvider]string{"": "", GangVolcano: "volcano", GangCoscheduling: "coscheduling", GangKubernetes: "kubernetes", GangKubernetesAlpha: "kubernetes"} {
		f := ganged(t)
		f.Gang = gang
		f.forgetWorkers(0)
		p := f.stabilize()
		if p.ApplyLeader == nil || len(p.CreateWorkers) != 1 {
			t.Fatalf("leader %v, workers %v; want both written", p.ApplyLeader, createdWorkers(p))
		}
		for name, template := range map[string]corev1.PodTemplateSpec{"leader": p.ApplyLeader.Spec.Template, "worker": p.CreateWorkers[0].Spec.Template} {
			if got := template.Annotations[leaderworkersetv1.GangAnnotationKey]; got != want {
				t.Errorf("%s template of %q has the mark %q, want %q", name, gang, got, want)
			}
		}
	}
}
