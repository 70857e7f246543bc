// Copyright The jobset-apiserver Authors.
// SPDX-License-Identifier: Apache-2.0

package why

import (
	"context"
	"slices"

	"k8s.io/apimachinery/pkg/api/meta"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/runtime"

	batchv1alpha1 "github.com/jobset-apiserver/jobset-apiserver/pkg/apis/batch/v1alpha1"
	"github.com/jobset-apiserver/jobset-apiserver/pkg/apis/batch/v1alpha1/helper"
	"github.com/jobset-apiserver/jobset-apiserver/pkg/kubectl/cli"
	"github.com/jobset-apiserver/jobset-apiserver/pkg/kubectl/snapshot"
)

// The reading of sequences. Of the steps, only the current one is of interest: those before have ended.

// sequenceKind is the kind SequentialJob.
func sequenceKind() *kind {
	return &kind{
		Kind: cli.SequentialJob, noun: "sequence", prefix: cli.SequentialJob.Names[2] + "/", label: batchv1alpha1.SequentialJobNameKey,
		children: "jobs", readChildren: (*loader).readJobs, essential: essentialWithJobs,
		controls: "SequentialJobs", queued: "Jobs", unqueue: unqueueSequence,
		read: (*loader).readSequence, assemble: (*loader).assembleSequence, more: (*loader).readMoreOfSequence, list: listSequences,
	}
}

// SequentialJob is the Diagnoser of SequentialJobs.
func SequentialJob(ctx context.Context, c *cli.Clients, name string) (*Report, error) {
	return explain(ctx, c, sequenceKind(), name, diagnoseSequence)
}

// sequenceSubject is a SequentialJob as a subject.
type sequenceSubject struct{ *batchv1alpha1.SequentialJob }

func (s sequenceSubject) manager() string {
	if helper.ManagedElsewhere(s.SequentialJob) {
		return *s.Spec.ManagedBy
	}
	return ""
}

func (s sequenceSubject) ended() bool { return helper.Finished(s.SequentialJob) != nil }

func (s sequenceSubject) observed() bool {
	return s.Status.ObservedGeneration > 0 || len(s.Status.Steps) > 0
}

func (s sequenceSubject) failedOn() string {
	if step := helper.CurrentStep(&s.Status); step != nil && step.FirstCause != nil {
		return step.FirstCause.Node
	}
	return ""
}

func unqueueSequence(d *diagnosis) []string {
	return []string{d.kubectl("label sequentialjob %s %s-", d.Name, helper.QueueKey), d.plugin("restart %s", d.ref())}
}

func (l *loader) readSequence(ctx context.Context) error {
	sj, err := l.JobSets.BatchV1alpha1().SequentialJobs(l.Namespace).Get(ctx, l.e.Name, metav1.GetOptions{})
	if err == nil {
		l.e.Sequence = sj
	}
	return err
}

// assembleSequence keeps the Job of the current step and its pods.
func (l *loader) assembleSequence() {
	s := snapshot.AssembleSequence(l.e.Sequence, l.jobs, nil, l.pods, l.e.Now)
	if at := helper.CurrentIndex(&l.e.Sequence.Status); at < len(s.Steps) && s.Steps[at].Job != nil {
		l.e.Jobs, l.e.Pods = append(l.e.Jobs, s.Steps[at].Job), s.Steps[at].Pods
	}
}

// readMoreOfSequence are the readings for the rules that only sequences have.
func (l *loader) readMoreOfSequence() []func(context.Context) {
	d := newDiagnosis(l.e)
	reads := []func(context.Context){}
	if c := d.available(); c != nil && c.Reason == batchv1alpha1.ReasonNameConflict {
		reads = append(reads, func(ctx context.Context) { l.readTakenJobs(ctx, []string{d.child()}) })
	}
	if owner, queue := d.queueOwner(); queue != "" {
		reads = append(reads, func(ctx context.Context) { l.readKueue(ctx, owner, queue) })
	}
	if step := helper.CurrentStep(&l.e.Sequence.Status); step != nil && step.Kind == batchv1alpha1.StepKindJobSet &&
		step.State != batchv1alpha1.StepSucceeded {
		reads = append(reads, func(ctx context.Context) { l.readChild(ctx, step.ChildName) })
	}
	return reads
}

// readChild reads the JobSet of the current step.
func (l *loader) readChild(ctx context.Context, name string) {
	child, err := load(ctx, l.Clients, setKind(), name)
	if err != nil {
		l.gap("jobsets", err)
		return
	}
	if child.JobSet == nil || metav1.IsControlledBy(child.JobSet, l.e.Sequence) {
		l.e.Child = child
	}
}

// queueOwner returns the object that waits in a queue, and the queue: the child if it has one, or else the whole sequence.
func (e *Evidence) queueOwner() (metav1.Object, string) {
	for _, job := range e.Jobs {
		if queue := job.Labels[helper.QueueKey]; queue != "" {
			return job, queue
		}
	}
	return e.Sequence, e.Sequence.Labels[helper.QueueKey]
}

// child is the name of the child of the current step.
func (d *diagnosis) child() string {
	return helper.ChildName(d.Sequence.Name, helper.CurrentIndex(&d.Sequence.Status))
}

// available returns the condition Available while it is False.
func (d *diagnosis) available() *metav1.Condition {
	if c := meta.FindStatusCondition(d.Sequence.Status.Conditions, batchv1alpha1.ConditionAvailable); c != nil &&
		c.Status == metav1.ConditionFalse {
		return c
	}
	return nil
}

func listSequences(ctx context.Context, l *loader, namespace string, options metav1.ListOptions) (runtime.Object, error) {
	return l.JobSets.BatchV1alpha1().SequentialJobs(namespace).List(ctx, options)
}

// The rules of sequences, by state. What all kinds share comes with the pods of the current step.
var (
	sequenceRules = map[string][]rule{
		stateUnknown:                         {storeRefused, apiServiceUnavailable, nodesLost, schedulingRefused, containersWaiting},
		stateNotFound:                        {notFound, childrenBlocked},
		string(batchv1alpha1.PhaseCompleted): {sequenceCompleted},
		string(batchv1alpha1.PhaseFailed):    {sequenceFailed},
		string(batchv1alpha1.PhaseSuspended): {managedByOther, olderThanNamespace, heldAfterRestore, controllerGone, childUnreadable,
			sequenceSuspended},
	}
	sequenceDeleting = []rule{sequenceDeletion, childrenBlocked, nodesLost, terminatingPods}
	sequenceRunning  = []rule{
		managedByOther, olderThanNamespace, heldAfterRestore, controllerGone, childUnreadable, reconciliation, stepNameTaken, stepRefused,
		stepQueued, stepElsewhere, podsRefused, childrenBlocked, stepUnreadable,
		nodesLost, terminatingPods, stepWaitsForPods, stepSuspended, schedulingRefused, podGroups, containersWaiting, podsFailed, stepOfJobSet,
		sequenceHealth,
	}
)

// diagnoseSequence explains the state of a sequence. It finds something in every case, also that all is well.
func diagnoseSequence(e *Evidence) *Report {
	d := newDiagnosis(e)
	if e.Sequence == nil {
		phase := d.unreadPhase()
		return d.report(phase, sequenceRules[phase.State])
	}
	s := snapshot.SummarizeSequence(e.Sequence)
	apply, known := sequenceRules[s.State]
	switch {
	case e.Sequence.DeletionTimestamp != nil:
		apply = sequenceDeleting
	case !known:
		apply = sequenceRunning
	}
	r := d.report(s.Phase, apply)
	r.Progress, r.Notes = &s.Progress, slices.Concat(queueIgnored(e), drainsBlocked(e))
	if e.Child != nil {
		for _, note := range Diagnose(e.Child).Notes {
			r.Notes = append(r.Notes, d.stepWords()+": "+note)
		}
		r.NotLookedAt = slices.Compact(slices.Concat(r.NotLookedAt, e.Child.NotLookedAt))
	}
	return r
}
