// Copyright The jobset-apiserver Authors.
// SPDX-License-Identifier: Apache-2.0

package plan

import (
	"maps"
	"slices"
	"testing"

	corev1 "k8s.io/api/core/v1"

	jobsetv1alpha2 "github.com/jobset-apiserver/jobset-apiserver/pkg/apis/jobset/v1alpha2"
)

func compactMetadata(js *jobsetv1alpha2.JobSet) {
	js.Annotations = map[string]string{"jobset-apiserver.io/metadata": "compact"}
}

func fieldEnv(path string) corev1.EnvVar {
	return corev1.EnvVar{Name: "E", ValueFrom: &corev1.EnvVarSource{FieldRef: &corev1.ObjectFieldSelector{FieldPath: path}}}
}

func fieldFile(path string) []corev1.DownwardAPIVolumeFile {
	return []corev1.DownwardAPIVolumeFile{
		{Path: "cpu", ResourceFieldRef: &corev1.ResourceFieldSelector{Resource: "limits.cpu"}}, {Path: "f", FieldRef: &corev1.ObjectFieldSelector{FieldPath: path}},
	}
}

// TestCompactMetadata has Jobs and pods without annotations that repeat labels, except for those that containers read.
func TestCompactMetadata(t *testing.T) {
	const index = "metadata.annotations['jobset.sigs.k8s.io/job-index']"
	for name, c := range map[string]struct {
		change func(*corev1.PodSpec)
		want   []string
		all    bool
	}{
		"nothing is read": {change: func(*corev1.PodSpec) {}},
		"a variable": {
			change: func(pod *corev1.PodSpec) {
				pod.Containers[0].Env = []corev1.EnvVar{{Name: "PLAIN", Value: "x"}, fieldEnv("metadata.name"), fieldEnv(index), fieldEnv("metadata.annotations['other']")}
			},
			want: []string{"jobset.sigs.k8s.io/job-index"},
		},
		"a variable of an init container": {
			change: func(pod *corev1.PodSpec) {
				pod.InitContainers = []corev1.Container{{Env: []corev1.EnvVar{fieldEnv(index)}}}
			},
			want: []string{"jobset.sigs.k8s.io/job-index"},
		},
		"a label is not an annotation": {
			change: func(pod *corev1.PodSpec) {
				pod.Containers[0].Env = []corev1.EnvVar{fieldEnv("metadata.labels['jobset.sigs.k8s.io/job-index']")}
			},
		},
		"a file": {
			change: func(pod *corev1.PodSpec) {
				pod.Volumes = []corev1.Volume{{VolumeSource: corev1.VolumeSource{DownwardAPI: &corev1.DownwardAPIVolumeSource{Items: fieldFile(index)}}}}
			},
			want: []string{"jobset.sigs.k8s.io/job-index"},
		},
		"all of them in a file": {
			change: func(pod *corev1.PodSpec) {
				pod.Volumes = []corev1.Volume{{VolumeSource: corev1.VolumeSource{Projected: &corev1.ProjectedVolumeSource{Sources: []corev1.VolumeProjection{
					{}, {DownwardAPI: &corev1.DownwardAPIProjection{Items: fieldFile("metadata.annotations")}},
				}}}}}
			},
			all: true,
		},
	} {
		t.Run(name, func(t *testing.T) {
			change := func(rj *jobsetv1alpha2.ReplicatedJob) {
				rj.Template.Annotations = map[string]string{"job": "own"}
				rj.Template.Spec.Template.Annotations = map[string]string{"pod": "own"}
				c.change(&rj.Template.Spec.Template.Spec)
			}
			plain, compact := Decide(observe(newSet(with("w", 1, change)))).CreateJobs[0], Decide(observe(newSet(with("w", 1, change), compactMetadata))).CreateJobs[0]
			diff(t, "labels of the Job", plain.Labels, compact.Labels)
			diff(t, "labels of the pods", plain.Spec.Template.Labels, compact.Spec.Template.Labels)
			if c.all {
				diff(t, "annotations of the pods", plain.Spec.Template.Annotations, compact.Spec.Template.Annotations)
				return
			}
			diff(t, "annotations of the Job", slices.Sorted(slices.Values(append(c.want, "job", "jobset-apiserver.io/released-at-generation"))), slices.Sorted(maps.Keys(compact.Annotations)))
			diff(t, "annotations of the pods", slices.Sorted(slices.Values(append(c.want, "pod"))), slices.Sorted(maps.Keys(compact.Spec.Template.Annotations)))
		})
	}
}
