// Copyright The jobset-apiserver Authors.
// SPDX-License-Identifier: Apache-2.0

// Package members reads the pods of groups, and what their owners say about the number of pods. The controller and the plugin use
// it.
package members

import (
	"fmt"
	"strconv"
	"unique"

	appsv1 "k8s.io/api/apps/v1"
	batchv1 "k8s.io/api/batch/v1"
	corev1 "k8s.io/api/core/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/types"

	batchv1alpha1 "github.com/jobset-apiserver/jobset-apiserver/pkg/apis/batch/v1alpha1"
	jobsetv1alpha2 "github.com/jobset-apiserver/jobset-apiserver/pkg/apis/jobset/v1alpha2"
	"github.com/jobset-apiserver/jobset-apiserver/pkg/controller/podgroup/plan"
)

// leaderWorkerSetNameKey is the label of the pods of a LeaderWorkerSet with its name.
const leaderWorkerSetNameKey = "leaderworkerset.sigs.k8s.io/name"

// maxStated is the longest text that is kept of a size that a pod states. Longer ones are malformed.
const maxStated = 16

// Pod is what is kept of a pod of a group: a fraction of a corev1.Pod. What the pods of an owner or a namespace have in common is kept
// once.
type Pod struct {
	plan.Pod
	// Group is the name of the group.
	Group     string
	namespace unique.Handle[string]
	version   uint64
}

var _ metav1.ObjectMetaAccessor = &Pod{}

// GetObjectMeta returns what a cache needs to know of an object.
func (p *Pod) GetObjectMeta() metav1.Object {
	return &metav1.ObjectMeta{Name: p.Name, Namespace: p.Namespace(), ResourceVersion: strconv.FormatUint(p.version, 10)}
}

// Namespace returns the namespace of the pod.
func (p *Pod) Namespace() string { return p.namespace.Value() }

// Transform returns a transform that keeps of a pod what groups of the prefix need. It accepts its own results.
func Transform(prefix plan.Prefix) func(obj any) (any, error) {
	return func(obj any) (any, error) {
		if pod, ok := obj.(*corev1.Pod); ok {
			return Of(pod, prefix), nil
		}
		return obj, nil
	}
}

// Of returns what is kept of a pod.
func Of(pod *corev1.Pod, prefix plan.Prefix) *Pod {
	kept := &Pod{
		Pod: plan.Pod{
			Name: pod.Name, UID: pod.UID, Owner: unique.Make(ownerOf(pod)).Value(),
			SizeLabel: stated(pod.Labels[prefix.SizeKey]), SizeAnnotation: stated(pod.Annotations[prefix.SizeKey]),
			Created: pod.CreationTimestamp.Unix(), Phase: phaseOf(pod.Status.Phase),
			Terminating: pod.DeletionTimestamp != nil, Labeled: pod.Labels[prefix.ReadyKey] == batchv1alpha1.PodGroupReadyValue,
		},
		Group: unique.Make(pod.Labels[prefix.GroupKey]).Value(), namespace: unique.Make(pod.Namespace),
	}
	kept.version, _ = strconv.ParseUint(pod.ResourceVersion, 10, 64) // a version that is not well-formed counts as absent
	for i := range pod.Status.Conditions {
		if c := &pod.Status.Conditions[i]; c.Type == corev1.PodReady {
			kept.Ready = c.Status == corev1.ConditionTrue
		}
	}
	if kept.Phase == plan.Failed {
		kept.Ended = endOf(pod)
	}
	return kept
}

// stated returns what is kept of a size.
func stated(size string) string {
	if size == "" {
		return ""
	}
	return unique.Make(size[:min(len(size), maxStated)]).Value()
}

func phaseOf(phase corev1.PodPhase) plan.Phase {
	switch phase {
	case corev1.PodRunning:
		return plan.Running
	case corev1.PodSucceeded:
		return plan.Succeeded
	case corev1.PodFailed:
		return plan.Failed
	}
	return plan.Pending
}

// endOf returns when the last container ended, or else when the pod was created.
func endOf(pod *corev1.Pod) int64 {
	end := pod.CreationTimestamp.Unix()
	for i := range pod.Status.ContainerStatuses {
		if ended := pod.Status.ContainerStatuses[i].State.Terminated; ended != nil {
			end = max(end, ended.FinishedAt.Unix())
		}
	}
	return end
}

// ownerOf returns what says how many pods there are to be: that of a Job of a JobSet is the JobSet.
func ownerOf(pod *corev1.Pod) plan.Owner {
	ref := metav1.GetControllerOfNoCopy(pod)
	if ref == nil {
		return plan.Owner{}
	}
	owner := plan.Owner{Name: ref.Name, UID: ref.UID}
	switch ref.APIVersion + "/" + ref.Kind {
	case batchv1.SchemeGroupVersion.String() + "/Job":
		owner.Kind = plan.KindJob
		if name, uid := pod.Labels[jobsetv1alpha2.JobSetNameKey], pod.Labels[jobsetv1alpha2.JobSetUIDKey]; name != "" && uid != "" {
			owner = plan.Owner{Kind: plan.KindJobSet, Name: name, UID: types.UID(uid)}
		}
	case appsv1.SchemeGroupVersion.String() + "/StatefulSet":
		owner.Kind = plan.KindStatefulSet
		if name := pod.Labels[leaderWorkerSetNameKey]; name != "" {
			owner = plan.Owner{Kind: plan.KindLeaderWorkerSet, Name: name}
		}
	case appsv1.SchemeGroupVersion.String() + "/ReplicaSet":
		owner.Kind = plan.KindReplicaSet
	}
	return owner
}

// GroupIndex indexes pods by the name of their group. A pod with an empty name belongs to none.
func GroupIndex(obj any) ([]string, error) {
	pod, ok := obj.(*Pod)
	if !ok {
		return nil, fmt.Errorf("indexing by group: %T is no pod", obj)
	}
	if pod.Group == "" {
		return nil, nil
	}
	return []string{pod.Namespace() + "/" + pod.Group}, nil
}
