// Copyright The jobset-apiserver Authors.
// SPDX-License-Identifier: Apache-2.0

package placement_test

import (
	"fmt"
	"math/rand/v2"
	"slices"
	"strconv"
	"time"

	corev1 "k8s.io/api/core/v1"
	"k8s.io/apimachinery/pkg/api/resource"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"

	"github.com/jobset-apiserver/jobset-apiserver/pkg/controller/placement"
)

const (
	rack  = "rack"
	block = "block"
	// cores are the processors of a node, and maxNodes how many nodes the autoscaler gives a rack.
	cores    = 4
	maxNodes = 4
)

// node is a node. One that is down is not ready, and nothing runs on it.
type node struct {
	name, rack, block string
	down              bool
	// since is when it came, or came back.
	since int
}

func (n *node) domain(key string) string {
	if key == rack {
		return n.rack
	}
	return n.block
}

// set is a JobSet. All of its pods request the same.
type set struct {
	name     string
	created  int
	priority int32
	never    bool
	topology string
	levels   bool
	cpu      int
	groups   []*group
	// active is whether its Jobs exist. One that is not, and is neither suspended nor finished, waits for a place.
	active, suspended, finished bool
}

// group is a replicatedJob. The second one of a set may depend on the first.
type group struct {
	name              string
	pods              int
	depends, complete bool
	jobs              []*job
}

// job is a Job, with or without a domain.
type job struct {
	set        *set
	key        string
	index      int
	assignment *placement.Assignment
	previous   *placement.Assignment
	affinity   bool
	created    bool
	done       bool
	pods       []*pod
	wasReady   bool
	readySince int
	moves      int
	moved      int
	// placed orders Jobs by when they got their domain.
	placed int
}

// pod is a pod of a Job, or one without a Job. A pod that terminates takes its place for one more step.
type pod struct {
	job         *job
	node        *node
	cpu         int
	priority    int32
	never       bool
	since       int
	terminating bool
	// nominated is where preemption has made room, and bindAt when what was there has ended.
	nominated *node
	bindAt    int
}

// place is the node of a pod, or the one that is nominated for it.
func (p *pod) place() *node {
	if p.node != nil {
		return p.node
	}
	return p.nominated
}

// history is a cluster and what happens to it.
type history struct {
	dice    *rand.Rand
	mutant  mutant
	full    placement.WhenFull
	elastic bool
	now     int // minutes
	placed  int
	nodes   []*node
	pods    []*pod
	sets    []*set
	// stabilizing is whether nothing goes wrong any more.
	stabilizing bool
	broken      string
}

func (h *history) percent(p int) bool { return h.dice.IntN(100) < p }

func (h *history) fail(rule, format string, args ...any) {
	if h.broken == "" {
		h.broken = fmt.Sprintf("%q in minute %d: ", rule, h.now) + fmt.Sprintf(format, args...)
	}
}

func newHistory(seed uint64, m mutant) *history {
	h := &history{dice: rand.New(rand.NewPCG(seed, 16)), mutant: m, full: placement.WhenFullWait}
	if h.percent(40) {
		h.full, h.elastic = placement.WhenFullAffinity, true
	}
	for r := range 3 + h.dice.IntN(4) {
		for range 1 + h.dice.IntN(3) {
			h.addNode(r)
		}
	}
	return h
}

func (h *history) addNode(r int) {
	h.nodes = append(h.nodes, &node{
		name: fmt.Sprintf("n%02d", len(h.nodes)), rack: "r" + strconv.Itoa(r), block: "b" + strconv.Itoa(r/2), since: h.now,
	})
}

// addSet adds a set that could run if it were alone.
func (h *history) addSet() {
	s := &set{
		name: fmt.Sprintf("s%d", len(h.sets)), created: h.now, priority: []int32{0, 0, 0, 10, -5}[h.dice.IntN(5)], never: h.percent(20),
		topology: rack, levels: h.percent(30), cpu: []int{1, 2, 4}[h.dice.IntN(3)],
	}
	if h.percent(15) {
		s.topology = block
	}
	index := 0
	for i := range 1 + h.dice.IntN(2) {
		g := &group{name: "g" + strconv.Itoa(i), pods: 1 + h.dice.IntN(4), depends: i > 0 && h.percent(60), complete: h.percent(50)}
		for range 1 + h.dice.IntN(3) {
			g.jobs = append(g.jobs, &job{set: s, key: fmt.Sprintf("%s/%d", s.name, index), index: index})
			index++
		}
		s.groups = append(s.groups, g)
	}
	if h.couldRun(s) {
		h.sets = append(h.sets, s)
	}
}

func (h *history) couldRun(s *set) bool {
	return fits(s, h.capacities(s, func(*node) int { return cores }))
}

// capacities returns for how many pods of a set each domain has room.
func (h *history) capacities(s *set, free func(*node) int) map[string]int {
	out := map[string]int{}
	for _, n := range h.nodes {
		out[n.domain(s.topology)] += free(n) / s.cpu
	}
	return out
}

// fits returns whether there are domains for all Jobs of a set at once. ReplicatedJobs differ in the number of pods
// only, so that it is enough to count.
func fits(s *set, capacities map[string]int) bool {
	for _, at := range s.groups {
		needed, there := 0, 0
		for _, g := range s.groups {
			if g.pods >= at.pods {
				needed += len(g.jobs)
			}
		}
		for _, c := range capacities {
			if c >= at.pods {
				there++
			}
		}
		if there < needed {
			return false
		}
	}
	return true
}

func (s *set) jobs() (out []*job) {
	for _, g := range s.groups {
		out = append(out, g.jobs...)
	}
	return out
}

// shape returns the shape of the pods of a set.
func (s *set) shape() *placement.Shape {
	policy := corev1.PreemptLowerPriority
	if s.never {
		policy = corev1.PreemptNever
	}
	shape, err := placement.NewShape(&corev1.PodTemplateSpec{Spec: corev1.PodSpec{
		Priority: &s.priority, PreemptionPolicy: &policy,
		Containers: []corev1.Container{{Resources: corev1.ResourceRequirements{Requests: corev1.ResourceList{"cpu": *resource.NewQuantity(int64(s.cpu), resource.DecimalSI)}}}},
	}}, placement.Environment{})
	if err != nil {
		panic(err)
	}
	return shape
}

// cluster returns the snapshot.
func (h *history) cluster() *placement.Cluster {
	c := &placement.Cluster{}
	for _, n := range h.nodes {
		ready := corev1.ConditionTrue
		if n.down {
			ready = corev1.ConditionFalse
		}
		c.Nodes = append(c.Nodes, placement.NewNode(&corev1.Node{
			ObjectMeta: metav1.ObjectMeta{Name: n.name, Labels: map[string]string{rack: n.rack, block: n.block}},
			Status: corev1.NodeStatus{
				Allocatable: corev1.ResourceList{"cpu": *resource.NewQuantity(cores, resource.DecimalSI), "pods": *resource.NewQuantity(110, resource.DecimalSI)},
				Conditions:  []corev1.NodeCondition{{Type: corev1.NodeReady, Status: ready}},
			},
		}))
	}
	for _, p := range h.pods {
		if p.place() == nil {
			continue
		}
		object := &corev1.Pod{Spec: corev1.PodSpec{NodeName: p.place().name, Priority: &p.priority, Containers: []corev1.Container{
			{Resources: corev1.ResourceRequirements{Requests: corev1.ResourceList{"cpu": *resource.NewQuantity(int64(p.cpu), resource.DecimalSI)}}}}}}
		owner, key := "", ""
		if p.job != nil {
			owner, key = p.job.set.name, p.job.key
		}
		reduced, _ := placement.NewPod(object, owner, key)
		c.Pods = append(c.Pods, reduced)
	}
	return c
}

func at(minute int) time.Time { return time.Unix(int64(minute)*60, 0).UTC() }

// free returns the processors that pods leave on a node, if those that are left out take none.
func (h *history) free(n *node, leftOut func(*pod) bool) int {
	if n.down {
		return 0
	}
	left := cores
	for _, p := range h.pods {
		if p.place() == n && !leftOut(p) {
			left -= p.cpu
		}
	}
	return max(left, 0)
}

func (h *history) remove(gone func(*pod) bool) {
	h.pods = slices.DeleteFunc(h.pods, gone)
}
