// Copyright The jobset-apiserver Authors.
// SPDX-License-Identifier: Apache-2.0

package simulation

import (
	"errors"
	"maps"

	batchv1 "k8s.io/api/batch/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/utils/ptr"

	"github.com/jobset-apiserver/jobset-apiserver/pkg/controller/jobset/plan"
)

func (p *process) create(next plan.Plan) error {
	var errs []error
	if next.CreateService != nil {
		service := *next.CreateService
		errs = append(errs, createOwn(p, resourceServices, &p.world.services, &service))
	}
	for _, claim := range next.CreateClaims {
		c := *claim
		errs = append(errs, createOwn(p, resourceClaims, &p.world.claims, &c))
	}
	if err := errors.Join(errs...); err != nil {
		return err
	}
	return p.createJobs(next.CreateJobs)
}

// createJobs goes on after a Job that was denied, which says nothing about others, and begins after what was tried the next
// time.
func (p *process) createJobs(jobs []*batchv1.Job) error {
	tried, over := 0, false
	err := p.inBatches(len(jobs), func() bool { return over }, func(i int) error {
		tried = max(tried, i+1)
		err := p.createJob(jobs[i])
		over = over || err != nil && (p.timid || err != errDenied && err != errConflict)
		return err
	})
	if p.createFrom = 0; err != nil && !p.timid {
		p.createFrom = plan.PlaceAfter(p.observed.JobSet, jobs[tried-1], false)
	}
	return err
}

// createOwn creates what need not be this set's: any object of the name will do.
func createOwn[T metav1.Object](p *process, resource string, in *store[T], object T) error {
	version, err := p.request(func(bool) (int, error) {
		if _, taken := in.get(object.GetName()); taken {
			return 0, errExists
		}
		in.put(object)
		return number(object.GetResourceVersion()), nil
	})
	if err == nil && version > 0 {
		p.remember(resource, version)
	}
	if err == errExists {
		return nil
	}
	return err
}

func (p *process) createJob(wanted *batchv1.Job) error {
	js, at := p.observed.JobSet, p.observed
	version, err := p.request(func(known bool) (int, error) {
		if _, taken := p.world.jobs.get(wanted.Name); taken {
			return 0, errExists
		}
		if wanted.Name == p.denied {
			p.seen[denials]++
			return 0, errDenied
		}
		job := p.admitted(wanted)
		p.referee.jobCreated(at, job, known)
		p.world.jobs.put(job)
		p.note("  creates job %s", job.Name)
		return number(job.ResourceVersion), nil
	})
	if err == errExists {
		p.seen[namesTaken]++
		existing, found := p.world.jobs.get(wanted.Name)
		switch {
		case !found:
			p.dueAfter(freedNameRetry)
			return nil
		case !metav1.IsControlledBy(existing, js):
			p.takenNames = append(p.takenNames, wanted.Name)
			return nil
		case hasSetName(existing):
			return nil
		case !p.unkind:
			return p.restoreLabels(existing)
		}
	}
	if err == nil && version > 0 {
		p.remember(resourceJobs, version)
	}
	return err
}

// restoreLabels gives a Job back the labels of its pods, and looks again soon if it is gone, which no cache shows.
func (p *process) restoreLabels(existing *batchv1.Job) error {
	version, err := p.sendPatch(existing.Name, number(existing.ResourceVersion), func(job *batchv1.Job) error {
		p.note("  restores the labels of job %s", job.Name)
		p.seen[restorations]++
		job.Labels = maps.Clone(job.Labels)
		maps.Copy(job.Labels, plan.LostLabels(job))
		return nil
	})
	if err == nil && version == 0 {
		p.dueAfter(freedNameRetry)
	}
	return err
}

// admitted returns a new Job as the Job API stores it.
func (p *process) admitted(wanted *batchv1.Job) *batchv1.Job {
	job := *wanted
	job.UID = newUID("job", p.world.jobs.versions.last)
	if job.Spec.Parallelism == nil && job.Spec.Completions == nil {
		job.Spec.Completions = ptr.To[int32](1)
	}
	job.Spec.Parallelism = ptr.To(ptr.Deref(job.Spec.Parallelism, 1))
	job.Spec.Template.Labels = maps.Clone(job.Spec.Template.Labels)
	for key, value := range map[string]string{"controller-uid": string(job.UID), "batch.kubernetes.io/job-name": job.Name} {
		job.Spec.Template.Labels[key] = value
	}
	return &job
}
