// Copyright The jobset-apiserver Authors.
// SPDX-License-Identifier: Apache-2.0

package localcluster

import (
	"context"
	"errors"
	"fmt"
	"net/http"
	"net/url"

	corev1 "k8s.io/api/core/v1"
	storagev1 "k8s.io/api/storage/v1"
	"k8s.io/apimachinery/pkg/api/resource"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
)

// restartAllContainers is the feature of a kubelet that pods need which restart all of their containers in place.
const restartAllContainers = "RestartAllContainersOnContainerExits"

// node has the size of an accelerator machine; four are in a rack, two racks in a zone, for placement by topology.
func node(n int) *corev1.Node {
	name := fmt.Sprintf("node-%03d", n)
	size := corev1.ResourceList{
		corev1.ResourceCPU: resource.MustParse("64"), corev1.ResourceMemory: resource.MustParse("512Gi"),
		corev1.ResourcePods: resource.MustParse("250"), "nvidia.com/gpu": resource.MustParse("8"),
	}
	return &corev1.Node{
		TypeMeta: metav1.TypeMeta{APIVersion: "v1", Kind: "Node"},
		ObjectMeta: metav1.ObjectMeta{
			Name: name,
			Labels: map[string]string{
				"type": "kwok", corev1.LabelOSStable: "linux", corev1.LabelArchStable: "amd64", corev1.LabelHostname: name,
				corev1.LabelTopologyZone: fmt.Sprintf("zone-%d", n/8), "jobset-apiserver.io/rack": fmt.Sprintf("rack-%d", n/4),
			},
			Annotations: map[string]string{"kwok.x-k8s.io/node": "fake", "node.alpha.kubernetes.io/ttl": "0"},
		},
		Status: corev1.NodeStatus{
			Addresses: []corev1.NodeAddress{
				{Type: corev1.NodeInternalIP, Address: fmt.Sprintf("10.200.%d.%d", n/250+1, n%250+1)},
				{Type: corev1.NodeHostName, Address: name},
			},
			Allocatable: size, Capacity: size,
			NodeInfo: corev1.NodeSystemInfo{Architecture: "amd64", OperatingSystem: "linux", KubeletVersion: "kwok-v0.8.0"},
			// Without it the scheduler keeps off pods that restart in place: kubelets of Kubernetes 1.36 declare what they can do.
			DeclaredFeatures: []string{restartAllContainers},
		},
	}
}

// nodesReady returns an error unless all nodes are ready.
func (c *supervisor) nodesReady(ctx context.Context) error {
	var list corev1.NodeList
	if err := c.admin.get(ctx, "/api/v1/nodes?labelSelector="+url.QueryEscape("type=kwok"), &list); err != nil {
		return err
	}
	ready := 0
	for _, n := range list.Items {
		for _, condition := range n.Status.Conditions {
			if condition.Type == corev1.NodeReady && condition.Status == corev1.ConditionTrue {
				ready++
			}
		}
	}
	if ready < c.nodes {
		return fmt.Errorf("%d of %d are ready", ready, c.nodes)
	}
	return nil
}

func (c *supervisor) upNodes(ctx context.Context) error {
	if err := c.upKwok(); err != nil {
		return err
	}
	if c.nodesReady(ctx) != nil {
		for n := range c.nodes {
			var status *statusError
			err := c.admin.post(ctx, "/api/v1/nodes", node(n), nil)
			if err != nil && (!errors.As(err, &status) || status.code != http.StatusConflict) {
				return fmt.Errorf("creating node %d: %w", n, err)
			}
		}
		if err := c.await(ctx, kwokController, "the nodes are not ready", c.nodesReady); err != nil {
			return err
		}
	}
	if c.realNodes > 0 {
		// Real containers cannot use simulated volumes.
		return nil
	}
	return c.admin.apply(ctx, "/apis/storage.k8s.io/v1/storageclasses/simulated", &storagev1.StorageClass{
		TypeMeta: metav1.TypeMeta{APIVersion: "storage.k8s.io/v1", Kind: "StorageClass"},
		ObjectMeta: metav1.ObjectMeta{
			Name: "simulated", Annotations: map[string]string{"storageclass.kubernetes.io/is-default-class": "true"},
		},
		Provisioner: "jobset-apiserver.io/simulated",
	})
}
