// Copyright The jobset-apiserver Authors.
// SPDX-License-Identifier: Apache-2.0

package plan

// distribute returns how many groups of each role each former revision keeps, the newest revision first, so that all
// together keep what the step says. The newest is drained first. A revision that loses the last group of a role loses
// those of all roles, if what is left of other revisions suffices; if not, it keeps one of each role while older ones
// have groups to give.
func distribute(names []string, old []former, before, after []Rollout) [][]int64 {
	d := &distribution{names: names, before: before, after: after, excess: make([]int64, len(names)), total: make([]int64, len(names))}
	for i := range names {
		d.excess[i], d.total[i] = before[i].Old-after[i].Old, before[i].Old
	}
	kept := make([][]int64, len(old))
	for r := range old {
		kept[r] = make([]int64, len(names))
		for i, name := range names {
			kept[r][i] = int64(old[r].children[name].Replicas)
		}
		d.drain(kept[r])
	}
	for r := range old { // what no revision could give while all keep one
		for i := range names {
			d.take(kept[r], i, kept[r][i])
		}
	}
	return kept
}

// distribution is how many old groups of each role are still to go, and how many there are.
type distribution struct {
	names         []string
	before, after []Rollout
	excess, total []int64
}

// take takes groups of a role from a revision, as far as they are to go.
func (d *distribution) take(kept []int64, role int, groups int64) {
	d.remove(kept, role, max(0, min(d.excess[role], groups)))
}

func (d *distribution) remove(kept []int64, role int, groups int64) {
	kept[role] -= groups
	d.excess[role] -= groups
	d.total[role] -= groups
}

// drain takes groups from the newest revision that is not drained yet.
func (d *distribution) drain(kept []int64) {
	emptied, suffices := false, true
	for i := range d.names {
		emptied = emptied || kept[i] > 0 && d.excess[i] >= kept[i]
		suffices = suffices && d.total[i]-kept[i] >= floor(d.before[i], d.after[i])
	}
	for i := range d.names {
		switch {
		case !emptied:
			d.take(kept, i, kept[i])
		case suffices:
			d.remove(kept, i, kept[i])
		default:
			d.take(kept, i, kept[i]-1)
		}
	}
}

// floor returns how many old groups a role must keep, whatever its revisions.
func floor(before, after Rollout) int64 {
	least := after.least()
	if before.New == 0 && after.Target > 0 {
		least = max(least, 1)
	}
	return min(after.Old, least)
}
