// Copyright The jobset-apiserver Authors.
// SPDX-License-Identifier: Apache-2.0

package plan

import (
	"cmp"
	"slices"
	"strconv"
	"strings"

	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/utils/ptr"

	batchv1alpha1 "github.com/jobset-apiserver/jobset-apiserver/pkg/apis/batch/v1alpha1"
	"github.com/jobset-apiserver/jobset-apiserver/pkg/apis/batch/v1alpha1/helper"
)

// sequence is a snapshot with what follows from it. Subjects only read it.
type sequence struct {
	Observed
	// steps are the steps of the spec, and index is the index of the step that runs or is next.
	steps []helper.Step
	index int
	// entry is what the status says about the current step; nil if it has never begun. begun is true if it has begun and not ended.
	entry *batchv1alpha1.SequentialJobStepStatus
	begun bool
	// finished is the condition with which the sequence has ended; nil if it has not. suspended is its spec.suspend.
	finished  *metav1.Condition
	suspended bool
	// queue is what is known of Kueue; it is served if the sequence has no queue.
	queue Queue

	// current is the child of the current attempt of the current step; nil if there is none.
	current *Child
	// inTheWay are children that must be gone before a child is created. They have not ended and should not run, or they belong to
	// older attempts of the current step and have its name.
	inTheWay []member
	// ended are the ended children of other steps, or of older attempts. They stay.
	ended []member
	// active is the number of children that have not ended.
	active int32
}

// member is a child with the index of its step.
type member struct {
	Child
	index int
}

// look returns a snapshot with what follows from it.
func look(o Observed) *sequence {
	sj := o.SequentialJob
	q := &sequence{
		Observed: o, steps: helper.Steps(&sj.Spec), index: currentIndex(&sj.Status), entry: entryOf(&sj.Status), begun: begun(&sj.Status) != nil,
		finished: helper.Finished(sj), suspended: helper.Suspended(sj), queue: Queue{Served: true},
	}
	if known, asked := o.Queue.Get(); asked {
		q.queue = known
	}
	for i := range o.Children {
		c := &o.Children[i]
		if c.End == "" {
			q.active++
		}
		switch m := (member{Child: *c, index: indexOf(sj, c.Name)}); {
		case q.current == nil && isCurrent(sj, *c):
			q.current = c
		case c.End == "", q.begun && c.Name == q.entry.ChildName:
			q.inTheWay = append(q.inTheWay, m)
		default:
			q.ended = append(q.ended, m)
		}
	}
	slices.SortFunc(q.inTheWay, compareMembers)
	slices.SortFunc(q.ended, compareMembers)
	return q
}

// step returns the step that runs or is next, and whether the spec has it.
func (q *sequence) step() (helper.Step, bool) {
	if q.index < 0 || q.index >= len(q.steps) {
		return helper.Step{}, false
	}
	return q.steps[q.index], true
}

// unwanted returns the current child, if there is one, and those that are in its way.
func (q *sequence) unwanted() []member {
	if q.current == nil {
		return q.inTheWay
	}
	return append(slices.Clone(q.inTheWay), member{Child: *q.current, index: q.index})
}

// currentIndex returns the index of the step that runs or is next.
func currentIndex(status *batchv1alpha1.SequentialJobStatus) int {
	return int(ptr.Deref(status.Progress.CurrentIndex, 0))
}

// currentEntry returns what status says about the current step; nil if it has never begun.
func currentEntry(sj *batchv1alpha1.SequentialJob) *batchv1alpha1.SequentialJobStepStatus {
	return entryOf(&sj.Status)
}

func entryOf(status *batchv1alpha1.SequentialJobStatus) *batchv1alpha1.SequentialJobStepStatus {
	if index := currentIndex(status); index >= 0 && index < len(status.Steps) {
		return &status.Steps[index]
	}
	return nil
}

// begunStep returns what status says about the current step if it has begun and not ended; nil otherwise. After a retry from
// an earlier step, later ones are there that have to begin again.
func begunStep(sj *batchv1alpha1.SequentialJob) *batchv1alpha1.SequentialJobStepStatus {
	return begun(&sj.Status)
}

func begun(status *batchv1alpha1.SequentialJobStatus) *batchv1alpha1.SequentialJobStepStatus {
	entry := entryOf(status)
	if entry == nil || !slices.Contains(unended, entry.State) {
		return nil
	}
	return entry
}

// unended are the states of steps that have begun and not ended.
var unended = []batchv1alpha1.StepState{
	batchv1alpha1.StepStarting, batchv1alpha1.StepWaiting, batchv1alpha1.StepRunning, batchv1alpha1.StepSuspended,
}

// isCurrent returns whether a child belongs to the current attempt of the current step. A child that the status names does,
// whatever its labels say.
func isCurrent(sj *batchv1alpha1.SequentialJob, c Child) bool {
	entry := currentEntry(sj)
	switch {
	case entry == nil || entry.Kind != c.Kind || entry.ChildName != c.Name:
		return false
	case entry.ChildUID != "" && entry.ChildUID == c.UID:
		return true
	}
	return c.Attempt == entry.Attempts
}

// Current returns the child of the current attempt of the current step; zero if there is none.
func Current(o Observed) ChildRef {
	for i := range o.Children {
		if isCurrent(o.SequentialJob, o.Children[i]) {
			return o.Children[i].ChildRef
		}
	}
	return ChildRef{}
}

// indexOf returns the index of the step of a child, by its name; -1 if the name is no name of a child.
func indexOf(sj *batchv1alpha1.SequentialJob, name string) int {
	number, found := strings.CutPrefix(name, sj.Name+"-")
	index, err := strconv.Atoi(number)
	if !found || err != nil || helper.ChildName(sj.Name, index) != name {
		return -1
	}
	return index
}

func compareMembers(a, b member) int {
	return cmp.Or(cmp.Compare(a.index, b.index), cmp.Compare(a.Kind, b.Kind), cmp.Compare(a.UID, b.UID))
}

// queueName returns the queue that the child of the current step is given; empty if none.
func (q *sequence) queueName() string {
	if step, found := q.step(); found {
		return queueOf(q.SequentialJob, step)
	}
	return ""
}

// MayQueue returns whether children of the sequence may name a queue.
func MayQueue(sj *batchv1alpha1.SequentialJob) bool {
	return sj.Labels[helper.QueueKey] != "" || slices.ContainsFunc(helper.Steps(&sj.Spec),
		func(step helper.Step) bool { return queueOf(sj, step) != "" }) ||
		slices.ContainsFunc(sj.Status.Steps, func(s batchv1alpha1.SequentialJobStepStatus) bool {
			return s.State == batchv1alpha1.StepWaiting || s.State == batchv1alpha1.StepSuspended
		})
}

// queueOf returns the queue that the child of a step is given.
func queueOf(sj *batchv1alpha1.SequentialJob, step helper.Step) string {
	switch {
	case step.Job != nil && step.Job.Labels[helper.QueueKey] != "":
		return step.Job.Labels[helper.QueueKey]
	case step.JobSet != nil && step.JobSet.Labels[helper.QueueKey] != "":
		return step.JobSet.Labels[helper.QueueKey]
	}
	return sj.Labels[helper.QueueKey]
}
