// Copyright The jobset-apiserver Authors.
// SPDX-License-Identifier: Apache-2.0

package action

import (
	"context"
	"fmt"
	"slices"
	"strings"

	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/utils/ptr"

	batchv1alpha1 "github.com/jobset-apiserver/jobset-apiserver/pkg/apis/batch/v1alpha1"
	leaderworkersetclient "github.com/jobset-apiserver/jobset-apiserver/pkg/generated/clientset/versioned/typed/leaderworkerset/v1"
	"github.com/jobset-apiserver/jobset-apiserver/pkg/kubectl/cli"
)

// Flags that LeaderWorkerSets alone have.
const (
	groupFlag      = "group"
	generationFlag = "generation"
	restartsFlag   = "restarts"
)

// ofLeaderWorkerSet are the flags that LeaderWorkerSets alone have.
var ofLeaderWorkerSet = []string{groupFlag, generationFlag, restartsFlag}

// LeaderWorkerSet is the Target of LeaderWorkerSets.
type LeaderWorkerSet struct{}

var _ Target = LeaderWorkerSet{}

func leaderWorkerSets(c *cli.Clients) leaderworkersetclient.LeaderWorkerSetInterface {
	return c.JobSets.LeaderworkersetV1().LeaderWorkerSets(c.Namespace)
}

// Has implements Target.
func (LeaderWorkerSet) Has(action string) bool {
	return slices.Contains([]string{restart.name, rollback.name, pause.name, resume.name}, action)
}

// Preconditions implements Target.
func (LeaderWorkerSet) Preconditions(ctx context.Context, c *cli.Clients, name string) (*Preconditions, error) {
	set, err := leaderWorkerSets(c).Get(ctx, name, metav1.GetOptions{})
	if err != nil {
		return nil, err
	}
	return &Preconditions{UID: ptr.To(set.UID)}, nil
}

// Takes implements Target.
func (LeaderWorkerSet) Takes(flag string) bool { return slices.Contains(ofLeaderWorkerSet, flag) }

func leaderWorkerSetPreconditions(p *Preconditions) *batchv1alpha1.LeaderWorkerSetPreconditions {
	if p == nil {
		return nil
	}
	return &batchv1alpha1.LeaderWorkerSetPreconditions{UID: p.UID, Generation: p.Generation, Restarts: p.Restarts}
}

// Send implements Target.
func (LeaderWorkerSet) Send(ctx context.Context, c *cli.Clients, action, name string, r Request, o metav1.CreateOptions) (Answer, error) {
	object, preconditions := metav1.ObjectMeta{Name: name}, leaderWorkerSetPreconditions(r.Preconditions)
	plain := batchv1alpha1.LeaderWorkerSetActionSpec{Reason: r.Reason, Preconditions: preconditions}
	switch action {
	case restart.name:
		out, err := leaderWorkerSets(c).Restart(ctx, name, &batchv1alpha1.LeaderWorkerSetRestart{
			TypeMeta: typeMeta("LeaderWorkerSetRestart"), ObjectMeta: object,
			Spec: batchv1alpha1.LeaderWorkerSetRestartSpec{Reason: r.Reason, Group: r.Group, Preconditions: preconditions},
		}, o)
		return answerOf("LeaderWorkerSetRestart", out, err, func() Status { return leaderWorkerSetStatus(&out.Status) })
	case rollback.name:
		out, err := leaderWorkerSets(c).Rollback(ctx, name, &batchv1alpha1.LeaderWorkerSetRollback{
			TypeMeta: typeMeta("LeaderWorkerSetRollback"), ObjectMeta: object,
			Spec: batchv1alpha1.LeaderWorkerSetRollbackSpec{Reason: r.Reason, ToRevision: r.ToRevision, Preconditions: preconditions},
		}, o)
		return answerOf("LeaderWorkerSetRollback", out, err, func() Status { return leaderWorkerSetStatus(&out.Status) })
	case pause.name:
		out, err := leaderWorkerSets(c).Pause(ctx, name, &batchv1alpha1.LeaderWorkerSetPause{TypeMeta: typeMeta("LeaderWorkerSetPause"),
			ObjectMeta: object, Spec: plain}, o)
		return answerOf("LeaderWorkerSetPause", out, err, func() Status { return leaderWorkerSetStatus(&out.Status) })
	case resume.name:
		out, err := leaderWorkerSets(c).Resume(ctx, name, &batchv1alpha1.LeaderWorkerSetResume{TypeMeta: typeMeta("LeaderWorkerSetResume"),
			ObjectMeta: object, Spec: plain}, o)
		return answerOf("LeaderWorkerSetResume", out, err, func() Status { return leaderWorkerSetStatus(&out.Status) })
	}
	return Answer{}, fmt.Errorf("LeaderWorkerSets have no action %s", action)
}

func leaderWorkerSetStatus(s *batchv1alpha1.LeaderWorkerSetActionStatus) Status {
	return Status{UID: s.UID, Revision: s.Revision, Time: s.Time, Message: s.Message}
}

// Look implements Target. All is known from the status: users who may only act on sets may not read their children.
func (LeaderWorkerSet) Look(ctx context.Context, c *cli.Clients, name string, goal Goal, answer Answer) (Progress, error) {
	set, err := leaderWorkerSets(c).Get(ctx, name, metav1.GetOptions{})
	if err != nil {
		return Progress{}, err
	}
	return replicaProgress(goal, set, answer.Status), nil
}

// unmetByLeaderWorkerSet describes a precondition of LeaderWorkerSets alone that was not met, by the name of its flag; "" if it is
// another one.
func unmetByLeaderWorkerSet(given *Preconditions, cause metav1.StatusCause) string {
	switch {
	case given == nil:
		return ""
	case cause.Field == "spec.preconditions.generation" && given.Generation != nil:
		return fmt.Sprintf("--%s %d is out of date; %s", generationFlag, *given.Generation, cause.Message)
	case cause.Field == "spec.preconditions.restarts" && given.Restarts != nil:
		return fmt.Sprintf("--%s %d is out of date; %s", restartsFlag, *given.Restarts, cause.Message)
	}
	return ""
}

// What the server says about a set that keeps no former revisions.
const (
	keepsNoRevisions = "spec.revisionHistoryLimit is 0"
	// historyLimit is the number of revisions that the command proposes to keep.
	historyLimit = 3
)

// rollbackNotes is what the answer to a rollback says beyond that the set was rolled back: what it waits for, and what is not kept.
func (r *runner) rollbackNotes(o object, message string) string {
	if r.action.name != rollback.name {
		return ""
	}
	_, notes, more := strings.Cut(message, "; ")
	if !more {
		return ""
	}
	return "; " + r.keepRevisions(o, notes)
}

// keepRevisions adds the command with which a set keeps former revisions to a text which says that it keeps none.
func (r *runner) keepRevisions(o object, text string) string {
	if r.action.name != rollback.name || o.target.Title != cli.LeaderWorkerSet.Title || !strings.Contains(text, keepsNoRevisions) {
		return text
	}
	return fmt.Sprintf(`%s; to keep the last %d: kubectl patch %s %s -n %s --type=merge -p '{"spec":{"revisionHistoryLimit":%d}}'`,
		text, historyLimit, o.target.Names[0], o.name, r.clients.Namespace, historyLimit)
}
