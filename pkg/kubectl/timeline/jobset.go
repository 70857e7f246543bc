// Copyright The jobset-apiserver Authors.
// SPDX-License-Identifier: Apache-2.0

package timeline

import (
	"context"
	"time"

	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"

	jobsetv1alpha2 "github.com/jobset-apiserver/jobset-apiserver/pkg/apis/jobset/v1alpha2"
	"github.com/jobset-apiserver/jobset-apiserver/pkg/kubectl/cli"
	"github.com/jobset-apiserver/jobset-apiserver/pkg/kubectl/snapshot"
)

// JobSet is the Reader of JobSets. Without a history of attempts, their Jobs are read in any case.
func JobSet(ctx context.Context, c *cli.Clients, name string, withJobs bool) (View, error) {
	if !withJobs {
		js, err := c.JobSets.JobsetV1alpha2().JobSets(c.Namespace).Get(ctx, name, metav1.GetOptions{})
		if err != nil {
			return nil, err
		}
		if snapshot.InMultiKueue(js) {
			t := Build(js, time.Now())
			t.inWorkerCluster(js, readWorkload(ctx, c, js))
			return t, nil
		}
		if !snapshot.LacksAttempts(js) {
			return Build(js, time.Now()), nil
		}
	}
	set, err := snapshot.Load(ctx, c, name, false)
	if err != nil {
		return nil, err
	}
	t := Build(set.JobSet, set.Now)
	t.Jobs = Lanes(set.Jobs, t.Attempts, set.Now)
	switch {
	case snapshot.InMultiKueue(set.JobSet):
		t.inWorkerCluster(set.JobSet, readWorkload(ctx, c, set.JobSet))
	case snapshot.LacksAttempts(set.JobSet):
		withoutHistory(t, set.JobSet)
	}
	return t, nil
}

// withoutHistory leaves what is known of a set on a server that records no attempts: its Jobs.
func withoutHistory(t *Timeline, js *jobsetv1alpha2.JobSet) {
	t.Note = snapshot.NoAttempts(js)
	if len(t.Jobs) == 0 {
		return
	}
	t.Phases = []Phase{}
}

// Timeline is the life of one set as data: what -o json prints, and what chart and page are drawn from.
type Timeline struct {
	// JobSet and Namespace name the set.
	JobSet    string `json:"jobSet"`
	Namespace string `json:"namespace"`
	// Summary is the state of the set.
	snapshot.Summary
	// CreateTime is when the set was created.
	CreateTime time.Time `json:"createTime"`
	// Begin is where the phases begin: when the set was created, or when the oldest attempt that is kept began if earlier ones
	// are not kept.
	Begin time.Time `json:"begin"`
	// End is when the set finished, or the time of reading for one that has not.
	End time.Time `json:"end"`
	// LifeSeconds is the time from creation to End.
	LifeSeconds float64 `json:"lifeSeconds"`
	// Finished reports which of both End is.
	Finished bool `json:"finished"`
	// ReadySeconds is how long all Jobs were ready, also in attempts that are no longer kept.
	ReadySeconds float64 `json:"readySeconds"`
	// ReadyShare is ReadySeconds as a share of the time from creation to End, from 0 to 1.
	ReadyShare float64 `json:"readyShare"`
	// Attempts are the attempts that the set keeps, the oldest first.
	Attempts []Attempt `json:"attempts"`
	// Phases follow each other in time without overlap.
	Phases []Phase `json:"phases"`
	// Jobs are the runs of the Jobs that exist, on request.
	Jobs []Lane `json:"jobs,omitempty"`
	// Note says what is not known.
	Note string `json:"note,omitempty"`
}

// Attempt is an attempt of the set as the server has it, and the times that follow from it.
type Attempt struct {
	jobsetv1alpha2.Attempt
	// Seconds is how long it lasted, or lasts.
	Seconds float64 `json:"seconds"`
	// SecondsToReady is the time from its begin until all Jobs were ready. Absent when they never were.
	SecondsToReady *float64 `json:"secondsToReady,omitempty"`
	// Recovers reports that it followed another one which was not stopped on request, so that SecondsToReady is the time
	// to recover.
	Recovers bool `json:"recovers,omitempty"`
}

// Kind is what a set did during a phase.
type Kind string

// The kinds of phases. The first five are between attempts, the others in one; Failed is for Jobs and groups, and the last three are for
// revisions.
const (
	Waiting   Kind = "waiting"   // for the controller to begin
	Suspended Kind = "suspended" // by a user
	Queued    Kind = "queued"    // suspended for a queueing system
	Remote    Kind = "remote"    // Kueue runs it in another cluster
	Stopped   Kind = "stopped"   // failed or cancelled, until a user retried it
	Creating  Kind = "creating"  // until all Jobs exist, which includes deleting earlier Jobs
	Starting  Kind = "starting"  // until all Jobs are ready
	Running   Kind = "running"   // all Jobs are ready, or were when this began
	Failed    Kind = "failed"    // a Job that failed, or a group that waits to be recreated or is left as it is
	Updating  Kind = "updating"  // groups are replaced by groups of the revision
	Paused    Kind = "paused"    // a user has paused the update
	Current   Kind = "current"   // the groups have the revision of the spec
)

// Phase is a part of the life of the set.
type Phase struct {
	Kind Kind `json:"kind"`
	// Attempt is the number of the attempt that the phase is part of. Absent between attempts.
	Attempt int32     `json:"attempt,omitempty"`
	Begin   time.Time `json:"begin"`
	End     time.Time `json:"end"`
	Seconds float64   `json:"seconds"`
	// Open reports that the phase has not ended.
	Open bool `json:"open,omitempty"`
}

// gapFrom is the shortest time between attempts that is shown. What is shorter is the time of writing a status.
const gapFrom = time.Second
