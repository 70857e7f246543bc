// Copyright The jobset-apiserver Authors.
// SPDX-License-Identifier: Apache-2.0

package why

import (
	"fmt"
	"time"

	"k8s.io/apimachinery/pkg/api/meta"

	leaderworkersetv1 "github.com/jobset-apiserver/jobset-apiserver/pkg/apis/leaderworkerset/v1"
	"github.com/jobset-apiserver/jobset-apiserver/pkg/apis/leaderworkerset/v1/helper"
	"github.com/jobset-apiserver/jobset-apiserver/pkg/kubectl/snapshot"
)

// What keeps replicas from getting the current revision.

// updateGrace is how long an update may replace no replica before it counts as stuck.
const updateGrace = 10 * time.Minute

// updatePaused finds an update that a user has paused.
func updatePaused(d *diagnosis) []Finding {
	if phase, _ := helper.Phase(d.Set); phase != helper.PhasePaused {
		return nil
	}
	who := "paused"
	if last := d.Set.Status.LastAction; last != nil && last.Action == leaderworkersetv1.ActionPause && last.User != "" {
		who = "paused by " + last.User
		if last.Time != nil {
			who += " " + ago(d.Now, last.Time.Time)
		}
		who += quoted(last.Reason)
	}
	return []Finding{{
		Cause: UpdatePaused, Summary: fmt.Sprintf("the update is %s; %s", who, d.updated()),
		Evidence: []Fact{{Object: d.set(), Text: "spec.paused is true"}}, Commands: []string{d.plugin("resume %s", d.ref())},
	}}
}

// updateInProgress says how far an update is.
func updateInProgress(d *diagnosis) []Finding {
	if phase, _ := helper.Phase(d.Set); phase != helper.PhaseUpdating {
		return nil
	}
	if f := d.updateStuck(); f != nil {
		return append(notReady(d), *f)
	}
	f := Finding{
		Cause:    Updating,
		Summary:  fmt.Sprintf("an update is in progress: %s, %s, partition %d", d.updated(), d.readyWords(), d.partition()),
		Commands: []string{d.plugin("tree %s", d.ref())},
	}
	if c := meta.FindStatusCondition(d.Set.Status.Conditions, leaderworkersetv1.ConditionUpdateInProgress); c != nil {
		f.Evidence = append(f.Evidence, conditionFact(d.set(), c))
	}
	if replicas, names := d.replicasWith(func(g *snapshot.Replica) bool { return !g.Ready(d.Replicas.Size(g)) }); len(replicas) > 0 {
		f.Evidence = append(f.Evidence, Fact{Object: d.set(), Text: "not ready: " + names})
	}
	return append(notReady(d), f)
}

// updateStuck finds an update that has replaced no replica for long, because those of the new revision do not become
// ready, or for another reason.
func (d *diagnosis) updateStuck() *Finding {
	updated, _ := d.replicasWith(d.Replicas.Updated)
	c := meta.FindStatusCondition(d.Set.Status.Conditions, leaderworkersetv1.ConditionUpdateInProgress)
	last := c.LastTransitionTime.Time
	for _, g := range updated {
		if g.Leader != nil && g.Leader.CreationTimestamp.After(last) {
			last = g.Leader.CreationTimestamp.Time
		}
	}
	if d.Now.Sub(last) < updateGrace {
		return nil
	}
	f := &Finding{
		Cause:    UpdateStuck,
		Summary:  fmt.Sprintf("the update has replaced no group for %s; %s", span(d.Now, last), d.updated()),
		Evidence: []Fact{conditionFact(d.set(), c)},
		Commands: []string{d.plugin("timeline %s", d.ref())},
	}
	bad, names := d.replicasWith(func(g *snapshot.Replica) bool { return d.Replicas.Updated(g) && !g.Ready(d.Replicas.Size(g)) })
	if len(bad) > 0 {
		verb := "is"
		if len(bad) > 1 {
			verb = "are"
		}
		f.Summary = fmt.Sprintf("the update waits for %s of the new revision, which %s not ready, and has replaced no group for %s "+
			"(maxUnavailable %d); %s",
			names, verb, span(d.Now, last), helper.MaxUnavailable(d.Set), d.updated())
		f.Commands = append(f.Commands, d.plugin("logs %s --group %d", d.ref(), bad[0].Index))
	}
	f.Commands = append(f.Commands, d.plugin("rollback %s", d.ref()))
	return f
}

// revisionMixed looks for replicas whose workers are not of the revision of their leader, as another controller may have
// left them. Only such a replica is not replaced by an update to the revision that its leader has.
func revisionMixed(d *diagnosis) []Finding {
	replicas, names := d.replicasWith((*snapshot.Replica).Mixed)
	if len(replicas) == 0 {
		return nil
	}
	g := replicas[0]
	verb := "has"
	if len(replicas) > 1 {
		verb = "have"
	}
	f := Finding{
		Cause: RevisionMixed,
		Summary: fmt.Sprintf("%s %s a leader and workers of different revisions: they may not work together, and the group never counts as "+
			"updated", names, verb),
		Evidence: []Fact{
			{Object: object("pod", g.Leader.Name), Text: "is of the revision " + snapshot.Revision(g.Leader)},
			{Object: object("statefulset", g.Workers.Name), Text: "is of the revision " + snapshot.Revision(g.Workers)},
		},
	}
	for i, other := range replicas {
		if i < maxFacts {
			f.Commands = append(f.Commands, d.plugin("restart %s --group %d", d.ref(), other.Index))
		}
	}
	return []Finding{f}
}
