// Copyright The jobset-apiserver Authors.
// SPDX-License-Identifier: Apache-2.0

package why

import (
	"fmt"

	"k8s.io/utils/ptr"

	leaderworkersetv1 "github.com/jobset-apiserver/jobset-apiserver/pkg/apis/leaderworkerset/v1"
	"github.com/jobset-apiserver/jobset-apiserver/pkg/apis/leaderworkerset/v1/helper"
	"github.com/jobset-apiserver/jobset-apiserver/pkg/kubectl/cli"
)

// What is normal of a LeaderWorkerSet: a restart on request, an update, a start, a run.

// readyWords count the replicas that are ready.
func (d *diagnosis) readyWords() string {
	return fmt.Sprintf("%d of %s ready", d.readyReplicas(), cli.Count(d.Replicas.Wanted(), "group"))
}

// updated counts the replicas of the current revision.
func (d *diagnosis) updated() string {
	n := 0
	for _, replica := range d.Replicas.Replicas {
		if replica.Index < d.Replicas.Wanted() && replica.Revision() == d.Replicas.Revision() {
			n++
		}
	}
	return fmt.Sprintf("%d of %s have the revision %s", n, cli.Count(d.Replicas.Wanted(), "group"), d.Replicas.Revision())
}

// partition is the index from which on the leader StatefulSet replaces pods.
func (d *diagnosis) partition() int {
	if d.Replicas.Leader == nil || d.Replicas.Leader.Spec.UpdateStrategy.RollingUpdate == nil {
		return 0
	}
	return int(ptr.Deref(d.Replicas.Leader.Spec.UpdateStrategy.RollingUpdate.Partition, 0))
}

// restartRequested says how far a restart on request is.
func restartRequested(d *diagnosis) []Finding {
	r := d.Set.Status.Restart
	if r == nil {
		return nil
	}
	what := "all groups"
	if !r.All {
		what = cli.Count(len(r.Groups), "group")
	}
	who := ""
	if last := d.Set.Status.LastAction; last != nil && last.Action == leaderworkersetv1.ActionRestart && last.User != "" {
		who = " by " + last.User + quoted(last.Reason)
	}
	left := "the controller has not begun yet"
	if r.Found {
		left = cli.Count(len(r.Leaders), "group") + " still to be recreated"
	}
	return []Finding{{
		Cause:    Restarting,
		Summary:  fmt.Sprintf("a restart of %s, requested %s%s, is in progress: %s", what, ago(d.Now, r.RequestTime.Time), who, left),
		Evidence: []Fact{{Object: d.set(), Text: "status.restart is set; " + d.readyWords(), Time: at(r.RequestTime.Time)}},
		Commands: []string{d.plugin("tree %s", d.ref())},
	}}
}

// leaderWorkerSetHealth says what the set does when nothing else is to be said.
func leaderWorkerSetHealth(d *diagnosis) []Finding {
	watch := []string{d.plugin("tree %s", d.ref())}
	if phase, _ := helper.Phase(d.Set); phase == helper.PhaseUpdating || phase == helper.PhasePaused {
		return nil
	}
	words := d.readyWords()
	if partition := int(helper.Partition(d.Set)); partition > 0 && d.Replicas.Leader != nil {
		words += fmt.Sprintf("; %s; groups below the partition %d keep theirs", d.updated(), partition)
	}
	if helper.Paused(d.Set) {
		words += "; updates are paused"
	}
	if d.allReady() {
		return []Finding{{Cause: Running, Summary: "runs: " + words, Evidence: d.restartHistory(), Commands: watch}}
	}
	return append(notReady(d), Finding{
		Cause: Starting, Summary: "starting, no problem found: " + words,
		Evidence: []Fact{{Object: d.set(), Text: fmt.Sprintf("%s exist, with %s", count(len(d.sets()), "StatefulSet"),
			count(len(d.live), "live pod")), Time: at(d.Set.CreationTimestamp.Time)}},
		Commands: watch,
	})
}

// restartHistory sums up the replicas that were recreated most.
func (d *diagnosis) restartHistory() (facts []Fact) {
	for i := range d.Set.Status.Groups {
		if s := &d.Set.Status.Groups[i]; s.Restarts > 0 && len(facts) < maxFacts {
			facts = append(facts, d.replicaFact(s))
		}
	}
	return facts
}
