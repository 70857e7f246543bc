// Copyright The jobset-apiserver Authors.
// SPDX-License-Identifier: Apache-2.0

package plan

import (
	"time"

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
	rev := revisionOf(o)
	groups := groupsAt(o, rev)
	st := newStatus(o)
	p := Plan{DespiteQueue: runsDespiteQueue(o)}
	if missing := restartGroups(o, groups, st, &p); len(missing) > 0 {
		return Plan{Asks: Asks{Causes: missing}}
	}
	adopt(o, groups, &p)
	applyLeader(o, rev, groups, &p)
	replaceStuck(o, rev, groups, &p)
	createServices(o, groups, &p)
	createWorkers(o, rev, groups, &p)
	createPodGroups(o, rev, groups, &p)
	nudge(o, groups, &p)
	deleteRevisions(o, rev, groups, &p)
	if p.Reading == nil {
		p.Reading = &Reading{Set: o.Set, Revision: rev.same}
	}
	p.RequeueAfter = hostplan.Sooner(p.RequeueAfter, st.fold(podsRefused(&o), podsUnschedulable(&o)))
	st.observe(groups)
	p.Status, p.Events = st.result()
	return p
}
