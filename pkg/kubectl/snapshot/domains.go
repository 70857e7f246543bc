// Copyright The jobset-apiserver Authors.
// SPDX-License-Identifier: Apache-2.0

package snapshot

import (
	"context"
	"fmt"
	"strings"

	corev1 "k8s.io/api/core/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/client-go/metadata"

	"github.com/jobset-apiserver/jobset-apiserver/pkg/kubectl/cli"
)

// Domains returns, by name of node, the value of a label that nodes have, for the nodes of the pods. Newer clusters copy the
// labels of zone and region to pods; where they did, no node is read. Otherwise the metadata of all nodes is, in one call.
func Domains(ctx context.Context, c *cli.Clients, pods []*corev1.Pod, label string) (map[string]string, error) {
	if domains, known := domainsOfPods(pods, label); known {
		return domains, nil
	}
	objects, err := metadata.NewForConfig(c.Config)
	if err != nil {
		return nil, fmt.Errorf("making a client of metadata: %w", err)
	}
	nodes, err := objects.Resource(corev1.SchemeGroupVersion.WithResource("nodes")).List(ctx, metav1.ListOptions{ResourceVersion: "0"})
	if err != nil {
		return nil, fmt.Errorf("listing the nodes: %w", err)
	}
	domains := map[string]string{}
	for i := range nodes.Items {
		domains[nodes.Items[i].Name] = nodes.Items[i].Labels[label]
	}
	return domains, nil
}

// domainsOfPods reads the domains from the labels of the pods. They are not known when a pod on a node lacks the label, and
// not when the label is one that the cluster does not copy, as then it says nothing about the node.
func domainsOfPods(pods []*corev1.Pod, label string) (domains map[string]string, known bool) {
	copied := strings.HasPrefix(label, "topology.kubernetes.io/")
	domains = map[string]string{}
	for _, pod := range pods {
		if pod.Spec.NodeName == "" {
			continue
		}
		value, found := pod.Labels[label]
		if !found || !copied {
			return nil, false
		}
		domains[pod.Spec.NodeName] = value
	}
	return domains, true
}
