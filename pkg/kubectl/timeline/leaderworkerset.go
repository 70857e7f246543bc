// Copyright The jobset-apiserver Authors.
// SPDX-License-Identifier: Apache-2.0

package timeline

import (
	"context"
	"errors"
	"time"

	appsv1 "k8s.io/api/apps/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/utils/ptr"

	jobsetv1alpha2 "github.com/jobset-apiserver/jobset-apiserver/pkg/apis/jobset/v1alpha2"
	leaderworkersetv1 "github.com/jobset-apiserver/jobset-apiserver/pkg/apis/leaderworkerset/v1"
	"github.com/jobset-apiserver/jobset-apiserver/pkg/kubectl/cli"
	"github.com/jobset-apiserver/jobset-apiserver/pkg/kubectl/snapshot"
)

// LeaderWorkerSetTimeline is the life of a LeaderWorkerSet as data: what -o json prints, and what chart and page are drawn from.
type LeaderWorkerSetTimeline struct {
	// LeaderWorkerSet and Namespace name the set.
	LeaderWorkerSet string `json:"leaderWorkerSet"`
	Namespace       string `json:"namespace"`
	snapshot.LeaderWorkerSetSummary
	// CreateTime is when it was created, and begin of the chart. End is the time of reading: a set does not finish.
	CreateTime time.Time `json:"createTime"`
	End        time.Time `json:"end"`
	// LifeSeconds is the time from creation to End.
	LifeSeconds float64 `json:"lifeSeconds"`
	// Restarts is the sum of the restarts of replicas after failures, and RestartLimit how many each of them may have; absent for no limit.
	Restarts     int    `json:"restarts"`
	RestartLimit *int32 `json:"restartLimit,omitempty"`
	// LastAction is the last action of a user that changed the set.
	LastAction *leaderworkersetv1.LastAction `json:"lastAction,omitempty"`
	// Revisions are the revisions that are kept, the oldest first.
	Revisions []Revision `json:"revisions"`
	// Replicas are the replicas that exist or should, by index.
	Replicas []ReplicaRun `json:"groups"`
	// Note says what is not known.
	Note string `json:"note,omitempty"`
}

// Revision is a revision of the templates of a set.
type Revision struct {
	// Number is the number of the ControllerRevision, and Key what the children of the revision carry.
	Number int64  `json:"number"`
	Key    string `json:"key"`
	// Replicas is the number of replicas of it.
	Replicas int `json:"groups"`
	// Begin is when it was created, and End when the next one was, or the time of reading.
	Begin time.Time `json:"begin"`
	End   time.Time `json:"end"`
	// Open reports that it is the current one.
	Open bool `json:"open,omitempty"`
	// UpdateSeconds is how long the update to it took. Absent for the first revision, for former ones, and while the update goes on.
	UpdateSeconds *float64 `json:"updateSeconds,omitempty"`
	// Phases follow each other in time without overlap.
	Phases []Phase `json:"phases"`
}

// ReplicaRun is the run of the pods of a replica that exist. Those of before are deleted; what is on record of them follows from the
// status.
type ReplicaRun struct {
	Index   int    `json:"index"`
	State   string `json:"state"`
	Message string `json:"message,omitempty"`
	// Revision is the key of the revision of the replica, and RevisionNumber its number; absent if it is not known.
	Revision       string `json:"revision,omitempty"`
	RevisionNumber int64  `json:"revisionNumber,omitempty"`
	// Surge means that the replica is above the replicas of the set.
	Surge bool `json:"surge,omitempty"`
	// CreateTime is when the leader pod was created, and ReadyTime since when all pods are ready.
	CreateTime *time.Time `json:"createTime,omitempty"`
	ReadyTime  *time.Time `json:"readyTime,omitempty"`
	// Phases are the phases of the pods that exist, and an instant for the failure for which the replica was last recreated.
	Phases []Phase `json:"phases"`
	// Restarts is how often the replica was recreated after a failure, LastRestartTime when it was last recreated, also on
	// request, and RestartAt when it is recreated next if it waits.
	Restarts        int                          `json:"restarts"`
	LastRestartTime *metav1.Time                 `json:"lastRestartTime,omitempty"`
	RestartAt       *metav1.Time                 `json:"restartAt,omitempty"`
	FirstCause      *jobsetv1alpha2.FailureCause `json:"firstCause,omitempty"`
}

// LeaderWorkerSet is the Reader of LeaderWorkerSets.
func LeaderWorkerSet(ctx context.Context, c *cli.Clients, name string, withJobs bool) (View, error) {
	if withJobs {
		return nil, errors.New("--jobs: a LeaderWorkerSet has no Jobs; omit the flag")
	}
	g, err := snapshot.LoadLeaderWorkerSet(ctx, c, name, true)
	if err != nil {
		return nil, err
	}
	revisions, err := snapshot.Revisions(ctx, c, g.Set)
	t := buildLeaderWorkerSet(g, revisions)
	if err != nil {
		// All else can be shown.
		t.Note = "revisions are not known: " + err.Error()
	}
	return t, nil
}

// buildLeaderWorkerSet works out the timeline of a set from what exists of it. The revisions are in the order of their numbers.
func buildLeaderWorkerSet(g *snapshot.LeaderWorkerSet, revisions []*appsv1.ControllerRevision) *LeaderWorkerSetTimeline {
	set := g.Set
	t := &LeaderWorkerSetTimeline{
		LeaderWorkerSet: set.Name, Namespace: set.Namespace, LeaderWorkerSetSummary: snapshot.SummarizeLeaderWorkerSet(set),
		CreateTime:   set.CreationTimestamp.UTC(),
		RestartLimit: set.Spec.LeaderWorkerTemplate.MaxGroupRestarts, LastAction: set.Status.LastAction, Revisions: []Revision{},
		Replicas: []ReplicaRun{},
	}
	t.End = later(g.Now.UTC(), t.CreateTime)
	t.LifeSeconds = t.End.Sub(t.CreateTime).Seconds()
	for i := range set.Status.Groups {
		t.Restarts += int(set.Status.Groups[i].Restarts)
	}
	t.addRevisions(set, revisions)
	numbers := map[string]int64{}
	for i := range t.Revisions {
		numbers[t.Revisions[i].Key] = t.Revisions[i].Number // the last one of a key
	}
	counts := map[int64]int{}
	for _, replica := range g.Every() {
		run := t.replicaRun(g, replica)
		run.RevisionNumber = numbers[run.Revision]
		counts[run.RevisionNumber]++
		t.Replicas = append(t.Replicas, run)
	}
	for i := range t.Revisions {
		t.Revisions[i].Replicas = counts[t.Revisions[i].Number]
	}
	return t
}

// replicaRun returns the run of a replica.
func (t *LeaderWorkerSetTimeline) replicaRun(g *snapshot.LeaderWorkerSet, replica *snapshot.Replica) ReplicaRun {
	run := ReplicaRun{Index: replica.Index, Revision: replica.Revision(), Surge: g.Surge(replica),
		Restarts: replica.Restarts(), Phases: []Phase{}}
	run.State, run.Message = g.StateOf(replica)
	status := ptr.Deref(replica.Status, leaderworkersetv1.GroupStatus{})
	run.LastRestartTime, run.RestartAt, run.FirstCause = status.LastRestartTime, status.RestartAt, status.FirstCause
	if replica.Leader == nil {
		return run
	}
	created := replica.Leader.CreationTimestamp.UTC()
	run.CreateTime = &created
	if run.State == snapshot.JobReady {
		run.ReadyTime = ptr.To(readySince(replica))
	}
	b := &runBuilder{reached: created, now: later(t.End, created)}
	b.phases(g, replica, &run)
	run.Phases = b.out
	return run
}

// readySince returns since when all pods of a replica are ready.
func readySince(replica *snapshot.Replica) time.Time {
	since := replica.Leader.CreationTimestamp.UTC()
	for _, pod := range replica.Pods {
		if c := snapshot.PodCondition(pod, "Ready"); c != nil {
			since = later(since, c.LastTransitionTime.UTC())
		}
	}
	return since
}

// completeSince returns since when all pods of a replica exist; false if they do not.
func completeSince(replica *snapshot.Replica, size int) (since time.Time, complete bool) {
	for _, pod := range replica.Pods {
		since = later(since, pod.CreationTimestamp.UTC())
	}
	return since, len(replica.Pods) >= size
}
