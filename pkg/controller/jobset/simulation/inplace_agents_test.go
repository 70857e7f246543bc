// Copyright The jobset-apiserver Authors.
// SPDX-License-Identifier: Apache-2.0

package simulation

import (
	"maps"
	"slices"
	"strconv"
	"unique"

	batchv1 "k8s.io/api/batch/v1"
	corev1 "k8s.io/api/core/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/types"
	"k8s.io/utils/ptr"

	jobsetv1alpha2 "github.com/jobset-apiserver/jobset-apiserver/pkg/apis/jobset/v1alpha2"
	"github.com/jobset-apiserver/jobset-apiserver/pkg/controller/jobset/inplace"
	"github.com/jobset-apiserver/jobset-apiserver/test/simulation"
)

// This file holds the pods of sets that restart in place: agents that follow the protocol
// (docs/reference/jobset.md#in-place-restart), containers that fail, and kubelets that restart them.

const (
	// exitOfWorker and exitOfAgent are the exit codes of a container that fails by itself, and of an agent that restarts its pod.
	exitOfWorker, exitOfAgent = 137, 1
)

// worldAgent is a run of an agent.
type worldAgent struct {
	// sets is the watch of the agent.
	sets simulation.Informer[*jobsetv1alpha2.JobSet]
	// attempt is the one that the agent is in; nil until it has seen the set. said means that it was written to the pod.
	attempt *int32
	said    bool
	// lifted means that the worker runs.
	lifted bool
}

// restartInPlace makes a random set one whose pods restart in place.
func (w *world) restartInPlace(js *jobsetv1alpha2.JobSet) {
	js.Annotations = nil
	for i := range js.Spec.ReplicatedJobs {
		rj := &js.Spec.ReplicatedJobs[i]
		rj.Template.Annotations, rj.DependsOn = nil, nil
		rj.Template.Spec.PodReplacementPolicy = ptr.To(batchv1.Failed)
	}
	js.Spec.StartupPolicy.StartupPolicyOrder = jobsetv1alpha2.AnyOrder
	js.Spec.FailurePolicy = &jobsetv1alpha2.FailurePolicy{
		MaxRestarts: simulation.OneOf[int32](w.Dice, 0, 1, 3, 1000, 1000), RestartStrategy: jobsetv1alpha2.RestartStrategyInPlaceRestart,
	}
}

// runsInPlace reports whether the containers of a pod run.
func (w *world) runsInPlace(pod *corev1.Pod) bool {
	node, found := w.nodes.Get(pod.Spec.NodeName)
	return w.inPlace && found && nodeReady(node) && pod.Status.Phase == corev1.PodRunning && pod.DeletionTimestamp == nil &&
		pod.Labels[jobsetv1alpha2.JobSetNameKey] != ""
}

// liveAgents gives all agents a turn. It reports whether anything changed.
func (w *world) liveAgents() (busy bool) {
	if !w.inPlace {
		return false
	}
	for _, pod := range slices.Clone(w.pods.Objects) {
		if current, found := w.pods.Get(pod.Name); found {
			busy = w.liveAgent(current) || busy
		}
	}
	return busy
}

func (w *world) liveSomeAgents() {
	for range 6 {
		if len(w.pods.Objects) > 0 {
			w.liveAgent(simulation.OneOf(w.Dice, w.pods.Objects...))
		}
	}
}

// liveAgent takes the agent of a pod one step further. It reports whether anything changed.
func (w *world) liveAgent(pod *corev1.Pod) bool {
	if !w.runsInPlace(pod) {
		return false
	}
	a := w.agents[pod.UID]
	switch {
	case a == nil || a.sets.From == nil:
		w.startAgent(pod, a)
		return true
	case a.attempt != nil && !a.said:
		w.sayAttempt(pod, a)
		return true
	case a.sets.Behind() > 0:
		a.sets.Advance()
		return true
	}
	js, found := a.sets.Get(pod.Labels[jobsetv1alpha2.JobSetNameKey])
	switch {
	case !found:
		return false
	case a.attempt == nil:
		a.attempt = ptr.To(ptr.Deref(js.Status.CurrentInPlaceRestartAttempt, -1) + 1)
	case js.Status.PreviousInPlaceRestartAttempt != nil && *a.attempt <= *js.Status.PreviousInPlaceRestartAttempt:
		w.restartContainers(pod, exitOfAgent)
	case !a.lifted && w.mayLift(a, js):
		a.lifted = true
		w.rules.lifted(pod, js, *a.attempt)
	default:
		return false
	}
	return true
}

// mayLift reports whether an agent lets its worker run.
func (w *world) mayLift(a *worldAgent, js *jobsetv1alpha2.JobSet) bool {
	return w.hasty || ptr.Equal(js.Status.CurrentInPlaceRestartAttempt, a.attempt)
}

// startAgent starts the agent of a pod. What it lists first is the present state of the set.
func (w *world) startAgent(pod *corev1.Pod, before *worldAgent) {
	name := pod.Labels[jobsetv1alpha2.JobSetNameKey]
	a := &worldAgent{sets: simulation.Informer[*jobsetv1alpha2.JobSet]{
		From: &w.sets, Selects: func(js *jobsetv1alpha2.JobSet) bool { return js.Name == name }, Handle: func(*jobsetv1alpha2.JobSet, bool) {},
	}}
	a.sets.List()
	if w.stale && before != nil {
		a.sets.Objects = before.sets.Objects
	}
	w.agents[pod.UID] = a
}

// sayAttempt writes the attempt of an agent to its pod.
func (w *world) sayAttempt(pod *corev1.Pod, a *worldAgent) {
	lost := w.Dice.Percent(w.faults.unwritten)
	if lost && w.Dice.Percent(50) {
		return // refused
	}
	a.said = !lost
	w.Note("pod %s says %d", pod.Name, *a.attempt)
	w.changePod(pod, func(p *corev1.Pod) {
		p.Annotations = maps.Clone(p.Annotations)
		if p.Annotations == nil {
			p.Annotations = map[string]string{}
		}
		p.Annotations[jobsetv1alpha2.InPlaceRestartAttemptKey] = strconv.Itoa(int(*a.attempt))
	})
}

// restartContainers does what a kubelet does when a container has failed.
func (w *world) restartContainers(pod *corev1.Pod, code int32) {
	w.Note("containers of pod %s restart after exit code %d", pod.Name, code)
	w.Seen["restarts of containers"]++
	w.changePod(pod, func(p *corev1.Pod) {
		var restarts int32
		if len(p.Status.ContainerStatuses) > 0 {
			restarts = p.Status.ContainerStatuses[0].RestartCount
		}
		p.Status.ContainerStatuses = []corev1.ContainerStatus{{Name: "main", RestartCount: restarts + 1, LastTerminationState: corev1.ContainerState{
			Terminated: &corev1.ContainerStateTerminated{ExitCode: code, Reason: "Error", FinishedAt: metav1.NewTime(w.Stored().Time)},
		}}}
		if w.unsaying {
			p.Annotations = nil
		}
	})
	// The next step starts the agent again. It may know what this one has seen.
	if a := w.agents[pod.UID]; a != nil {
		w.agents[pod.UID] = &worldAgent{sets: simulation.Informer[*jobsetv1alpha2.JobSet]{Objects: a.sets.Objects}}
	}
}

// failSomeContainer lets a container fail, be it a worker or an agent.
func (w *world) failSomeContainer() {
	pod := simulation.OneOf(w.Dice, append([]*corev1.Pod{nil}, w.pods.Objects...)...)
	if pod != nil && w.runsInPlace(pod) && w.agents[pod.UID] != nil {
		w.restartContainers(pod, exitOfWorker)
	}
}

// inPlaceTogether reports whether all pods of a set train in the same attempt: a training ends together.
func (w *world) inPlaceTogether(js *jobsetv1alpha2.JobSet) bool {
	attempts, succeeded := map[int32]int{}, 0
	for _, job := range w.ownJobs(js) {
		if hasCondition(job, batchv1.JobComplete) {
			succeeded += int(job.Status.Succeeded) // pods may be gone with their node
			continue
		}
		for _, pod := range w.podsOf(job) {
			a := w.agents[pod.UID]
			switch {
			case pod.Status.Phase == corev1.PodSucceeded:
				succeeded++
			case a == nil || !a.lifted || !w.runsInPlace(pod):
				return false
			default:
				attempts[*a.attempt]++
			}
		}
	}
	for _, n := range attempts {
		return len(attempts) == 1 && n+succeeded == podsOfSet(js)
	}
	return false
}

// countInPlace does what handlers of the real controller do.
func (p *worldProcess) countInPlace(pod *corev1.Pod, gone bool) {
	if !p.inPlace || p.uncounted != nil && p.uncounted(pod, gone) {
		return
	}
	space := unique.Make(pod.Namespace)
	if gone {
		p.heard(p.tally.Remove(space, pod.Name), pod)
		return
	}
	counts := inplace.Pod{Namespace: space, Name: pod.Name, Job: func() types.UID { return jobUID(pod) }, Failed: pod.Status.Phase == corev1.PodFailed, Succeeded: pod.Status.Phase == corev1.PodSucceeded}
	if attempt, found := pod.Annotations[jobsetv1alpha2.InPlaceRestartAttemptKey]; found {
		counts.Attempt = inplace.NewAttempt(attempt)
	}
	for _, c := range pod.Status.ContainerStatuses {
		counts.ContainerRestarts = max(counts.ContainerRestarts, c.RestartCount)
	}
	p.heard(p.tally.Show(counts), pod)
}

func (p *worldProcess) heard(changed bool, pod *corev1.Pod) {
	if changed && !p.unheard {
		p.enqueue(pod.Labels[jobsetv1alpha2.JobSetNameKey])
	}
}

func jobUID(pod *corev1.Pod) types.UID {
	if len(pod.OwnerReferences) == 0 {
		return ""
	}
	return pod.OwnerReferences[0].UID
}
