// Copyright The jobset-apiserver Authors.
// SPDX-License-Identifier: Apache-2.0

package simulation

import (
	"errors"
	"maps"
	"slices"
	"time"

	batchv1 "k8s.io/api/batch/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/utils/ptr"

	jobsetv1alpha2 "github.com/jobset-apiserver/jobset-apiserver/pkg/apis/jobset/v1alpha2"
	"github.com/jobset-apiserver/jobset-apiserver/pkg/controller/jobset/plan"
)

// apply carries a plan out in the order of the real one.
func (p *process) apply(next plan.Plan) error {
	js := p.observed.JobSet
	p.takenNames = nil
	next = p.withFirstCause(next)
	errs := []error{
		p.inBatches(len(next.DeleteJobs), never, func(i int) error { return p.deleteOwn(next.DeleteJobs[i]) }),
		p.inBatches(len(next.PatchJobs), never, func(i int) error { return p.patchJob(next.PatchJobs[i]) }),
		p.create(next),
	}
	next = p.heldBack(p.withTakenNames(next))
	stored, err := p.writeStatus(js, next.Status)
	if errs = append(errs, err); err == nil && next.DeleteJobSet {
		errs = append(errs, p.deleteOwnSet(stored))
	}
	if len(p.takenNames) > 0 {
		errs = append(errs, errNamesTaken)
	}
	return errors.Join(errs...)
}

// withTakenNames lets the status tell of Jobs that could not be created because others have their names.
func (p *process) withTakenNames(next plan.Plan) plan.Plan {
	if len(p.takenNames) == 0 {
		return next
	}
	slices.Sort(p.takenNames)
	told := plan.WithTakenNames(p.observed, next, p.takenNames)
	p.referee.told(p.observed, told)
	return told
}

// heldBack takes the status out of the plan if it may be written later.
func (p *process) heldBack(next plan.Plan) plan.Plan {
	if next.Status == nil {
		p.noted = plan.Noted{}
		return next
	}
	noted, wait := p.holdBack(p.observed, next)
	if wait == 0 {
		return next
	}
	p.note("  holds the status back")
	p.referee.heldBack(p.observed, wait)
	p.seen[heldStatuses]++
	p.noted = noted
	next.Status = nil
	p.dueAfter(wait)
	return next
}

func (p *process) deleteOwn(ref plan.JobRef) error {
	_, err := p.request(func(bool) (int, error) {
		job, found := p.world.jobs.get(ref.Name)
		switch {
		case !found:
			return 0, errNotFound
		case job.UID != ref.UID && !p.indifferent:
			return 0, errConflict
		}
		p.note("  deletes job %s", ref.Name)
		p.referee.jobDeleted(job)
		p.world.deleteJob(job, true)
		return 0, nil
	})
	if err == nil || err == errNotFound {
		p.deleted(ref.UID)
		return nil
	}
	return err
}

func (p *process) patchJob(patch plan.JobPatch) error {
	version := number(patch.ResourceVersion)
	if patch.ClearStartTime {
		var err error
		version, err = p.sendPatch(patch.Name, version, func(job *batchv1.Job) error {
			if job.Status.StartTime == nil || !jobIsSuspended(job) {
				return errInvalid
			}
			p.note("  clears the start time of job %s", job.Name)
			job.Status.StartTime = nil
			return nil
		})
		if err != nil || version == 0 {
			return err
		}
	}
	js := p.observed.JobSet
	_, err := p.sendPatch(patch.Name, version, func(job *batchv1.Job) error {
		p.note("  patches job %s", job.Name)
		if err := changeTemplate(job, patch.Directives); err != nil {
			return err
		}
		if patch.Suspend != nil {
			job.Spec.Suspend = ptr.To(*patch.Suspend)
		}
		if err := annotate(job, patch); err != nil {
			return err
		}
		if patch.Size != nil {
			job.Spec.Parallelism, job.Spec.Completions = patch.Size.Parallelism, patch.Size.Completions
		}
		p.referee.jobPatched(js, job, patch)
		return nil
	})
	return err
}

// changeTemplate replaces the directives of a Job under the conditions of the Job API.
func changeTemplate(job *batchv1.Job, d *plan.Directives) error {
	if d == nil {
		return nil
	}
	template := &job.Spec.Template
	if !jobIsSuspended(job) || job.Status.Active > 0 || job.Status.StartTime != nil || d.Labels["controller-uid"] != string(job.UID) {
		return errInvalid
	}
	template.Labels, template.Annotations = d.Labels, d.Annotations
	template.Spec.Containers = slices.Clone(template.Spec.Containers)
	for _, c := range d.Resources {
		template.Spec.Containers[c.Index].Resources = c.Resources
	}
	template.Spec.NodeSelector, template.Spec.Tolerations, template.Spec.SchedulingGates = d.NodeSelector, d.Tolerations, d.SchedulingGates
	return nil
}

// annotate sets annotations of a Job, as the operations of a JSON patch do.
func annotate(job *batchv1.Job, patch plan.JobPatch) error {
	switch {
	case len(patch.Annotations) == 0:
	case patch.Unannotated:
		job.Annotations = maps.Clone(patch.Annotations)
	case job.Annotations == nil:
		return errInvalid // there is nothing to add to
	default:
		job.Annotations = maps.Clone(job.Annotations)
		maps.Copy(job.Annotations, patch.Annotations)
	}
	return nil
}

// sendPatch returns the new version of the Job; 0 if the Job is gone, or nobody knows.
func (p *process) sendPatch(name string, version int, change func(*batchv1.Job) error) (int, error) {
	version, err := p.request(func(bool) (int, error) {
		job, found := p.world.jobs.get(name)
		switch {
		case !found:
			return 0, errNotFound
		case number(job.ResourceVersion) != version:
			return 0, errConflict
		}
		next := *job
		if err := change(&next); err != nil {
			return 0, err
		}
		p.world.jobs.put(&next)
		return number(next.ResourceVersion), nil
	})
	if err == errNotFound {
		return 0, nil
	}
	if err == nil && version > 0 {
		p.remember(resourceJobs, version)
	}
	return version, err
}

// writeStatus returns the set as it is stored then.
func (p *process) writeStatus(js *jobsetv1alpha2.JobSet, status *jobsetv1alpha2.JobSetStatus) (*jobsetv1alpha2.JobSet, error) {
	if status == nil {
		return js, nil
	}
	var next jobsetv1alpha2.JobSet
	at := p.observed
	version, err := p.request(func(known bool) (int, error) {
		current := p.set()
		switch {
		case current == nil:
			return 0, errNotFound
		case current.ResourceVersion != js.ResourceVersion && !p.overwriting:
			p.seen[conflicts]++
			return 0, errConflict
		}
		next = *current
		next.Status = asStored(status)
		p.referee.statusStored(at, &current.Status, &next.Status, known)
		p.world.jobSets.put(&next)
		p.note("  stores the status")
		return number(next.ResourceVersion), nil
	})
	switch {
	case err == errNotFound:
		return js, nil
	case err != nil:
		return nil, err
	case version == 0:
		return js, nil
	}
	p.remember(resourceJobSets, version)
	p.noted = plan.Noted{}
	return &next, nil
}

// asStored drops what the API does not store of times.
func asStored(status *jobsetv1alpha2.JobSetStatus) jobsetv1alpha2.JobSetStatus {
	stored := *status
	if start := status.StartTime; start != nil {
		stored.StartTime = ptr.To(metav1.NewTime(start.Truncate(time.Second)))
	}
	stored.Conditions = slices.Clone(status.Conditions)
	for i := range stored.Conditions {
		c := &stored.Conditions[i]
		c.LastTransitionTime = metav1.NewTime(c.LastTransitionTime.Truncate(time.Second))
	}
	return stored
}

// deleteOwnSet deletes a set whose time is over, unless it was changed meanwhile.
func (p *process) deleteOwnSet(stored *jobsetv1alpha2.JobSet) error {
	uid, version := stored.UID, stored.ResourceVersion
	_, err := p.request(func(bool) (int, error) {
		js := p.set()
		switch {
		case js == nil:
			return 0, errNotFound
		case js.UID != uid || js.ResourceVersion != version:
			return 0, errConflict
		}
		p.referee.setDeleted(js)
		p.note("  deletes the set after its time to live")
		p.changeSet(func(js *jobsetv1alpha2.JobSet) { js.DeletionTimestamp = ptr.To(p.stored()) })
		return 0, nil
	})
	if err == errNotFound {
		return nil
	}
	return err
}

// noteDecision adds what was seen and what was decided to the trace.
func (p *process) noteDecision(next plan.Plan) {
	if p.trace == nil {
		return
	}
	p.note("sync sees %s; decides %s", describe(p.observed), describePlan(next))
}
