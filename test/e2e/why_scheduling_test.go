// Copyright The jobset-apiserver Authors.
// SPDX-License-Identifier: Apache-2.0

package e2e

import (
	"fmt"
	"time"

	corev1 "k8s.io/api/core/v1"
	"k8s.io/apimachinery/pkg/api/resource"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/utils/ptr"

	jobsetv1alpha2 "github.com/jobset-apiserver/jobset-apiserver/pkg/apis/jobset/v1alpha2"
	"github.com/jobset-apiserver/jobset-apiserver/pkg/kubectl/why"
)

// What keeps pods from getting a node.
var schedulingFaults = map[string]fault{
	"no node has room": {
		seed: makes(podSpecs(func(p *corev1.PodSpec) { requesting(p, corev1.ResourceCPU, "1000") })),
		want: why.UnschedulableResources, words: []string{"2 pods", "Insufficient cpu"},
	},
	"the nodes that were asked for have no room": {
		seed: inTurn(ownNode(""), func(k *kubectl) {
			makes(podSpecs(onOwnNode(k)), podSpecs(func(p *corev1.PodSpec) { requesting(p, corev1.ResourceCPU, "3") }))(k)
		}),
		want: why.UnschedulableResources, words: []string{"1 node: Insufficient cpu"},
	},
	"the nodes that were asked for have a taint": {
		seed: inTurn(ownNode("{key: dedicated, value: vision, effect: NoSchedule}"), func(k *kubectl) { makes(podSpecs(onOwnNode(k)))(k) }),
		want: why.UnschedulableTaint, words: []string{`"dedicated=vision:NoSchedule" of node `, "1 node fits"},
	},
	"the node that was asked for is cordoned": {
		seed: inTurn(ownNode(""), func(k *kubectl) {
			k.ok("cordon", k.namespace)
			makes(podSpecs(onOwnNode(k)))(k)
		}),
		want: why.UnschedulableTaint, words: []string{`"node.kubernetes.io/unschedulable:NoSchedule" of node `, "1 node fits"},
	},
	"no node has the label of the selector": {
		seed: makes(podSpecs(func(p *corev1.PodSpec) { p.NodeSelector = map[string]string{"example.com/gpu": "h900"} })),
		want: why.UnschedulableAffinity, words: []string{"affinity/selector"},
	},
	"no node fits the affinity": {
		seed: makes(podSpecs(func(p *corev1.PodSpec) {
			p.Affinity = &corev1.Affinity{NodeAffinity: &corev1.NodeAffinity{RequiredDuringSchedulingIgnoredDuringExecution: &corev1.NodeSelector{
				NodeSelectorTerms: []corev1.NodeSelectorTerm{{MatchExpressions: []corev1.NodeSelectorRequirement{
					{Key: "example.com/gpu", Operator: corev1.NodeSelectorOpExists},
				}}},
			}}}
		})),
		want: why.UnschedulableAffinity, words: []string{"affinity/selector"},
	},
	"a claim is not bound": {
		seed: makes(func(js *jobsetv1alpha2.JobSet) {
			js.Spec.VolumeClaimPolicies = []jobsetv1alpha2.VolumeClaimPolicy{{Templates: []corev1.PersistentVolumeClaim{{
				ObjectMeta: metav1.ObjectMeta{Name: "data"},
				Spec: corev1.PersistentVolumeClaimSpec{
					AccessModes: []corev1.PersistentVolumeAccessMode{corev1.ReadWriteMany}, StorageClassName: ptr.To("tape"),
					Resources: corev1.VolumeResourceRequirements{Requests: corev1.ResourceList{corev1.ResourceStorage: resource.MustParse("1Gi")}},
				},
			}}}}
			everyJob(func(rj *jobsetv1alpha2.ReplicatedJob) {
				rj.Template.Spec.Template.Spec.Containers[0].VolumeMounts = []corev1.VolumeMount{{Name: "data", MountPath: "/data"}}
			})(js)
		}),
		want: why.UnboundClaim, words: []string{"2 pods", "data-train"},
	},
	"a claim does not exist": {
		seed: makes(podSpecs(func(p *corev1.PodSpec) {
			p.Volumes = []corev1.Volume{{Name: "data", VolumeSource: corev1.VolumeSource{
				PersistentVolumeClaim: &corev1.PersistentVolumeClaimVolumeSource{ClaimName: "lost"},
			}}}
		})),
		want: why.UnboundClaim, words: []string{"lost"},
	},
	"a scheduling gate holds the pods": {
		seed: makes(podSpecs(func(p *corev1.PodSpec) { p.SchedulingGates = []corev1.PodSchedulingGate{{Name: "example.com/license"}} })),
		want: why.SchedulingGate, words: []string{"2 pods", "example.com/license"},
	},
	"nobody schedules the pods": {
		seed: makes(podSpecs(func(p *corev1.PodSpec) { p.SchedulerName = "batch-scheduler" })),
		want: why.SchedulerSilent, words: []string{"scheduler batch-scheduler"},
	},
}

func requesting(p *corev1.PodSpec, name corev1.ResourceName, quantity string) {
	p.Containers[0].Resources.Requests = corev1.ResourceList{name: resource.MustParse(quantity)}
}

// ownNode makes a small node that is named and labeled like the namespace of the test. Other pods keep off it: it takes
// only those that tolerate the taint of its own, as onOwnNode makes them.
func ownNode(taint string) func(*kubectl) {
	return func(k *kubectl) {
		k.Helper()
		taints := "{key: example.com/only-for, value: " + k.namespace + ", effect: NoSchedule}"
		if taint != "" {
			taints += ", " + taint
		}
		k.okIn(fmt.Sprintf(`apiVersion: v1
kind: Node
metadata:
  name: %[1]s
  labels: {example.com/only: %[1]s}
  annotations: {kwok.x-k8s.io/node: fake}
spec: {taints: [%[2]s]}
`, k.namespace, taints), "create", "-f", "-")
		k.Cleanup(func() { k.run("", "delete", "node", k.namespace) })
		k.ok("patch", "node", k.namespace, "--subresource=status", "--type=merge", "-p",
			`{"status":{"allocatable":{"cpu":"2","memory":"8Gi","pods":"20"},"capacity":{"cpu":"2","memory":"8Gi","pods":"20"}}}`)
		k.wait("--for=condition=Ready", "node/"+k.namespace)
	}
}

// onOwnNode makes pods run on the node of the test only.
func onOwnNode(k *kubectl) func(*corev1.PodSpec) {
	return func(p *corev1.PodSpec) {
		p.NodeSelector = map[string]string{"example.com/only": k.namespace}
		p.Tolerations = []corev1.Toleration{{Key: "example.com/only-for", Operator: corev1.TolerationOpExists}}
	}
}

func timestamp() string { return time.Now().UTC().Format(time.RFC3339) }
