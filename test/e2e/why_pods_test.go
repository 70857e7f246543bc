// Copyright The jobset-apiserver Authors.
// SPDX-License-Identifier: Apache-2.0

package e2e

import (
	"fmt"

	corev1 "k8s.io/api/core/v1"
	"k8s.io/utils/ptr"

	"github.com/jobset-apiserver/jobset-apiserver/pkg/kubectl/why"
)

// What keeps pods with a node from being ready. Kubelets are simulated, so what one would say is written into the status.
var podFaults = map[string]fault{
	"an image cannot be pulled": {
		seed: containersSay(`[{"name":"main","image":"registry.example/trainer:v404","imageID":"","ready":false,"restartCount":0,
			"state":{"waiting":{"reason":"ImagePullBackOff","message":"Back-off pulling image"}}}]`),
		want: why.ImagePull, words: []string{"registry.example/trainer:v404", "ImagePullBackOff"},
	},
	"a container crashes again and again": {
		seed: containersSay(`[{"name":"main","image":"i","imageID":"","ready":false,"restartCount":6,
			"state":{"waiting":{"reason":"CrashLoopBackOff","message":"back-off 2m40s restarting failed container"}},
			"lastState":{"terminated":{"exitCode":3,"reason":"Error","message":"no such file: train.bin"}}}]`),
		want: why.CrashLoop, words: []string{"container main", "6 container restarts", "exit code 3", "no such file"},
	},
	"a container is restarted for its memory": {
		seed: containersSay(`[{"name":"main","image":"i","imageID":"","ready":false,"restartCount":2,
			"state":{"waiting":{"reason":"CrashLoopBackOff","message":"back-off 20s"}},
			"lastState":{"terminated":{"exitCode":137,"reason":"OOMKilled"}}}]`),
		want: why.OutOfMemory, words: []string{"container main", "memory", "2 container restarts"},
	},
	"a container cannot be started": {
		seed: containersSay(`[{"name":"main","image":"i","imageID":"","ready":false,"restartCount":0,
			"state":{"waiting":{"reason":"CreateContainerConfigError","message":"secret \"token\" not found"}}}]`),
		want: why.ContainerConfig, words: []string{`secret "token" not found`},
	},
	"a volume cannot be mounted": {
		seed: inTurn(makes(everyJob(neverStarting)), func(k *kubectl) {
			pod := k.podOnNode("train-workers-0")
			k.okIn(fmt.Sprintf(`{apiVersion: v1, kind: Event, metadata: {name: mount}, type: Warning, reason: FailedMount, message: "no such export: /data",
				involvedObject: {apiVersion: v1, kind: Pod, namespace: %s, name: %s, uid: %s}, firstTimestamp: %[4]q, lastTimestamp: %[4]q}`,
				k.namespace, pod, k.field("pod/"+pod, "{.metadata.uid}"), timestamp()), "create", "-f", "-")
		}),
		want: why.VolumeMount, words: []string{"1 pod", "no such export"},
	},
	"pods are not ready for long": {
		seed: makes(everyJob(neverStarting)),
		want: why.PodsNotReady, words: []string{"2 pods have a node but are not ready"},
	},
	"a node is lost": {
		seed: inTurn(ownNode(""), func(k *kubectl) {
			becomesReady(podSpecs(onOwnNode(k)))(k)
			k.ok("annotate", "node", k.namespace, "jobset-apiserver.io/kwok-lost=yes")
			k.ok("patch", "node", k.namespace, "--subresource=status", "--type=merge", "-p", `{"status":{"conditions":[
				{"type":"Ready","status":"Unknown","reason":"NodeStatusUnknown","message":"Kubelet stopped posting node status.","lastTransitionTime":"`+timestamp()+`"}]}}`)
			// The controller manager marks the pods only of nodes that it has seen in good health for a while.
			for _, job := range []string{"train-workers-0", "train-workers-1"} {
				k.podStatus(k.podNamed(job), `{"conditions":[{"type":"PodScheduled","status":"True"},{"type":"Ready","status":"False","reason":"NodeNotReady"}]}`)
			}
		}),
		want: why.NodeLost, words: []string{"is lost, with 2 unfinished pods"},
	},
	"terminating pods block a restart": {
		seed: inTurn(becomesReady(podSpecs(shortGrace), everyJob(neverEnding)), func(k *kubectl) {
			k.pluginOK("restart", "train")
		}),
		want: why.TerminatingPodsBlock, words: []string{"the restart waits for 2 pods", "train-workers-0-", "ago"},
	},
}

// containersSay makes a set whose pods have a node and the container statuses.
func containersSay(statuses string) func(*kubectl) {
	return inTurn(makes(everyJob(neverStarting)), func(k *kubectl) {
		for _, job := range []string{"train-workers-0", "train-workers-1"} {
			k.podStatus(k.podOnNode(job), `{"phase":"Pending","containerStatuses":`+statuses+`}`)
		}
	})
}

func shortGrace(p *corev1.PodSpec) { p.TerminationGracePeriodSeconds = ptr.To(int64(1)) }

// longGrace lets pods end for longer than a test looks at them.
func longGrace(p *corev1.PodSpec) { p.TerminationGracePeriodSeconds = ptr.To(int64(1800)) }

// neverEnding keeps pods that are deleted from ending.
var neverEnding = annotated("jobset-apiserver.io/kwok-stop-after", "30m")
