// Copyright The jobset-apiserver Authors.
// SPDX-License-Identifier: Apache-2.0

package podgroups

// Deadlock returns the index of an entry whose gang never starts, because replicatedJobs of it are created only once others of it, or
// others that wait for it, have started; -1 if there is none. A gang starts when all of its pods exist. So gangs are taken as one
// replicatedJob each that waits for whatever a member waits for, and must not wait for themselves by any way.
func (s Set) Deadlock() int {
	waits := s.contracted()
	blocked := blockedOf(waits)
	for node := range blocked {
		if !blocked[node] {
			continue
		}
		return s.gangOnCycle(node, waits, blocked)
	}
	return -1
}

// contracted returns for each node the nodes that it waits for. The first nodes are the entries, the others the replicatedJobs; those
// that belong to a gang are replaced by its entry, and unused.
func (s Set) contracted() [][]int {
	node := make(map[string]int, len(s.Jobs))
	for i := range s.Jobs {
		node[s.Jobs[i].Name] = len(s.Entries) + i
	}
	for i := range s.Entries {
		if e := &s.Entries[i]; e.Gang && !e.PerJob {
			for _, target := range e.Targets {
				node[target] = i
			}
		}
	}
	waits := make([][]int, len(s.Entries)+len(s.Jobs))
	for i := range s.Jobs {
		from := node[s.Jobs[i].Name]
		for _, name := range s.Jobs[i].After {
			if to, found := node[name]; found {
				waits[from] = append(waits[from], to)
			}
		}
	}
	return waits
}

// blockedOf returns which nodes can never start: the nodes on a cycle, and all nodes that wait for one of them.
func blockedOf(waits [][]int) []bool {
	pending := make([]int, len(waits))
	waiting := make([][]int, len(waits))
	var ready []int
	for node, on := range waits {
		pending[node] = len(on)
		for _, other := range on {
			waiting[other] = append(waiting[other], node)
		}
		if len(on) == 0 {
			ready = append(ready, node)
		}
	}
	for len(ready) > 0 {
		node := ready[len(ready)-1]
		ready = ready[:len(ready)-1]
		for _, other := range waiting[node] {
			if pending[other]--; pending[other] == 0 {
				ready = append(ready, other)
			}
		}
	}
	blocked := make([]bool, len(waits))
	for node := range pending {
		blocked[node] = pending[node] > 0
	}
	return blocked
}

// gangOnCycle follows what a blocked node waits for until it comes to a node again, and returns the first gang from there on.
func (s Set) gangOnCycle(node int, waits [][]int, blocked []bool) int {
	next := func(node int) int {
		for _, other := range waits[node] {
			if blocked[other] {
				return other
			}
		}
		return node
	}
	seen := map[int]bool{}
	for !seen[node] {
		seen[node] = true
		node = next(node)
	}
	for start := node; node >= len(s.Entries); {
		if node = next(node); node == start {
			return -1 // replicatedJobs that wait for each other without any gang: another rule refuses these
		}
	}
	return node
}
