// Copyright The jobset-apiserver Authors.
// SPDX-License-Identifier: Apache-2.0

package simulation

import (
	"slices"
	"time"

	corev1 "k8s.io/api/core/v1"
	"k8s.io/apimachinery/pkg/api/resource"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/utils/ptr"

	jobsetv1alpha2 "github.com/jobset-apiserver/jobset-apiserver/pkg/apis/jobset/v1alpha2"
	"github.com/jobset-apiserver/jobset-apiserver/test/simulation"
)

// worldFaults is how likely what is in one history. Every history does without some kinds of trouble, so that others show.
type worldFaults struct {
	// These are weights of what happens.
	sync, caches, jobs, pods, schedule, users, nodes, others, time, restarts, late, ends int
	// failing is the percentage of the ends of Jobs that are failures, and unread that of questions about a failure without an answer.
	failing, unread int
	// containers and agents are the weights of containers that fail and of what agents do, and unwritten is the percentage
	// of the writes of agents that fail or whose answer is lost; only where sets restart in place.
	containers, agents, unwritten int
}

// randomFaults draws what trouble there is in the history.
func (w *world) randomFaults() {
	d := w.Dice
	w.Interludes = simulation.OneOf(d, 0, 10, 30)
	w.faults = worldFaults{
		sync: simulation.OneOf(d, 12, 20), caches: simulation.OneOf(d, 10, 20, 40), jobs: simulation.OneOf(d, 10, 20), pods: simulation.OneOf(d, 6, 12),
		schedule: simulation.OneOf(d, 4, 8), users: simulation.OneOf(d, 1, 3, 5), nodes: simulation.OneOf(d, 0, 1, 3), others: simulation.OneOf(d, 0, 1, 4), time: simulation.OneOf(d, 1, 3, 5),
		restarts: simulation.OneOf(d, 0, 0, 1, 2), late: 3, ends: simulation.OneOf(d, 0, 1, 3), failing: simulation.OneOf(d, 0, 30, 80), unread: simulation.OneOf(d, 0, 20),
	}
	w.RandomOutcomes(40)
}

// happenings returns what may happen, the doings of the controller last.
func (w *world) happenings() []simulation.Happening {
	f := w.faults
	return []simulation.Happening{
		{Weight: f.jobs, Do: w.liveSomeJob},
		{Weight: f.pods, Do: w.liveSomePods},
		{Weight: f.schedule, Do: func() { w.schedule(); w.autoscale() }},
		{Weight: f.caches, Do: func() { w.ShowSome(w.process.caches()) }},
		{Weight: f.users, Do: w.userActs},
		{Weight: f.nodes, Do: w.disturbNode},
		{Weight: f.others, Do: w.disturbOthers},
		{Weight: f.ends, Do: w.endSome},
		{Weight: f.time, Do: w.passTime},
		{Weight: f.late, Do: func() { w.DeliverLate() }},
		{Weight: f.containers, Do: w.failSomeContainer},
		{Weight: f.agents, Do: func() { w.liveSomeAgents() }},
		{Weight: f.restarts, Do: func() { w.process.sender.Dead = true }},
		{Weight: f.sync, Do: func() { w.syncSome() }},
	}
}

// step lets something happen.
func (w *world) step() { w.Happen(w.happenings()) }

// interlude lets something happen while the controller is busy.
func (w *world) interlude() {
	all := w.happenings()
	w.Happen(all[:len(all)-controllers])
}

// passTime lets more time pass than Jobs wait for domains.
func (w *world) passTime() {
	w.Pass(simulation.OneOf(w.Dice, time.Second, 20*time.Second, time.Minute, 3*time.Minute, 6*time.Minute, 12*time.Minute))
	w.Note("time passes")
}

func (w *world) liveSomeJob() {
	for range 3 {
		if len(w.jobs.Objects) > 0 {
			w.liveJob(simulation.OneOf(w.Dice, w.jobs.Objects...))
		}
	}
}

func (w *world) liveSomePods() {
	for range 4 {
		if len(w.pods.Objects) > 0 {
			w.livePod(simulation.OneOf(w.Dice, w.pods.Objects...))
		}
	}
}

// endSome lets Jobs end.
func (w *world) endSome() {
	if !w.Dice.Percent(w.faults.failing) {
		w.succeedSome(60)
		return
	}
	for _, pod := range slices.Clone(w.pods.Objects) {
		job := w.jobOf(pod)
		if pod.Spec.NodeName != "" && job != nil && !jobIsSuspended(job) && w.Dice.Percent(40) {
			w.failJob(job, simulation.OneOf(w.Dice, "", pod.Spec.NodeName))
			return
		}
	}
}

// userActs is what users do.
func (w *world) userActs() {
	if len(w.sets.Objects) < maxSets && w.Dice.Percent(40) {
		w.addSet()
		return
	}
	if len(w.sets.Objects) == 0 {
		return
	}
	js := simulation.OneOf(w.Dice, w.sets.Objects...)
	switch n := w.Dice.IntN(100); {
	case n < 10 || finished(&js.Status):
		w.Note("user deletes set %s", js.Name)
		w.sets.Remove(js.Name)
	default:
		w.suspend(js, !isSuspended(js))
	}
}

func (w *world) suspend(js *jobsetv1alpha2.JobSet, suspend bool) {
	w.Note("user sets suspend of %s to %t", js.Name, suspend)
	w.changeSet(js, func(js *jobsetv1alpha2.JobSet) { js.Spec.Suspend = &suspend })
}

// disturbNode has a node be lost, with what runs there, or only seem to be, or takes pods away from it, or brings it back.
func (w *world) disturbNode() {
	node := simulation.OneOf(w.Dice, w.nodes.Objects...)
	switch n := w.Dice.IntN(100); {
	case node.Spec.Unschedulable:
		w.changeNode(node, func(n *corev1.Node) { n.Spec.Unschedulable = false })
	case !nodeReady(node):
		w.setReady(node, corev1.ConditionTrue)
	case n < 50:
		w.setReady(node, corev1.ConditionFalse)
		w.loseAll(node)
	case n < 70:
		w.setReady(node, corev1.ConditionFalse)
	case n < 85:
		w.Note("somebody cordons node %s", node.Name)
		w.changeNode(node, func(n *corev1.Node) { n.Spec.Unschedulable = true })
	case len(w.nodes.Objects) > 2 && w.dispensable(node):
		w.Note("node %s goes", node.Name)
		w.loseAll(node)
		w.gone = append(w.gone, node)
		w.nodes.Remove(node.Name)
	}
}

// dispensable reports whether all sets could run without a node. One for which no domains are large enough gets the
// largest, and its Jobs that have run do not leave them for others of the set when the node is back.
func (w *world) dispensable(node *corev1.Node) bool {
	kept := w.nodes.Objects
	defer func() { w.nodes.Objects = kept }()
	w.nodes.Objects = slices.DeleteFunc(slices.Clone(kept), func(other *corev1.Node) bool { return other == node })
	return !slices.ContainsFunc(w.sets.Objects, func(js *jobsetv1alpha2.JobSet) bool { return !finished(&js.Status) && !w.couldRun(js) })
}

func (w *world) loseAll(node *corev1.Node) {
	for _, pod := range slices.Clone(w.pods.Objects) {
		if current, found := w.pods.Get(pod.Name); found && pod.Spec.NodeName == node.Name && current.DeletionTimestamp == nil {
			w.losePod(current, node.Name)
		}
	}
}

// disturbOthers has pods that belong to no set come and go.
func (w *world) disturbOthers() {
	if w.Dice.Percent(45) {
		w.removeOthers(50)
		return
	}
	node := simulation.OneOf(w.Dice, w.nodes.Objects...)
	uid := w.NewUID("other")
	pod := &corev1.Pod{ObjectMeta: metav1.ObjectMeta{Name: string(uid), Namespace: "other", UID: uid}}
	pod.Spec.NodeName, pod.Spec.Priority = node.Name, ptr.To(simulation.OneOf[int32](w.Dice, 0, 0, -5, 10))
	pod.Spec.Containers = []corev1.Container{{Resources: corev1.ResourceRequirements{
		Requests: corev1.ResourceList{corev1.ResourceCPU: *resource.NewQuantity(int64(1+w.Dice.IntN(coresOfNode)), resource.DecimalSI)},
	}}}
	pod.Status.Phase = corev1.PodRunning
	if w.free(node, pod, nobodyLeaves) >= cpuOf(pod) {
		w.Note("a pod of nobody takes %d cpu of %s", cpuOf(pod), node.Name)
		w.pods.Put(pod)
	}
}

func (w *world) removeOthers(likely int) {
	for _, pod := range slices.Clone(w.pods.Objects) {
		if len(pod.OwnerReferences) == 0 && w.Dice.Percent(likely) {
			w.pods.Remove(pod.Name)
		}
	}
}
