// Copyright The jobset-apiserver Authors.
// SPDX-License-Identifier: Apache-2.0

package placer

import (
	"context"
	"slices"
	"time"

	"k8s.io/apimachinery/pkg/types"
	"k8s.io/client-go/tools/cache"
	"k8s.io/klog/v2"

	jobsetv1alpha2 "github.com/jobset-apiserver/jobset-apiserver/pkg/apis/jobset/v1alpha2"
	"github.com/jobset-apiserver/jobset-apiserver/pkg/controller/jobset/plan/domains"
	"github.com/jobset-apiserver/jobset-apiserver/pkg/controller/placement"
)

// retryMove is when a place for a Job is sought once more that had to stay because there was no domain with room.
const retryMove = time.Minute

// moves are what is remembered about Jobs that leave their domains.
type moves struct {
	// moving are the domains to which a Job of a set goes, as long as no status is known to say so: the last decision, and earlier ones that
	// may have been stored.
	moving map[cache.ObjectName][]movingTo
	// stayed is when a Job of a set had to stay for lack of another domain.
	stayed map[cache.ObjectName]stayed
	// changes counts what has happened in the cluster.
	changes uint64
	// improved is when nodes last became of more use than they had been, as far as nodes do not say so themselves.
	improved map[placement.Name]time.Time
}

// movingTo is where a Job goes.
type movingTo struct {
	placement.Assignment
	// uid and version are the UID and the resource version of the set that the decision was made on, and at is when.
	uid     types.UID
	version string
	at      time.Time
}

// maxUnseen is how many earlier decisions about a set are remembered.
const maxUnseen = 4

// unseenFor is for how long the domain stays taken to which a Job moves, while the cache shows the set as it was before: a status with the
// move may have been stored.
const unseenFor = 10 * time.Minute

// unseen returns whether the cache shows a set as it was when the decision was made.
func (m movingTo) unseen(js *jobsetv1alpha2.JobSet, now time.Time) bool {
	return m.uid == js.UID && m.version == js.ResourceVersion && now.Sub(m.at) < unseenFor
}

type stayed struct {
	at      time.Time
	changes uint64
}

func newMoves() moves {
	return moves{moving: map[cache.ObjectName][]movingTo{}, stayed: map[cache.ObjectName]stayed{},
		improved: map[placement.Name]time.Time{}}
}

// assignments are the domains that Jobs on the move take.
func (m *moves) assignments() (out []placement.Assignment) {
	for _, all := range m.moving {
		for _, to := range all {
			out = append(out, to.Assignment)
		}
	}
	return out
}

// Move returns to which domain one of the Jobs of a set goes whose pods get no nodes, and when to ask again. It is
// asked each time the set is looked at: then the status of the set shows the last answer, or that could not be stored.
// Jobs go one after the other.
func (p *Placer) Move(ctx context.Context, js *jobsetv1alpha2.JobSet, stuck []domains.Stuck) (domains.Moving, error) {
	p.mu.Lock()
	defer p.mu.Unlock()
	key := cache.MetaObjectToName(js)
	was := p.moving[key]
	delete(p.moving, key)
	defer func() { p.keepUnseen(js, key, was) }()
	if len(stuck) == 0 {
		delete(p.stayed, key)
		return domains.Moving{}, nil
	}
	view := p.watch.View()
	if view == nil {
		return domains.Moving{After: watchedAfter}, nil
	}
	m := &mover{Placer: p, view: view, key: key, js: js, tried: map[int]bool{}}
	for i := range stuck {
		if err := m.try(ctx, &stuck[i]); err != nil || m.out.Move != nil {
			return domains.Moving{Move: m.out.Move}, err
		}
	}
	return m.out, nil
}

// keepUnseen keeps the domains of earlier decisions about a set that the cache does not show, if a status with them may be stored.
func (p *Placer) keepUnseen(js *jobsetv1alpha2.JobSet, key cache.ObjectName, was []movingTo) {
	all, now, freed := p.moving[key], p.Clock.Now(), false
	for _, earlier := range was {
		same := slices.ContainsFunc(all, func(to movingTo) bool { return to.Domain == earlier.Domain })
		switch {
		case same:
		case earlier.unseen(js, now) && len(all) <= maxUnseen:
			all = append(all, earlier)
		default:
			freed = true
		}
	}
	if len(all) > 0 {
		p.moving[key] = all
	}
	if freed {
		p.change() // if no status holds the answer, nothing else shows that the domain is free
	}
}

// mover looks for the Job of one set that goes.
type mover struct {
	*Placer
	view *view
	key  cache.ObjectName
	js   *jobsetv1alpha2.JobSet
	// tried are the replicatedJobs for which there is no domain now. What one of their Jobs cannot have, the others cannot have either.
	tried map[int]bool
	out   domains.Moving
}

// again has the set looked at after a time, or sooner; 0 is never.
func (m *mover) again(after time.Duration) {
	if after > 0 && (m.out.After == 0 || after < m.out.After) {
		m.out.After = after
	}
}

// try moves a Job if it is time and there is a domain with room.
func (m *mover) try(ctx context.Context, s *domains.Stuck) error {
	now := m.Clock.Now()
	pending := placement.Pending{After: m.MoveAfter, Since: s.Since, Nominated: s.Nominated}
	if moves := s.At.Moves; moves != nil && moves.LastTime != nil {
		pending.Moves, pending.Moved = len(moves.Left), moves.LastTime.Time
	}
	decision := placement.DecideMove(pending, now)
	if !decision.Due || m.tried[s.Place] {
		m.again(decision.After)
		return nil
	}
	if left := m.stays(now); left > 0 {
		m.again(left)
		return nil
	}
	leaves := domains.Unplaced{Place: s.Place, Topology: s.Topology, Indexes: []int32{s.Index}, Running: s.Running}
	request, err := m.view.requestOf(m.js, []domains.Unplaced{leaves})
	if err != nil {
		klog.FromContext(ctx).Error(err, "Left a Job in its domain, in which its pods get no nodes")
		m.again(retryMove)
		return nil
	}
	group := &request.Groups[s.Place]
	pending.NodesGained = m.gained(m.view, group, placement.NameOf(s.At.Domain))
	if decision = placement.DecideMove(pending, now); !decision.Due {
		m.again(decision.After)
		return nil
	}
	m.tried[s.Place] = true
	group.Jobs[0].Previous, group.Jobs[0].PreviousNodes = placement.Name{}, 0
	return m.place(ctx, s, request, decision.Reason)
}

// stays returns for how long the Jobs of a set stay without a question, because one of them had to stay a short while
// ago, or because nothing has happened since.
func (m *mover) stays(now time.Time) time.Duration {
	last, found := m.stayed[m.key]
	if !found {
		return 0
	}
	if left := retryMove - now.Sub(last.at); left > 0 {
		return min(left, retryMove)
	}
	if last.changes == m.changes {
		return retryMove
	}
	return 0
}

// gained returns when a domain last got a node that the pods of a group can use, or such a node became of use.
func (p *Placer) gained(view *view, group *placement.Group, domain placement.Name) (last time.Time) {
	for _, obj := range view.nodes.List() {
		node, ok := obj.(*watchedNode)
		if !ok || !node.In(group.Topology, domain) || !group.Shape.Suits(&node.Node) {
			continue
		}
		for _, t := range []time.Time{node.since, p.improved[node.Name]} {
			if t.After(last) {
				last = t
			}
		}
	}
	return last
}

// place asks for a domain for one Job, after all sets that wait have been served. It goes only where there is room, and
// to a domain that it has left only if there is no other.
func (m *mover) place(ctx context.Context, s *domains.Stuck, request placement.Request, cause string) error {
	if !m.current && len(m.waiting) > 0 {
		if err := m.decide(ctx, m.view, m.waiting, cache.ObjectName{}); err != nil {
			return err
		}
	}
	present, err := m.present()
	if err != nil {
		return err
	}
	avoid := []placement.Name{placement.NameOf(s.At.Domain)}
	if moves := s.At.Moves; moves != nil {
		for _, domain := range moves.Left {
			avoid = append(avoid, placement.NameOf(domain))
		}
	}
	cluster := m.view.cluster()
	for _, avoided := range slices.Compact([]int{len(avoid), 1}) {
		request.Groups[s.Place].Jobs[0].Avoid = avoid[:avoided]
		result := placement.Place(&cluster, present, []placement.Request{request}, m.WhenFull)[0]
		if result.Outcome == placement.Placed {
			to := result.Assignments[0]
			m.out.Move = &domains.Move{Stuck: *s, Domain: to.Domain.String(), Nodes: to.Nodes, Cause: cause}
			m.moving[m.key] = []movingTo{{to, m.js.UID, m.js.ResourceVersion, m.Clock.Now()}}
			return nil
		}
	}
	m.stayed[m.key] = stayed{m.Clock.Now(), m.changes}
	m.again(retryMove)
	return nil
}

// Forget drops what is remembered about a set that is gone.
func (p *Placer) Forget(key cache.ObjectName) {
	p.Withdraw(key)
	p.mu.Lock()
	defer p.mu.Unlock()
	if _, moved := p.moving[key]; moved {
		delete(p.moving, key)
		p.change()
	}
	delete(p.stayed, key)
}

// noteNode notes that a node has become of more use, or is gone.
func (p *Placer) noteNode(before, after any) {
	was, ok := before.(*watchedNode)
	if !ok {
		return
	}
	p.mu.Lock()
	defer p.mu.Unlock()
	switch is, ok := after.(*watchedNode); {
	case !ok:
		delete(p.improved, was.Name)
	case improves(was, is):
		p.improved[is.Name] = p.Clock.Now()
	}
}

// improves reports whether a node has other labels or resources than before, or keeps fewer pods away.
func improves(was, is *watchedNode) bool {
	return was.Allocatable != is.Allocatable || !slices.Equal(was.Labels, is.Labels) ||
		slices.ContainsFunc(was.Taints, func(t placement.Taint) bool { return !slices.Contains(is.Taints, t) })
}
