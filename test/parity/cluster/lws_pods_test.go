// Copyright The jobset-apiserver Authors.
// SPDX-License-Identifier: Apache-2.0

package cluster

import (
	"encoding/json"
	"fmt"
	"strings"

	corev1 "k8s.io/api/core/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/types"

	leaderworkersetv1 "github.com/jobset-apiserver/jobset-apiserver/pkg/apis/leaderworkerset/v1"
)

// podsOf returns the pods of a set by name, without those that are being deleted.
func (e *lwsEnv) podsOf(name string) map[string]*corev1.Pod {
	e.Helper()
	list, err := shared.Kube.CoreV1().Pods(e.namespace).List(e.Context(), metav1.ListOptions{LabelSelector: leaderworkersetv1.SetNameLabelKey + "=" + name})
	if err != nil {
		e.Fatal(err)
	}
	pods := map[string]*corev1.Pod{}
	for i := range list.Items {
		if list.Items[i].DeletionTimestamp == nil {
			pods[list.Items[i].Name] = &list.Items[i]
		}
	}
	return pods
}

// uids returns the UIDs of the pods of a group by name.
func (e *lwsEnv) uids(name, leader string) map[string]types.UID {
	e.Helper()
	uids := map[string]types.UID{}
	for pod, object := range e.podsOf(name) {
		if pod == leader || strings.HasPrefix(pod, leader+"-") {
			uids[pod] = object.UID
		}
	}
	return uids
}

// awaitRecreated waits until all pods of a group are others than before.
func (e *lwsEnv) awaitRecreated(name, leader string, before map[string]types.UID) {
	e.Helper()
	e.eventually(func() string {
		after := e.uids(name, leader)
		for pod, uid := range before {
			if after[pod] == uid || after[pod] == "" {
				return fmt.Sprintf("pod %s of group %s is %q, and was %q", pod, leader, after[pod], uid)
			}
		}
		return ""
	})
}

// restartContainer lets the status of a pod show that its first container has restarted.
func (e *lwsEnv) restartContainer(pod string) {
	e.Helper()
	patch := map[string]any{"status": map[string]any{"containerStatuses": []map[string]any{{
		"name": "main", "image": "example.com/main:1", "imageID": "", "ready": true, "started": true, "restartCount": 1,
		"state":     map[string]any{"running": map[string]any{}},
		"lastState": map[string]any{"terminated": map[string]any{"exitCode": 137, "reason": "OOMKilled"}},
	}}}}
	e.patchStatus(pod, patch)
}

// setReady lets the condition Ready of a pod change.
func (e *lwsEnv) setReady(pod string, ready corev1.ConditionStatus) {
	e.Helper()
	e.patchStatus(pod, map[string]any{"status": map[string]any{"conditions": []map[string]any{
		{"type": "Ready", "status": ready}, {"type": "ContainersReady", "status": ready},
	}}})
}

func (e *lwsEnv) patchStatus(pod string, patch map[string]any) {
	e.Helper()
	body, err := json.Marshal(patch)
	if err != nil {
		e.Fatal(err)
	}
	if _, err := shared.Kube.CoreV1().Pods(e.namespace).Patch(e.Context(), pod, types.StrategicMergePatchType, body, metav1.PatchOptions{}, "status"); err != nil {
		e.Fatal(err)
	}
}

// env returns the environment of the first container of a pod as its containers see it, without expansion.
func environment(pod *corev1.Pod) map[string]string {
	out := map[string]string{}
	for _, v := range pod.Spec.Containers[0].Env {
		out[v.Name] = v.Value
	}
	return out
}
