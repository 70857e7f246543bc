// Copyright The jobset-apiserver Authors.
// SPDX-License-Identifier: Apache-2.0

package plan

import (
	"maps"
	"strings"

	corev1 "k8s.io/api/core/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"
	resourcehelper "k8s.io/component-helpers/resource"

	leaderworkersetv1 "github.com/jobset-apiserver/jobset-apiserver/pkg/apis/leaderworkerset/v1"
)

// SetSpec gives a PodGroup of a scheduler with an own kind its spec. members is how many pods have to be scheduled
// together, and resources come from MinResources. A PodGroup of Volcano also gets the annotations and the queue that
// its set names. For how long the pods of one of coscheduling wait for each other is left to the configuration of that
// scheduler.
func (p Provider) SetSpec(group *unstructured.Unstructured, set metav1.Object, members int64, resources map[string]any) {
	spec := map[string]any{"minMember": members, "minResources": resources}
	group.Object["spec"] = spec
	if p != Volcano {
		return
	}
	if queue := set.GetAnnotations()[leaderworkersetv1.VolcanoQueueAnnotationKey]; queue != "" {
		spec["queue"] = queue
	}
	if a := volcanoAnnotations(set); len(a) > 0 {
		group.SetAnnotations(a)
	}
}

func volcanoAnnotations(set metav1.Object) map[string]string {
	out := map[string]string{}
	for key, value := range set.GetAnnotations() {
		if strings.HasPrefix(key, leaderworkersetv1.VolcanoAnnotationPrefix) {
			out[key] = value
		}
	}
	return out
}

// Pods are a number of pods of one template.
type Pods struct {
	Template *corev1.PodTemplateSpec
	Number   int64
}

// MinResources returns what pods request together. Values have the types of decoded JSON.
func MinResources(pods ...Pods) map[string]any {
	total := corev1.ResourceList{}
	for i := range pods {
		if pods[i].Number > 0 {
			add(total, requests(pods[i].Template), pods[i].Number)
		}
	}
	out := make(map[string]any, len(total))
	for name, quantity := range total {
		out[string(name)] = quantity.String()
	}
	return out
}

// requests returns what a pod of a template requests: as in pods, limits stand in for requests that are absent.
func requests(template *corev1.PodTemplateSpec) corev1.ResourceList {
	spec := template.Spec.DeepCopy()
	for _, containers := range [][]corev1.Container{spec.InitContainers, spec.Containers} {
		for i := range containers {
			r := &containers[i].Resources
			r.Requests = requestsOrLimits(*r)
		}
	}
	if spec.Resources != nil {
		spec.Resources.Requests = requestsOrLimits(*spec.Resources)
	}
	return resourcehelper.PodRequests(&corev1.Pod{Spec: *spec}, resourcehelper.PodResourcesOptions{})
}

func requestsOrLimits(r corev1.ResourceRequirements) corev1.ResourceList {
	out := make(corev1.ResourceList, len(r.Limits))
	maps.Copy(out, r.Limits)
	maps.Copy(out, r.Requests)
	return out
}

// add adds so many times what one pod requests.
func add(total, pod corev1.ResourceList, times int64) {
	for name, quantity := range pod {
		product := quantity.DeepCopy()
		product.Mul(times)
		sum := total[name]
		sum.Add(product)
		total[name] = sum
	}
}
