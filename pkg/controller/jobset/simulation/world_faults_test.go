// Copyright The jobset-apiserver Authors.
// SPDX-License-Identifier: Apache-2.0

package simulation

import (
	"fmt"
	"slices"
	"time"

	corev1 "k8s.io/api/core/v1"
	"k8s.io/apimachinery/pkg/api/resource"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/utils/ptr"

	jobsetv1alpha2 "github.com/jobset-apiserver/jobset-apiserver/pkg/apis/jobset/v1alpha2"
	sim "github.com/jobset-apiserver/jobset-apiserver/test/simulation"
)

// worldFaults is how likely what is in one history. Every history does without some kinds of trouble, so that others show.
type worldFaults struct {
	// outcomes are how often of a thousand requests end otherwise than carried out.
	outcomes [sim.Outcomes]int
	// interludes is the percentage of requests before which something else happens.
	interludes int
	// The rest are weights of what happens.
	sync, caches, jobs, pods, schedule, users, nodes, others, time, restarts, late, ends int
	// failing is the percentage of the ends of Jobs that are failures, and unread that of questions about a failure without an answer.
	failing, unread int
	// containers and agents are the weights of containers that fail and of what agents do, and unwritten is the percentage
	// of the writes of agents that fail or whose answer is lost; only where sets restart in place.
	containers, agents, unwritten int
}

func randomWorldFaults(d dice) worldFaults {
	f := worldFaults{
		interludes: oneOf(d, 0, 10, 30), sync: oneOf(d, 12, 20), caches: oneOf(d, 10, 20, 40), jobs: oneOf(d, 10, 20), pods: oneOf(d, 6, 12),
		schedule: oneOf(d, 4, 8), users: oneOf(d, 1, 3, 5), nodes: oneOf(d, 0, 1, 3), others: oneOf(d, 0, 1, 4), time: oneOf(d, 1, 3, 5),
		restarts: oneOf(d, 0, 0, 1, 2), late: 3, ends: oneOf(d, 0, 1, 3), failing: oneOf(d, 0, 30, 80), unread: oneOf(d, 0, 20),
	}
	if d.percent(40) {
		return f
	}
	for i := range f.outcomes {
		if sim.Outcome(i) != sim.CarriedOut && d.percent(40) {
			f.outcomes[i] = oneOf(d, 10, 50, 150)
		}
	}
	return f
}

// happening is something that happens to a world, as often as its weight says.
type happening struct {
	weight int
	do     func(*world)
}

// happenings returns what may happen, the doings of the controller last.
func (f worldFaults) happenings() []happening {
	return []happening{
		{f.jobs, (*world).liveSomeJob},
		{f.pods, (*world).liveSomePods},
		{f.schedule, func(w *world) { w.schedule(); w.autoscale() }},
		{f.caches, (*world).showSome},
		{f.users, (*world).userActs},
		{f.nodes, (*world).disturbNode},
		{f.others, (*world).disturbOthers},
		{f.ends, (*world).endSome},
		{f.time, (*world).passTime},
		{f.late, (*world).deliverLate},
		{f.containers, (*world).failSomeContainer},
		{f.agents, (*world).liveSomeAgents},
		{f.restarts, func(w *world) { w.process.sender.Dead = true }},
		{f.sync, func(w *world) { w.syncSome() }},
	}
}

// step lets something happen.
func (w *world) step() { w.happen(w.faults.happenings()) }

// interlude lets something happen while the controller is busy.
func (w *world) interlude() {
	if w.dice.percent(w.faults.interludes) {
		all := w.faults.happenings()
		w.happen(all[:len(all)-controllers])
	}
}

func (w *world) happen(all []happening) {
	total := 0
	for _, h := range all {
		total += h.weight
	}
	n := w.dice.IntN(total)
	for _, h := range all {
		if n -= h.weight; n < 0 {
			w.now = w.now.Add(time.Duration(w.dice.IntN(800)) * time.Millisecond)
			h.do(w)
			return
		}
	}
}

// draw draws what becomes of a request.
func (p *worldProcess) draw() sim.Outcome {
	n := p.dice.IntN(1000)
	for i, share := range p.faults.outcomes {
		if n -= share; n < 0 {
			p.note("  next request: %s", sim.Outcome(i))
			p.seen["requests in trouble"]++
			return sim.Outcome(i)
		}
	}
	return sim.CarriedOut
}

func (w *world) passTime() {
	w.now = w.now.Add(oneOf(w.dice, time.Second, 20*time.Second, time.Minute, 3*time.Minute, 6*time.Minute, 12*time.Minute))
	w.note("time passes")
}

func (w *world) deliverLate() {
	if len(w.late) > 0 {
		w.note("a late request arrives")
		request := w.late[0]
		w.late = w.late[1:]
		request()
	}
}

func (w *world) showSome() {
	c := oneOf(w.dice, w.process.caches()...)
	if behind := c.Behind(); behind > 0 {
		for range 1 + w.dice.IntN(behind) {
			c.Advance()
		}
	}
}

func (w *world) liveSomeJob() {
	for range 3 {
		if len(w.jobs.Objects) > 0 {
			w.liveJob(oneOf(w.dice, w.jobs.Objects...))
		}
	}
}

func (w *world) liveSomePods() {
	for range 4 {
		if len(w.pods.Objects) > 0 {
			w.livePod(oneOf(w.dice, w.pods.Objects...))
		}
	}
}

// endSome lets Jobs end.
func (w *world) endSome() {
	if !w.dice.percent(w.faults.failing) {
		w.succeedSome(60)
		return
	}
	for _, pod := range slices.Clone(w.pods.Objects) {
		job := w.jobOf(pod)
		if pod.Spec.NodeName != "" && job != nil && !jobIsSuspended(job) && w.dice.percent(40) {
			w.failJob(job, oneOf(w.dice, "", pod.Spec.NodeName))
			return
		}
	}
}

// userActs is what users do.
func (w *world) userActs() {
	if len(w.sets.Objects) < maxSets && w.dice.percent(40) {
		w.addSet()
		return
	}
	if len(w.sets.Objects) == 0 {
		return
	}
	js := oneOf(w.dice, w.sets.Objects...)
	switch n := w.dice.IntN(100); {
	case n < 10 || finished(&js.Status):
		w.note("user deletes set %s", js.Name)
		w.sets.Remove(js.Name)
	default:
		w.suspend(js, !isSuspended(js))
	}
}

func (w *world) suspend(js *jobsetv1alpha2.JobSet, suspend bool) {
	w.note("user sets suspend of %s to %t", js.Name, suspend)
	w.changeSet(js, func(js *jobsetv1alpha2.JobSet) { js.Spec.Suspend = &suspend })
}

// disturbNode has a node be lost, with what runs there, or only seem to be, or takes pods away from it, or brings it back.
func (w *world) disturbNode() {
	node := oneOf(w.dice, w.nodes.Objects...)
	switch n := w.dice.IntN(100); {
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
		w.note("somebody cordons node %s", node.Name)
		w.changeNode(node, func(n *corev1.Node) { n.Spec.Unschedulable = true })
	case len(w.nodes.Objects) > 2 && w.dispensable(node):
		w.note("node %s goes", node.Name)
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
	if w.dice.percent(45) {
		w.removeOthers(50)
		return
	}
	node := oneOf(w.dice, w.nodes.Objects...)
	pod := &corev1.Pod{ObjectMeta: metav1.ObjectMeta{Name: fmt.Sprintf("other-%d", w.uids), Namespace: "other", UID: w.newUID("other")}}
	pod.Spec.NodeName, pod.Spec.Priority = node.Name, ptr.To(oneOf[int32](w.dice, 0, 0, -5, 10))
	pod.Spec.Containers = []corev1.Container{{Resources: corev1.ResourceRequirements{
		Requests: corev1.ResourceList{corev1.ResourceCPU: *resource.NewQuantity(int64(1+w.dice.IntN(coresOfNode)), resource.DecimalSI)},
	}}}
	pod.Status.Phase = corev1.PodRunning
	if w.free(node, pod, nobodyLeaves) >= cpuOf(pod) {
		w.note("a pod of nobody takes %d cpu of %s", cpuOf(pod), node.Name)
		w.pods.Put(pod)
	}
}

func (w *world) removeOthers(likely int) {
	for _, pod := range slices.Clone(w.pods.Objects) {
		if len(pod.OwnerReferences) == 0 && w.dice.percent(likely) {
			w.pods.Remove(pod.Name)
		}
	}
}
