// Copyright The jobset-apiserver Authors.
// SPDX-License-Identifier: Apache-2.0

package preview

import (
	"context"
	"encoding/json"
	"errors"
	"strings"
	"testing"

	"github.com/google/go-cmp/cmp"
	corev1 "k8s.io/api/core/v1"
	apierrors "k8s.io/apimachinery/pkg/api/errors"
	"k8s.io/apimachinery/pkg/api/resource"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"
	"k8s.io/apimachinery/pkg/runtime"
	"k8s.io/apimachinery/pkg/runtime/schema"
	"k8s.io/apimachinery/pkg/util/intstr"
	"k8s.io/apimachinery/pkg/util/sets"
	"k8s.io/utils/ptr"

	leaderworkersetv1 "github.com/jobset-apiserver/jobset-apiserver/pkg/apis/leaderworkerset/v1"
	"github.com/jobset-apiserver/jobset-apiserver/pkg/kubectl/cli"
)

type groupChange = func(*leaderworkersetv1.LeaderWorkerSet)

// llm is a set of four replicas of two pods.
func llm(change ...groupChange) *leaderworkersetv1.LeaderWorkerSet {
	set := &leaderworkersetv1.LeaderWorkerSet{
		TypeMeta:   metav1.TypeMeta{APIVersion: "leaderworkerset.x-k8s.io/v1", Kind: "LeaderWorkerSet"},
		ObjectMeta: metav1.ObjectMeta{Name: "llm", Namespace: "ml", UID: "u"},
	}
	set.Spec = leaderworkersetv1.LeaderWorkerSetSpec{
		Replicas: ptr.To[int32](4),
		LeaderWorkerTemplate: leaderworkersetv1.LeaderWorkerTemplate{
			GroupSize: ptr.To[int32](2), RestartPolicy: leaderworkersetv1.RestartPolicyRecreateGroupOnPodRestart,
			WorkerTemplate: corev1.PodTemplateSpec{Spec: corev1.PodSpec{Containers: []corev1.Container{{Name: "serve", Image: "v1"}}}},
		},
		RolloutStrategy: leaderworkersetv1.RolloutStrategy{
			Type: leaderworkersetv1.RolloutStrategyRollingUpdate, RollingUpdateConfiguration: &leaderworkersetv1.RollingUpdateConfiguration{
				Partition: ptr.To[int32](0), MaxUnavailable: ptr.To(intstr.FromInt32(1)), MaxSurge: ptr.To(intstr.FromInt32(0))},
		},
		StartupPolicy: leaderworkersetv1.StartupPolicyLeaderCreated,
		NetworkConfig: &leaderworkersetv1.NetworkConfig{SubdomainPolicy: ptr.To(leaderworkersetv1.SubdomainShared)},
	}
	for _, f := range change {
		f(set)
	}
	return set
}

// groupAnswers is a cluster that has its answers about LeaderWorkerSets ready.
type groupAnswers struct {
	*answers
	existing *leaderworkersetv1.LeaderWorkerSet
}

func (a *groupAnswers) get(_ context.Context, kind cli.Kind, _, name string) (*unstructured.Unstructured, error) {
	if a.existing == nil {
		return nil, apierrors.NewNotFound(schema.GroupResource{Resource: kind.Names[1]}, name)
	}
	content, err := runtime.DefaultUnstructuredConverter.ToUnstructured(a.existing)
	return &unstructured.Unstructured{Object: content}, err
}

func (a *groupAnswers) create(ctx context.Context, kind cli.Kind, object *unstructured.Unstructured) (*unstructured.Unstructured, error) {
	a.note(ctx, kind.Title, object)
	return object.DeepCopy(), a.set
}

func (a *groupAnswers) patch(_ context.Context, _ cli.Kind, _ *unstructured.Unstructured, p patch) (*unstructured.Unstructured, error) {
	change := map[string]any{}
	if err := json.Unmarshal(p.body, &change); err != nil {
		return nil, err
	}
	content, err := runtime.DefaultUnstructuredConverter.ToUnstructured(a.existing)
	if err != nil {
		return nil, err
	}
	mergeInto(content, change)
	set := &leaderworkersetv1.LeaderWorkerSet{} // decoding sets the types of numbers
	if err := runtime.DefaultUnstructuredConverter.FromUnstructured(content, set); err != nil {
		return nil, err
	}
	content, err = runtime.DefaultUnstructuredConverter.ToUnstructured(set)
	return &unstructured.Unstructured{Object: content}, err
}

// jobNames are not asked for: a set of replicas has no Jobs, and its user may have no right to list them.
func (a *groupAnswers) jobNames(context.Context, string) (sets.Set[string], error) {
	return nil, errors.New("the names of Jobs were asked for")
}

func previewGroups(t *testing.T, cluster cluster, set *leaderworkersetv1.LeaderWorkerSet) *LeaderWorkerSetPreview {
	t.Helper()
	content, err := runtime.DefaultUnstructuredConverter.ToUnstructured(set)
	if err != nil {
		t.Fatal(err)
	}
	manifest := &unstructured.Unstructured{Object: content}
	unstructured.RemoveNestedField(manifest.Object, "metadata", "uid")
	report, err := preview(t.Context(), &Session{cluster: cluster, manager: applyManager}, []object{{manifest, cli.For[Previewer]{Kind: cli.LeaderWorkerSet, Do: LeaderWorkerSet}}})
	if err != nil {
		t.Fatal(err)
	}
	return report.Sets[0].(*LeaderWorkerSetPreview)
}

func linesOf(s *LeaderWorkerSetPreview) string {
	return strings.Join(s.Lines(cli.Terminal{}), "\n") + "\n"
}

func TestNewGroups(t *testing.T) {
	quota := corev1.ResourceQuota{ObjectMeta: metav1.ObjectMeta{Name: "ml"}}
	quota.Status.Hard = corev1.ResourceList{"pods": resource.MustParse("6"), "services": resource.MustParse("3"), "count/statefulsets.apps": resource.MustParse("9")}
	cluster := &groupAnswers{answers: &answers{limits: []corev1.ResourceQuota{quota}}}
	got := previewGroups(t, cluster, llm(func(s *leaderworkersetv1.LeaderWorkerSet) {
		s.Spec.StartupPolicy = leaderworkersetv1.StartupPolicyLeaderReady
	}))
	want := `LeaderWorkerSet llm in namespace ml: Accepted
  note: the workers of a group are created once its leader is ready (startupPolicy LeaderReady)

  KIND         NAMES        COUNT  ANSWER
  StatefulSet  llm          1      Accepted
  Pod          llm-[0-3]    4      Accepted
  StatefulSet  llm-[0-3]    4      Accepted
  Pod          llm-[0-3]-1  4      Accepted
  Service      llm          1      Accepted
  The longest name of a pod, llm-3-1, has 7 of at most 63 characters.

  QUOTA  RESOURCE                 ADDS  USED  HARD  ANSWER
  ml     count/statefulsets.apps  5     0     9     Fits
  ml     pods                     8     0     6     Short by 2
  ml     services                 1     0     3     Fits

Not all of this would be created: the set would not run as it is meant to.
`
	if diff := cmp.Diff(want, linesOf(got)); diff != "" {
		t.Errorf("lines (-want +got):\n%s", diff)
	}
	if !got.Refused() {
		t.Error("a set that exceeds a quota is not refused")
	}
	asked := []string{"LeaderWorkerSet llm", "StatefulSet llm", "Pod llm-0", "StatefulSet llm-0", "Pod llm-0-1", "Service llm"}
	if diff := cmp.Diff(asked, cluster.asked); diff != "" {
		t.Errorf("questions (-want +got):\n%s", diff)
	}
}

func TestRollout(t *testing.T) {
	image := func(s *leaderworkersetv1.LeaderWorkerSet) {
		s.Spec.LeaderWorkerTemplate.WorkerTemplate.Spec.Containers[0].Image = "v2"
	}
	limits := func(unavailable, surge int32) groupChange {
		return func(s *leaderworkersetv1.LeaderWorkerSet) {
			c := s.Spec.RolloutStrategy.RollingUpdateConfiguration
			c.MaxUnavailable, c.MaxSurge = ptr.To(intstr.FromInt32(unavailable)), ptr.To(intstr.FromInt32(surge))
		}
	}
	replicas := func(n int32) groupChange {
		return func(s *leaderworkersetv1.LeaderWorkerSet) { s.Spec.Replicas = &n }
	}
	partition := func(n int32) groupChange {
		return func(s *leaderworkersetv1.LeaderWorkerSet) {
			s.Spec.RolloutStrategy.RollingUpdateConfiguration.Partition = &n
		}
	}
	for name, tc := range map[string]struct {
		live, next *leaderworkersetv1.LeaderWorkerSet
		want       []Stage
	}{
		"one at a time":   {llm(), llm(image), []Stage{{4, 4}, {3, 4}, {2, 4}, {1, 4}, {0, 4}}},
		"with a surge":    {llm(limits(2, 2)), llm(limits(2, 2), image), []Stage{{4, 6}, {2, 6}, {0, 4}}},
		"surge only":      {llm(limits(0, 1)), llm(limits(0, 1), image), []Stage{{4, 5}, {3, 5}, {2, 5}, {1, 5}, {0, 5}, {0, 4}}},
		"all at once":     {llm(limits(10, 0)), llm(limits(10, 0), image), []Stage{{4, 4}, {0, 4}}},
		"with a scale-up": {llm(), llm(image, replicas(6)), []Stage{{4, 6}, {3, 6}, {2, 6}, {1, 6}, {0, 6}}},
		"a scale-up":      {llm(), llm(replicas(6)), []Stage{{0, 6}}},
		"held":            {llm(), llm(image, partition(2)), []Stage{{4, 4}, {3, 4}, {2, 4}}},
		"nothing":         {llm(), llm(), nil},
	} {
		t.Run(name, func(t *testing.T) {
			got, _, _ := rollout(tc.live, tc.next)
			if diff := cmp.Diff(tc.want, got); diff != "" {
				t.Errorf("stages (-want +got):\n%s", diff)
			}
		})
	}
}

func TestChangedGroups(t *testing.T) {
	claims := func(s *leaderworkersetv1.LeaderWorkerSet) {
		s.Spec.LeaderWorkerTemplate.VolumeClaimTemplates = []corev1.PersistentVolumeClaim{{ObjectMeta: metav1.ObjectMeta{Name: "data"}}}
	}
	for name, tc := range map[string]struct {
		next groupChange
		want []string
	}{
		"nothing": {func(*leaderworkersetv1.LeaderWorkerSet) {}, []string{"in namespace ml: Unchanged", "The set would not change."}},
		"an image": {func(s *leaderworkersetv1.LeaderWorkerSet) {
			s.Spec.LeaderWorkerTemplate.WorkerTemplate.Spec.Containers[0].Image = "v2"
		}, []string{"replaces groups by a rolling update", "1 group may be unavailable at a time",
			"become (4, 4) (3, 4) (2, 4) (1, 4) (0, 4).", "The set would change in 1 field, and groups would be replaced."}},
		"the network as it is": {func(s *leaderworkersetv1.LeaderWorkerSet) {
			s.Spec.LeaderWorkerTemplate.MaxGroupRestarts = ptr.To[int32](3)
		}, []string{"limits restarts from now on; no group is replaced", "No pod would be stopped or started now."}},
		"replicas": {func(s *leaderworkersetv1.LeaderWorkerSet) { s.Spec.Replicas = ptr.To[int32](3) },
			[]string{"deletes group 3", "become (0, 3).", "and be scaled. The other groups run on."}},
		"claims": {claims, []string{"is never applied: a StatefulSet does not allow changes of its claims", "and its update would fail: not all of the changes can be applied."}},
		"paused": {func(s *leaderworkersetv1.LeaderWorkerSet) { s.Spec.Paused = ptr.To(true) }, []string{"pauses rolling updates: no further group is replaced"}},
		"exclusive placement": {func(s *leaderworkersetv1.LeaderWorkerSet) {
			s.Annotations = map[string]string{leaderworkersetv1.ExclusiveKeyAnnotationKey: "rack"}
		}, []string{"note: the template of the leader pods changes without a new revision", "and groups would be replaced."}},
		"startup": {func(s *leaderworkersetv1.LeaderWorkerSet) {
			s.Spec.StartupPolicy = leaderworkersetv1.StartupPolicyLeaderReady
		}, []string{"groups that are created from now on have it"}},
	} {
		t.Run(name, func(t *testing.T) {
			text := linesOf(previewGroups(t, &groupAnswers{answers: &answers{}, existing: llm()}, llm(tc.next)))
			for _, want := range tc.want {
				if !strings.Contains(text, want) {
					t.Errorf("no %q in:\n%s", want, text)
				}
			}
		})
	}
}
