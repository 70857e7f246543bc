// Copyright The jobset-apiserver Authors.
// SPDX-License-Identifier: Apache-2.0

package plan

import (
	"slices"
	"sort"
	"time"

	jobsetv1alpha2 "github.com/jobset-apiserver/jobset-apiserver/pkg/apis/jobset/v1alpha2"
	hostplan "github.com/jobset-apiserver/jobset-apiserver/pkg/controller/host/plan"
)

const (
	// maxWrites is how many children of one kind one plan creates.
	maxWrites = 500
	// leaderGoneAfter is when to look again for a leader StatefulSet that is being deleted, and nameFreeAfter for one that has another owner.
	leaderGoneAfter, nameFreeAfter = 5 * time.Second, 30 * time.Second
)

// Decide returns what to do about a set, or what it needs to know first.
func Decide(o Observed) Plan {
	switch {
	case o.Set.DeletionTimestamp != nil:
		return Plan{}
	case o.Leader != nil && o.Leader.DeletionTimestamp != nil:
		return Plan{RequeueAfter: leaderGoneAfter, DespiteQueue: runsDespiteQueue(o)}
	}
	s, st := look(o), newStatus(o)
	p := restartGroups(s, st)
	if len(p.Questions()) > 0 {
		return Plan{Asks: p.Asks}
	}
	for _, subject := range subjects() {
		p.add(subject(s))
	}
	p.DespiteQueue = runsDespiteQueue(o)
	p.RequeueAfter = hostplan.Sooner(p.RequeueAfter, st.fold(podsRefused(&o), podsUnschedulable(&o)))
	st.observe(s.groups)
	p.Status, p.Events = st.result()
	return p
}

// subject returns the part of the plan that is about one kind of writes.
type subject func(s *snapshot) Plan

// subjects returns the subjects in the order in which their parts are put together. None depends on the part of another one.
func subjects() []subject {
	return []subject{adopt, applyLeader, replaceStuck, createServices, createWorkers, createPodGroups, touch, deleteRevisions}
}

// snapshot is what was observed of a set, with what follows from it. Subjects only read it.
type snapshot struct {
	Observed
	// rev is the revision of the spec.
	rev revision
	// groups are the groups that have a leader pod, by ascending index. Those that are about to be recreated are marked before subjects are
	// asked.
	groups []group
}

// look returns a snapshot with what follows from it.
func look(o Observed) *snapshot {
	s := &snapshot{Observed: o, rev: revisionOf(o)}
	s.groups = groupsOf(o, s.rev)
	return s
}

// groupAt returns the group of an index; nil if none has a leader pod.
func (s *snapshot) groupAt(index int32) *group {
	after := sort.Search(len(s.groups), func(i int) bool { return s.groups[i].index > index })
	if after == 0 || s.groups[after-1].index != index {
		return nil
	}
	return &s.groups[after-1]
}

// runsDespiteQueue returns what Plan.DespiteQueue says.
func runsDespiteQueue(o Observed) bool {
	held := func(p Pod) bool { return p.HeldByKueue }
	return o.Set.Labels[jobsetv1alpha2.QueueNameKey] != "" && !slices.ContainsFunc(o.Leaders, held) &&
		!slices.ContainsFunc(o.Workers, func(w Workers) bool { return slices.ContainsFunc(w.Pods, held) })
}

// add adds a part to a plan.
func (p *Plan) add(part Plan) {
	p.Asks.Causes = append(p.Asks.Causes, part.Asks.Causes...)
	p.Events = append(p.Events, part.Events...)
	for _, e := range part.Notices {
		p.notice(e)
	}
	p.Adopt = append(p.Adopt, part.Adopt...)
	if part.CreateRevision != nil {
		p.CreateRevision, p.RevisionEvent = part.CreateRevision, part.RevisionEvent
	}
	if part.ApplyLeader != nil {
		p.ApplyLeader, p.LeaderEvents = part.ApplyLeader, part.LeaderEvents
	}
	p.CreateServices = append(p.CreateServices, part.CreateServices...)
	p.DeleteLeaders = append(p.DeleteLeaders, part.DeleteLeaders...)
	p.CreateWorkers = append(p.CreateWorkers, part.CreateWorkers...)
	p.CreatePodGroups = append(p.CreatePodGroups, part.CreatePodGroups...)
	p.TouchWorkers, p.TouchLeader = append(p.TouchWorkers, part.TouchWorkers...), p.TouchLeader || part.TouchLeader
	p.DeleteRevisions = append(p.DeleteRevisions, part.DeleteRevisions...)
	p.Evaluated, p.Recorded = append(p.Evaluated, part.Evaluated...), append(p.Recorded, part.Recorded...)
	p.More = p.More || part.More
	p.RequeueAfter = hostplan.Sooner(p.RequeueAfter, part.RequeueAfter)
	p.ActsAfter = hostplan.Sooner(p.ActsAfter, part.ActsAfter)
	if part.Reading != nil {
		p.Reading = part.Reading
	}
}
