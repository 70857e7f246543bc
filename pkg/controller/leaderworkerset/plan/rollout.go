// Copyright The jobset-apiserver Authors.
// SPDX-License-Identifier: Apache-2.0

package plan

import "time"

// rollout is what the partition and the replicas of the leader StatefulSet depend on. Groups with an index of partition
// and above get the current revision, highest first.
type rollout struct {
	// replicas, unavailable, surge and lowest are the values R, U, S and P of the spec.
	replicas, unavailable, surge, lowest int32
	// exists means that there is a leader StatefulSet. partition and count are its values, and resized that replicas were
	// others when it was applied.
	exists           bool
	partition, count int32
	resized          bool
	// changed means that it has another revision.
	changed bool
	// paused keeps groups that were not released for the update from being released.
	paused bool
	// groups are the groups that have a leader pod, by ascending index.
	groups []group
	now    time.Time
}

// target is what the partition and the replicas of the leader StatefulSet have to be.
type target struct{ partition, count int32 }

// decide returns the target.
func (r rollout) decide() target {
	t := r.unpaused()
	t.partition = max(t.partition, r.lowest)
	if r.paused && r.exists {
		t = r.pause(t)
	}
	return t
}

func (r rollout) unpaused() target {
	switch {
	case !r.exists:
		return target{0, r.replicas}
	case r.changed && r.count < r.replicas:
		return target{min(r.replicas, r.count), r.replicas}
	case r.changed:
		return target{min(r.replicas, r.count), r.want(r.replicas)}
	case r.partition == 0 && r.count == r.replicas:
		return target{0, r.replicas}
	case r.count < r.replicas:
		// The scale-up comes first.
		return target{r.partition, r.replicas}
	}
	states := r.states()
	bad := int32(0)
	for i := range min(r.replicas, r.count) {
		bad += one(!states[i].ready || !states[i].updated)
	}
	if r.resized {
		return target{min(r.partition, r.most()), r.want(bad)}
	}
	count := r.want(bad)
	// Groups of the surge that are about to go make up for none.
	stay := min(count, r.count)
	return target{r.next(states[:stay], r.unavailable+stay-r.replicas), count}
}

// pause returns what holds while the rolling update is paused. Groups that were released before stay released, and no
// group joins them. While none is, new groups get the revision of the others.
func (r rollout) pause(t target) target {
	if t.count > r.count {
		t.count = max(r.replicas, r.count)
	}
	if r.partition == 0 && r.count == r.replicas && !r.changed {
		return t
	}
	if r.changed || r.partition >= r.count {
		if r.allReady() {
			t.count = r.replicas // an update that has not begun needs no surge
		}
		t.partition = max(r.partition, r.count, t.count, r.lowest)
	}
	t.partition = max(t.partition, r.partition)
	return t
}

// allReady returns whether all groups that stay are ready, at any revision.
func (r rollout) allReady() bool {
	ready := int32(0)
	for i := range r.groups {
		ready += one(r.groups[i].ready && r.groups[i].index < r.replicas)
	}
	return ready == r.replicas
}

// most is the highest number of groups during an update.
func (r rollout) most() int32 { return r.replicas + r.surge }

// want returns how many groups there have to be while bad ones of those that stay are not ready or not updated.
func (r rollout) want(bad int32) int32 {
	if bad <= r.surge {
		return r.replicas + max(0, bad-r.unavailable)
	}
	return r.most()
}

// state is the state of one group. A broken one has not been ready for so long that the update does not wait for it.
// One that is leaving is about to be recreated.
type state struct{ ready, updated, broken, leaving bool }

// done returns whether a group needs nothing of the update, and stays.
func (s state) done() bool { return s.ready && s.updated && !s.leaving }

// down returns whether the update waits for a group, or is about to.
func (s state) down() bool { return !s.ready && !s.broken || s.ready && s.leaving }

// states returns those of the groups from 0 to count. Groups without a leader pod are neither ready nor updated.
func (r rollout) states() []state {
	out := make([]state, r.count)
	for i := range r.groups {
		if g := &r.groups[i]; g.index < r.count {
			out[g.index] = state{g.ready, g.updated, g.broken(r.now), g.leaving}
		}
	}
	return out
}

// next returns the partition that releases groups below the groups that are ready and updated. With it, at most step
// groups are down. Groups that are not ready count as down, wherever they are, unless only the update can repair them.
// Releasing one of them takes no group down.
func (r rollout) next(states []state, step int32) int32 {
	end := int32(len(states)) //nolint:gosec // no more than there are groups
	for end > 0 && states[end-1].done() {
		end--
	}
	left := step
	for _, s := range states[:end] {
		left -= one(s.down())
	}
	q := end
	for q > max(0, end-step) {
		if s := states[q-1]; s.ready && !s.updated {
			if left <= 0 {
				break
			}
			left--
		}
		q--
	}
	return min(q, r.partition)
}
