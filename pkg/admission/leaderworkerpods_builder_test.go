// Copyright The jobset-apiserver Authors.
// SPDX-License-Identifier: Apache-2.0

package admission_test

import (
	"strconv"
	"testing"

	corev1 "k8s.io/api/core/v1"
	"k8s.io/apimachinery/pkg/api/resource"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"

	"github.com/jobset-apiserver/jobset-apiserver/pkg/admission/leaderworkerpods"
	leaderworkersetv1 "github.com/jobset-apiserver/jobset-apiserver/pkg/apis/leaderworkerset/v1"
)

const revision = "6859c84d69"

// change is what a case changes of a pod.
type change func(*corev1.Pod)

// leader returns a leader pod as its StatefulSet creates it.
func leader(set string, group, size int, changes ...change) *corev1.Pod {
	pod := &corev1.Pod{
		ObjectMeta: metav1.ObjectMeta{
			Name: set + "-" + strconv.Itoa(group), Namespace: "default",
			Labels: map[string]string{
				leaderworkersetv1.SetNameLabelKey: set, leaderworkersetv1.WorkerIndexLabelKey: "0", leaderworkersetv1.RevisionKey: revision,
			},
			Annotations: map[string]string{leaderworkersetv1.SizeAnnotationKey: strconv.Itoa(size)},
		},
		Spec: corev1.PodSpec{Subdomain: "default", Containers: []corev1.Container{{Name: "main"}}},
	}
	return apply(pod, changes)
}

// worker returns a worker pod as its StatefulSet creates it.
func worker(set string, group, index, size int, changes ...change) *corev1.Pod {
	pod := leader(set, group, size)
	pod.Annotations[leaderworkersetv1.LeaderPodNameAnnotationKey] = pod.Name
	delete(pod.Labels, leaderworkersetv1.WorkerIndexLabelKey)
	pod.Labels[leaderworkersetv1.GroupIndexLabelKey] = strconv.Itoa(group)
	pod.Labels[leaderworkersetv1.GroupKeyLabelKey] = "key-of-the-group"
	pod.Name += "-" + strconv.Itoa(index)
	return apply(pod, changes)
}

func apply(pod *corev1.Pod, changes []change) *corev1.Pod {
	for _, change := range changes {
		change(pod)
	}
	return pod
}

func label(key, value string) change { return func(p *corev1.Pod) { p.Labels[key] = value } }

func annotation(key, value string) change {
	return func(p *corev1.Pod) { p.Annotations[key] = value }
}

func without(annotation string) change {
	return func(p *corev1.Pod) { delete(p.Annotations, annotation) }
}

func named(name string) change { return func(p *corev1.Pod) { p.Name = name } }

func subGroups(size int, kind leaderworkersetv1.SubGroupPolicyType) change {
	return func(p *corev1.Pod) {
		p.Annotations[leaderworkersetv1.SubGroupSizeAnnotationKey] = strconv.Itoa(size)
		p.Annotations[leaderworkersetv1.SubGroupPolicyTypeAnnotationKey] = string(kind)
	}
}

// containers replaces the containers.
func containers(containers ...corev1.Container) change {
	return func(p *corev1.Pod) { p.Spec.Containers = containers }
}

// tpu returns a container that requests TPUs.
func tpu(env ...corev1.EnvVar) corev1.Container {
	return corev1.Container{Name: "tpu", Env: env, Resources: corev1.ResourceRequirements{
		Limits: corev1.ResourceList{"google.com/tpu": resource.MustParse("4")},
	}}
}

var leaderRequestsTPUs = annotation(leaderworkersetv1.LeaderRequestsTPUsAnnotationKey, "true")

// mutate completes the pod, twice: the second time must change nothing.
func mutate(t *testing.T, pod *corev1.Pod) *corev1.Pod {
	t.Helper()
	if err := leaderworkerpods.Mutate(pod, "default"); err != nil {
		t.Fatal(err)
	}
	again := pod.DeepCopy()
	if err := leaderworkerpods.Mutate(again, "default"); err != nil {
		t.Fatalf("the second time: %v", err)
	}
	equal(t, "the second time changes the pod", pod, again)
	return pod
}
