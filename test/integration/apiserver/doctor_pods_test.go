// Copyright The jobset-apiserver Authors.
// SPDX-License-Identifier: Apache-2.0

package apiserver

import (
	"context"

	corev1 "k8s.io/api/core/v1"
	discoveryv1 "k8s.io/api/discovery/v1"
	networkingv1 "k8s.io/api/networking/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"
	"k8s.io/apimachinery/pkg/runtime/schema"
	"k8s.io/utils/ptr"

	"github.com/jobset-apiserver/jobset-apiserver/test/framework/apiservice"
)

var nameLabels = map[string]string{"app.kubernetes.io/name": "jobset-apiserver"}

// inPods makes the Service one of pods, as that of the manifests is, until the end of the fault.
func (w ward) inPods(selector map[string]any) {
	w.Helper()
	w.changeIn(schema.GroupVersionResource{Version: "v1", Resource: "services"}, apiservice.Namespace, apiservice.ServiceName, func(o *unstructured.Unstructured) {
		unstructured.RemoveNestedField(o.Object, "spec", "externalName")
		_ = unstructured.SetNestedField(o.Object, "ClusterIP", "spec", "type")
		_ = unstructured.SetNestedMap(o.Object, selector, "spec", "selector")
	})
}

// pod adds a pod of the server with a status that a kubelet would write.
func (w ward) pod(status corev1.PodStatus) {
	w.Helper()
	pods := plane.Kube.CoreV1().Pods(apiservice.Namespace)
	pod, err := pods.Create(w.Context(), &corev1.Pod{
		ObjectMeta: metav1.ObjectMeta{Name: "jobset-apiserver-0", Labels: nameLabels},
		Spec: corev1.PodSpec{NodeName: "node-1", Containers: []corev1.Container{{
			Name: "apiserver", Image: "registry/jobset-apiserver:v1", SecurityContext: &corev1.SecurityContext{
				AllowPrivilegeEscalation: ptr.To(false), RunAsNonRoot: ptr.To(true), Capabilities: &corev1.Capabilities{Drop: []corev1.Capability{"ALL"}},
				SeccompProfile: &corev1.SeccompProfile{Type: corev1.SeccompProfileTypeRuntimeDefault},
			},
		}}},
	}, metav1.CreateOptions{})
	if err != nil {
		w.Fatal(err)
	}
	w.Cleanup(func() {
		if err := pods.Delete(context.WithoutCancel(w.Context()), pod.Name, metav1.DeleteOptions{GracePeriodSeconds: ptr.To[int64](0)}); err != nil {
			w.Error(err)
		}
	})
	pod.Status = status
	if _, err := pods.UpdateStatus(w.Context(), pod, metav1.UpdateOptions{}); err != nil {
		w.Fatal(err)
	}
}

// waits is the status of a pod whose container waits.
func waits(reason, message string) corev1.PodStatus {
	return corev1.PodStatus{Phase: corev1.PodPending, ContainerStatuses: []corev1.ContainerStatus{{
		Name: "apiserver", Image: "registry/jobset-apiserver:v1", ImageID: "none", State: corev1.ContainerState{Waiting: &corev1.ContainerStateWaiting{Reason: reason, Message: message}},
	}}}
}

// runs is the status of a pod that runs.
func runs(ready corev1.ConditionStatus) corev1.PodStatus {
	return corev1.PodStatus{Phase: corev1.PodRunning, PodIP: "192.0.2.7", Conditions: []corev1.PodCondition{{Type: corev1.PodReady, Status: ready}}}
}

// endpoint adds an endpoint of the Service at an address where no server listens.
func (w ward) endpoint() {
	w.Helper()
	slices := plane.Kube.DiscoveryV1().EndpointSlices(apiservice.Namespace)
	_, err := slices.Create(w.Context(), &discoveryv1.EndpointSlice{
		ObjectMeta:  metav1.ObjectMeta{Name: "doctor", Labels: map[string]string{discoveryv1.LabelServiceName: apiservice.ServiceName}},
		AddressType: discoveryv1.AddressTypeIPv4, Ports: []discoveryv1.EndpointPort{{Name: ptr.To("https"), Port: ptr.To[int32](8443), Protocol: ptr.To(corev1.ProtocolTCP)}},
		Endpoints: []discoveryv1.Endpoint{{Addresses: []string{"192.0.2.7"}, Conditions: discoveryv1.EndpointConditions{Ready: ptr.To(true)}}},
	}, metav1.CreateOptions{})
	if err != nil {
		w.Fatal(err)
	}
	w.Cleanup(func() {
		if err := slices.Delete(context.WithoutCancel(w.Context()), "doctor", metav1.DeleteOptions{}); err != nil {
			w.Error(err)
		}
	})
}

var ourPods = map[string]any{"app.kubernetes.io/name": "jobset-apiserver"}

var podFaults = map[string]func(ward){
	"no pods": func(w ward) {
		w.inPods(ourPods)
		w.finds("pods", "fail", "describe deployments,statefulsets", "there are no pods of jobset-apiserver")
	},
	"pod pending": func(w ward) {
		w.inPods(ourPods)
		w.pod(corev1.PodStatus{Phase: corev1.PodPending, Conditions: []corev1.PodCondition{
			{Type: corev1.PodScheduled, Status: corev1.ConditionFalse, Reason: "Unschedulable", Message: "0/3 nodes are available: 3 Insufficient memory."},
		}})
		w.finds("pods", "fail", "describe pod jobset-apiserver-0", "has no node (Unschedulable): 0/3 nodes are available")
	},
	"image cannot be pulled": func(w ward) {
		w.inPods(ourPods)
		w.pod(waits("ImagePullBackOff", "Back-off pulling image"))
		w.finds("pods", "fail", "describe pod jobset-apiserver-0", "cannot pull its image registry/jobset-apiserver:v1 (ImagePullBackOff)")
	},
	"crash loop": func(w ward) {
		w.inPods(ourPods)
		status := waits("CrashLoopBackOff", "back-off 40s")
		status.ContainerStatuses[0].LastTerminationState.Terminated = &corev1.ContainerStateTerminated{
			ExitCode: 1, Reason: "Error", ContainerID: "c://1", Message: "I1123 starting\nError: --data-dir: no space left on device",
		}
		w.pod(status)
		w.finds("pods", "fail", "logs jobset-apiserver-0 --previous", "crashes: container apiserver ended with exit code 1", "Error: --data-dir: no space left on device")
	},
	"pod not ready": func(w ward) {
		w.inPods(ourPods)
		w.pod(runs(corev1.ConditionFalse))
		w.finds("pods", "fail", "logs jobset-apiserver-0", "pod jobset-apiserver-0 runs and is not ready")
	},
	"selector of the Service": func(w ward) {
		w.inPods(map[string]any{"app": "renamed"})
		w.pod(runs(corev1.ConditionTrue))
		w.finds("service", "fail", "kubectl apply -k artifacts/overlays", "the selector of Service jobset-system/jobset-apiserver (app=renamed) does not match pod jobset-apiserver-0")
	},
	"Service without endpoints": func(w ward) {
		w.inPods(ourPods)
		w.pod(runs(corev1.ConditionTrue))
		w.finds("endpoints", "fail", "get endpointslices", "Service jobset-system/jobset-apiserver has no endpoints")
	},
	"packets are dropped": func(w ward) {
		w.inPods(ourPods)
		w.pod(runs(corev1.ConditionTrue))
		w.endpoint()
		policies := plane.Kube.NetworkingV1().NetworkPolicies(apiservice.Namespace)
		_, err := policies.Create(w.Context(), &networkingv1.NetworkPolicy{
			ObjectMeta: metav1.ObjectMeta{Name: "deny-all"}, Spec: networkingv1.NetworkPolicySpec{PolicyTypes: []networkingv1.PolicyType{networkingv1.PolicyTypeIngress}},
		}, metav1.CreateOptions{})
		if err != nil {
			w.Fatal(err)
		}
		w.Cleanup(func() {
			if err := policies.Delete(context.WithoutCancel(w.Context()), "deny-all", metav1.DeleteOptions{}); err != nil {
				w.Error(err)
			}
		})
		w.finds("available", "fail", "edit networkpolicy deny-all", "kube-apiserver gets no connection to the server: NetworkPolicy jobset-system/deny-all limits who may connect")
	},
}
