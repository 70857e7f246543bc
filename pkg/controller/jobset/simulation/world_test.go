// Copyright The jobset-apiserver Authors.
// SPDX-License-Identifier: Apache-2.0

package simulation

import (
	"fmt"
	"strconv"
	"time"

	batchv1 "k8s.io/api/batch/v1"
	corev1 "k8s.io/api/core/v1"
	"k8s.io/apimachinery/pkg/api/resource"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/types"

	"github.com/jobset-apiserver/jobset-apiserver/pkg/apis/jobset/gates"
	jobsetv1alpha2 "github.com/jobset-apiserver/jobset-apiserver/pkg/apis/jobset/v1alpha2"
	"github.com/jobset-apiserver/jobset-apiserver/pkg/controller/jobset/plan"
	"github.com/jobset-apiserver/jobset-apiserver/pkg/controller/placement"
	"github.com/jobset-apiserver/jobset-apiserver/test/simulation"
)

// A world is a small cluster with a few sets, most of which ask for exclusive placement. Its nodes come and go, a
// simulated scheduler binds pods by what their templates say, and in some worlds an autoscaler adds nodes. The Syncer
// and the Placer are the real ones.

const (
	rackKey  = "example.com/rack"
	blockKey = "example.com/block"
	// coresOfNode are the processors of a node, and maxNodesOfRack is how many nodes the autoscaler gives a rack.
	coresOfNode    = 4
	maxNodesOfRack = 5
	// maxSets is the number of sets in a world.
	maxSets = 6
)

// priorities are the values of PriorityClasses.
var priorities = map[string]int32{"": 0, "high": 10, "low": -5}

// world is everything in one history.
type world struct {
	worldMutant
	*simulation.World
	faults worldFaults
	gates  gates.Gates
	full   placement.WhenFull

	sets  simulation.Store[*jobsetv1alpha2.JobSet]
	jobs  simulation.Store[*batchv1.Job]
	pods  simulation.Store[*corev1.Pod]
	nodes simulation.Store[*corev1.Node]
	// lostOn are the nodes on which Jobs failed, by UID.
	lostOn map[types.UID]string
	// agents are the agents of pods that restart in place, by the UID of the pod.
	agents map[types.UID]*worldAgent
	// gone are the nodes that have gone.
	gone []*corev1.Node
	// named and racks count what was created.
	named, racks int

	process *worldProcess
	rules   *worldRules
	// standby is the cache of pods of a controller that waits to take over.
	standby *simulation.Informer[*corev1.Pod]
}

// newWorld returns one in which a controller starts.
func newWorld(seed uint64, m worldMutant, trace *[]string) *world {
	const stream = 0x776f726c64
	if m.decide == nil {
		m.decide = func(_ *worldProcess, o plan.Observed) plan.Plan { return plan.Decide(o) }
	}
	d := simulation.NewDice(seed, stream)
	w := &world{worldMutant: m, World: simulation.NewWorld(d, trace), lostOn: map[types.UID]string{}, agents: map[types.UID]*worldAgent{}}
	w.Pause = 800 * time.Millisecond
	w.randomFaults()
	w.gates = gates.Gates{ExclusivePlacement: true, RestartJob: d.Percent(70), RestartOnFailureTarget: d.Percent(70)}
	w.full = placement.WhenFullWait
	if d.Percent(35) {
		w.full = placement.WhenFullAffinity
	}
	if m.inPlace {
		w.gates = gates.Gates{InPlaceRestart: true, RestartJob: d.Percent(30)}
		w.full = placement.WhenFullWait
		w.faults.containers, w.faults.agents, w.faults.ends = simulation.OneOf(d, 1, 2, 4), simulation.OneOf(d, 20, 40, 80), simulation.OneOf(d, 0, 0, 1)
		w.faults.unwritten = simulation.OneOf(d, 0, 10, 40)
	}
	main := &simulation.Versions{Last: 1}
	w.sets.Versions = &simulation.Versions{Last: 1000} // the two servers count apart
	w.jobs.Versions, w.pods.Versions, w.nodes.Versions = main, main, main
	w.rules = newWorldRules(w)
	most := simulation.OneOf(d, 2, 2, 3, 4)
	for range 3 + d.IntN(4) {
		w.racks++
		for range 1 + d.IntN(most) {
			w.addNode(w.racks)
		}
	}
	for range 1 + d.IntN(2) {
		w.addSet()
	}
	w.startProcess()
	return w
}

// elastic reports whether an autoscaler adds nodes.
func (w *world) elastic() bool { return w.full == placement.WhenFullAffinity }

// newNode returns a node that a rack does not have yet.
func (w *world) newNode(rack int) *corev1.Node {
	name := fmt.Sprintf("n%02d", len(w.nodes.Objects))
	for {
		if _, taken := w.nodes.Get(name); !taken {
			break
		}
		name += "x"
	}
	return &corev1.Node{
		ObjectMeta: metav1.ObjectMeta{Name: name, CreationTimestamp: w.Stored(), Labels: map[string]string{
			rackKey: "r" + strconv.Itoa(rack), blockKey: "b" + strconv.Itoa((rack+1)/2), corev1.LabelHostname: name,
		}},
		Status: corev1.NodeStatus{
			Allocatable: corev1.ResourceList{
				corev1.ResourceCPU: *resource.NewQuantity(coresOfNode, resource.DecimalSI), corev1.ResourcePods: *resource.NewQuantity(110, resource.DecimalSI),
			},
			Conditions: []corev1.NodeCondition{{Type: corev1.NodeReady, Status: corev1.ConditionTrue, LastTransitionTime: w.Stored()}},
		},
	}
}

func (w *world) addNode(rack int) {
	node := w.newNode(rack)
	w.Note("node %s of rack r%d comes", node.Name, rack)
	w.nodes.Put(node)
}

// changeNode stores a changed copy of a node.
func (w *world) changeNode(node *corev1.Node, change func(*corev1.Node)) {
	next := node.DeepCopy()
	change(next)
	w.nodes.Put(next)
}

func (w *world) setReady(node *corev1.Node, ready corev1.ConditionStatus) {
	w.Note("node %s is ready: %s", node.Name, ready)
	w.changeNode(node, func(n *corev1.Node) {
		n.Status.Conditions = []corev1.NodeCondition{{Type: corev1.NodeReady, Status: ready, LastTransitionTime: w.Stored()}}
	})
}

func nodeReady(node *corev1.Node) bool {
	return node.Status.Conditions[0].Status == corev1.ConditionTrue
}

// changePod stores a changed copy of a pod.
func (w *world) changePod(pod *corev1.Pod, change func(*corev1.Pod)) {
	next := *pod
	change(&next)
	w.pods.Put(&next)
}

// changeSet stores a changed copy of a set.
func (w *world) changeSet(js *jobsetv1alpha2.JobSet, change func(*jobsetv1alpha2.JobSet)) {
	next := *js
	change(&next)
	next.Generation++
	w.sets.Put(&next)
}

// changeJob stores a changed copy of a Job.
func (w *world) changeJob(job *batchv1.Job, change func(*batchv1.Job)) *batchv1.Job {
	next := *job
	change(&next)
	w.jobs.Put(&next)
	return &next
}

// setOf returns the set of a Job; nil if that is gone.
func (w *world) setOf(job *batchv1.Job) *jobsetv1alpha2.JobSet {
	js, found := w.sets.Get(job.Labels[jobsetv1alpha2.JobSetNameKey])
	if !found || len(job.OwnerReferences) == 0 || js.UID != job.OwnerReferences[0].UID {
		return nil
	}
	return js
}

// jobOf returns the Job of a pod; nil if there is none.
func (w *world) jobOf(pod *corev1.Pod) *batchv1.Job {
	for _, job := range w.jobs.Objects {
		if len(pod.OwnerReferences) > 0 && pod.OwnerReferences[0].UID == job.UID {
			return job
		}
	}
	return nil
}

func (w *world) podsOf(job *batchv1.Job) (own []*corev1.Pod) {
	for _, pod := range w.pods.Objects {
		if len(pod.OwnerReferences) > 0 && pod.OwnerReferences[0].UID == job.UID {
			own = append(own, pod)
		}
	}
	return own
}

func hasEnded(pod *corev1.Pod) bool {
	return pod.Status.Phase == corev1.PodSucceeded || pod.Status.Phase == corev1.PodFailed
}

func cpuOf(pod *corev1.Pod) int64 { return pod.Spec.Containers[0].Resources.Requests.Cpu().Value() }
