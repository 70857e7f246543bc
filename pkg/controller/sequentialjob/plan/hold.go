// Copyright The jobset-apiserver Authors.
// SPDX-License-Identifier: Apache-2.0

package plan

import (
	"fmt"
	"strings"
	"time"

	batchv1 "k8s.io/api/batch/v1"
	corev1 "k8s.io/api/core/v1"
	"k8s.io/apimachinery/pkg/api/meta"

	batchv1alpha1 "github.com/jobset-apiserver/jobset-apiserver/pkg/apis/batch/v1alpha1"
	"github.com/jobset-apiserver/jobset-apiserver/pkg/apis/batch/v1alpha1/helper"
	jobsetv1alpha2 "github.com/jobset-apiserver/jobset-apiserver/pkg/apis/jobset/v1alpha2"
	hostplan "github.com/jobset-apiserver/jobset-apiserver/pkg/controller/host/plan"
	kueue "github.com/jobset-apiserver/jobset-apiserver/pkg/controller/kueue/plan"
)

// Hold is what is known of the quota for a whole sequence.
type Hold struct {
	// Admission lets the child run; without one it must not. While it is unknown, as while a controller starts or the API of Kueue is away,
	// what runs goes on, and nothing begins.
	Admission hostplan.Known[Admission]
	// Message is what the Workload waits for, or why it is not known whether there is quota.
	Message string
	// RetryAfter is when to look again, if nothing else shows that more is known; 0 if something does.
	RetryAfter time.Duration
}

// Admission is the quota that Kueue has given to a whole sequence.
type Admission struct {
	// Workload holds the quota, and Directives are what its admission adds to pods of each pod set.
	Workload   *kueue.Workload
	Directives map[string]kueue.Directives
	// Key differs for different directives.
	Key string
}

// waitsFor returns what the Workload waits for; "" if that is not known.
func (h *Hold) waitsFor(unreadable string) string {
	switch {
	case h.Admission.IsKnown() || h.Message != "":
		return h.Message
	case unreadable != "":
		return "the Workloads cannot be read: " + unreadable
	}
	return unknownWorkloads
}

// unknownWorkloads is what a step waits for while a controller starts.
const unknownWorkloads = "the Workloads are not known yet"

// reasonAdmittedElsewhere is the reason of the event about a step that begins again because the sequence was admitted to other nodes.
const reasonAdmittedElsewhere = "AdmittedElsewhere"

// followQueued follows a child that Kueue starts and stops. It is never unsuspended here.
func followQueued(q *sequence, c Child) (w wants) {
	if c.Suspended {
		w.seen(q, c)
		w.state = batchv1alpha1.StepWaiting
		w.conditions = append(resumedIf(q), progressing(batchv1alpha1.ReasonWaitingForQuota, waiting(q)))
	} else {
		w = run(q, c)
	}
	if workload := q.queue.Workload.Value(); workload != nil && !workload.Active && workload.Deactivated {
		w.setActive = workload.patch(true)
	}
	return w
}

// waiting returns what a child in a queue waits for.
func waiting(q *sequence) string {
	message := fmt.Sprintf("Job %d waits for quota", q.index)
	if name := q.queueName(); name != "" {
		message += " in queue " + name
	}
	reason := q.queue.waitsFor()
	if stored := stillStored(q, message); stored != "" && q.queue.unknown() {
		return stored
	}
	if reason != "" {
		message += ": " + reason
	}
	return message
}

// stillStored returns the stored message if it says what the sequence waits for; else "". What is not known does not replace it: a
// controller that has just started would write against one that knows more, and each write makes both look again.
func stillStored(q *sequence, message string) string {
	c := meta.FindStatusCondition(q.SequentialJob.Status.Conditions, batchv1alpha1.ConditionProgressing)
	if c == nil || c.Reason != batchv1alpha1.ReasonWaitingForQuota || !strings.HasPrefix(c.Message, message+": ") {
		return ""
	}
	return c.Message
}

// unknown returns whether it is not known yet whether there is quota, as while a controller starts.
func (q Queue) unknown() bool {
	return q.waitsFor() == unknownWorkloads && (q.Hold == nil || !q.Hold.Admission.IsKnown())
}

// waitsFor returns what the Workload of a child, or of the whole sequence, waits for; "" if that is not known.
func (q Queue) waitsFor() string {
	switch {
	case !q.Served:
		return "the cluster does not serve the API of Kueue"
	case q.Hold != nil && q.Hold.waitsFor(q.Unreadable) != "":
		return q.Hold.waitsFor(q.Unreadable)
	case q.Workload.Value() != nil:
		return q.Workload.Value().Message
	case q.Unreadable != "":
		return "its Workload cannot be read: " + q.Unreadable
	case !q.Workload.IsKnown():
		return unknownWorkloads
	}
	return "Kueue has made no Workload for it yet"
}

func (w *Workload) patch(active bool) *WorkloadPatch {
	return &WorkloadPatch{Name: w.Name, UID: w.UID, ResourceVersion: w.ResourceVersion, Active: active}
}

// waitForQuota records that the current step waits until the sequence has quota.
func waitForQuota(q *sequence) wants {
	w := wants{state: batchv1alpha1.StepWaiting}
	w.conditions = append(resumedIf(q), progressing(batchv1alpha1.ReasonWaitingForQuota, waiting(q)))
	if q.queue.Served {
		w.troubles = []hostplan.Trouble{notUnavailable()}
		return w
	}
	w.troubles = []hostplan.Trouble{unavailable(batchv1alpha1.ReasonQueueUnavailable,
		fmt.Sprintf("Job %d waits for quota, but the cluster does not serve the API of Kueue: "+
			"install Kueue, or remove the label %s from the SequentialJob", q.index, kueue.QueueKey))}
	return w
}

// holdChild lets a new child run with the quota of the sequence: no queue of its own, and what the admission adds. A child that
// contradicts the admission is an error.
func holdChild(hold *Hold, job *batchv1.Job, js *jobsetv1alpha2.JobSet) error {
	if hold == nil {
		return nil
	}
	admission := hold.Admission.Value()
	if job != nil {
		return holdJob(&admission, job)
	}
	return holdJobSet(&admission, js)
}

func holdJob(admission *Admission, job *batchv1.Job) error {
	held(admission, &job.Labels, &job.Annotations)
	job.Spec.Suspend = nil
	return admission.direct(kueue.MainPodSet, &job.Spec.Template)
}

func holdJobSet(admission *Admission, js *jobsetv1alpha2.JobSet) error {
	held(admission, &js.Labels, &js.Annotations)
	js.Spec.Suspend = nil
	for i := range js.Spec.ReplicatedJobs {
		job := &js.Spec.ReplicatedJobs[i]
		if err := admission.direct(job.Name, &job.Template.Spec.Template); err != nil {
			return fmt.Errorf("replicatedJob %s: %w", job.Name, err)
		}
	}
	return nil
}

// held takes a child out of queues, and notes with which admission it runs.
func held(admission *Admission, labels, annotations *map[string]string) {
	for _, key := range []string{kueue.QueueKey, kueue.PriorityClassKey, kueue.MaxExecTimeKey} {
		delete(*labels, key)
	}
	if *annotations == nil {
		*annotations = map[string]string{}
	}
	(*annotations)[batchv1alpha1.AdmissionKey] = admission.Key
}

// direct adds what the admission adds to the pods of a role.
func (a *Admission) direct(role string, template *corev1.PodTemplateSpec) error {
	return a.Directives[kueue.PodSetOf(a.Workload, role)].AddTo(template)
}

// followHeld follows a child that runs with the quota of the sequence: it is suspended while there is none. One that was created for
// another admission begins again, because its pods belong on other nodes.
func followHeld(q *sequence, c Child) (w wants) {
	hold := q.queue.Hold
	switch {
	case !hold.Admission.IsKnown() && !c.Suspended:
		w = run(q, c)
	case !hold.Admission.IsKnown():
		w = waitForQuota(q)
	case hold.Admission.IsNone():
		w = waitForQuota(q)
		if !c.Suspended {
			w.suspend = []SuspendPatch{{ChildRef: c.ChildRef, ResourceVersion: c.ResourceVersion, Suspend: true}}
		}
	case c.Suspended && c.Admission != hold.Admission.Value().Key:
		w.events = []Event{normal(reasonAdmittedElsewhere,
			fmt.Sprintf("Job %d runs again, because Kueue admitted the sequence to other nodes", q.index))}
		w.move = move{kind: begin, index: q.index}
	default:
		w = resumeChild(q, c)
	}
	w.childUID, w.requeueAfter = c.UID, hold.RetryAfter
	return w
}

// Busy returns whether pods of the sequence run, or may.
func Busy(o Observed) bool {
	for i := range o.Children {
		if o.Children[i].MayRun() {
			return true
		}
	}
	return false
}

// MayNeedQuota returns the children whose pods may run although no cache shows it: those that have not ended, and the one of the current
// step, which may have been created a moment ago. Its UID is empty.
func MayNeedQuota(o Observed) (refs []ChildRef) {
	index, steps := helper.CurrentIndex(&o.SequentialJob.Status), helper.Steps(&o.SequentialJob.Spec)
	next := ChildRef{Name: helper.ChildName(o.SequentialJob.Name, index)}
	shown := index < 0 || index >= len(steps)
	for i := range o.Children {
		c := &o.Children[i]
		shown = shown || c.Name == next.Name
		if c.End == "" {
			refs = append(refs, c.ChildRef)
		}
	}
	if shown {
		return refs
	}
	next.Kind = steps[index].Kind()
	return append(refs, next)
}

// MayRun returns whether pods of the child run, or may.
func (c *Child) MayRun() bool { return c.Busy || c.End == "" && !c.Suspended }

// PodsReady returns whether the pods of the current step are ready, or the sequence is between two steps.
func PodsReady(o Observed) bool {
	for i := range o.Children {
		if c := &o.Children[i]; isCurrent(o.SequentialJob, *c) {
			return c.Ready || c.End != ""
		}
	}
	return len(o.SequentialJob.Status.Progress.CompletedIndices) > 0
}
