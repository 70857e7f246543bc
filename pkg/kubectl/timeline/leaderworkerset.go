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

// Groups is the life of a LeaderWorkerSet as data: what -o json prints, and what chart and page are drawn from.
type Groups struct {
	// LeaderWorkerSet and Namespace name the set.
	LeaderWorkerSet string `json:"leaderWorkerSet"`
	Namespace       string `json:"namespace"`
	snapshot.GroupsSummary
	// CreateTime is when it was created, and begin of the chart. End is the time of reading: a set does not finish.
	CreateTime time.Time `json:"createTime"`
	End        time.Time `json:"end"`
	// LifeSeconds is the time from creation to End.
	LifeSeconds float64 `json:"lifeSeconds"`
	// Restarts is the sum of the restarts of groups after failures, and RestartLimit how many each of them may have; absent for no limit.
	Restarts     int    `json:"restarts"`
	RestartLimit *int32 `json:"restartLimit,omitempty"`
	// LastAction is the last action of a user that changed the set.
	LastAction *leaderworkersetv1.LastAction `json:"lastAction,omitempty"`
	// Revisions are the revisions that are kept, the oldest first.
	Revisions []Revision `json:"revisions"`
	// Groups are the groups that exist or should, by index.
	Groups []GroupRun `json:"groups"`
	// Note says what is not known.
	Note string `json:"note,omitempty"`
}

// Revision is a revision of the templates of a set.
type Revision struct {
	// Number is the number of the ControllerRevision, and Key what the children of the revision carry.
	Number int64  `json:"number"`
	Key    string `json:"key"`
	// Groups is the number of groups of it.
	Groups int `json:"groups"`
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

// GroupRun is the run of the pods of a group that exist. Those of before are deleted; what is on record of them follows from the status.
type GroupRun struct {
	Index   int    `json:"index"`
	State   string `json:"state"`
	Message string `json:"message,omitempty"`
	// Revision is the key of the revision of the group, and RevisionNumber its number; absent if it is not known.
	Revision       string `json:"revision,omitempty"`
	RevisionNumber int64  `json:"revisionNumber,omitempty"`
	// Surge means that the group is above the replicas of the set.
	Surge bool `json:"surge,omitempty"`
	// CreateTime is when the leader pod was created, and ReadyTime since when all pods are ready.
	CreateTime *time.Time `json:"createTime,omitempty"`
	ReadyTime  *time.Time `json:"readyTime,omitempty"`
	// Phases are the phases of the pods that exist, and an instant for the failure for which the group was last recreated.
	Phases []Phase `json:"phases"`
	// Restarts is how often the group was recreated after a failure, LastRestartTime when it was last recreated, also on
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
	g, err := snapshot.LoadGroups(ctx, c, name, true)
	if err != nil {
		return nil, err
	}
	revisions, err := snapshot.Revisions(ctx, c, g.Set)
	t := buildGroups(g, revisions)
	if err != nil {
		// All else can be shown.
		t.Note = "revisions are not known: " + err.Error()
	}
	return t, nil
}

// buildGroups works out the timeline of a set from what exists of it. The revisions are in the order of their numbers.
func buildGroups(g *snapshot.Groups, revisions []*appsv1.ControllerRevision) *Groups {
	set := g.Set
	t := &Groups{
		LeaderWorkerSet: set.Name, Namespace: set.Namespace, GroupsSummary: snapshot.SummarizeGroups(set),
		CreateTime:   set.CreationTimestamp.UTC(),
		RestartLimit: set.Spec.LeaderWorkerTemplate.MaxGroupRestarts, LastAction: set.Status.LastAction, Revisions: []Revision{},
		Groups: []GroupRun{},
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
	for _, group := range g.Every() {
		run := t.groupRun(g, group)
		run.RevisionNumber = numbers[run.Revision]
		counts[run.RevisionNumber]++
		t.Groups = append(t.Groups, run)
	}
	for i := range t.Revisions {
		t.Revisions[i].Groups = counts[t.Revisions[i].Number]
	}
	return t
}

// groupRun returns the run of a group.
func (t *Groups) groupRun(g *snapshot.Groups, group *snapshot.PodGroup) GroupRun {
	run := GroupRun{Index: group.Index, Revision: group.Revision(), Surge: g.Surge(group), Restarts: group.Restarts(), Phases: []Phase{}}
	run.State, run.Message = g.StateOf(group)
	status := ptr.Deref(group.Status, leaderworkersetv1.GroupStatus{})
	run.LastRestartTime, run.RestartAt, run.FirstCause = status.LastRestartTime, status.RestartAt, status.FirstCause
	if group.Leader == nil {
		return run
	}
	created := group.Leader.CreationTimestamp.UTC()
	run.CreateTime = &created
	if run.State == snapshot.JobReady {
		run.ReadyTime = ptr.To(readySince(group))
	}
	b := &runBuilder{reached: created, now: later(t.End, created)}
	b.phases(g, group, &run)
	run.Phases = b.out
	return run
}

// readySince returns since when all pods of a group are ready.
func readySince(group *snapshot.PodGroup) time.Time {
	since := group.Leader.CreationTimestamp.UTC()
	for _, pod := range group.Pods {
		if c := snapshot.PodCondition(pod, "Ready"); c != nil {
			since = later(since, c.LastTransitionTime.UTC())
		}
	}
	return since
}

// completeSince returns since when all pods of a group exist; false if they do not.
func completeSince(group *snapshot.PodGroup, size int) (since time.Time, complete bool) {
	for _, pod := range group.Pods {
		since = later(since, pod.CreationTimestamp.UTC())
	}
	return since, len(group.Pods) >= size
}
