// Copyright The jobset-apiserver Authors.
// SPDX-License-Identifier: Apache-2.0

package simulation

import (
	"context"
	"maps"
	"slices"
	"time"

	batchv1 "k8s.io/api/batch/v1"
	"k8s.io/apimachinery/pkg/api/equality"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/types"
	"k8s.io/utils/ptr"

	jobsetv1alpha2 "github.com/jobset-apiserver/jobset-apiserver/pkg/apis/jobset/v1alpha2"
)

// This file holds the clients through which the controller writes. What the API servers answer is theirs, what happens on
// the way is drawn.

// childClient is a client of Services or claims. Any object of a name will do, so they are only created.
type childClient[T metav1.Object] struct {
	*process
	in   *store[T]
	copy func(T) T
}

func (c childClient[T]) Create(_ context.Context, wanted T, _ metav1.CreateOptions) (T, error) {
	return send(c.process, wanted, func(bool) (T, error) {
		if _, taken := c.in.get(wanted.GetName()); taken {
			return wanted, errExists
		}
		object := c.copy(wanted)
		c.in.put(object)
		return object, nil
	})
}

func (c childClient[T]) Get(_ context.Context, name string, _ metav1.GetOptions) (T, error) {
	return read(c.process, func() (T, error) {
		object, found := c.in.get(name)
		if !found {
			return object, errNotFound
		}
		return object, nil
	})
}

func (childClient[T]) Patch(context.Context, string, types.PatchType, []byte, metav1.PatchOptions, ...string) (T, error) {
	panic("nobody patches these")
}

func (childClient[T]) Delete(context.Context, string, metav1.DeleteOptions) error {
	panic("nobody deletes these")
}

// jobClient is a client of Jobs.
type jobClient struct{ childClient[*batchv1.Job] }

func (c jobClient) Create(_ context.Context, wanted *batchv1.Job, _ metav1.CreateOptions) (*batchv1.Job, error) {
	at := c.observed
	return send(c.process, wanted, func(known bool) (*batchv1.Job, error) {
		if _, taken := c.in.get(wanted.Name); taken {
			c.seen[namesTaken]++
			return nil, errExists
		}
		if wanted.Name == c.denied {
			c.seen[denials]++
			return nil, errDenied
		}
		job := c.admitted(wanted)
		c.invariants.jobCreated(at, job, known)
		c.in.put(job)
		c.note("  creates job %s", job.Name)
		return job, nil
	})
}

// admitted returns a new Job as the Job API stores it.
func (c jobClient) admitted(wanted *batchv1.Job) *batchv1.Job {
	job := *wanted
	job.UID = newUID("job", c.in.versions.last)
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

func (c jobClient) Delete(_ context.Context, name string, options metav1.DeleteOptions) error {
	_, err := send(c.process, nil, func(bool) (*batchv1.Job, error) {
		job, found := c.in.get(name)
		switch {
		case !found:
			return nil, errNotFound
		case job.UID != *options.Preconditions.UID && !c.indifferent:
			return nil, errConflict
		}
		c.note("  deletes job %s", name)
		c.invariants.jobDeleted(job)
		c.deleteJob(job, *options.PropagationPolicy == metav1.DeletePropagationForeground)
		return nil, nil
	})
	return err
}

func (c jobClient) Patch(_ context.Context, name string, _ types.PatchType, patch []byte, _ metav1.PatchOptions, subresources ...string) (*batchv1.Job, error) {
	js := c.observed.JobSet
	return send(c.process, &batchv1.Job{}, func(bool) (*batchv1.Job, error) {
		job, found := c.in.get(name)
		if !found {
			return nil, errNotFound
		}
		next, err := patched(job, patch)
		if err != nil {
			return nil, errInvalid
		}
		if next.ResourceVersion != job.ResourceVersion {
			return nil, errConflict
		}
		if wrong := c.admitPatch(js, job, next, slices.Contains(subresources, "status")); wrong != nil {
			return nil, wrong
		}
		c.in.put(next)
		return next, nil
	})
}

// admitPatch checks a changed Job as the Job API does, and as invariants do.
func (c jobClient) admitPatch(js *jobsetv1alpha2.JobSet, job, next *batchv1.Job, status bool) error {
	stopped := jobIsSuspended(job) && job.Status.Active == 0
	switch {
	case status:
		if !jobIsSuspended(job) {
			return errInvalid
		}
		c.note("  clears the start time of job %s", job.Name)
		return nil
	case !equality.Semantic.DeepEqual(job.Spec.Template, next.Spec.Template):
		if !stopped || job.Status.StartTime != nil || next.Spec.Template.Labels["controller-uid"] != string(job.UID) {
			return errInvalid
		}
	case !maps.Equal(job.Labels, next.Labels):
		if c.unkind {
			return errServer
		}
		c.note("  restores the labels of job %s", job.Name)
		c.seen[restorations]++
		return nil
	}
	c.note("  patches job %s", job.Name)
	c.invariants.jobPatched(js, job, next)
	return nil
}

// setClient is a client of JobSets.
type setClient struct{ *process }

func (c setClient) UpdateStatus(_ context.Context, wanted *jobsetv1alpha2.JobSet, _ metav1.UpdateOptions) (*jobsetv1alpha2.JobSet, error) {
	at := c.observed
	return send(c.process, wanted, func(known bool) (*jobsetv1alpha2.JobSet, error) {
		current := c.set()
		switch {
		case current == nil:
			return nil, errNotFound
		case current.ResourceVersion != wanted.ResourceVersion && !c.overwriting:
			c.seen[conflicts]++
			return nil, errConflict
		}
		next := *current
		next.Status = asStored(&wanted.Status)
		c.invariants.statusStored(at, &current.Status, &next.Status, known)
		c.env.jobSets.put(&next)
		c.note("  stores the status")
		return &next, nil
	})
}

func (c setClient) Delete(_ context.Context, _ string, options metav1.DeleteOptions) error {
	_, err := send(c.process, nil, func(bool) (*jobsetv1alpha2.JobSet, error) {
		js := c.set()
		switch {
		case js == nil:
			return nil, errNotFound
		case js.UID != *options.Preconditions.UID || js.ResourceVersion != *options.Preconditions.ResourceVersion:
			return nil, errConflict
		}
		c.invariants.setDeleted(js)
		c.note("  deletes the set after its time to live")
		c.changeSet(func(js *jobsetv1alpha2.JobSet) { js.DeletionTimestamp = ptr.To(c.stored()) })
		return nil, nil
	})
	return err
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
