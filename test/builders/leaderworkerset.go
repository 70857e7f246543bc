// Copyright The jobset-apiserver Authors.
// SPDX-License-Identifier: Apache-2.0

package builders

import (
	"fmt"

	appsv1 "k8s.io/api/apps/v1"
	corev1 "k8s.io/api/core/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/types"
	"k8s.io/apimachinery/pkg/util/intstr"
	"k8s.io/utils/ptr"

	leaderworkersetv1 "github.com/jobset-apiserver/jobset-apiserver/pkg/apis/leaderworkerset/v1"
)

// LeaderWorkerSet returns a LeaderWorkerSet as the server stores it, with so many groups of that size, and applies the changes.
func LeaderWorkerSet(name string, replicas, size int32, change ...func(*leaderworkersetv1.LeaderWorkerSet)) *leaderworkersetv1.LeaderWorkerSet {
	set := &leaderworkersetv1.LeaderWorkerSet{
		ObjectMeta: metav1.ObjectMeta{Name: name, Namespace: Namespace, UID: types.UID(name + "-uid"), Generation: 1, ResourceVersion: "1"},
		Spec: leaderworkersetv1.LeaderWorkerSetSpec{
			Replicas: &replicas, StartupPolicy: leaderworkersetv1.StartupPolicyLeaderCreated,
			LeaderWorkerTemplate: leaderworkersetv1.LeaderWorkerTemplate{
				GroupSize: &size, RestartPolicy: leaderworkersetv1.RestartPolicyRecreateGroupOnPodRestart,
				WorkerTemplate: corev1.PodTemplateSpec{Spec: corev1.PodSpec{Containers: []corev1.Container{{Name: "main", Image: "example.com/main:1"}}}},
			},
			RolloutStrategy: leaderworkersetv1.RolloutStrategy{
				Type: leaderworkersetv1.RolloutStrategyRollingUpdate, RollingUpdateConfiguration: &leaderworkersetv1.RollingUpdateConfiguration{
					Partition: ptr.To[int32](0), MaxUnavailable: ptr.To(intstr.FromInt32(1)), MaxSurge: ptr.To(intstr.FromInt32(0)),
				},
			},
			NetworkConfig: &leaderworkersetv1.NetworkConfig{SubdomainPolicy: ptr.To(leaderworkersetv1.SubdomainShared)},
		},
	}
	for _, f := range change {
		f(set)
	}
	return set
}

// LeaderStatefulSet returns the StatefulSet of the leader pods of a set, of the revision and all ready, and applies the changes.
func LeaderStatefulSet(set *leaderworkersetv1.LeaderWorkerSet, revision string, change ...func(*appsv1.StatefulSet)) *appsv1.StatefulSet {
	replicas := *set.Spec.Replicas
	out := &appsv1.StatefulSet{
		ObjectMeta: metav1.ObjectMeta{
			Name: set.Name, Namespace: set.Namespace, UID: types.UID(set.Name + "-leaders"),
			Labels:          map[string]string{leaderworkersetv1.SetNameLabelKey: set.Name, leaderworkersetv1.RevisionKey: revision},
			Annotations:     map[string]string{leaderworkersetv1.ReplicasAnnotationKey: fmt.Sprint(replicas)},
			OwnerReferences: []metav1.OwnerReference{*metav1.NewControllerRef(set, leaderworkersetv1.SchemeGroupVersion.WithKind("LeaderWorkerSet"))},
		},
		Spec: appsv1.StatefulSetSpec{
			Replicas: &replicas, ServiceName: set.Name,
			UpdateStrategy: appsv1.StatefulSetUpdateStrategy{
				Type: appsv1.RollingUpdateStatefulSetStrategyType, RollingUpdate: &appsv1.RollingUpdateStatefulSetStrategy{Partition: ptr.To[int32](0)},
			},
		},
		Status: appsv1.StatefulSetStatus{Replicas: replicas, ReadyReplicas: replicas, AvailableReplicas: replicas},
	}
	for _, f := range change {
		f(out)
	}
	return out
}

// LeaderPod returns the leader pod of a group, which runs and is ready, and applies the changes.
func LeaderPod(set *leaderworkersetv1.LeaderWorkerSet, leaders *appsv1.StatefulSet, group int, change ...func(*corev1.Pod)) *corev1.Pod {
	labels := groupLabels(set, group, leaders.Labels[leaderworkersetv1.RevisionKey])
	labels[leaderworkersetv1.WorkerIndexLabelKey] = "0"
	return groupPod(set, leaders, fmt.Sprintf("%s-%d", set.Name, group), labels, change)
}

// WorkerStatefulSet returns the StatefulSet of the workers of a leader pod, all available, and applies the changes.
func WorkerStatefulSet(set *leaderworkersetv1.LeaderWorkerSet, leader *corev1.Pod, change ...func(*appsv1.StatefulSet)) *appsv1.StatefulSet {
	workers := *set.Spec.LeaderWorkerTemplate.GroupSize - 1
	labels := map[string]string{}
	for _, key := range []string{leaderworkersetv1.SetNameLabelKey, leaderworkersetv1.GroupIndexLabelKey, leaderworkersetv1.RevisionKey} {
		labels[key] = leader.Labels[key]
	}
	out := &appsv1.StatefulSet{
		ObjectMeta: metav1.ObjectMeta{
			Name: leader.Name, Namespace: leader.Namespace, UID: leader.UID + "-workers", Labels: labels,
			OwnerReferences: []metav1.OwnerReference{*metav1.NewControllerRef(leader, corev1.SchemeGroupVersion.WithKind("Pod"))},
		},
		Spec:   appsv1.StatefulSetSpec{Replicas: &workers, ServiceName: set.Name, Ordinals: &appsv1.StatefulSetOrdinals{Start: 1}},
		Status: appsv1.StatefulSetStatus{Replicas: workers, ReadyReplicas: workers, AvailableReplicas: workers},
	}
	for _, f := range change {
		f(out)
	}
	return out
}

// WorkerPod returns a worker of a group, which runs and is ready, and applies the changes.
func WorkerPod(set *leaderworkersetv1.LeaderWorkerSet, workers *appsv1.StatefulSet, index int, change ...func(*corev1.Pod)) *corev1.Pod {
	labels := map[string]string{leaderworkersetv1.WorkerIndexLabelKey: fmt.Sprint(index)}
	for key, value := range workers.Labels {
		labels[key] = value
	}
	return groupPod(set, workers, fmt.Sprintf("%s-%d", workers.Name, index), labels, change)
}

func groupLabels(set *leaderworkersetv1.LeaderWorkerSet, group int, revision string) map[string]string {
	return map[string]string{
		leaderworkersetv1.SetNameLabelKey: set.Name, leaderworkersetv1.GroupIndexLabelKey: fmt.Sprint(group), leaderworkersetv1.RevisionKey: revision,
	}
}

func groupPod(set *leaderworkersetv1.LeaderWorkerSet, owner *appsv1.StatefulSet, name string, labels map[string]string, change []func(*corev1.Pod)) *corev1.Pod {
	pod := &corev1.Pod{
		ObjectMeta: metav1.ObjectMeta{
			Name: name, Namespace: set.Namespace, UID: types.UID(name + "-pod"), Labels: labels,
			Annotations:     map[string]string{leaderworkersetv1.SizeAnnotationKey: fmt.Sprint(*set.Spec.LeaderWorkerTemplate.GroupSize)},
			OwnerReferences: []metav1.OwnerReference{*metav1.NewControllerRef(owner, appsv1.SchemeGroupVersion.WithKind("StatefulSet"))},
		},
		Spec: corev1.PodSpec{NodeName: "node-1", Containers: []corev1.Container{{Name: "main"}}},
		Status: corev1.PodStatus{
			Phase: corev1.PodRunning, Conditions: []corev1.PodCondition{{Type: corev1.PodReady, Status: corev1.ConditionTrue}},
			ContainerStatuses: []corev1.ContainerStatus{{Name: "main", Ready: true, State: corev1.ContainerState{Running: &corev1.ContainerStateRunning{}}}},
		},
	}
	for _, f := range change {
		f(pod)
	}
	return pod
}
