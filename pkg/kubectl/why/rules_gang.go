// Copyright The jobset-apiserver Authors.
// SPDX-License-Identifier: Apache-2.0

package why

import (
	"fmt"

	corev1 "k8s.io/api/core/v1"
	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"
	"k8s.io/utils/ptr"

	"github.com/jobset-apiserver/jobset-apiserver/pkg/kubectl/snapshot"
)

// gangSize returns the pod group of a pod, and how many pods of it must exist before the scheduler looks at any of
// them; 0 unless it is a gang that was read.
func (d *diagnosis) gangSize(pod *corev1.Pod) (group string, size int64) {
	if pod.Spec.SchedulingGroup == nil {
		return "", 0
	}
	group = ptr.Deref(pod.Spec.SchedulingGroup.PodGroupName, "")
	if object := d.PodGroups[group]; object != nil {
		size, _, _ = unstructured.NestedInt64(object.Object, "spec", "schedulingPolicy", "gang", "minCount")
	}
	return group, size
}

// gangPods returns how many pods of a group have not ended.
func (d *diagnosis) gangPods(group string) (n int64) {
	for _, pod := range d.Pods {
		if g := pod.Spec.SchedulingGroup; g != nil && ptr.Deref(g.PodGroupName, "") == group && !snapshot.PodEnded(pod) {
			n++
		}
	}
	return n
}

// gangIncomplete reports whether the scheduler does not look at a pod because too few pods of its gang exist. Nothing in the API says so.
func (d *diagnosis) gangIncomplete(pod *corev1.Pod) bool {
	group, size := d.gangSize(pod)
	return size > 0 && d.gangPods(group) < size
}

// incompleteGang says what the pods of a gang wait for.
func (d *diagnosis) incompleteGang(f *Finding, pod *corev1.Pod, n int) {
	group, size := d.gangSize(pod)
	f.Summary = fmt.Sprintf("%s for the pod group %s: the scheduler looks at a gang only while %d of its pods exist that have not ended, "+
		"and there are %d",
		podsDo(n, "waits", "wait"), group, size, d.gangPods(group))
	f.Commands = append(f.Commands, d.kubectl("describe podgroup %s", group))
}
