// Copyright The jobset-apiserver Authors.
// SPDX-License-Identifier: Apache-2.0

package e2e

import (
	"context"
	"fmt"
	"slices"
	"testing"

	corev1 "k8s.io/api/core/v1"
	"k8s.io/apimachinery/pkg/api/resource"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/client-go/kubernetes"

	jobsetv1alpha2 "github.com/jobset-apiserver/jobset-apiserver/pkg/apis/jobset/v1alpha2"
)

// ownNodes are the nodes of one test. There is room for one pod of its sets on each.
type ownNodes struct {
	*kubectl
	kube kubernetes.Interface
}

// newOwnNodes returns none, and a namespace.
func newOwnNodes(t *testing.T, c *cluster) (*kubectl, *ownNodes) {
	k := newKubectlFor(t, c)
	k.admitsPods()
	config, err := c.Config()
	if err != nil {
		t.Fatal(err)
	}
	kube, err := kubernetes.NewForConfig(config)
	if err != nil {
		t.Fatal(err)
	}
	return k, &ownNodes{k, kube}
}

// key is the label of the nodes whose values are the domains, and the key of their taint.
func (n *ownNodes) key() string { return "example.com/" + n.namespace }

func (n *ownNodes) domainOf(node *corev1.Node) string { return node.Labels[n.key()] }

// nodes returns those that exist, by name.
func (n *ownNodes) nodes(ctx context.Context) ([]corev1.Node, error) {
	list, err := n.kube.CoreV1().Nodes().List(ctx, metav1.ListOptions{LabelSelector: n.key()})
	if err != nil {
		return nil, err
	}
	return list.Items, nil
}

// add makes a node of a domain.
func (n *ownNodes) add(ctx context.Context, name, domain string) error {
	size := corev1.ResourceList{corev1.ResourceCPU: resource.MustParse("1500m"), corev1.ResourceMemory: resource.MustParse("8Gi"), corev1.ResourcePods: resource.MustParse("20")}
	_, err := n.kube.CoreV1().Nodes().Create(ctx, &corev1.Node{
		ObjectMeta: metav1.ObjectMeta{
			Name: name, Labels: map[string]string{"type": "kwok", corev1.LabelHostname: name, n.key(): domain},
			Annotations: map[string]string{"kwok.x-k8s.io/node": "fake"},
		},
		Spec:   corev1.NodeSpec{Taints: []corev1.Taint{{Key: n.key(), Effect: corev1.TaintEffectNoSchedule}}},
		Status: corev1.NodeStatus{Allocatable: size, Capacity: size},
	}, metav1.CreateOptions{})
	return err
}

// addAll makes so many nodes of each domain, and waits until they are ready.
func (n *ownNodes) addAll(each int, domains ...string) {
	n.Helper()
	for _, domain := range domains {
		for i := range each {
			name := fmt.Sprintf("%s-%s-%d", n.namespace, domain, i)
			if err := n.add(n.Context(), name, domain); err != nil {
				n.Fatal(err)
			}
			n.wait("--for=condition=Ready", "node/"+name)
		}
	}
}

// set is a set of Jobs of two pods that run until they are stopped, with more fields of their pods.
func (n *ownNodes) set(name string, jobs int, more string) string {
	return fmt.Sprintf(`apiVersion: jobset.x-k8s.io/v1alpha2
kind: JobSet
metadata:
  name: %s
  annotations: {alpha.jobset.sigs.k8s.io/exclusive-topology: %s}
spec:
  failurePolicy: {maxRestarts: 10}
  replicatedJobs:
  - name: w
    replicas: %d
    template:
      spec:
        parallelism: 2
        completions: 2
        backoffLimit: 0
        template:
          metadata: {annotations: {jobset-apiserver.io/kwok-outcome: running}}
          spec: {%s%s}
`, name, n.key(), jobs, n.pod(), more)
}

// pod are fields of the specification of a pod.
func (n *ownNodes) pod() string {
	return fmt.Sprintf("restartPolicy: Never, tolerations: [{key: %s, operator: Exists}], containers: [{name: main, image: train, resources: {requests: {cpu: 1}}}]", n.key())
}

// pods returns those of a set, or of all if it is empty, that have not ended.
func (n *ownNodes) pods(set string) []corev1.Pod {
	n.Helper()
	var options metav1.ListOptions
	if set != "" {
		options.LabelSelector = jobsetv1alpha2.JobSetNameKey + "=" + set
	}
	list, err := n.kube.CoreV1().Pods(n.namespace).List(n.Context(), options)
	if err != nil {
		n.Fatal(err)
	}
	return slices.DeleteFunc(list.Items, func(pod corev1.Pod) bool {
		return pod.DeletionTimestamp != nil || pod.Status.Phase == corev1.PodFailed || pod.Status.Phase == corev1.PodSucceeded
	})
}

// domainsByNode returns the domain of each node.
func (n *ownNodes) domainsByNode() map[string]string {
	n.Helper()
	nodes, err := n.nodes(n.Context())
	if err != nil {
		n.Fatal(err)
	}
	domains := map[string]string{}
	for i := range nodes {
		domains[nodes[i].Name] = n.domainOf(&nodes[i])
	}
	return domains
}

// alone returns what is wrong if not all pods of a set of so many Jobs run, those of each Job in one domain, which the
// status names, without other pods.
func (n *ownNodes) alone(set string, jobs int) string {
	n.Helper()
	domains, in, running := n.domainsByNode(), map[string]string{}, 0
	for _, pod := range n.pods("") {
		domain, job := domains[pod.Spec.NodeName], pod.Labels["batch.kubernetes.io/job-name"]
		if domain == "" {
			continue
		}
		if other, found := in[domain]; found && other != job {
			return fmt.Sprintf("domain %s has pods of %q and %q", domain, other, job)
		}
		in[domain] = job
		if pod.Status.Phase == corev1.PodRunning && pod.Labels[jobsetv1alpha2.JobSetNameKey] == set {
			running++
		}
	}
	stored := n.domains(set)
	if running != 2*jobs || len(stored) != jobs {
		return fmt.Sprintf("%d pods of %s run, want %d; pods are in %v, and its domains are %v", running, set, 2*jobs, in, stored)
	}
	for index, domain := range stored {
		if job := fmt.Sprintf("%s-w-%d", set, index); in[domain] != job {
			return fmt.Sprintf("domain %s has pods of %q, not of %s", domain, in[domain], job)
		}
	}
	return ""
}
