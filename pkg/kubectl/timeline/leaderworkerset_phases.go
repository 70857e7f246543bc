// Copyright The jobset-apiserver Authors.
// SPDX-License-Identifier: Apache-2.0

package timeline

import (
	"time"

	appsv1 "k8s.io/api/apps/v1"
	"k8s.io/apimachinery/pkg/api/meta"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/utils/ptr"

	leaderworkersetv1 "github.com/jobset-apiserver/jobset-apiserver/pkg/apis/leaderworkerset/v1"
	"github.com/jobset-apiserver/jobset-apiserver/pkg/apis/leaderworkerset/v1/helper"
	"github.com/jobset-apiserver/jobset-apiserver/pkg/kubectl/snapshot"
)

// runBuilder puts phases one after another.
type runBuilder struct {
	out []Phase
	// reached is the end of the last phase. Times of two machines may differ, phases must not overlap.
	reached time.Time
	// now is the time of reading.
	now time.Time
}

// until adds what lasted from the last end to this one. Phases without length are left out.
func (b *runBuilder) until(kind Kind, end time.Time) {
	end = sooner(later(end, b.reached), b.now)
	if end.After(b.reached) {
		b.out = append(b.out, Phase{Kind: kind, Begin: b.reached, End: end, Seconds: end.Sub(b.reached).Seconds()})
		b.reached = end
	}
}

// open adds what goes on.
func (b *runBuilder) open(kind Kind) {
	b.out = append(b.out, Phase{Kind: kind, Begin: b.reached, End: b.now, Seconds: b.now.Sub(b.reached).Seconds(), Open: true})
}

// phases adds the phases of the pods of a replica.
func (b *runBuilder) phases(g *snapshot.LeaderWorkerSet, replica *snapshot.Replica, run *ReplicaRun) {
	failed := failureOf(run)
	switch complete, all := completeSince(replica, g.Size(replica)); {
	case run.State == snapshot.JobReady:
		b.until(Creating, complete)
		b.until(Starting, *run.ReadyTime)
		b.open(Running)
	case run.State == snapshot.JobFailed:
		b.until(Creating, complete)
		b.until(Running, later(failed, b.reached))
		b.open(Failed)
		return
	case run.State == snapshot.JobTerminating:
		b.until(Running, deletedSince(replica.Leader))
		b.open(Creating)
	case all:
		b.until(Creating, complete)
		b.open(Starting)
	default:
		b.open(Creating)
	}
	if !failed.IsZero() {
		// The last one is drawn over the others.
		b.out = append(b.out, Phase{Kind: Failed, Begin: failed, End: failed})
	}
}

// failureOf returns when the replica failed last; zero if it is not known.
func failureOf(run *ReplicaRun) time.Time {
	if run.FirstCause == nil || run.FirstCause.Time == nil {
		return time.Time{}
	}
	return run.FirstCause.Time.UTC()
}

// deletedSince returns when the deletion of an object began. Its time of deletion is the end of the grace period.
func deletedSince(o metav1.Object) time.Time {
	if o.GetDeletionTimestamp() == nil {
		return o.GetCreationTimestamp().UTC()
	}
	return o.GetDeletionTimestamp().UTC().Add(-time.Duration(ptr.Deref(o.GetDeletionGracePeriodSeconds(), 0)) * time.Second)
}

// addRevisions adds the revisions, each of which lasts until the next one.
func (t *LeaderWorkerSetTimeline) addRevisions(set *leaderworkersetv1.LeaderWorkerSet, revisions []*appsv1.ControllerRevision) {
	for i, r := range revisions {
		out := Revision{Number: r.Revision, Key: snapshot.Revision(r), Begin: r.CreationTimestamp.UTC(), Open: i == len(revisions)-1}
		out.End = later(t.End, out.Begin)
		if !out.Open {
			out.End = later(revisions[i+1].CreationTimestamp.UTC(), out.Begin)
		}
		b := &runBuilder{reached: out.Begin, now: out.End}
		if out.Open {
			b.update(set, r.Revision > 1, &out)
		} else {
			b.until(Current, out.End)
		}
		out.Phases = b.out
		t.Revisions = append(t.Revisions, out)
	}
}

// update adds the update to the current revision, and what follows.
func (b *runBuilder) update(set *leaderworkersetv1.LeaderWorkerSet, follows bool, r *Revision) {
	c := meta.FindStatusCondition(set.Status.Conditions, leaderworkersetv1.ConditionUpdateInProgress)
	switch {
	case c == nil || !follows:
		b.open(Current)
	case c.Status != metav1.ConditionTrue && c.LastTransitionTime.UTC().Before(r.Begin):
		// The update has not begun, or did not have to.
		b.open(Current)
	case c.Status != metav1.ConditionTrue:
		r.UpdateSeconds = ptr.To(c.LastTransitionTime.UTC().Sub(r.Begin).Seconds())
		b.until(Updating, c.LastTransitionTime.UTC())
		b.open(Current)
	default:
		if since := pausedSince(set); since != nil {
			b.until(Updating, *since)
			b.open(Paused)
			return
		}
		b.open(Updating)
	}
}

// pausedSince returns when a user paused the update; nil if none did, or if it is not on record.
func pausedSince(set *leaderworkersetv1.LeaderWorkerSet) *time.Time {
	last := set.Status.LastAction
	if !helper.Paused(set) || last == nil || last.Action != leaderworkersetv1.ActionPause || last.Time == nil {
		return nil
	}
	return ptr.To(last.Time.UTC())
}
