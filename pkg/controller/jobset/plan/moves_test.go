// Copyright The jobset-apiserver Authors.
// SPDX-License-Identifier: Apache-2.0

package plan

import (
	"fmt"
	"strings"
	"testing"
	"time"

	batchv1 "k8s.io/api/batch/v1"
	corev1 "k8s.io/api/core/v1"
	"k8s.io/apimachinery/pkg/types"
	"k8s.io/utils/ptr"

	jobsetv1alpha2 "github.com/jobset-apiserver/jobset-apiserver/pkg/apis/jobset/v1alpha2"
	hostplan "github.com/jobset-apiserver/jobset-apiserver/pkg/controller/host/plan"
	"github.com/jobset-apiserver/jobset-apiserver/pkg/controller/jobset/plan/domains"
)

const noRoom = "0/4 nodes are available: 4 Insufficient cpu."

// stuckSet is a set of two Jobs in the domains a and b, of which pods of the first one wait.
func stuckSet(job *batchv1.Job, change ...func(*jobsetv1alpha2.JobSet)) Observed {
	o := observe(newSet(append([]func(*jobsetv1alpha2.JobSet){with("w", 2), byRack, placedAt(racks(0, 0, "a", "b"))}, change...)...), job, jobNamed("w", 1))
	o.Waiting = map[types.UID]domains.Waiting{job.UID: {Since: before.Time, Reason: noRoom}, "another": {}}
	o.Gates.ExclusivePlacement = true
	return o
}

func podsReady(job *batchv1.Job) { job.Status.Ready = ptr.To[int32](1) }

func bound(job *batchv1.Job) {
	job.Status.Conditions = append(job.Status.Conditions, batchv1.JobCondition{Type: batchv1.JobFailureTarget, Status: corev1.ConditionTrue})
}

func TestStuckJobs(t *testing.T) {
	type sets = []func(*jobsetv1alpha2.JobSet)
	inFirst := func(change func(*jobsetv1alpha2.JobPlacement)) sets {
		return sets{func(js *jobsetv1alpha2.JobSet) { change(&js.Status.Placement.ReplicatedJobs[0].Jobs[0]) }}
	}
	alone := func(js *jobsetv1alpha2.JobSet) {
		js.Status.ReplicatedJobsStatus = []jobsetv1alpha2.ReplicatedJobStatus{{Name: "w", JobRestarts: []int32{1, 0}}}
	}
	for name, tc := range map[string]struct {
		job    *batchv1.Job
		change sets
		off    bool
		want   string
	}{
		"its pods wait":                      {want: "w 0 a"},
		"the feature is off":                 {off: true},
		"the set is suspended":               {change: sets{isSuspended}},
		"the set has finished":               {change: sets{completed}},
		"the set is being deleted":           {change: sets{func(js *jobsetv1alpha2.JobSet) { js.DeletionTimestamp = &before }}},
		"somebody else runs the set":         {change: sets{func(js *jobsetv1alpha2.JobSet) { js.Spec.ManagedBy = ptr.To("example.com/other") }}},
		"the set is placed for next attempt": {change: sets{restarted(1, 1)}},
		"the Job is suspended":               {job: jobNamed("w", 0, jobIsSuspended)},
		"the Job is being deleted":           {job: jobNamed("w", 0, terminating)},
		"the Job is bound to fail":           {job: jobNamed("w", 0, bound)},
		"the Job has failed":                 {job: jobNamed("w", 0, failedWith("BackoffLimitExceeded", "", 0))},
		"the Job is ready":                   {job: jobNamed("w", 0, podsReady)},
		"the Job was ready":                  {change: inFirst(func(at *jobsetv1alpha2.JobPlacement) { at.Ready = true })},
		"the scheduler chooses its domain":   {change: inFirst(func(at *jobsetv1alpha2.JobPlacement) { at.Domain = "" })},
		"the Job alone restarts":             {change: sets{alone}},
		"the Job alone has restarted": {
			job:    jobNamed("w", 0, label(jobsetv1alpha2.JobRestartAttemptKey, "1")),
			change: append(inFirst(func(at *jobsetv1alpha2.JobPlacement) { at.Restarts = 1 }), alone), want: "w 0 a",
		},
	} {
		t.Run(name, func(t *testing.T) {
			if tc.job == nil {
				tc.job = jobNamed("w", 0)
			}
			o := stuckSet(tc.job, tc.change...)
			o.Gates.ExclusivePlacement = !tc.off
			var got []string
			for _, s := range stuck(o) {
				if s.UID != tc.job.UID || s.Topology != rack || s.Reason != noRoom {
					t.Errorf("the Job is %+v", s)
				}
				got = append(got, fmt.Sprint(o.JobSet.Spec.ReplicatedJobs[s.Place].Name, " ", s.Index, " ", s.At.Domain))
			}
			diff(t, "Jobs", tc.want, strings.Join(got, ", "))
		})
	}
}

func moving(move *domains.Move) hostplan.Known[domains.Moving] {
	return hostplan.Of(domains.Moving{Move: move})
}

// TestMove follows a Job from one domain to another.
func TestMove(t *testing.T) {
	o := stuckSet(jobNamed("w", 0))
	o.JobSet.Status.Attempts = []jobsetv1alpha2.Attempt{{Number: 1}}
	o.Moving = moving(&domains.Move{Stuck: stuck(o)[0], Domain: "c", Nodes: 3, Cause: "its pods got no node for 5m0s"})
	p := Decide(o)
	if len(p.DeleteJobs)+len(p.CreateJobs)+len(p.PatchJobs) > 0 {
		t.Errorf("something is written before the move is stored: %+v", p)
	}
	diff(t, "events", []Event{{
		Type: "Warning", Reason: "JobMoved",
		Note: `job "js-w-0" leaves example.com/rack "a" for "c": its pods got no node for 5m0s: ` + noRoom,
	}}, p.Events)
	want := jobsetv1alpha2.JobPlacement{Domain: "c", Nodes: 3, Moves: &jobsetv1alpha2.JobMoves{Left: []string{"a"}, LastTime: &now, ReplacedJob: "uid-js-w-0"}}
	diff(t, "place", want, p.Status.Placement.ReplicatedJobs[0].Jobs[0])
	diff(t, "the other place", jobsetv1alpha2.JobPlacement{Domain: "b"}, p.Status.Placement.ReplicatedJobs[0].Jobs[1])
	if waits := Finish(o, p, Results{}).DeferStatus; waits > 0 {
		t.Errorf("the status waits for %s", waits)
	}

	o.JobSet.Status, o.Moving = *p.Status, hostplan.NotObtained[domains.Moving]()
	p = Decide(o)
	diff(t, "deleted", "js-w-0", deletedNames(p))
	diff(t, "created while the Job exists", "", createdAt(p))
	diff(t, "Jobs that are stuck", 0, len(stuck(o)))
	o.Jobs = o.Jobs[1:]
	p = Decide(o)
	diff(t, "created", "w-0 c", createdAt(p))
	status := statusAfter(o, p)
	diff(t, "restarts", int32(0), status.Restarts)
	diff(t, "attempts", 1, len(status.Attempts))

	next := jobNamed("w", 0)
	next.UID = "next"
	o.Jobs = append(o.Jobs, next)
	o.Waiting = map[types.UID]domains.Waiting{"next": {Since: before.Time}}
	diff(t, "where it is stuck next", "c", stuck(o)[0].At.Domain)
	o.Moving = hostplan.Of(domains.Moving{After: time.Minute})
	diff(t, "when to look again", time.Minute, Decide(o).RequeueAfter)
}

// TestMoveThatIsOutdated shows what else than the move may have happened.
func TestMoveThatIsOutdated(t *testing.T) {
	for name, change := range map[string]func(*Observed){
		"the set has another placement next": func(o *Observed) { o.Placed = hostplan.Of(domains.Placed{Placement: racks(0, 0, "a", "b", "d")}) },
		"the placement is gone":              func(o *Observed) { o.JobSet.Status.Placement = nil },
		"the Job is elsewhere":               func(o *Observed) { o.JobSet.Status.Placement = racks(0, 0, "x", "b") },
		"the Job has no place":               func(o *Observed) { o.JobSet.Status.Placement = racks(0, 0) },
	} {
		t.Run(name, func(t *testing.T) {
			o := stuckSet(jobNamed("w", 0))
			o.Moving = moving(&domains.Move{Stuck: stuck(o)[0], Domain: "c"})
			change(&o)
			for _, event := range Decide(o).Events {
				if event.Reason == "JobMoved" {
					t.Errorf("the Job moves: %s", event.Note)
				}
			}
		})
	}
}

// TestMovesAreBounded keeps the domains that were left last.
func TestMovesAreBounded(t *testing.T) {
	o := stuckSet(jobNamed("w", 0), func(js *jobsetv1alpha2.JobSet) {
		js.Status.Placement.ReplicatedJobs[0].Jobs[0].Moves = &jobsetv1alpha2.JobMoves{Left: strings.Fields("1 2 3 4 5 6 7 8")}
	})
	o.Moving = moving(&domains.Move{Stuck: stuck(o)[0], Domain: "c"})
	p := Decide(o)
	diff(t, "left", "2 3 4 5 6 7 8 a", strings.Join(p.Status.Placement.ReplicatedJobs[0].Jobs[0].Moves.Left, " "))
	diff(t, "the stored status", 8, len(o.JobSet.Status.Placement.ReplicatedJobs[0].Jobs[0].Moves.Left))
}

// TestJobThatLeftAndCompleted is not run twice.
func TestJobThatLeftAndCompleted(t *testing.T) {
	o := stuckSet(jobNamed("w", 0, succeeded), func(js *jobsetv1alpha2.JobSet) {
		js.Status.Placement.ReplicatedJobs[0].Jobs[0].Moves = &jobsetv1alpha2.JobMoves{ReplacedJob: "uid-js-w-0"}
	})
	p := Decide(o)
	diff(t, "deleted", "", deletedNames(p))
	diff(t, "created", "", createdAt(p))
}

// TestReadyJobsAreNoted shows that a Job all of whose pods are ready is noted once, and that this may wait like counts do.
func TestReadyJobsAreNoted(t *testing.T) {
	o := stuckSet(jobNamed("w", 0, podsReady), func(js *jobsetv1alpha2.JobSet) {
		js.Status.ReplicatedJobsStatus = []jobsetv1alpha2.ReplicatedJobStatus{{Name: "w"}}
	})
	p := Decide(o)
	at := p.Status.Placement.ReplicatedJobs[0].Jobs
	diff(t, "ready", []bool{true, false}, []bool{at[0].Ready, at[1].Ready})
	if !mayWait(o, p.Status) {
		t.Error("the status is written at once")
	}
	o.JobSet.Status = *p.Status
	o.Jobs[0] = jobNamed("w", 0)
	p = Decide(o)
	if got := statusAfter(o, p).Placement.ReplicatedJobs[0].Jobs[0]; !got.Ready {
		t.Errorf("it is forgotten: %+v", got)
	}
	if stuck := stuck(o); len(stuck) > 0 {
		t.Errorf("a Job that was ready may move: %+v", stuck)
	}
}

// TestSingleJobIsPlacedAgain restarts one Job alone: it asks for a domain, and is created once it has one.
func TestSingleJobIsPlacedAgain(t *testing.T) {
	o := stuckSet(jobNamed("w", 0), func(js *jobsetv1alpha2.JobSet) {
		js.Status.ReplicatedJobsStatus = []jobsetv1alpha2.ReplicatedJobStatus{{Name: "w", JobRestarts: []int32{2, 0}}}
	})
	o.Waiting = nil
	diff(t, "asks", []domains.Unplaced{{Topology: rack, Indexes: []int32{0}, Restarts: []int32{2}}}, unplacedJobs(o))
	p := Decide(o)
	diff(t, "deleted", "js-w-0", deletedNames(p))
	diff(t, "created", "", createdAt(p))
	o.Jobs = o.Jobs[1:]
	diff(t, "created without a place", "", createdAt(Decide(o)))
	next := racks(0, 0, "a", "b")
	next.ReplicatedJobs[0].Jobs[0].Restarts = 2
	o.Placed = hostplan.Of(domains.Placed{Placement: next})
	p = Decide(o)
	diff(t, "created before the place is stored", "", createdAt(p))
	o.JobSet.Status, o.Placed = *p.Status, hostplan.NotObtained[domains.Placed]()
	diff(t, "asks again", 0, len(unplacedJobs(o)))
	diff(t, "created", "w-0 a", createdAt(Decide(o)))
}

// TestSuspendedJobMayMove suspends Jobs that have run, and takes that back. Their pods are gone or going, and a Job without a domain may take
// the place of one that is pinned to its domain.
func TestSuspendedJobMayMove(t *testing.T) {
	at := racks(0, 0, "a", "b")
	at.ReplicatedJobs[0].Jobs[0].Ready, at.ReplicatedJobs[0].Jobs[1].Ready = true, true
	observed := func(change ...func(*jobsetv1alpha2.JobSet)) Observed {
		set := newSet(append([]func(*jobsetv1alpha2.JobSet){with("w", 2), byRack, placedAt(at.DeepCopy())}, change...)...)
		set.Status.Attempts = []jobsetv1alpha2.Attempt{{Number: 1}}
		o := observe(set, jobNamed("w", 0, jobIsSuspended, releasedAt(SuspendedInAttempt(1))), jobNamed("w", 1, podsReady))
		o.Gates.ExclusivePlacement = true
		return o
	}
	ready := func(status *jobsetv1alpha2.JobSetStatus) string {
		jobs := status.Placement.ReplicatedJobs[0].Jobs
		return fmt.Sprint(jobs[0].Ready, " ", jobs[1].Ready)
	}
	o := observed()
	p := Decide(o)
	diff(t, "Jobs that do not leave", "false true", ready(statusAfter(o, p)))
	diff(t, "resumed before that is stored", "", resumedAt(p))
	if waits := Finish(o, p, Results{}).DeferStatus; waits > 0 {
		t.Errorf("the status waits for %s", waits)
	}
	o.JobSet.Status = *statusAfter(o, p)
	diff(t, "resumed once that is stored", "js-w-0 a", resumedAt(Decide(o)))

	o.Jobs[0] = jobNamed("w", 0)
	o.Waiting = map[types.UID]domains.Waiting{o.Jobs[0].UID: {Since: before.Time, Reason: noRoom}}
	diff(t, "Jobs that may move", 1, len(stuck(o)))

	o = observed(isSuspended) // the domains are forgotten once no Job may start pods
	diff(t, "Jobs that do not leave while the set is being suspended", "true true", ready(statusAfter(o, Decide(o))))
}
