// Copyright The jobset-apiserver Authors.
// SPDX-License-Identifier: Apache-2.0

package simulation

import (
	"fmt"
	"slices"

	batchv1 "k8s.io/api/batch/v1"
	corev1 "k8s.io/api/core/v1"
	"k8s.io/apimachinery/pkg/api/resource"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/utils/ptr"

	jobsetv1alpha2 "github.com/jobset-apiserver/jobset-apiserver/pkg/apis/jobset/v1alpha2"
	"github.com/jobset-apiserver/jobset-apiserver/pkg/apis/jobset/v1alpha2/helper"
	"github.com/jobset-apiserver/jobset-apiserver/test/simulation"
)

// addSet creates a set that could run if it were alone.
func (w *world) addSet() {
	js := w.randomWorldSet()
	if w.inPlace {
		w.restartInPlace(js)
	}
	if !w.couldRun(js) {
		return
	}
	js.UID, js.CreationTimestamp, js.Generation = w.NewUID("set"), w.Stored(), 1
	w.sets.Put(js)
	w.Note("user creates %s", describeWorldSpec(js))
}

func (w *world) randomWorldSet() *jobsetv1alpha2.JobSet {
	d := w.Dice
	js := &jobsetv1alpha2.JobSet{ObjectMeta: metav1.ObjectMeta{Name: fmt.Sprintf("s%d", w.named), Namespace: namespace, Annotations: map[string]string{}}}
	w.named++
	template := corev1.PodTemplateSpec{}
	template.Spec.PriorityClassName = simulation.OneOf(d, "", "", "", "high", "low")
	if d.Percent(20) && !w.elastic() {
		template.Spec.PreemptionPolicy = ptr.To(corev1.PreemptNever)
	}
	template.Spec.Containers = []corev1.Container{{Name: "main", Resources: corev1.ResourceRequirements{
		Requests: corev1.ResourceList{corev1.ResourceCPU: *resource.NewQuantity(int64(simulation.OneOf(d, 1, 2, 4)), resource.DecimalSI)},
	}}}
	topology := simulation.OneOf(d, rackKey, rackKey, rackKey, rackKey, blockKey)
	scattered := d.Percent(20) // only one replicatedJob asks
	plain := d.Percent(15)
	for i := range 1 + d.IntN(2) {
		rj := jobsetv1alpha2.ReplicatedJob{Name: string(rune('a' + i)), Replicas: ptr.To(simulation.OneOf[int32](d, 1, 1, 2, 2, 3)), GroupName: ptr.To("default")}
		pods := simulation.OneOf[int32](d, 1, 2, 2, 3, 4)
		rj.Template.Spec = batchv1.JobSpec{
			CompletionMode: ptr.To(batchv1.IndexedCompletion), Parallelism: &pods, Completions: &pods, Template: *template.DeepCopy(),
		}
		if scattered && !plain && i == 0 {
			rj.Template.Annotations = map[string]string{jobsetv1alpha2.ExclusiveKey: topology}
		}
		js.Spec.ReplicatedJobs = append(js.Spec.ReplicatedJobs, rj)
	}
	if !scattered && !plain {
		js.Annotations[jobsetv1alpha2.ExclusiveKey] = topology
	}
	w.randomPolicies(js)
	return js
}

func (w *world) randomPolicies(js *jobsetv1alpha2.JobSet) {
	d := w.Dice
	if d.Percent(25) {
		js.Annotations[jobsetv1alpha2.PlacementLevelsKey] = blockKey + "," + rackKey
	}
	if d.Percent(40) {
		js.Annotations[jobsetv1alpha2.AvoidFailedNodesKey] = simulation.OneOf(d, "1h", "24h", "720h")
	}
	js.Spec.Network = &jobsetv1alpha2.Network{EnableDNSHostnames: ptr.To(false)}
	js.Spec.SuccessPolicy = &jobsetv1alpha2.SuccessPolicy{Operator: jobsetv1alpha2.OperatorAll}
	js.Spec.StartupPolicy = &jobsetv1alpha2.StartupPolicy{StartupPolicyOrder: simulation.OneOf(d, jobsetv1alpha2.AnyOrder, jobsetv1alpha2.AnyOrder, jobsetv1alpha2.InOrder)}
	if len(js.Spec.ReplicatedJobs) > 1 && js.Spec.StartupPolicy.StartupPolicyOrder == jobsetv1alpha2.AnyOrder && d.Percent(50) {
		js.Spec.ReplicatedJobs[1].DependsOn = []jobsetv1alpha2.DependsOn{{
			Name: "a", Status: simulation.OneOf(d, jobsetv1alpha2.DependencyReady, jobsetv1alpha2.DependencyComplete),
		}}
	}
	if d.Percent(90) {
		js.Spec.FailurePolicy = &jobsetv1alpha2.FailurePolicy{
			MaxRestarts: 100, RestartStrategy: simulation.OneOf(d, jobsetv1alpha2.RestartStrategyRecreate, jobsetv1alpha2.RestartStrategyBlockingRecreate),
		}
		if d.Percent(50) {
			js.Spec.FailurePolicy.Rules = []jobsetv1alpha2.FailurePolicyRule{{Name: "r", Action: simulation.OneOf(d, jobsetv1alpha2.RestartJob, jobsetv1alpha2.RestartJobAndIgnoreMaxRestarts)}}
		}
	}
	if d.Percent(20) {
		js.Spec.Suspend = ptr.To(true)
	}
}

// couldRun reports whether there are domains for all Jobs of a set if nothing else runs, and half of the nodes for what needs none.
func (w *world) couldRun(js *jobsetv1alpha2.JobSet) bool {
	cpu := cpuOf(&corev1.Pod{Spec: js.Spec.ReplicatedJobs[0].Template.Spec.Template.Spec})
	for i := range js.Spec.ReplicatedJobs {
		at := &js.Spec.ReplicatedJobs[i]
		topology := topologyOf(js, at.Name)
		if topology == "" {
			continue
		}
		room := map[string]int64{}
		for _, node := range w.nodes.Objects {
			room[node.Labels[topology]] += coresOfNode / cpu
		}
		needed, there := int32(0), int32(0)
		for j := range js.Spec.ReplicatedJobs {
			if rj := &js.Spec.ReplicatedJobs[j]; topologyOf(js, rj.Name) != "" && *rj.Template.Spec.Parallelism >= *at.Template.Spec.Parallelism {
				needed += helper.Replicas(rj)
			}
		}
		for _, n := range room {
			there += one(n >= int64(*at.Template.Spec.Parallelism))
		}
		if there < needed {
			return false
		}
	}
	return w.plainPods(js)*cpu <= int64(len(w.nodes.Objects)*coresOfNode)/2
}

// plainPods returns the number of pods of a set that may run anywhere.
func (w *world) plainPods(js *jobsetv1alpha2.JobSet) (n int64) {
	for i := range js.Spec.ReplicatedJobs {
		if rj := &js.Spec.ReplicatedJobs[i]; topologyOf(js, rj.Name) == "" {
			n += int64(*rj.Replicas * *rj.Template.Spec.Parallelism)
		}
	}
	return n
}

// place2 is where a Job is.
type place2 struct {
	jobsetv1alpha2.JobPlacement
	topology, replicatedJob string
	index                   int
	priority                int32
}

// eachPlace calls f for where each Job of a set is that has a domain.
func eachPlace(at *jobsetv1alpha2.Placement, f func(place2)) {
	if at == nil {
		return
	}
	for _, rj := range at.ReplicatedJobs {
		for i, job := range rj.Jobs {
			if job.Domain != "" {
				f(place2{JobPlacement: job, topology: rj.TopologyKey, replicatedJob: rj.Name, index: i, priority: rj.Priority})
			}
		}
	}
}

func describeWorldSpec(js *jobsetv1alpha2.JobSet) string {
	out := fmt.Sprintf("%s %v suspend %t %s", js.Name, js.Annotations, isSuspended(js), js.Spec.StartupPolicy.StartupPolicyOrder)
	for i := range js.Spec.ReplicatedJobs {
		rj := &js.Spec.ReplicatedJobs[i]
		pod := &rj.Template.Spec.Template.Spec
		out += fmt.Sprintf(", %s: %d x %d pods of %d cpu, priority %q, %s, %v %v", rj.Name, *rj.Replicas, *rj.Template.Spec.Parallelism,
			cpuOf(&corev1.Pod{Spec: *pod}), pod.PriorityClassName, ptr.Deref(pod.PreemptionPolicy, ""), rj.Template.Annotations, rj.DependsOn)
	}
	if policy := js.Spec.FailurePolicy; policy != nil {
		out += fmt.Sprintf(", %s %v", policy.RestartStrategy, slices.Collect(func(yield func(jobsetv1alpha2.FailurePolicyAction) bool) {
			for _, rule := range policy.Rules {
				if !yield(rule.Action) {
					return
				}
			}
		}))
	}
	return out
}
