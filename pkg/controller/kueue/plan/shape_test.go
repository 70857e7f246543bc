// Copyright The jobset-apiserver Authors.
// SPDX-License-Identifier: Apache-2.0

package plan

import (
	"fmt"
	"testing"

	"github.com/google/go-cmp/cmp"
	batchv1 "k8s.io/api/batch/v1"
	corev1 "k8s.io/api/core/v1"
	"k8s.io/apimachinery/pkg/api/resource"
	"k8s.io/utils/ptr"

	batchv1alpha1 "github.com/jobset-apiserver/jobset-apiserver/pkg/apis/batch/v1alpha1"
	jobsetv1alpha2 "github.com/jobset-apiserver/jobset-apiserver/pkg/apis/jobset/v1alpha2"
)

// asking returns a container with requests, as pairs of names and quantities.
func asking(name string, pairs ...string) corev1.Container {
	return corev1.Container{Name: name, Resources: corev1.ResourceRequirements{Requests: list(pairs...)}}
}

func list(pairs ...string) corev1.ResourceList {
	out := corev1.ResourceList{}
	for i := 0; i < len(pairs); i += 2 {
		out[corev1.ResourceName(pairs[i])] = resource.MustParse(pairs[i+1])
	}
	return out
}

func jobStep(name string, parallelism, completions int32, c corev1.Container) batchv1alpha1.SequentialJobStep {
	step := batchv1alpha1.SequentialJobStep{Name: name, Job: &batchv1.JobTemplateSpec{}}
	step.Job.Spec.Parallelism, step.Job.Spec.Completions = &parallelism, &completions
	step.Job.Spec.Template.Spec.Containers = []corev1.Container{c}
	return step
}

// setStep is a step that is a JobSet with a replicatedJob of two Jobs with three pods for each container.
func setStep(name string, containers ...corev1.Container) batchv1alpha1.SequentialJobStep {
	step := batchv1alpha1.SequentialJobStep{Name: name, JobSet: &batchv1alpha1.JobSetTemplateSpec{}}
	for _, c := range containers {
		job := jobsetv1alpha2.ReplicatedJob{Name: c.Name, Replicas: ptr.To[int32](2)}
		job.Template.Spec.Parallelism = ptr.To[int32](3)
		job.Template.Spec.Template.Spec.Containers = []corev1.Container{c}
		step.JobSet.Spec.ReplicatedJobs = append(step.JobSet.Spec.ReplicatedJobs, job)
	}
	return step
}

func TestShape(t *testing.T) {
	var many []corev1.Container
	for i := range MaxPodSets {
		many = append(many, asking(fmt.Sprintf("role-%d", i), "cpu", "1"))
	}
	for name, test := range map[string]struct {
		spec    batchv1alpha1.SequentialJobSpec
		current int32
		want    []string
	}{
		"containers: the largest of each resource": {
			spec: batchv1alpha1.SequentialJobSpec{Containers: []corev1.Container{asking("a", "cpu", "1", "memory", "4Gi"), asking("b", "cpu", "2", "nvidia.com/gpu", "1")}},
			want: []string{"main: 1 x cpu=2 memory=4Gi nvidia.com/gpu=1"},
		},
		"steps that have ended do not count": {
			spec:    batchv1alpha1.SequentialJobSpec{Containers: []corev1.Container{asking("a", "cpu", "8"), asking("b", "cpu", "2")}},
			current: 1, want: []string{"main: 1 x cpu=2"},
		},
		"Jobs: the largest number of pods": {
			spec: batchv1alpha1.SequentialJobSpec{Steps: []batchv1alpha1.SequentialJobStep{
				jobStep("a", 4, 2, asking("a", "cpu", "3")), jobStep("b", 3, 9, asking("b", "cpu", "1")),
			}},
			want: []string{"main: 3 x cpu=3"},
		},
		"a JobSet of one role joins": {
			spec: batchv1alpha1.SequentialJobSpec{Steps: []batchv1alpha1.SequentialJobStep{
				{Name: "a", Container: ptr.To(asking("a", "cpu", "4"))}, setStep("b", asking("workers", "cpu", "1")),
			}},
			want: []string{"main: 6 x cpu=4"},
		},
		"roles have their own": {
			spec: batchv1alpha1.SequentialJobSpec{Steps: []batchv1alpha1.SequentialJobStep{
				{Name: "a", Container: ptr.To(asking("a", "cpu", "4"))}, setStep("b", asking("driver", "cpu", "1"), asking("workers", "cpu", "2")),
				setStep("c", asking("workers", "cpu", "1", "memory", "1Gi")),
			}},
			want: []string{"main: 1 x cpu=4", "driver: 6 x cpu=1", "workers: 6 x cpu=2 memory=1Gi"},
		},
		"too many roles have one": {
			spec: batchv1alpha1.SequentialJobSpec{Steps: []batchv1alpha1.SequentialJobStep{
				setStep("a", many...), jobStep("b", 1, 1, asking("b", "cpu", "5")),
			}},
			want: []string{"main: 108 x cpu=5"},
		},
		"nothing is asked for": {
			spec: batchv1alpha1.SequentialJobSpec{Containers: []corev1.Container{{Name: "a"}}}, want: []string{"main: 1 x"},
		},
	} {
		t.Run(name, func(t *testing.T) {
			sj := &batchv1alpha1.SequentialJob{Spec: test.spec}
			sj.Status.Progress.CurrentIndex = &test.current
			var got []string
			for _, set := range Shape(sj) {
				text := fmt.Sprintf("%s: %d x", set.Name, set.Count)
				requests := podRequests(&set.Template.Spec)
				for _, r := range []corev1.ResourceName{"cpu", "memory", "nvidia.com/gpu"} {
					if q, found := requests[r]; found {
						text += fmt.Sprintf(" %s=%s", r, q.String())
					}
				}
				got = append(got, text)
			}
			if diff := cmp.Diff(test.want, got); diff != "" {
				t.Errorf("pod sets (-want +got):\n%s", diff)
			}
		})
	}
}

func TestPodRequests(t *testing.T) {
	always := corev1.ContainerRestartPolicyAlways
	sidecar := asking("proxy", "cpu", "1")
	sidecar.RestartPolicy = &always
	limited := corev1.Container{Name: "limited", Resources: corev1.ResourceRequirements{Limits: list("cpu", "3")}}
	for name, test := range map[string]struct {
		spec corev1.PodSpec
		want corev1.ResourceList
	}{
		"containers add up": {
			corev1.PodSpec{Containers: []corev1.Container{asking("a", "cpu", "1"), limited}},
			list("cpu", "4"),
		},
		"init containers do not": {
			corev1.PodSpec{InitContainers: []corev1.Container{asking("i", "cpu", "2"), asking("j", "cpu", "3")}, Containers: []corev1.Container{asking("a", "cpu", "1")}},
			list("cpu", "3"),
		},
		"sidecars add up with either": {
			corev1.PodSpec{InitContainers: []corev1.Container{sidecar, asking("j", "cpu", "3")}, Containers: []corev1.Container{asking("a", "cpu", "1")}},
			list("cpu", "4"),
		},
		"overhead": {
			corev1.PodSpec{Containers: []corev1.Container{asking("a", "cpu", "1")}, Overhead: list("cpu", "1")},
			list("cpu", "2"),
		},
		"those of the pod win": {corev1.PodSpec{
			Containers: []corev1.Container{asking("a", "cpu", "1", "memory", "1Gi")}, Resources: &corev1.ResourceRequirements{Requests: list("cpu", "5")},
		}, list("cpu", "5", "memory", "1Gi")},
	} {
		t.Run(name, func(t *testing.T) {
			if diff := cmp.Diff(test.want, podRequests(&test.spec)); diff != "" {
				t.Errorf("requests (-want +got):\n%s", diff)
			}
		})
	}
}

func TestShapeNamesWhatIsValidForAllSteps(t *testing.T) {
	gpu := corev1.Toleration{Key: "gpu", Operator: corev1.TolerationOpExists}
	spot := corev1.Toleration{Key: "spot", Operator: corev1.TolerationOpExists}
	a, b := jobStep("a", 1, 1, asking("a")), jobStep("b", 1, 1, asking("b"))
	a.Job.Spec.Template.Spec.NodeSelector = map[string]string{"zone": "a", "type": "big"}
	b.Job.Spec.Template.Spec.NodeSelector = map[string]string{"zone": "b", "disk": "fast"}
	a.Job.Spec.Template.Spec.Tolerations = []corev1.Toleration{gpu, spot}
	b.Job.Spec.Template.Spec.Tolerations = []corev1.Toleration{spot}
	sj := &batchv1alpha1.SequentialJob{Spec: batchv1alpha1.SequentialJobSpec{Steps: []batchv1alpha1.SequentialJobStep{a, b}}}
	spec := Shape(sj)[0].Template.Spec
	if diff := cmp.Diff(map[string]string{"type": "big", "disk": "fast"}, spec.NodeSelector); diff != "" {
		t.Errorf("node selector (-want +got):\n%s", diff)
	}
	if diff := cmp.Diff([]corev1.Toleration{spot}, spec.Tolerations); diff != "" {
		t.Errorf("tolerations (-want +got):\n%s", diff)
	}
}
