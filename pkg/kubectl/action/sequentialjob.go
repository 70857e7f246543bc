// Copyright The jobset-apiserver Authors.
// SPDX-License-Identifier: Apache-2.0

package action

import (
	"context"
	"fmt"
	"slices"
	"strconv"
	"strings"

	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/utils/ptr"

	batchv1alpha1 "github.com/jobset-apiserver/jobset-apiserver/pkg/apis/batch/v1alpha1"
	"github.com/jobset-apiserver/jobset-apiserver/pkg/apis/batch/v1alpha1/helper"
	batchclient "github.com/jobset-apiserver/jobset-apiserver/pkg/generated/clientset/versioned/typed/batch/v1alpha1"
	"github.com/jobset-apiserver/jobset-apiserver/pkg/kubectl/cli"
)

// SequentialJob is the Target of SequentialJobs.
type SequentialJob struct{}

var _ Target = SequentialJob{}

func sequences(c *cli.Clients) batchclient.SequentialJobInterface {
	return c.JobSets.BatchV1alpha1().SequentialJobs(c.Namespace)
}

// Has implements Target.
func (SequentialJob) Has(action string) bool { return action != rollback.name && action != pause.name }

// Takes implements Target.
func (SequentialJob) Takes(flag string) bool {
	return flag == fromStepFlag || flag == stepFlag || flag == attemptFlag
}

// Preconditions implements Target.
func (SequentialJob) Preconditions(ctx context.Context, c *cli.Clients, name string) (*Preconditions, error) {
	sj, err := sequences(c).Get(ctx, name, metav1.GetOptions{})
	if err != nil {
		return nil, err
	}
	p := &Preconditions{UID: ptr.To(sj.UID), Attempt: ptr.To[int32](0)}
	step, index := helper.CurrentStep(&sj.Status), helper.CurrentIndex(&sj.Status)
	if step != nil {
		p.Attempt = ptr.To(step.Attempts)
	}
	switch steps := helper.Steps(&sj.Spec); {
	case step != nil && step.State != batchv1alpha1.StepPending:
		p.Step = step.Name
	case index < len(steps):
		p.Step = steps[index].Name
	}
	return p, nil
}

// Send implements Target.
func (SequentialJob) Send(ctx context.Context, c *cli.Clients, action, name string, r Request, o metav1.CreateOptions) (Answer, error) {
	object := metav1.ObjectMeta{Name: name}
	spec := batchv1alpha1.SequentialJobActionSpec{Reason: r.Reason}
	if p := r.Preconditions; p != nil {
		spec.Preconditions = &batchv1alpha1.SequentialJobPreconditions{UID: p.UID, Step: p.Step, Attempt: p.Attempt}
	}
	switch action {
	case restart.name:
		out, err := sequences(c).Restart(ctx, name, &batchv1alpha1.SequentialJobRestart{TypeMeta: typeMeta("SequentialJobRestart"),
			ObjectMeta: object, Spec: spec}, o)
		return answerOf("SequentialJobRestart", out, err, func() Status { return sequenceStatus(&out.Status) })
	case suspend.name:
		out, err := sequences(c).Suspend(ctx, name, &batchv1alpha1.SequentialJobSuspend{TypeMeta: typeMeta("SequentialJobSuspend"),
			ObjectMeta: object, Spec: spec}, o)
		return answerOf("SequentialJobSuspend", out, err, func() Status { return sequenceStatus(&out.Status) })
	case resume.name:
		out, err := sequences(c).Resume(ctx, name, &batchv1alpha1.SequentialJobResume{TypeMeta: typeMeta("SequentialJobResume"),
			ObjectMeta: object, Spec: spec}, o)
		return answerOf("SequentialJobResume", out, err, func() Status { return sequenceStatus(&out.Status) })
	case cancel.name:
		out, err := sequences(c).Cancel(ctx, name, &batchv1alpha1.SequentialJobCancel{TypeMeta: typeMeta("SequentialJobCancel"),
			ObjectMeta: object, Spec: spec}, o)
		return answerOf("SequentialJobCancel", out, err, func() Status { return sequenceStatus(&out.Status) })
	case retry.name:
		from, err := stepNamed(ctx, c, name, r.FromStep)
		if err != nil {
			return Answer{}, err
		}
		out, err := sequences(c).Retry(ctx, name, &batchv1alpha1.SequentialJobRetry{
			TypeMeta: typeMeta("SequentialJobRetry"), ObjectMeta: object,
			Spec: batchv1alpha1.SequentialJobRetrySpec{Reason: r.Reason, FromStep: from, Preconditions: spec.Preconditions},
		}, o)
		return answerOf("SequentialJobRetry", out, err, func() Status { return sequenceStatus(&out.Status) })
	}
	return Answer{}, fmt.Errorf("SequentialJobs have no action %s", action)
}

func sequenceStatus(s *batchv1alpha1.SequentialJobActionStatus) Status {
	return Status{UID: s.UID, Step: s.Step, Attempt: s.Attempt, Time: s.Time, Message: s.Message}
}

// stepNamed returns the name of the step that --from-step means: the step of that name, or else of that index.
func stepNamed(ctx context.Context, c *cli.Clients, sequence, given string) (string, error) {
	index, err := strconv.Atoi(given)
	if err != nil {
		return given, nil // the server knows the names
	}
	sj, err := sequences(c).Get(ctx, sequence, metav1.GetOptions{})
	if err != nil {
		return "", err
	}
	var names []string
	for _, step := range helper.Steps(&sj.Spec) {
		names = append(names, step.Name)
	}
	switch {
	case slices.Contains(names, given):
		return given, nil
	case index < 0 || index >= len(names):
		return "", fmt.Errorf("--%s: must be a step of sequentialjob/%s, by index from 0 to %d or by name (%s), not %s",
			fromStepFlag, sequence, len(names)-1, strings.Join(names, ", "), given)
	}
	return names[index], nil
}

// Look implements Target. All is known from the status: users who may only act on sequences may not read their children.
func (SequentialJob) Look(ctx context.Context, c *cli.Clients, name string, goal Goal, answer Answer) (Progress, error) {
	sj, err := sequences(c).Get(ctx, name, metav1.GetOptions{})
	if err != nil {
		return Progress{}, err
	}
	return sequenceProgress(goal, sj, answer.Status), nil
}
