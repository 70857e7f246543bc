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
	return p.inBatches(len(next.CreateJobs), func(i int) error { return p.createJob(next.CreateJobs[i]) })
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
		case found && !metav1.IsControlledBy(existing, js):
			p.takenNames = append(p.takenNames, wanted.Name)
			return nil
		case found && hasSetName(existing):
			return nil
		}
	}
	if err == nil && version > 0 {
		p.remember(resourceJobs, version)
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
