// Copyright The jobset-apiserver Authors.
// SPDX-License-Identifier: Apache-2.0

package plan

import (
	"strings"

	corev1 "k8s.io/api/core/v1"

	jobsetv1alpha2 "github.com/jobset-apiserver/jobset-apiserver/pkg/apis/jobset/v1alpha2"
)

// allAnnotations is the path by which a volume of the downward API shows all annotations of a pod.
const allAnnotations = "metadata.annotations"

// annotated returns those of the identity keys that Jobs and pods of the set have as annotations, beside the labels.
// Labels and annotations say the same, and each of them is stored, validated and sent to watchers with every write of a
// pod, so that a set may do without the annotations (docs/performance.md#compact-metadata). What containers read
// through the downward API stays.
func annotated(js *jobsetv1alpha2.JobSet, template *corev1.PodSpec, keys map[string]string) map[string]string {
	if js.Annotations[jobsetv1alpha2.MetadataKey] != jobsetv1alpha2.MetadataCompact {
		return keys
	}
	read := map[string]string{}
	for path := range downwardPaths(template) {
		if path == allAnnotations {
			return keys
		}
		// A path names one annotation as metadata.annotations['key'].
		key := strings.TrimSuffix(strings.TrimPrefix(path, allAnnotations+"['"), "']")
		if value, ok := keys[key]; ok {
			read[key] = value
		}
	}
	return read
}

// downwardPaths yields the fields of the pod that its containers read.
func downwardPaths(pod *corev1.PodSpec) func(yield func(string) bool) {
	return func(yield func(string) bool) {
		for _, containers := range [][]corev1.Container{pod.InitContainers, pod.Containers} {
			for i := range containers {
				for _, env := range containers[i].Env {
					if env.ValueFrom != nil && env.ValueFrom.FieldRef != nil && !yield(env.ValueFrom.FieldRef.FieldPath) {
						return
					}
				}
			}
		}
		for i := range pod.Volumes {
			for _, file := range downwardFiles(&pod.Volumes[i]) {
				if file.FieldRef != nil && !yield(file.FieldRef.FieldPath) {
					return
				}
			}
		}
	}
}

// downwardFiles returns the files of a volume that show fields of the pod.
func downwardFiles(volume *corev1.Volume) (files []corev1.DownwardAPIVolumeFile) {
	if volume.DownwardAPI != nil {
		files = append(files, volume.DownwardAPI.Items...)
	}
	if volume.Projected != nil {
		for _, source := range volume.Projected.Sources {
			if source.DownwardAPI != nil {
				files = append(files, source.DownwardAPI.Items...)
			}
		}
	}
	return files
}
