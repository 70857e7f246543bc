// Copyright The jobset-apiserver Authors.
// SPDX-License-Identifier: Apache-2.0

package apiserver

import (
	"fmt"
	"strings"
	"testing"

	"github.com/google/go-cmp/cmp"
	apierrors "k8s.io/apimachinery/pkg/api/errors"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/types"
	applycore "k8s.io/client-go/applyconfigurations/core/v1"
	"k8s.io/utils/ptr"

	batchv1alpha1 "github.com/jobset-apiserver/jobset-apiserver/pkg/apis/batch/v1alpha1"
	applybatch "github.com/jobset-apiserver/jobset-apiserver/pkg/generated/applyconfiguration/batch/v1alpha1"
)

const sequenceOfSteps = `
apiVersion: batch.jobset-apiserver.io/v1alpha1
kind: SequentialJob
metadata: {name: a}
spec:
  template: {spec: {volumes: [{name: data, persistentVolumeClaim: {claimName: data}}]}}
  steps:
  - name: prepare
    container: {image: busybox, volumeMounts: [{name: data, mountPath: /data}]}
  - name: train
    jobSet: {spec: {replicatedJobs: [{name: workers, template: {spec: {completions: 2, parallelism: 2, template: {spec: {containers: [{name: main, image: busybox}]}}}}}]}}
  - name: evaluate
    job: {spec: {template: {spec: {restartPolicy: Never, containers: [{name: main, image: busybox}]}}}}
`

func (s *sequences) apply(t *testing.T, manager, content string, force bool, subresources ...string) (*batchv1alpha1.SequentialJob, error) {
	t.Helper()
	return s.typed.Patch(t.Context(), "a", types.ApplyYAMLPatchType, []byte(content), metav1.PatchOptions{FieldManager: manager, Force: &force}, subresources...)
}

func stepNames(sj *batchv1alpha1.SequentialJob) []string {
	var names []string
	for i := range sj.Spec.Steps {
		names = append(names, sj.Spec.Steps[i].Name)
	}
	for i := range sj.Spec.Containers {
		names = append(names, sj.Spec.Containers[i].Name)
	}
	return names
}

// testSequenceApply: steps are a map by their names, so that two appliers can own different steps.
func testSequenceApply(t *testing.T, s *sequences) {
	first, err := s.apply(t, "kubectl", sequenceOfSteps, false)
	if err != nil {
		t.Fatal(err)
	}
	again, err := s.apply(t, "kubectl", sequenceOfSteps, false)
	if err != nil || again.Generation != first.Generation || again.ResourceVersion != first.ResourceVersion {
		t.Errorf("applying it again: %v, generation %d, %s and then %s", err, again.Generation, first.ResourceVersion, again.ResourceVersion)
	}
	const head = "{apiVersion: batch.jobset-apiserver.io/v1alpha1, kind: SequentialJob, metadata: {name: a}, spec: "
	got, err := s.apply(t, "other", head+"{steps: [{name: publish, container: {image: busybox}}]}}", false)
	if err != nil {
		t.Fatal(err)
	}
	if diff := cmp.Diff([]string{"prepare", "train", "evaluate", "publish"}, stepNames(got)); diff != "" {
		t.Errorf("steps (-want +got):\n%s", diff)
	}
	if _, err := s.apply(t, "other", head+"{steps: [{name: prepare, container: {image: alpine}}]}}", false); !apierrors.IsConflict(err) {
		t.Errorf("applying a step of another manager: %v", err)
	}
	got, err = s.apply(t, "kubectl", strings.Replace(sequenceOfSteps, "- name: evaluate\n    job:", "- name: evaluate-2\n    job:", 1), false)
	if err != nil {
		t.Fatal(err)
	}
	// What one manager adds comes after what others own: several managers cannot agree on an order.
	if diff := cmp.Diff([]string{"prepare", "train", "publish", "evaluate-2"}, stepNames(got)); diff != "" {
		t.Errorf("steps after one was replaced (-want +got):\n%s", diff)
	}
}

// testSequenceApplyContainers: containers are applied as a whole, in their order, and one without a name keeps the same name.
func testSequenceApplyContainers(t *testing.T, s *sequences) {
	const head = "{apiVersion: batch.jobset-apiserver.io/v1alpha1, kind: SequentialJob, metadata: {name: a}, spec: "
	first, err := s.apply(t, "kubectl", head+"{containers: [{image: a}, {image: b}]}}", false)
	if err != nil {
		t.Fatal(err)
	}
	if again, err := s.apply(t, "kubectl", head+"{containers: [{image: a}, {image: b}]}}", false); err != nil || again.ResourceVersion != first.ResourceVersion {
		t.Errorf("applying it again: %v", err)
	}
	got, err := s.apply(t, "kubectl", head+"{containers: [{name: x, image: x}, {image: b}]}}", false)
	if err != nil {
		t.Fatal(err)
	}
	if diff := cmp.Diff([]string{"x", "step-1"}, stepNames(got)); diff != "" {
		t.Errorf("containers (-want +got):\n%s", diff)
	}
}

func testSequencePatches(t *testing.T, s *sequences) {
	for i, tc := range []struct {
		kind         types.PatchType
		main, status string
	}{
		{types.JSONPatchType, `[{"op":"add","path":"/spec/suspend","value":true}]`, `[{"op":"replace","path":"/status/state/active","value":1}]`},
		{types.MergePatchType, `{"spec":{"suspend":true}}`, `{"status":{"state":{"active":1}}}`},
		{types.StrategicMergePatchType, `{"spec":{"suspend":true}}`, `{"status":{"state":{"active":1}}}`},
	} {
		name := fmt.Sprintf("p%d", i)
		s.create(t, sequence(name))
		got, err := s.typed.Patch(t.Context(), name, tc.kind, []byte(tc.main), metav1.PatchOptions{})
		if err != nil || !ptr.Deref(got.Spec.Suspend, false) || got.Generation != 2 || got.Status.Phase != batchv1alpha1.PhaseSuspended || len(got.Spec.Containers) != 3 {
			t.Errorf("%s: %v, %+v", tc.kind, err, got)
		}
		got, err = s.typed.Patch(t.Context(), name, tc.kind, []byte(tc.status), metav1.PatchOptions{}, "status")
		if err != nil || got.Status.State.Active != 1 || got.Generation != 2 {
			t.Errorf("%s of the status: %v, %+v", tc.kind, err, got)
		}
	}
}

// testSequenceStrategicMerge: steps are merged by their names.
func testSequenceStrategicMerge(t *testing.T, s *sequences) {
	if _, err := s.apply(t, "kubectl", sequenceOfSteps, false); err != nil {
		t.Fatal(err)
	}
	patch := `{"spec":{"steps":[{"name":"prepare","container":{"image":"alpine"}},{"name":"publish","container":{"image":"busybox"}}]}}`
	got, err := s.typed.Patch(t.Context(), "a", types.StrategicMergePatchType, []byte(patch), metav1.PatchOptions{})
	if err != nil {
		t.Fatal(err)
	}
	names := map[string]bool{}
	for _, name := range stepNames(got) {
		names[name] = true
	}
	if diff := cmp.Diff(map[string]bool{"prepare": true, "train": true, "evaluate": true, "publish": true}, names); diff != "" {
		t.Errorf("steps (-want +got):\n%s", diff)
	}
	for i := range got.Spec.Steps {
		if step := &got.Spec.Steps[i]; step.Name == "prepare" && (step.Container.Image != "alpine" || len(step.Container.VolumeMounts) != 1) {
			t.Errorf("the merged step is %+v", step.Container)
		}
	}
}

func testSequenceTypedApply(t *testing.T, s *sequences) {
	config := applybatch.SequentialJob("a", s.namespace).WithSpec(applybatch.SequentialJobSpec().WithSuspend(true).WithSteps(
		applybatch.SequentialJobStep().WithName("only").WithContainer(applycore.Container().WithName("only").WithImage("busybox"))))
	applied, err := s.typed.Apply(t.Context(), config, metav1.ApplyOptions{FieldManager: "test"})
	if err != nil {
		t.Fatal(err)
	}
	if extracted, err := applybatch.ExtractSequentialJob(applied, "test"); err != nil || !ptr.Deref(extracted.Spec.Suspend, false) {
		t.Errorf("extracted %+v, %v", extracted, err)
	}
}

// testSequenceChanges: what has run stays; what has not can be changed.
func testSequenceChanges(t *testing.T, s *sequences) {
	sj := s.create(t, sequence("a", func(sj *batchv1alpha1.SequentialJob) {
		sj.Spec.UpdateStrategy = &batchv1alpha1.SequentialJobUpdateStrategy{Type: batchv1alpha1.UpdateRestart}
	}))
	sj.Status.Progress.CurrentIndex, sj.Status.Progress.CompletedIndices = ptr.To[int32](1), []int32{0}
	sj.Status.Steps = []batchv1alpha1.SequentialJobStepStatus{
		{Name: "extract", Kind: "Job", ChildName: "a-0", State: batchv1alpha1.StepSucceeded, Attempts: 1},
		{Name: "transform", Kind: "Job", ChildName: "a-1", ChildUID: "u", State: batchv1alpha1.StepRunning, Attempts: 1},
	}
	if _, err := s.typed.UpdateStatus(t.Context(), sj, metav1.UpdateOptions{}); err != nil {
		t.Fatal(err)
	}
	patch := func(body string) (*batchv1alpha1.SequentialJob, error) {
		return s.typed.Patch(t.Context(), "a", types.JSONPatchType, []byte(body), metav1.PatchOptions{})
	}
	if _, err := patch(`[{"op":"replace","path":"/spec/containers/0/image","value":"new"}]`); !apierrors.IsInvalid(err) {
		t.Errorf("changing a completed step: %v", err)
	}
	if _, err := patch(`[{"op":"remove","path":"/spec/containers/0"}]`); !apierrors.IsInvalid(err) {
		t.Errorf("removing a completed step: %v", err)
	}
	got, err := patch(`[{"op":"replace","path":"/spec/containers/2/image","value":"new"}]`)
	if err != nil || got.Status.StepsGeneration != got.Generation || got.Status.Steps[1].Attempts != 1 {
		t.Errorf("changing a step that has not run: %v, %+v", err, got.Status)
	}
	got, err = patch(`[{"op":"replace","path":"/spec/containers/1/image","value":"new"}]`)
	if err != nil || got.Status.Steps[1].Attempts != 2 || got.Status.Steps[1].State != batchv1alpha1.StepStarting || got.Status.Steps[1].ChildUID != "" {
		t.Errorf("changing the step that runs: %v, %+v", err, got.Status)
	}
	if _, err := patch(`[{"op":"replace","path":"/spec/updateStrategy/type","value":"Forbid"}]`); err != nil {
		t.Errorf("changing the strategy: %v", err)
	}
	if _, err := patch(`[{"op":"replace","path":"/spec/containers/2/image","value":"newer"}]`); !apierrors.IsInvalid(err) || !strings.Contains(err.Error(), "while updateStrategy.type is Forbid") {
		t.Errorf("changing a step with Forbid: %v", err)
	}
}
