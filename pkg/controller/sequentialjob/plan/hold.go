// Copyright The jobset-apiserver Authors.
// SPDX-License-Identifier: Apache-2.0

package plan

import (
	"fmt"
	"time"

	batchv1 "k8s.io/api/batch/v1"
	corev1 "k8s.io/api/core/v1"

	batchv1alpha1 "github.com/jobset-apiserver/jobset-apiserver/pkg/apis/batch/v1alpha1"
	jobsetv1alpha2 "github.com/jobset-apiserver/jobset-apiserver/pkg/apis/jobset/v1alpha2"
	kueue "github.com/jobset-apiserver/jobset-apiserver/pkg/controller/kueue/plan"
)

// Quota is what is known of the quota for a whole sequence. Its zero value says that nothing is.
type Quota int

// Quotas.
const (
	// QuotaUnknown means that the Workloads are not known, as while a controller starts or the API of Kueue is away. What
	// runs goes on, and nothing begins.
	QuotaUnknown Quota = iota
	// QuotaMissing means that the sequence has none. Its child must not run.
	QuotaMissing
	// QuotaHeld means that its child may run.
	QuotaHeld
)

// Hold is what is known of the Workload that holds quota for a whole sequence.
type Hold struct {
	Quota Quota
	// Workload, and what its admission adds to pods of each pod set, are set if there is quota.
	Workload   *kueue.Workload
	Directives map[string]kueue.Directives
	// Key differs for different directives.
	Key string
	// Message is what the Workload waits for, or why it is not known whether there is quota.
	Message string
	// RetryAfter is when to look again, if nothing else shows that more is known; 0 if something does.
	RetryAfter time.Duration
}

// waitsFor returns what the Workload waits for; "" if that is not known.
func (h *Hold) waitsFor(unreadable string) string {
	switch {
	case h.Quota != QuotaUnknown || h.Message != "":
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

// waitForHold returns whether the current step waits until the sequence has quota, and records that.
func (b *statusBuilder) waitForHold() bool {
	entry := entryOf(b.next)
	if hold := b.o.Queue.Hold; hold == nil || hold.Quota == QuotaHeld {
		if entry.State == batchv1alpha1.StepWaiting {
			entry.State = batchv1alpha1.StepStarting
		}
		return false
	}
	b.waitHeld(entry)
	b.followClock()
	return true
}

// waitHeld records that the current step waits until the sequence has quota.
func (b *statusBuilder) waitHeld(entry *batchv1alpha1.SequentialJobStepStatus) {
	if entry.State == batchv1alpha1.StepSuspended {
		b.setResumed()
	}
	entry.State = batchv1alpha1.StepWaiting
	b.setProgressing(batchv1alpha1.ReasonWaitingForQuota, b.waiting())
	if !b.o.Queue.Served {
		b.setUnavailable(batchv1alpha1.ReasonQueueUnavailable,
			fmt.Sprintf("Job %d waits for quota, but the cluster does not serve the API of Kueue: "+
				"install Kueue, or remove the label %s from the SequentialJob", b.index(), kueue.QueueKey))
	} else if b.is(batchv1alpha1.ConditionResourcesUnavailable) {
		b.endUnavailable()
	}
}

// holdChild lets the child of a plan run with the quota of the sequence: no queue of its own, and what the admission adds. A child
// that contradicts the admission is not created.
func (b *statusBuilder) holdChild(p *Plan) {
	hold := b.o.Queue.Hold
	if hold == nil {
		return
	}
	var err error
	switch {
	case p.CreateJob != nil:
		err = holdJob(hold, p.CreateJob)
	case p.CreateJobSet != nil:
		err = holdJobSet(hold, p.CreateJobSet)
	}
	if err != nil {
		p.CreateJob, p.CreateJobSet = nil, nil
		entryOf(b.next).State = batchv1alpha1.StepWaiting
		b.setProgressing(batchv1alpha1.ReasonWaitingForQuota, fmt.Sprintf("Job %d cannot run where Kueue admitted the sequence: %v", b.index(),
			err))
	}
}

func holdJob(hold *Hold, job *batchv1.Job) error {
	held(hold, &job.Labels, &job.Annotations)
	job.Spec.Suspend = nil
	return hold.direct(kueue.MainPodSet, &job.Spec.Template)
}

func holdJobSet(hold *Hold, js *jobsetv1alpha2.JobSet) error {
	held(hold, &js.Labels, &js.Annotations)
	js.Spec.Suspend = nil
	for i := range js.Spec.ReplicatedJobs {
		job := &js.Spec.ReplicatedJobs[i]
		if err := hold.direct(job.Name, &job.Template.Spec.Template); err != nil {
			return fmt.Errorf("replicatedJob %s: %w", job.Name, err)
		}
	}
	return nil
}

// held takes a child out of queues, and notes with which admission it runs.
func held(hold *Hold, labels, annotations *map[string]string) {
	for _, key := range []string{kueue.QueueKey, kueue.PriorityClassKey, kueue.MaxExecTimeKey} {
		delete(*labels, key)
	}
	if *annotations == nil {
		*annotations = map[string]string{}
	}
	(*annotations)[batchv1alpha1.AdmissionKey] = hold.Key
}

// direct adds what the admission adds to the pods of a role.
func (h *Hold) direct(role string, template *corev1.PodTemplateSpec) error {
	return h.Directives[kueue.PodSetOf(h.Workload, role)].AddTo(template)
}

// followHeld follows a child that runs with the quota of the sequence: it is suspended while there is none. One that was created for
// another admission begins again, because its pods belong on other nodes.
func (b *statusBuilder) followHeld(c Child, p *Plan) {
	entry, hold := entryOf(b.next), b.o.Queue.Hold
	entry.ChildUID = c.UID
	p.RequeueAfter = sooner(p.RequeueAfter, hold.RetryAfter)
	switch {
	case hold.Quota == QuotaUnknown && !c.Suspended:
		b.see(c)
		b.run(entry)
		return
	case hold.Quota == QuotaUnknown:
		b.waitHeld(entry)
		return
	case hold.Quota == QuotaMissing:
		if !c.Suspended {
			p.Suspend = append(p.Suspend, SuspendPatch{ChildRef: c.ChildRef, ResourceVersion: c.ResourceVersion, Suspend: true})
		}
		b.waitHeld(entry)
		return
	case c.Suspended && c.Admission != hold.Key:
		b.event(corev1.EventTypeNormal, reasonAdmittedElsewhere,
			fmt.Sprintf("Job %d runs again, because Kueue admitted the sequence to other nodes", b.index()))
		b.begin(b.index())
		return
	case c.Suspended && b.o.Contest != nil:
		b.yield(c)
		return
	case c.Suspended:
		p.Suspend = append(p.Suspend, SuspendPatch{ChildRef: c.ChildRef, ResourceVersion: c.ResourceVersion})
	}
	b.see(c)
	b.run(entry)
}

// Busy returns whether pods of the sequence run, or may.
func Busy(o Observed) bool {
	for i := range o.Children {
		if c := &o.Children[i]; c.Busy || c.End == "" && !c.Suspended {
			return true
		}
	}
	return false
}

// PodsReady returns whether the pods of the current step are ready, or the sequence is between two steps.
func PodsReady(o Observed) bool {
	for i := range o.Children {
		if c := &o.Children[i]; isCurrent(o.SequentialJob, *c) {
			return c.Ready || c.End != ""
		}
	}
	return len(o.SequentialJob.Status.Progress.CompletedIndices) > 0
}
