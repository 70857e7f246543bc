// Copyright The jobset-apiserver Authors.
// SPDX-License-Identifier: Apache-2.0

package placement

import (
	"cmp"
	"math"
	"slices"
)

// rooms is what nodes have left, for each resource that any shape requests.
type rooms struct {
	resources []Name
	at        map[Name]int
	vectors   map[Amounts][]int64
	// free is what is left beside all pods, in rows of one node. above is what is left beside the pods whose priority is at least that
	// of the shape that is being looked at.
	free, above []int64
	// base is what nodes have beside the pods of DaemonSets that are still to come, and counted how many of the levels above is without.
	base    []int64
	counted int
	// levels are the priorities of shapes, falling. pods are the pods that count at each of them and not at the one
	// before; the last list has the rest.
	levels []int32
	pods   [][]*Pod
}

// fitKey is what the room for pods depends on.
type fitKey struct {
	topology    Name
	constraints [32]byte
	requests    Amounts
	priority    int32
	preempts    bool
}

func keyOf(topology Name, s *Shape) fitKey {
	return fitKey{topology, s.constraints, s.requests, s.priority, s.preempts}
}

// fit is how many pods of a shape there is room for in each domain.
type fit struct {
	shape *Shape
	space *space
	// suitable are the nodes on which the pods may run. free is how many pods there is room for now, and preempting how many there is room for
	// once pods of lower priority have gone.
	suitable, free, preempting []int32
	// empty are the pods for which there is room once all nodes are ready and no other pods run there but those of DaemonSets.
	empty []int32
	// byFree and byPreempting are the domains by rising room, and byMost by falling room.
	byFree, byPreempting, byMost []int32
}

// sort orders the domains, by number where room is equal.
func (f *fit) sort() {
	by := func(room []int32, sign int) []int32 {
		out := make([]int32, len(room))
		for d := range out {
			out[d] = int32(d)
		}
		slices.SortStableFunc(out, func(a, b int32) int { return sign * cmp.Compare(room[a], room[b]) })
		return out
	}
	f.byFree, f.byPreempting, f.byMost = by(f.free, 1), by(f.preempting, 1), by(f.preempting, -1)
}

// measure returns the room for each shape. Pods of Jobs that are being placed take none: they are about to be replaced.
func (x *index) measure(c *Cluster, wanted []*fit, replaced map[Name]bool) map[fitKey]*fit {
	x.prepareRooms(c, wanted, replaced)
	slices.SortStableFunc(wanted, func(a, b *fit) int { return cmp.Compare(b.shape.priority, a.shape.priority) })
	out := make(map[fitKey]*fit, len(wanted))
	for _, f := range wanted {
		key := keyOf(f.space.topology, f.shape)
		if _, done := out[key]; done {
			continue
		}
		x.countAbove(f.shape.priority)
		x.measureShape(f)
		f.sort()
		out[key] = f
	}
	return out
}

// countAbove makes above what is left beside pods of a priority and higher ones. It is fast if priorities fall from call to call.
func (x *index) countAbove(priority int32) {
	r := &x.rooms
	if r.counted > 0 && r.levels[r.counted-1] < priority {
		r.counted = 0
		copy(r.above, r.base)
	}
	for ; r.counted < len(r.levels) && r.levels[r.counted] >= priority; r.counted++ {
		for _, pod := range r.pods[r.counted] {
			x.take(r.above, pod)
		}
	}
}

func (x *index) prepareRooms(c *Cluster, wanted []*fit, replaced map[Name]bool) {
	r := &x.rooms
	r.at, r.vectors = map[Name]int{}, map[Amounts][]int64{}
	for _, f := range wanted {
		r.levels = append(r.levels, f.shape.priority)
		for _, amount := range f.shape.requests.All() {
			if _, known := r.at[amount.Resource]; !known {
				r.at[amount.Resource] = len(r.resources)
				r.resources = append(r.resources, amount.Resource)
			}
		}
	}
	slices.SortFunc(r.levels, func(a, b int32) int { return cmp.Compare(b, a) })
	r.levels = slices.Compact(r.levels)
	r.free = make([]int64, 0, len(x.nodes)*len(r.resources))
	for _, node := range x.nodes {
		r.free = append(r.free, r.vector(node.Allocatable)...)
	}
	x.addDaemons(c)
	r.base, r.above = slices.Clone(r.free), slices.Clone(r.free)
	r.pods = make([][]*Pod, len(r.levels)+1)
	for i := range c.Pods {
		pod := &c.Pods[i]
		if pod.Job != (Name{}) && replaced[pod.Job] {
			continue
		}
		x.take(r.free, pod)
		level, _ := slices.BinarySearchFunc(r.levels, pod.Priority, func(level, priority int32) int { return cmp.Compare(priority, level) })
		r.pods[level] = append(r.pods[level], pod)
	}
}

// vector returns amounts in the order of the resources.
func (r *rooms) vector(a Amounts) []int64 {
	out, known := r.vectors[a]
	if !known {
		out = make([]int64, len(r.resources))
		for _, amount := range a.All() {
			if at, counts := r.at[amount.Resource]; counts {
				out[at] = amount.Value
			}
		}
		r.vectors[a] = out
	}
	return out
}

// take subtracts a pod from the room of its node.
func (x *index) take(room []int64, pod *Pod) {
	if node, known := x.nodeAt[pod.Node]; known {
		x.subtract(room, node, pod.Requests)
	}
}

func (x *index) subtract(room []int64, node int32, requests Amounts) {
	vector := x.rooms.vector(requests)
	row := room[int(node)*len(vector):][:len(vector)]
	for i, value := range vector {
		row[i] = max(row[i]-max(value, 0), -maxAmount)
	}
}

// addDaemons subtracts the pods of DaemonSets that are still to come.
func (x *index) addDaemons(c *Cluster) {
	if len(c.Daemons) == 0 {
		return
	}
	at := make(map[Name]int, len(c.Daemons))
	running := make([][]bool, len(c.Daemons))
	for i := range c.Daemons {
		at[c.Daemons[i].Owner] = i
		running[i] = make([]bool, len(x.nodes))
	}
	for i := range c.Pods {
		if daemon, known := at[c.Pods[i].Owner]; known {
			if node, exists := x.nodeAt[c.Pods[i].Node]; exists {
				running[daemon][node] = true
			}
		}
	}
	for i, daemon := range c.Daemons {
		if at[daemon.Owner] != i || daemon.Shape == nil {
			continue // named twice
		}
		for node, suits := range x.suitable(daemon.Shape) {
			if suits == suitsNow && !running[i][node] {
				x.subtract(x.rooms.free, int32(node), daemon.Shape.requests)
			}
		}
	}
}

func (x *index) measureShape(f *fit) {
	domains := len(f.space.domains)
	f.suitable, f.free, f.preempting, f.empty = make([]int32, domains), make([]int32, domains), make([]int32, domains), make([]int32, domains)
	suits, request := x.suitable(f.shape), x.rooms.vector(f.shape.requests)
	row := func(room []int64, i int) []int64 { return room[i*len(request):][:len(request)] }
	for i, d := range f.space.ofNode {
		if d < 0 || suits[i] == suitsNever {
			continue
		}
		f.empty[d] = add(f.empty[d], times(row(x.rooms.base, i), request))
		if suits[i] == suitsNow {
			f.suitable[d]++
			f.free[d] = add(f.free[d], times(row(x.rooms.free, i), request))
			f.preempting[d] = add(f.preempting[d], times(row(x.rooms.above, i), request))
		}
	}
	if !f.shape.preempts {
		f.preempting = f.free
	}
}

// times returns how often a request fits. The pods of a Job are alike, so that filling node by node is exact.
func times(room, request []int64) int32 {
	n := int64(math.MaxInt32)
	for i, value := range request {
		if value > 0 {
			n = min(n, max(room[i], 0)/value)
		}
	}
	return int32(n)
}

func add(a, b int32) int32 {
	return int32(min(int64(a)+int64(b), math.MaxInt32))
}
