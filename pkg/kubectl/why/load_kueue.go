// Copyright The jobset-apiserver Authors.
// SPDX-License-Identifier: Apache-2.0

package why

import (
	"context"

	apierrors "k8s.io/apimachinery/pkg/api/errors"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"
	"k8s.io/apimachinery/pkg/runtime/schema"
)

const (
	kueueGroup = "kueue.x-k8s.io"
	// jobUIDLabel is the label by which the queueing system finds the Workload of an object.
	jobUIDLabel = kueueGroup + "/job-uid"
)

// kueueVersions are the versions that releases in use serve, newest first.
var kueueVersions = []string{"v1beta2", "v1beta1"}

// readKueue reads the Workload of an object in a queue, the queue, and the queue behind that one.
func (l *loader) readKueue(ctx context.Context, of metav1.Object, queue string) {
	if queue == "" || l.e.subject().ended() {
		return
	}
	version := l.readWorkload(ctx, of)
	if version == "" {
		l.e.Kueue.Absent = true
		return
	}
	l.readWaiting(ctx, version)
	l.readClusters(ctx, version)
	l.readQueues(ctx, version, queue)
}

// readWorkload reads the Workload that Kueue has made for an object, and returns the version of Kueue's API; "" if the
// cluster does not serve it.
func (l *loader) readWorkload(ctx context.Context, of metav1.Object) (version string) {
	for _, v := range kueueVersions {
		list, err := l.Dynamic.Resource(kueue(v, "workloads")).Namespace(l.Namespace).
			List(ctx, metav1.ListOptions{LabelSelector: jobUIDLabel + "=" + string(of.GetUID())})
		if apierrors.IsNotFound(err) {
			continue
		}
		version, l.e.Kueue.Served = v, true
		if !l.got("workloads."+kueueGroup, err) {
			break
		}
		l.e.Kueue.WorkloadRead = true
		l.e.Kueue.Workload = ownedBy(list.Items, of)
		break
	}
	return version
}

// readQueues reads the queue, the queue behind that one, and the Workload to which the object had to give its quota.
func (l *loader) readQueues(ctx context.Context, version, queue string) {
	k := &l.e.Kueue
	if c := preemptionOf(k.Workload); c != nil {
		k.Preemptor = l.preemptor(ctx, version, preemptorOf(c.Message))
	}
	k.LocalQueue, k.LocalQueueRead = l.oneOf(ctx, "localqueues", kueue(version, "localqueues"), l.Namespace, queue)
	if k.LocalQueue == nil {
		return
	}
	if name, _, _ := unstructured.NestedString(k.LocalQueue.Object, "spec", "clusterQueue"); name != "" {
		k.ClusterQueue, k.ClusterQueueRead = l.oneOf(ctx, "clusterqueues", kueue(version, "clusterqueues"), "", name)
	}
}

func kueue(version, resource string) schema.GroupVersionResource {
	return schema.GroupVersionResource{Group: kueueGroup, Version: version, Resource: resource}
}

// oneOf reads one object; nil and true if it does not exist.
func (l *loader) oneOf(ctx context.Context, source string, resource schema.GroupVersionResource, namespace,
	name string) (*unstructured.Unstructured, bool) {
	found, err := l.Dynamic.Resource(resource).Namespace(namespace).Get(ctx, name, metav1.GetOptions{})
	switch {
	case apierrors.IsNotFound(err):
		return nil, true
	case err != nil:
		l.gap(source+"."+kueueGroup, err)
		return nil, false
	}
	return found, true
}

// ownedBy returns the object that the set owns. An older one of a set of the same name has another owner.
func ownedBy(items []unstructured.Unstructured, of metav1.Object) *unstructured.Unstructured {
	for i := range items {
		for _, owner := range items[i].GetOwnerReferences() {
			if owner.UID == of.GetUID() {
				return &items[i]
			}
		}
	}
	return nil
}

// status returns the condition of an object of Kueue, with its status, reason, message and time; nil if it has none.
func conditionOf(object *unstructured.Unstructured, conditionType string) *metav1.Condition {
	if object == nil {
		return nil
	}
	conditions, _, _ := unstructured.NestedSlice(object.Object, "status", "conditions")
	for _, c := range conditions {
		fields, ok := c.(map[string]any)
		if !ok || fields["type"] != conditionType {
			continue
		}
		text := func(key string) string { s, _ := fields[key].(string); return s }
		found := &metav1.Condition{
			Type: conditionType, Status: metav1.ConditionStatus(text("status")), Reason: text("reason"), Message: text("message"),
		}
		_ = found.LastTransitionTime.UnmarshalQueryParameter(text("lastTransitionTime"))
		return found
	}
	return nil
}
